package replay_test

import (
	"math"
	"slices"
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/rng"
	"github.com/dryserve/dryserve/core/workload"
)

// hour is a workload of requests that each run for long, arriving 1 ms apart.
func hour(t *testing.T, cfg config.Replay, n int) *workload.Workload {
	t.Helper()
	w := steady(t, cfg, n, 1)
	for i := range w.Turns {
		w.Turns[i].Output = 4000
	}
	return w
}

// workersBy runs n requests, none of which ends before all are placed, and
// lists their workers.
func workersBy(t *testing.T, mode config.RouterMode, seed uint64, workers, n int) (chosen []int32) {
	t.Helper()
	cfg := tight(1 << 16)
	cfg.NumWorkers, cfg.CaptureRequests = workers, true
	cfg.Routing = config.Routing{Mode: mode, Seed: seed}
	s := replay.New(cfg, hour(t, cfg, n), replay.Options{})
	if status := s.Step(math.MaxInt); status != replay.Done {
		t.Fatalf("status %d", status)
	}
	chosen = make([]int32, n)
	for _, r := range s.Records() {
		chosen[r.Turn] = r.Worker
	}
	return chosen
}

func TestRandom(t *testing.T) {
	lots := rng.Wyrand(7)
	counts := [5]int{}
	for i, w := range workersBy(t, config.Random, 7, 5, 300) {
		if want := int32(lots.Below(5)); w != want {
			t.Fatalf("request %d goes to %d, want %d", i, w, want)
		}
		counts[w]++
	}
	if slices.Min(counts[:]) < 40 {
		t.Errorf("not all alike: %v", counts)
	}
}

// The less busy of two different workers; the first of two that are alike.
func TestPowerOfTwo(t *testing.T) {
	lots := rng.Wyrand(7)
	loads := make([]int, 5)
	for i, w := range workersBy(t, config.PowerOfTwo, 7, 5, 300) {
		a := int32(lots.Below(5))
		b := int32(lots.Below(4))
		if b >= a {
			b++
		}
		want := a
		if loads[b] < loads[a] {
			want = b
		}
		if w != want {
			t.Fatalf("request %d goes to %d, want %d of %d and %d", i, w, want, a, b)
		}
		loads[w]++
	}
	if slices.Max(loads)-slices.Min(loads) > 6 {
		t.Errorf("loads %v", loads)
	}
	if got := workersBy(t, config.PowerOfTwo, 7, 1, 3); !slices.Equal(got, []int32{0, 0, 0}) {
		t.Errorf("of one worker: %v", got)
	}
}

// Five requests go to five workers before any gets a second one, in an order
// that the seed decides.
func TestLeastLoaded(t *testing.T) {
	orders := map[[5]int32]bool{}
	for seed := range uint64(20) {
		chosen := workersBy(t, config.LeastLoaded, seed, 5, 20)
		for round := range slices.Chunk(chosen, 5) {
			order := [5]int32(round)
			orders[order] = true
			sorted := slices.Sorted(slices.Values(round))
			if !slices.Equal(sorted, []int32{0, 1, 2, 3, 4}) {
				t.Fatalf("a round of %v", round)
			}
		}
	}
	if len(orders) < 40 {
		t.Errorf("only %d orders in 80 rounds", len(orders))
	}
}

// What has ended counts no more: requests that come one after the other find
// all workers idle, and the lots decide alone.
func TestEndedTurnsAreNoLoad(t *testing.T) {
	for _, mode := range []config.RouterMode{config.PowerOfTwo, config.LeastLoaded} {
		cfg := tight(4096)
		cfg.NumWorkers, cfg.CaptureRequests = 2, true
		cfg.Routing = config.Routing{Mode: mode, Seed: 5}
		s := replay.New(cfg, steady(t, cfg, 100, 1e6), replay.Options{})
		if status := s.Step(math.MaxInt); status != replay.Done {
			t.Fatalf("status %d", status)
		}
		twice, last := 0, int32(-1)
		for _, r := range s.Records() {
			if r.Worker == last {
				twice++
			}
			last = r.Worker
		}
		if twice < 20 || twice > 80 {
			t.Errorf("mode %d: a worker serves twice running in %d of 100 cases", mode, twice)
		}
	}
}

func TestDirect(t *testing.T) {
	cfg := tight(4096)
	cfg.NumWorkers, cfg.CaptureRequests = 4, true
	cfg.Routing.Mode = config.Direct
	w := steady(t, cfg, 60, 3)
	for i := range w.Turns {
		w.Targets = append(w.Targets, int32(i*i%4))
	}
	s := replay.New(cfg, w, replay.Options{})
	if status := s.Step(math.MaxInt); status != replay.Done {
		t.Fatalf("status %d", status)
	}
	for _, r := range s.Records() {
		if want := r.Turn * r.Turn % 4; r.Worker != want {
			t.Errorf("request %d went to %d, want %d", r.Turn, r.Worker, want)
		}
	}
}

// A look at the loads pays: what the policies are for.
func TestPoliciesDiffer(t *testing.T) {
	e2e := map[config.RouterMode]float64{}
	for _, mode := range []config.RouterMode{config.Random, config.PowerOfTwo, config.LeastLoaded} {
		cfg := tight(400)
		cfg.NumWorkers = 8
		cfg.Routing = config.Routing{Mode: mode, Seed: 1}
		s := replay.New(cfg, steady(t, cfg, 2000, 8), replay.Options{})
		if status := s.Step(math.MaxInt); status != replay.Done {
			t.Fatalf("status %d", status)
		}
		e2e[mode] = s.Summary().E2E.Mean
	}
	if !(e2e[config.LeastLoaded] < e2e[config.Random] && e2e[config.PowerOfTwo] < e2e[config.Random]) {
		t.Errorf("mean latencies %v", e2e)
	}
}
