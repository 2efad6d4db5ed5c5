package synth

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/core/workload"
)

func make1(t *testing.T, s Spec, o workload.Options) *workload.Workload {
	t.Helper()
	if f := s.Check(); f != None {
		t.Fatalf("%+v: field %d", s, f)
	}
	w, f := Build(s, o)
	if f.Code != workload.OK {
		t.Fatalf("%+v: %+v", s, f)
	}
	return w
}

var byTrace = workload.Options{ArrivalSpeedup: 1}

func starts(w *workload.Workload) []float64 {
	var ms []float64
	for _, s := range w.Sessions {
		ms = append(ms, s.StartMs)
	}
	return ms
}

// The arrivals of the reference (replay notes §4; the last one asked).
func TestArrivals(t *testing.T) {
	base := Spec{InputTokens: 16, OutputTokens: 2, Sessions: 5, Turns: 1, BlockSize: 4}
	poisson := func(seed uint64, rate float64) Spec {
		s := base
		s.Arrival, s.ArrivalSeed, s.RatePerS = Poisson, seed, rate
		return s
	}
	every := func(ms float64) Spec {
		s := base
		s.Arrival, s.IntervalMs = Constant, ms
		return s
	}
	for _, c := range []struct {
		spec  Spec
		speed float64
		want  []float64
	}{
		{poisson(42, 50), 1, []float64{0, 14.95449235281393, 30.603907903827764, 50.84150736899281, 61.25571903121407}},
		{poisson(7, 50), 1, []float64{0, 0.6157287433618203, 7.95272463491011, 11.030722516794057, 26.671041739827118}},
		{poisson(math.MaxUint64, 3), 1, []float64{0, 21.033556486523747, 34.58791162376297, 59.78992863524171}},
		{every(7.5), 1, []float64{0, 7.499999999999999, 14.999999999999998, 22.499999999999996, 29.999999999999996}},
		{every(3), 2, []float64{0, 1.5, 3, 4.5, 6}},
		{every(0), 1, []float64{0, 0, 0, 0, 0}},
		{base, 2, []float64{0, 0, 0, 0, 0}},
	} {
		w := make1(t, c.spec, workload.Options{Concurrency: c.spec.Arrival == Capped, ArrivalSpeedup: c.speed})
		if got := starts(w)[:len(c.want)]; !slices.Equal(got, c.want) {
			t.Errorf("%+v:\ngot  %v\nwant %v", c.spec, got, c.want)
		}
		for _, s := range w.Sessions {
			if s.HasStart == (c.spec.Arrival == Capped) {
				t.Errorf("%+v: a session starts by itself: %v", c.spec, s.HasStart)
			}
		}
	}
}

// show lists the hash ids of every turn, shared ones as group.block.
func show(w *workload.Workload) string {
	var b strings.Builder
	for i, s := range w.Sessions {
		fmt.Fprintf(&b, "%s:", w.SessionID(int32(i)))
		for at := s.First; at >= 0; at = w.Turns[at].Next {
			t := w.Turns[at]
			if t.Index > 0 {
				fmt.Fprintf(&b, " +%v", t.DelayMs)
			}
			for _, id := range w.Prompts.AppendIDs(nil, t.Leaf, int(t.IDs)) {
				if id>>48 == 0xD00D {
					fmt.Fprintf(&b, " %d.%d", id>>32&0xFFFF, id&0xFFFFFFFF)
				} else {
					fmt.Fprintf(&b, " %d", id)
				}
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestSessions(t *testing.T) {
	base := Spec{InputTokens: 15, OutputTokens: 2, Sessions: 3, Turns: 1, BlockSize: 4, Arrival: Constant}
	with := func(change func(*Spec)) Spec {
		s := base
		change(&s)
		return s
	}
	for _, c := range []struct {
		spec Spec
		want string
	}{
		{with(func(s *Spec) { s.PrefixRatio = 0.5 }), "session_0: 1 2 3 4\nsession_1: 5 6 7 8\nsession_2: 9 10 11 12\n"},
		{with(func(s *Spec) { s.PrefixGroups = 3 }), "session_0: 1 2 3 4\nsession_1: 5 6 7 8\nsession_2: 9 10 11 12\n"},
		// Half a block is rounded up, and every session draws a group of its own.
		{with(func(s *Spec) { s.PrefixGroups, s.PrefixRatio, s.InputTokens = 3, 0.5, 11 }),
			"session_0: 0.0 0.1 1\nsession_1: 1.0 1.1 2\nsession_2: 0.0 0.1 3\n"},
		{with(func(s *Spec) { s.PrefixGroups, s.PrefixRatio = 3, 0.1 }), "session_0: 1 2 3 4\nsession_1: 5 6 7 8\nsession_2: 9 10 11 12\n"},
		{with(func(s *Spec) { s.PrefixGroups, s.PrefixRatio = 3, 1 }),
			"session_0: 0.0 0.1 0.2 0.3\nsession_1: 1.0 1.1 1.2 1.3\nsession_2: 0.0 0.1 0.2 0.3\n"},
		{with(func(s *Spec) {
			s.PrefixGroups, s.PrefixRatio, s.Turns, s.TurnDelayMs, s.InputTokens, s.Sessions = 3, 0.5, 3, 5, 8, 2
		}), "session_0: 0.0 1 +5 0.0 2 +5 0.0 3\nsession_1: 1.0 4 +5 1.0 5 +5 1.0 6\n"},
		{with(func(s *Spec) { s.TurnDelayMs = 5 }), "session_0: 1 2 3 4\nsession_1: 5 6 7 8\nsession_2: 9 10 11 12\n"},
	} {
		w := make1(t, c.spec, byTrace)
		if got := show(w); got != c.want {
			t.Errorf("%+v:\ngot  %s\nwant %s", c.spec, got, c.want)
		}
		if w.TraceBlockSize != 4 || w.Drawn || !w.NamesSessions(false) {
			t.Errorf("%+v: blocks of %d, drawn %v", c.spec, w.TraceBlockSize, w.Drawn)
		}
	}
	s := with(func(s *Spec) { s.Turns, s.TurnDelayMs = 2, 5 })
	if w := make1(t, s, workload.Options{ArrivalSpeedup: 2}); w.Turns[1].DelayMs != 2.5 {
		t.Errorf("the delay is %v at double speed", w.Turns[1].DelayMs)
	}
	if w := make1(t, s, workload.Options{Concurrency: true, ArrivalSpeedup: 2}); w.Turns[1].DelayMs != 5 {
		t.Errorf("the delay is %v under a cap", w.Turns[1].DelayMs)
	}
}

// Requests by themselves are one id each, with tokens of their own.
func TestRequests(t *testing.T) {
	w := make1(t, Spec{InputTokens: 15, OutputTokens: 2, Sessions: 3, Arrival: Constant, BlockSize: 4}, byTrace)
	if !w.Drawn || w.TraceBlockSize != 15 || w.NamesSessions(true) || len(w.Turns) != 3 {
		t.Errorf("%+v", w)
	}
	seen := map[int32]bool{}
	for _, turn := range w.Turns {
		seen[turn.Leaf] = true
	}
	if len(seen) != 3 {
		t.Error("prompts are shared")
	}
	a, b := workload.AppendDrawn(nil, 0, 3), workload.AppendDrawn(nil, 1, 2)
	// Each number by hand: splitmix64's finisher of its place plus the golden ratio.
	if want := []uint32{mixed(0), mixed(1), mixed(2)}; !slices.Equal(a, want) {
		t.Errorf("%d, want %d", a, want)
	}
	if want := []uint32{mixed(1 << 32), mixed(1<<32 ^ 1)}; !slices.Equal(b, want) {
		t.Errorf("%d, want %d", b, want)
	}
}

func mixed(place uint64) uint32 {
	z := place + 0x9E3779B97F4A7C15
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return uint32(z ^ z>>31)
}

func TestCheck(t *testing.T) {
	good := Spec{InputTokens: 16, OutputTokens: 2, Sessions: 5, Turns: 1, BlockSize: 4}
	inf, nan := math.Inf(1), math.NaN()
	for want, changes := range map[Field][]func(*Spec){
		None: {func(s *Spec) {}, func(s *Spec) { s.Turns = 0 }, func(s *Spec) { s.RatePerS = -1 }, func(s *Spec) { s.IntervalMs = nan },
			func(s *Spec) { s.PrefixRatio = 1 }, func(s *Spec) { s.InputTokens = math.MaxInt32 }},
		InputTokens:  {func(s *Spec) { s.InputTokens = 0 }, func(s *Spec) { s.InputTokens = 1 << 31 }},
		OutputTokens: {func(s *Spec) { s.OutputTokens = 0 }, func(s *Spec) { s.OutputTokens = -5 }},
		Sessions:     {func(s *Spec) { s.Sessions = 0 }, func(s *Spec) { s.Sessions = 1 << 40 }},
		Turns: {func(s *Spec) { s.Turns = -1 }, func(s *Spec) { s.Turns, s.PrefixGroups = 0, 1 }, func(s *Spec) { s.Turns, s.TurnDelayMs = 0, 1 },
			func(s *Spec) { s.Turns = 1 << 31 }},
		RatePerS: {func(s *Spec) { s.Arrival = Poisson }, func(s *Spec) { s.Arrival, s.RatePerS = Poisson, inf },
			func(s *Spec) { s.Arrival, s.RatePerS = Poisson, nan }},
		IntervalMs: {func(s *Spec) { s.Arrival, s.IntervalMs = Constant, -1 }, func(s *Spec) { s.Arrival, s.IntervalMs = Constant, inf },
			func(s *Spec) { s.Arrival, s.IntervalMs = Constant, nan }, func(s *Spec) { s.Arrival, s.IntervalMs = Constant, 1e-310 }},
		PrefixRatio: {func(s *Spec) { s.PrefixRatio = -0.1 }, func(s *Spec) { s.PrefixRatio = 1.1 }, func(s *Spec) { s.PrefixRatio = nan }},
		TurnDelayMs: {func(s *Spec) { s.TurnDelayMs = -1 }, func(s *Spec) { s.TurnDelayMs = inf }, func(s *Spec) { s.TurnDelayMs = nan }},
	} {
		for i, change := range changes {
			s := good
			change(&s)
			if got := s.Check(); got != want {
				t.Errorf("%d of field %d: field %d", i, want, got)
			}
		}
	}
}

// What grows without a bound ends as a fault, not as a number that is none.
func TestTimesBeyondNumbers(t *testing.T) {
	s := Spec{InputTokens: 16, OutputTokens: 2, Sessions: 5, Turns: 1, BlockSize: 4, Arrival: Constant, IntervalMs: 1e308}
	if _, f := Build(s, byTrace); f.Code != workload.StartTooLate {
		t.Errorf("%+v", f)
	}
	s.IntervalMs, s.Turns, s.TurnDelayMs = 1, 2, 1e300
	if _, f := Build(s, workload.Options{ArrivalSpeedup: 1e-100}); f.Code != workload.DelayTooLong {
		t.Errorf("%+v", f)
	}
}
