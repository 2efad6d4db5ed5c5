package ranks

import (
	"fmt"
	"math"
	"math/rand"
	"slices"
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/prefix"
	"github.com/dryserve/dryserve/core/stretch"
	"github.com/dryserve/dryserve/core/workload"
)

// turns is a workload of turns with prompts of their own content.
func turns(list ...[2]int32) *workload.Workload {
	w := &workload.Workload{Prompts: prefix.New()}
	for i, t := range list {
		ids := make([]uint64, (t[0]+3)/4)
		for k := range ids {
			ids[k] = uint64(100*i + k)
		}
		w.Turns = append(w.Turns, workload.Turn{
			Leaf: w.Prompts.Insert(ids, nil), IDs: int32(len(ids)), Input: t[0], Output: t[1], Next: -1, Planned: -1,
		})
	}
	return w
}

// run is a run of one engine.
func run(e config.Engine, traceBlockSize int) config.Replay {
	c := config.DefaultReplay(e.Backend)
	c.Engine, c.TraceBlockSize = e, traceBlockSize
	return c
}

// small is a worker with blocks of 4 tokens and fixed times of 10 ms per
// prefill and 2 ms per decode.
func small(ranks int) config.Engine {
	e := config.Defaults(config.VLLM)
	e.BlockSize, e.NumGPUBlocks, e.DPSize = 4, 64, ranks
	e.Timing = config.Timing{Kind: config.Fixed, PrefillMs: 10, DecodeMs: 2}
	return e
}

func begin(t *testing.T, g *Group, nowMs, want float64) float64 {
	t.Helper()
	endMs := g.Begin(nowMs)
	if endMs != want {
		t.Fatalf("a pass at %v ends at %v, want %v", nowMs, endMs, want)
	}
	return endMs
}

// TestBarrier: the slowest rank ends the pass of all, and a token is seen then
// whichever rank gave it, also on a rank that rested for a while.
func TestBarrier(t *testing.T) {
	g := New(run(small(3), 4), 0, turns([2]int32{8, 4}, [2]int32{8, 1}, [2]int32{4, 2}))
	if g.Ready() || g.InFlight() != 0 {
		t.Fatal("an idle group has work")
	}
	g.Push(0)
	now := begin(t, g, 5, 15)
	now = begin(t, g, now, 17)
	g.Push(1)
	now = begin(t, g, now, 27) // rank 1 prefills while rank 0 decodes
	buf := make([]float64, 8)
	if got := g.Ended(); len(got) != 1 || g.Result(got[0]).Turn != 1 || g.Result(got[0]).Rank != 1 {
		t.Fatalf("the pass ended %v, want turn 1 on rank 1", got)
	}
	if got := g.Times(g.Ended()[0], buf); !slices.Equal(got, []float64{27}) {
		t.Errorf("turn 1 has its tokens at %v", got)
	}
	g.Free(g.Ended()[0])
	g.Push(2)
	now = begin(t, g, now, 37)
	if got := g.Ended(); len(got) != 1 || g.Result(got[0]).Turn != 0 || g.Result(got[0]).Rank != 0 {
		t.Fatalf("the pass ended %v, want turn 0 on rank 0", got)
	}
	if got := g.Times(g.Ended()[0], buf); !slices.Equal(got, []float64{15, 17, 27, 37}) {
		t.Errorf("turn 0 has its tokens at %v", got)
	}
	g.Free(g.Ended()[0])
	begin(t, g, now, 39)
	if got := g.Ended(); len(got) != 1 || g.Result(got[0]).Rank != 2 || !slices.Equal(g.Times(got[0], buf), []float64{37, 39}) {
		t.Errorf("the pass ended %v, want turn 2 on rank 2 with tokens at 37 and 39", got)
	}
	if g.Ready() {
		t.Error("work is left")
	}
}

// TestRanksFailTogether: a head that cannot be served is hopeless only when no
// rank runs anything, and then all such heads fail.
func TestRanksFailTogether(t *testing.T) {
	e := small(2)
	e.MaxNumBatchedTokens, e.EnableChunkedPrefill = 8, false
	g := New(run(e, 4), 0, turns([2]int32{20, 1}, [2]int32{4, 2}, [2]int32{4, 1}, [2]int32{20, 1}))
	for turn := range int32(4) {
		g.Push(turn)
	}
	now := begin(t, g, 0, 10)
	if !g.Effect() || g.Idle() != stretch.Parked {
		t.Error("rank 1 runs, yet the group is not parked")
	}
	now = begin(t, g, now, 12)
	if got := g.Ended(); len(got) != 1 || g.Result(got[0]).Turn != 1 {
		t.Fatalf("the pass ended %v, want turn 1", got)
	}
	g.Free(g.Ended()[0])
	begin(t, g, now, now)
	if g.Effect() || g.Idle() != stretch.Hopeless || len(g.Ended()) != 0 {
		t.Fatal("a pass that admits nobody is not hopeless")
	}
	g.FailHead()
	var failed []int32
	for _, id := range g.Ended() {
		if r := g.Result(id); r.Fate == stretch.Failed {
			failed = append(failed, r.Turn)
		}
		g.Free(id)
	}
	if !slices.Equal(failed, []int32{0, 3}) || g.InFlight() != 1 {
		t.Errorf("turns %v failed and %d are left, want 0 and 3, and 1", failed, g.InFlight())
	}
}

// TestGlideEqualsPasses drives two groups beside each other, one pass by pass,
// one that glides where it may, with limits that stop it anywhere.
func TestGlideEqualsPasses(t *testing.T) {
	glided, preempted := 0, int64(0)
	for seed := range int64(300) {
		r := rand.New(rand.NewSource(seed))
		e := small(2 + r.Intn(3))
		e.BlockSize, e.NumGPUBlocks = []int{4, 4, 16}[r.Intn(3)], 8+r.Intn(60)
		e.MaxNumSeqs, e.MaxNumBatchedTokens = 1+r.Intn(12), 20+r.Intn(200)
		if r.Intn(2) == 0 {
			e.Timing = config.Timing{Kind: config.Polynomial}
		}
		if r.Intn(3) == 0 {
			e.Backend = config.TRTLLM
		} else if r.Intn(2) == 0 {
			e.PrefillScheduleInterval = 1 + r.Intn(30)
		}
		list := make([][2]int32, 40)
		for i := range list {
			list[i] = [2]int32{int32(1 + r.Intn(30)), int32(r.Intn(300))}
		}
		step, glide := New(run(e, 4), 0, turns(list...)), New(run(e, 4), 0, turns(list...))
		now, pushed := 0.0, int32(0)
		for int(pushed) < len(list) || step.Ready() {
			for n := r.Intn(4); n > 0 && int(pushed) < len(list); n-- {
				step.Push(pushed)
				glide.Push(pushed)
				pushed++
			}
			if !step.Ready() {
				continue
			}
			endMs := step.Begin(now)
			if got := glide.Begin(now); got != endMs {
				t.Fatalf("seed %d: the pass at %v ends at %v, want %v", seed, now, got, endMs)
			}
			if len(step.Ended()) == 0 && endMs > now {
				untilMs := endMs + float64(1000*r.Float64())
				if r.Intn(4) == 0 {
					untilMs = math.Inf(1)
				}
				first := step.Pass()
				toMs, n := glide.Glide(endMs, untilMs, 1+r.Intn(400))
				for range n {
					if !(endMs < untilMs) || len(step.Ended()) > 0 {
						t.Fatalf("seed %d: a pass too many at %v", seed, endMs)
					}
					step.Complete()
					endMs = step.Begin(endMs)
				}
				if endMs != toMs || step.Pass() != glide.Pass() || !slices.Equal(step.Log(first), glide.Log(first)) {
					t.Fatalf("seed %d: %d passes end at %v, want %v", seed, n, toMs, endMs)
				}
				if n > 0 && glide.CommittedPrefill() != 0 {
					t.Fatalf("seed %d: prompts in a glide", seed)
				}
				glided += n
			}
			step.Complete()
			glide.Complete()
			compare(t, seed, step, glide)
			if now = endMs; !step.Effect() && endMs == now && step.Idle() == stretch.Hopeless {
				step.FailHead()
				glide.FailHead()
				compare(t, seed, step, glide)
			}
		}
		preempted += glide.Preemptions()
	}
	if glided < 20_000 || preempted < 100 {
		t.Errorf("%d passes glided and %d requests preempted: the test shows too little", glided, preempted)
	}
}

// compare compares what a pass ended, and frees it.
func compare(t *testing.T, seed int64, a, b *Group) {
	t.Helper()
	if !slices.Equal(a.Ended(), b.Ended()) || a.Effect() != b.Effect() || a.InFlight() != b.InFlight() {
		t.Fatalf("seed %d: ended %v, want %v", seed, b.Ended(), a.Ended())
	}
	bufA, bufB := make([]float64, 400), make([]float64, 400)
	for _, id := range a.Ended() {
		if a.Result(id) != b.Result(id) {
			t.Fatalf("seed %d: %+v, want %+v", seed, b.Result(id), a.Result(id))
		}
		if x, y := a.Times(id, bufA), b.Times(id, bufB); !slices.Equal(x, y) {
			t.Fatalf("seed %d: tokens at %v, want %v", seed, y, x)
		}
		a.Free(id)
		b.Free(id)
	}
	a.Forget()
	b.Forget()
	b.Trim()
}

// BenchmarkGlide gives the cost of a decode pass of one rank and of four.
func BenchmarkGlide(b *testing.B) {
	for _, ranks := range []int{1, 4} {
		b.Run(fmt.Sprintf("ranks=%d", ranks), func(b *testing.B) {
			e := small(ranks)
			e.Timing, e.BlockSize, e.NumGPUBlocks = config.Timing{Kind: config.Polynomial}, 64, 1<<31
			list := make([][2]int32, 8*ranks)
			for i := range list {
				list[i] = [2]int32{int32(20 + i), math.MaxInt32}
			}
			g := New(run(e, 64), 0, turns(list...))
			for i := range list {
				g.Push(int32(i))
			}
			now := 0.0
			for range 4 {
				now = g.Begin(now)
			}
			for left := b.N; left > 0; {
				n := 0
				now, n = g.Glide(now, now+600, left)
				if left -= n; n == 0 {
					b.Fatal("the group does not glide")
				}
				g.Cut(g.Pass())
			}
		})
	}
}
