package kvindex

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/dryserve/dryserve/core/seq"
)

// The workload of router notes §10, on which the reference's index was timed.
const (
	benchRequests = 20000
	benchWorkers  = 8
	benchHeld     = 60000 // blocks a worker holds at most
	benchKept     = 54000 // and after it has evicted
)

type benchRequest struct {
	worker Slot
	locals []uint64
	exts   []uint64
}

// benchEvent is a removal, or, without exts, that the worker of a request has
// stored its blocks from one on, in one event or in several.
type benchEvent struct {
	worker Slot
	exts   []uint64
	from   int
}

// lcg is the generator of the workload.
type lcg uint64

func (s *lcg) below(k uint64) int {
	*s = *s*6364136223846793005 + 1442695040888963407
	return int(uint64(*s) >> 33 % k)
}

func benchRequestsOf(n int) []benchRequest {
	s := lcg(12345)
	fresh := uint64(600)
	var sessions [][]uint64
	requests := make([]benchRequest, n)
	locals := make([]uint64, 0, 140*n) // all requests' hashes side by side
	for i := range requests {
		var ids []uint64
		add := func(count int) {
			for range count {
				ids = append(ids, fresh)
				fresh++
			}
		}
		if len(sessions) > 0 && s.below(10) < 6 {
			k := s.below(uint64(len(sessions)))
			ids = slices.Clone(sessions[k])
			add(1 + s.below(32))
			ids = ids[:min(len(ids), 1500)]
			sessions[k] = ids
		} else {
			g := s.below(50)
			base := [4]int{16, 32, 64, 96}[s.below(4)]
			for j := range base {
				ids = append(ids, uint64(g*96+j))
			}
			add(8 + s.below(120))
			if len(sessions) == 400 {
				sessions = sessions[1:]
			}
			sessions = append(sessions, ids)
		}
		r := &requests[i]
		r.worker = Slot(s.below(benchWorkers))
		for _, id := range ids {
			locals = append(locals, id*0x9E3779B97F4A7C15^0x12345678)
		}
		r.locals = locals[len(locals)-len(ids):]
	}
	exts := make([]uint64, 0, len(locals))
	for i := range requests {
		r := &requests[i]
		exts = seq.Plain(1).AppendChain(exts, r.locals)
		r.exts = exts[len(exts)-len(r.locals):]
	}
	return requests
}

// benchCache is the LRU cache of a worker: which blocks it holds and which
// request used each of them last.
type benchCache struct {
	used map[uint64]int // last request that used a block
	done []int          // its requests, oldest first
}

// benchEvents lists the events that follow each request.
func benchEvents(requests []benchRequest) [][]benchEvent {
	caches := make([]benchCache, benchWorkers)
	for i := range caches {
		caches[i].used = map[uint64]int{}
	}
	events := make([][]benchEvent, len(requests))
	for i, r := range requests {
		c := &caches[r.worker]
		held := 0
		for held < len(r.exts) {
			if _, ok := c.used[r.exts[held]]; !ok {
				break
			}
			held++
		}
		for _, ext := range r.exts {
			c.used[ext] = i
		}
		c.done = append(c.done, i)
		if held < len(r.exts) {
			events[i] = append(events[i], benchEvent{worker: r.worker, from: held})
		}
		evicting := len(c.used) > benchHeld
		for evicting && len(c.used) > benchKept {
			old := c.done[0]
			c.done = c.done[1:]
			var gone []uint64
			for k := len(requests[old].exts) - 1; k >= 0; k-- {
				if ext := requests[old].exts[k]; c.used[ext] == old {
					if _, ok := c.used[ext]; ok {
						gone = append(gone, ext)
						delete(c.used, ext)
					}
				}
			}
			if len(gone) > 0 {
				events[i] = append(events[i], benchEvent{worker: r.worker, exts: gone})
			}
		}
	}
	return events
}

// play applies the events of a request, with at most chunk blocks stored in
// each (0: any number). It returns the number of events and of those refused.
func (x *Index) play(r *benchRequest, events []benchEvent, chunk int) (count, bad int) {
	for i := range events {
		e := &events[i]
		if e.exts != nil {
			count++
			if x.Remove(e.worker, e.exts) != Applied {
				bad++
			}
			continue
		}
		for from := e.from; from < len(r.exts); {
			to := len(r.exts)
			if chunk > 0 {
				to = min(to, from+chunk)
			}
			parent := uint64(0)
			if from > 0 {
				parent = r.exts[from-1]
			}
			count++
			if x.Store(e.worker, from > 0, parent, r.locals[from:to], r.exts[from:to]) != Applied {
				bad++
			}
			from = to
		}
	}
	return count, bad
}

func sum(m *Matches) (n int) {
	for _, d := range m.Depths {
		n += int(d)
	}
	return n
}

// The counts and checksums of the reference's run.
func TestBenchmarkWorkload(t *testing.T) {
	requests := benchRequestsOf(benchRequests)
	blocks := 0
	for _, r := range requests {
		blocks += len(r.exts)
	}
	events := benchEvents(requests)
	moved := 0
	for i, list := range events {
		for _, e := range list {
			if moved += len(e.exts); e.exts == nil {
				moved += len(requests[i].exts) - e.from
			}
		}
	}
	for _, c := range []struct{ chunk, events int }{{1, 1_567_439}, {16, 119_082}, {0, 32_580}} {
		x := New(benchWorkers)
		var m Matches
		count, interleaved := 0, 0
		for i := range requests {
			x.Match(requests[i].locals, false, &m)
			interleaved += sum(&m)
			n, bad := x.play(&requests[i], events[i], c.chunk)
			if count += n; bad > 0 {
				t.Fatalf("chunk %d: %d events of request %d are refused", c.chunk, bad, i)
			}
		}
		final := 0
		for i := range requests {
			x.Match(requests[i].locals, false, &m)
			final += sum(&m)
		}
		got := fmt.Sprintf("%d events, %d blocks, size %d, final %d, interleaved %d, %.1f per query", count, moved, x.Size(), final, interleaved, float64(blocks)/benchRequests)
		want := fmt.Sprintf("%d events, %d blocks, size 456713, final 9513191, interleaved 9645863, 138.3 per query", c.events, 2_653_005)
		if got != want {
			t.Errorf("chunk %d: %s, want %s", c.chunk, got, want)
		}
		x.Check()
	}
}

// BenchmarkIndex prints rates beside those of the reference (router notes §10).
func BenchmarkIndex(b *testing.B) {
	requests := benchRequestsOf(benchRequests)
	events := benchEvents(requests)
	for _, c := range []struct {
		name  string
		chunk int
	}{{"1 block an event", 1}, {"16 blocks an event", 16}, {"whole suffix an event", 0}} {
		b.Run(c.name, func(b *testing.B) { benchIndex(b, requests, events, c.chunk) })
	}
}

func benchIndex(b *testing.B, requests []benchRequest, events [][]benchEvent, chunk int) {
	count := 0
	var m Matches
	apply, match, both := time.Hour, time.Hour, time.Hour // of the best round
	checksum := 0
	for b.Loop() {
		x := New(benchWorkers)
		runtime.GC()
		start := cpuTime()
		count = 0
		for i := range events {
			n, _ := x.play(&requests[i], events[i], chunk)
			count += n
		}
		apply = min(apply, cpuTime()-start)
		start = cpuTime()
		for i := range requests {
			x.Match(requests[i].locals, false, &m)
			checksum += sum(&m)
		}
		match = min(match, cpuTime()-start)
		x = New(benchWorkers)
		runtime.GC()
		start = cpuTime()
		for i := range requests {
			x.Match(requests[i].locals, false, &m)
			checksum += sum(&m)
			x.play(&requests[i], events[i], chunk)
		}
		both = min(both, cpuTime()-start)
	}
	if checksum != b.N*(9513191+9645863) {
		b.Fatalf("checksum %d", checksum)
	}
	rate := func(n int, d time.Duration) float64 { return float64(n) / d.Seconds() / 1000 }
	b.ReportMetric(rate(count, apply), "kevents/s")
	b.ReportMetric(rate(len(requests), match), "kqueries/s")
	b.ReportMetric(rate(len(requests), both), "krequests/s")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkBigIndex fills an index with ten million blocks over 64 workers and
// asks for prompts of 2,000 blocks.
func BenchmarkBigIndex(b *testing.B) {
	const (
		workers = 64
		prompt  = 2000
		total   = 10_000_000
	)
	x, prompts := bigIndex(workers, prompt, total)
	if x.Size() < total {
		b.Fatalf("%d blocks", x.Size())
	}
	runtime.GC()
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	var m Matches
	worst, i := time.Duration(0), 0
	for b.Loop() {
		start := cpuTime()
		for range 10 {
			x.Match(prompts[i%len(prompts)], false, &m)
			if i++; m.Depths[0] == 0 {
				b.Fatal("no match")
			}
		}
		worst = max(worst, (cpuTime()-start)/10)
	}
	b.ReportMetric(float64(x.bytes())/1e6, "MB-index")
	b.ReportMetric(float64(after.HeapInuse)/1e6, "MB-heap")
	b.ReportMetric(float64(x.Size())/1e6, "Mblocks")
	b.ReportMetric(float64(x.Blocks())/1e6, "Mdistinct")
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/10, "µs/query")
	b.ReportMetric(float64(worst.Microseconds()), "µs-worst")
	b.ReportMetric(0, "ns/op")
}

// bigIndex stores prompts, two fifths of whose blocks a group of eight workers
// shares, in events of 16 blocks.
func bigIndex(workers, prompt, total int) (x *Index, queries [][]uint64) {
	x = New(workers)
	fresh := uint64(1 << 40)
	shared := prompt * 2 / 5
	locals, exts := make([]uint64, prompt), make([]uint64, 0, prompt)
	for n := 0; x.Size() < total; n++ {
		w := n % workers
		for i := range locals {
			if i < shared {
				locals[i] = uint64(n/workers%50*8+w/8)*10000 + uint64(i)
				continue
			}
			locals[i] = fresh
			fresh++
		}
		exts = seq.Plain(1).AppendChain(exts[:0], locals)
		for from := 0; from < prompt; from += 16 {
			to := min(from+16, prompt)
			x.Store(Slot(w), from > 0, exts[max(from, 1)-1], locals[from:to], exts[from:to])
		}
		if n%97 == 0 {
			queries = append(queries, slices.Clone(locals))
		}
	}
	return x, queries
}

// bytes is the memory that an index holds.
func (x *Index) bytes() int {
	return 8*(cap(x.local)+cap(x.ext)+8*cap(x.blocks.buckets)+cap(x.children.slots)+cap(x.more)+cap(x.cuts.slab)) +
		4*cap(x.owner) + int(unsafe.Sizeof(run{}))*cap(x.runs) + int(unsafe.Sizeof(node{}))*cap(x.nodes)
}
