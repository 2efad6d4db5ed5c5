package fault_test

import (
	"testing"
	"time"

	"github.com/dryserve/dryserve/host/native/live/fault"
)

// Rates are met, and request n has the same faults every time.
func TestRates(t *testing.T) {
	o := fault.Options{Seed: 3, ErrorRate: 0.1, ErrorStatus: 503, StallRate: 0.3, Stall: time.Second, DisconnectRate: 0.05, Jitter: time.Millisecond}
	a, b := fault.New(o), fault.New(o)
	o.Seed = 4
	c := fault.New(o)
	var errors, stalls, breaks, differ int
	const n = 20_000
	for range n {
		p, q, r := a.Next(time.Now()), b.Next(time.Time{}), c.Next(time.Time{})
		if p != q {
			t.Fatalf("%+v and %+v", p, q)
		}
		if p.Status != r.Status {
			differ++
		}
		if p.Status == 503 {
			errors++
		}
		if p.Stall == time.Second {
			stalls++
		}
		if p.Disconnect {
			breaks++
		}
		if p.StallAt < 0 || p.StallAt >= 1 || p.BreakAt < 0 || p.BreakAt >= 1 || p.Wait != 0 {
			t.Fatalf("%+v", p)
		}
		if j := p.Jitter(); j < 0 || j >= time.Millisecond {
			t.Fatalf("jitter %v", j)
		}
	}
	near := func(name string, got int, rate float64) {
		if d := float64(got) - rate*n; d > 300 || d < -300 {
			t.Errorf("%d %s of %d", got, name, n)
		}
	}
	near("errors", errors, 0.1)
	near("stalls", stalls, 0.3)
	near("disconnects", breaks, 0.05)
	near("differences", differ, 0.18)
}

func TestRateLimit(t *testing.T) {
	s := fault.New(fault.Options{RateLimit: 2})
	now := time.Unix(1000, 0)
	for i, c := range []struct {
		after time.Duration
		wait  time.Duration
	}{
		{0, 0}, {0, 0}, {0, 500 * time.Millisecond}, {250 * time.Millisecond, 250 * time.Millisecond}, {250 * time.Millisecond, 0},
		{time.Hour, 0}, {0, 0}, {0, 500 * time.Millisecond},
	} {
		now = now.Add(c.after)
		if p := s.Next(now); p.Wait != c.wait {
			t.Errorf("request %d waits for %v, want %v", i, p.Wait, c.wait)
		}
	}
	slow := fault.New(fault.Options{RateLimit: 0.1})
	if slow.Next(now).Wait != 0 || slow.Next(now).Wait != 10*time.Second {
		t.Error("a limit below one a second")
	}
}

func TestNone(t *testing.T) {
	s := fault.New(fault.Options{Seed: 1, Stall: time.Second, ErrorStatus: 500})
	p := s.Next(time.Now())
	if p != (fault.Plan{}) || p.Jitter() != 0 {
		t.Errorf("%+v", p)
	}
}
