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
	p := New(4)
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
	p := New(4)
	p.Store([]uint64{1, 2, 3, 4}, nil)
	p.Arrive([]uint64{1, 2, 3, 4})
	p.Touch(1)
	p.Touch(99) // unknown
	p.Read(2)
	if !p.Reading(2) || p.Reading(3) || p.Reading(99) {
		t.Error("who is read is not known")
	}
	if p.Store([]uint64{5, 6, 7}, []uint64{3}) {
		t.Error("made room by what is read or kept")
	}
	if !p.Store([]uint64{5, 6}, []uint64{3}) || !slices.Equal(p.Evicted(), []uint64{4, 1}) {
		t.Errorf("evicted %v, want 4 and 1", p.Evicted())
	}
	p.Done(2)
	if p.Reading(2) || !p.Store([]uint64{7}, nil) || !slices.Equal(p.Evicted(), []uint64{2}) {
		t.Errorf("evicted %v, want 2", p.Evicted())
	}
}

func TestLane(t *testing.T) {
	l := NewLane(4, 0.5)
	for i, c := range []struct {
		bytes        int
		from, wanted float64
	}{
		{8e6, 10, 12.5},   // latency, 2 ms
		{4e6, 11, 13.5},   // behind the first
		{4e6, 20, 21.5},   // idle
		{4e6, 21.2, 22.7}, // its latency passes while the other copies
	} {
		if got := l.Copy(c.bytes, c.from); got != c.wanted {
			t.Errorf("copy %d ends at %v, want %v", i, got, c.wanted)
		}
	}
	instant := NewLane(0, 0)
	if got := instant.Copy(1e9, 7); got != 7 {
		t.Errorf("without a bandwidth it ends at %v", got)
	}
}

// Churn of a full pool allocates nothing and loses nothing.
func TestChurn(t *testing.T) {
	p := New(50)
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
