package engine_test

import (
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/core/offload"
)

// offloads gives the engine host memory: 4 ms per block to it, 1 ms back.
func offloads(blocks int) func(*config.Engine) {
	return func(c *config.Engine) {
		c.EmitKVEvents = true
		c.KVCacheBytesPerToken = 1_000_000
		c.HostOffload = config.HostOffload{Blocks: blocks, D2HGBs: 1, H2DGBs: 4}
	}
}

// settle lets copies end that do so before the given time.
func (l *lab) settle(until float64) (times []float64) {
	for {
		at, ok := l.e.NextInternalMs()
		if !ok || at > until {
			break
		}
		l.e.Internal(at)
		times = append(times, at)
	}
	l.now = until
	return times
}

// Engine notes §11: what the GPU has evicted is loaded back, what is loaded
// counts as reused, and the attribution tells it apart.
func TestLoadsFromHost(t *testing.T) {
	l := newLab(t, vllm(6, offloads(20)))
	l.submit(span(0, 9), 1)
	l.run() // 2 blocks, stored from 10 to 18
	if got := l.settle(50); len(got) != 1 || got[0] != 18 {
		t.Errorf("copies ended at %v, want 18", got)
	}
	if e := l.e.Effects(); len(e.KVEvents) != 1 || !e.KVEvents[0].Host || e.KVEvents[0].Count != 2 {
		t.Errorf("events of the store: %+v", e.KVEvents)
	}
	l.submit(span(100, 20), 1)
	l.run()
	l.settle(100)
	l.submit(span(0, 9), 1)
	out := l.step()
	if l.now != 100 || !out.Effect || len(out.Admissions) != 0 || l.e.Ready() || l.e.WaitingLen() != 1 {
		t.Fatalf("the load: at %v, %+v", l.now, out)
	}
	if got := l.settle(102); len(got) != 1 || got[0] != 101 {
		t.Fatalf("copies ended at %v, want 101", got)
	}
	out = l.step()
	if a := out.Admissions; l.now != 112 || len(a) != 1 || a[0].Reused != 8 || a[0].Host != 4 {
		t.Errorf("at %v: admissions %+v", l.now, a)
	}
}

// A block that is being stored can be given away, but what is written into it
// waits; and it is not stored in that pass.
func TestSourceFence(t *testing.T) {
	for _, out := range []int{1, 2} {
		l := newLab(t, vllm(6, offloads(20)))
		l.submit(span(0, 9), 1)
		l.run() // stored from 10 to 18
		l.submit(span(100, 19), out)
		l.run() // takes the last block of the first
		want := []string{"10 [0.]", "28 [1.]"}
		if out == 2 {
			want = []string{"10 [0.]", "28 [1]", "30 [1.]"}
		}
		l.wantPasses(want...)
		if got := len(l.settle(500)); got != out-1 {
			t.Errorf("output %d: %d stores of the second, want %d", out, got, out-1)
		}
	}
}

// A request waits for a store that is under way rather than compute again.
func TestWaitsForAStore(t *testing.T) {
	l := newLab(t, vllm(6, offloads(20)))
	l.submit(span(0, 9), 1)
	l.run()
	l.submit(span(100, 20), 1)
	l.step() // 10 to 28: fenced by the store, which ends at 18
	l.submit(span(200, 20), 1)
	l.settle(28)
	l.submit(span(0, 9), 1)
	l.run()
	if s := l.stories[3]; s.outcome == "completed" && s.reused[0] == 0 {
		t.Errorf("computed again: %+v", s)
	}
}

// Host memory without room for a whole prompt keeps none of it, and drops what
// was not used longest.
func TestHostIsFull(t *testing.T) {
	l := newLab(t, vllm(20, offloads(3)))
	for i, prompt := range []uint32{8, 16, 8} {
		l.submit(span(uint32(i)*100, prompt), 1)
		l.run()
		l.settle(l.now + 100)
	}
	removed := 0
	for _, e := range l.e.Out().KVEvents {
		if e.Host && e.Kind == engine.Removed {
			removed += e.Count
		}
	}
	if removed != 1 {
		t.Errorf("%d blocks were dropped for the third prompt, want 1", removed)
	}
}

func TestCancelWhileLoading(t *testing.T) {
	l := newLab(t, vllm(6, offloads(20)))
	l.submit(span(0, 9), 1)
	l.run()
	l.settle(50)
	l.submit(span(100, 20), 1)
	l.run()
	l.settle(100)
	h := l.submit(span(0, 9), 1)
	l.step()
	if l.e.Cancel(h) != engine.Applied || l.e.WaitingLen() != 0 || l.e.Metrics().ActiveBlocks != 0 {
		t.Errorf("after the cancellation: %+v", l.e.Metrics())
	}
	l.settle(200)
	l.submit(span(0, 9), 1)
	l.step()
	l.settle(300)
	l.run()
	if s := l.stories[3]; s.outcome != "completed" || s.reused[0] != 8 {
		t.Errorf("the next: %+v", s)
	}
}

// churn returns a round of prompts that push each other out of the GPU's memory;
// look sees every pass that has begun.
func churn(e *engine.Engine, look func(*engine.Out)) func() {
	now, id := 0.0, uint64(0)
	prompts := [][]uint32{span(0, 30), span(100, 30), span(200, 30), span(300, 30)}
	return func() {
		for _, p := range prompts {
			id++
			e.Submit(engine.Request{UUID: uuid(id), Tokens: p, MaxOutput: 3})
			for !e.Drained() {
				if at, ok := e.NextInternalMs(); ok && (at <= now || !e.Ready()) {
					now = max(now, at)
					e.Internal(now)
				}
				if end, ok := e.Begin(now); ok {
					look(e.Out())
					e.Complete(end)
					now = end
				}
			}
		}
	}
}

// Storing, loading and waiting for copies allocate nothing.
func TestOffloadAllocatesNothing(t *testing.T) {
	e := engine.New(vllm(24, offloads(40)), 0)
	loaded := 0
	round := churn(e, func(out *engine.Out) {
		for _, a := range out.Admissions {
			loaded += a.Host
		}
	})
	for range 100 {
		round()
	}
	if n := testing.AllocsPerRun(20, round); n != 0 {
		t.Errorf("%v allocations per round", n)
	}
	if loaded == 0 {
		t.Error("nothing was loaded")
	}
}

// Writing to disk and reading back allocate nothing either.
func TestDiskAllocatesNothing(t *testing.T) {
	disk := config.DiskOffload{Blocks: 60, ReadGBs: 4, WriteGBs: 2, FirstByteLatencyMs: 0.25}
	d := offload.NewDisk(disk, 1)
	e := engine.NewSharing(vllm(24, offloads(10), func(c *config.Engine) { c.DiskOffload = disk }), 0, 0, offload.Tiers{Disk: d})
	round := churn(e, func(*engine.Out) {})
	for range 100 {
		round()
	}
	before := d.Stats().Read.Completed
	if n := testing.AllocsPerRun(20, round); n != 0 {
		t.Errorf("%v allocations per round", n)
	}
	if d.Stats().Read.Completed == before {
		t.Error("nothing was read")
	}
}
