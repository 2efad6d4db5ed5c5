package offload

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func (p *Pool) states(hashes ...uint64) (list []State) {
	for _, h := range hashes {
		list = append(list, p.State(h))
	}
	return list
}

func TestStoreAndArrive(t *testing.T) {
	p := NewPool(4)
	if !p.Store([]uint64{30, 10, 20}, nil) || p.Used() != 3 || p.Total() != 4 {
		t.Fatalf("%d of %d used", p.Used(), p.Total())
	}
	if got := p.states(10, 20, 30, 40); !slices.Equal(got, []State{Pending, Pending, Pending, Absent}) {
		t.Errorf("states %v", got)
	}
	if p.Store([]uint64{40, 50}, nil) || p.Used() != 3 || p.State(40) != Absent {
		t.Error("pending contents made room")
	}
	p.Arrive([]uint64{30, 10, 20})
	if got := p.states(10, 20, 30); !slices.Equal(got, []State{Resident, Resident, Resident}) {
		t.Errorf("states %v", got)
	}
	// Those that arrived together go by hash.
	if !p.Store([]uint64{40, 50, 60}, nil) || !slices.Equal(p.Evicted(), []uint64{10, 20}) {
		t.Errorf("evicted %v, want 10 and 20", p.Evicted())
	}
	if got := p.states(10, 20, 30, 60); !slices.Equal(got, []State{Absent, Absent, Resident, Pending}) {
		t.Errorf("states %v", got)
	}
}

func TestWhoGoesFirst(t *testing.T) {
	p := NewPool(4)
	p.Store([]uint64{1, 2, 3, 4}, nil)
	p.Arrive([]uint64{1, 2, 3, 4})
	p.Touch(1)
	p.Touch(99) // unknown
	p.Read(2)
	if p.Store([]uint64{5, 6, 7}, []uint64{3}) {
		t.Error("made room by what is read or kept")
	}
	if !p.Store([]uint64{5, 6}, []uint64{3}) || !slices.Equal(p.Evicted(), []uint64{4, 1}) {
		t.Errorf("evicted %v, want 4 and 1", p.Evicted())
	}
	p.Done(2)
	if !p.Store([]uint64{7}, nil) || !slices.Equal(p.Evicted(), []uint64{2}) {
		t.Errorf("evicted %v, want 2", p.Evicted())
	}
}

// Churn of a full pool allocates nothing and loses nothing.
func TestChurn(t *testing.T) {
	p := NewPool(50)
	rng := rand.New(rand.NewPCG(1, 2))
	cohort := make([]uint64, 4)
	round := func() {
		for i := range cohort {
			cohort[i] = rng.Uint64N(300) + 1
		}
		slices.Sort(cohort)
		missing := slices.DeleteFunc(slices.Compact(cohort), func(h uint64) bool { return p.State(h) != Absent })
		if p.Store(missing, nil) {
			p.Arrive(missing)
		}
		for range 3 {
			p.Touch(rng.Uint64N(300) + 1)
		}
	}
	for range 2000 {
		round()
	}
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("%v allocations", n)
	}
	resident := 0
	for h := uint64(1); h <= 300; h++ {
		if p.State(h) == Resident {
			resident++
		}
	}
	if resident != 50 || p.Used() != 50 {
		t.Errorf("%d contents in %d blocks", resident, p.Used())
	}
}
