package kvindex

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A warm index stores, matches, removes and clears without allocating.
func TestWarmIndexAllocatesNothing(t *testing.T) {
	requests := benchRequestsOf(1500)
	events := benchEvents(requests)
	x := New(benchWorkers)
	m := Matches{Lasts: true}
	round := func() {
		for i := range requests {
			x.Match(requests[i].locals, false, &m)
			x.play(&requests[i], events[i], 16)
			if i%50 == 0 { // something to remove
				r := &requests[i]
				x.Remove(r.worker, r.exts[len(r.exts)/2:])
			}
		}
		for w := range benchWorkers {
			x.Clear(Slot(w))
		}
	}
	round()
	round()
	if n := testing.AllocsPerRun(3, round); n != 0 {
		t.Errorf("%v allocations per round", n)
	}
	empty(t, x)
}

// The same for names that collide: entries that are written down.
func TestWarmOddIndexAllocatesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	type odd struct {
		w            Slot
		locals, exts []uint64
	}
	var events []odd
	for range 500 {
		e := odd{w: Slot(r.IntN(4))}
		for range 1 + r.IntN(6) {
			l := uint64(r.IntN(3))
			e.locals, e.exts = append(e.locals, l), append(e.exts, l*7+uint64(r.IntN(3)))
		}
		events = append(events, e)
	}
	x := New(4)
	round := func() {
		for i, e := range events {
			x.Store(e.w, false, 0, e.locals, e.exts)
			if i%3 == 0 {
				x.Remove(e.w, e.exts[len(e.exts)/2:])
			}
		}
		for w := range 4 {
			x.Clear(Slot(w))
		}
	}
	round()
	round()
	if n := testing.AllocsPerRun(3, round); n != 0 {
		t.Errorf("%v allocations per round", n)
	}
	empty(t, x)
}

func TestWarmTiersAllocateNothing(t *testing.T) {
	requests := benchRequestsOf(300)
	x := NewTiers(benchWorkers)
	index := New(benchWorkers)
	m := Matches{Lasts: true}
	var hits [TierCount]Hits
	round := func() {
		for i, r := range requests {
			in := Tier(i % int(TierCount))
			x.Store(in, r.worker, false, 0, r.locals, r.exts)
			index.Match(r.locals, false, &m)
			x.Extend(r.locals, &m, &hits)
			x.Remove(in, r.worker, r.exts[len(r.exts)/2:])
		}
		for w := range benchWorkers {
			for in := range TierCount {
				x.Clear(in, Slot(w))
			}
		}
	}
	round()
	if n := testing.AllocsPerRun(3, round); n != 0 {
		t.Errorf("%v allocations per round", n)
	}
	noEdges(t, x)
}

// A thousand workers that come and go at random leave nothing behind.
func TestWorkersComeAndGo(t *testing.T) {
	requests := benchRequestsOf(400)
	r := rand.New(rand.NewPCG(9, 9))
	x := New(0)
	tiers := NewTiers(0)
	var present []Slot
	free := []Slot{}
	next := Slot(0)
	for joined := 0; joined < 1000 || len(present) > 0; {
		if joined < 1000 && (len(present) == 0 || r.IntN(2) == 0) {
			w := next
			if k := len(free); k > 0 {
				w, free = free[k-1], free[:k-1]
			} else {
				next++
			}
			x.Grow(int(w) + 1)
			tiers.Grow(int(w) + 1)
			present = append(present, w)
			joined++
		}
		for range 5 {
			if len(present) == 0 {
				break
			}
			w := present[r.IntN(len(present))]
			q := &requests[r.IntN(len(requests))]
			x.Store(w, false, 0, q.locals, q.exts)
			tiers.Store(Tier(r.IntN(int(TierCount))), w, false, 0, q.locals, q.exts)
			x.Remove(w, q.exts[r.IntN(len(q.exts)):])
		}
		if r.IntN(5) < 2 && len(present) > 0 {
			k := r.IntN(len(present))
			w := present[k]
			present = slices.Delete(present, k, k+1)
			free = append(free, w)
			x.Clear(w)
			for in := range TierCount {
				tiers.Forget(in, w)
			}
			if x.SlotSize(w) != 0 {
				t.Fatal("a slot that is gone has blocks")
			}
		}
	}
	x.Check()
	empty(t, x)
	noEdges(t, tiers)
	if next < 65 {
		t.Errorf("only %d slots at a time", next)
	}
}
