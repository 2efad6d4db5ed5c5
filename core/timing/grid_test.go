package timing

import (
	"math"
	"math/rand"
	"testing"

	"github.com/dryserve/dryserve/core/config"
)

// smallGrid holds planes, so that values between its points are known: prefill
// 2*batch + isl/10 + prefix/100, decode batch + context/10.
func smallGrid() *config.GridTable {
	g := &config.GridTable{
		PrefillBatch:  []float64{1, 4, 8},
		PrefillISL:    []float64{10, 20, 100},
		PrefillPrefix: []float64{0, 200},
		DecodeBatch:   []float64{1, 2, 8},
		DecodeContext: []float64{10, 100, 250},
	}
	for _, b := range g.PrefillBatch {
		for _, i := range g.PrefillISL {
			for _, p := range g.PrefillPrefix {
				g.PrefillMs = append(g.PrefillMs, 2*b+i/10+p/100)
			}
		}
	}
	for _, b := range g.DecodeBatch {
		for _, c := range g.DecodeContext {
			g.DecodeMs = append(g.DecodeMs, b+c/10)
		}
	}
	return g
}

func gridded(g *config.GridTable) Model {
	e := engine(16, 4)
	e.Timing = config.Timing{Kind: config.Grid, Grid: g}
	return New(e)
}

func TestGridKnownValues(t *testing.T) {
	m := gridded(smallGrid())
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"a point", m.Prefill(4, 4*20, 0), 10},
		{"another point", m.Prefill(8, 8*300, 8*200), 28},
		{"between batches", m.Prefill(6, 6*20, 0), 14},
		{"between all", m.Prefill(2, 2*110, 2*50), 4 + 6 + 0.5},
		{"means floored", m.Prefill(2, 221, 101), 4 + 6 + 0.5},
		{"before the first isl: its value", m.Prefill(1, 3, 0), 3},
		{"beyond the last batch: a line", m.Prefill(12, 12*20, 0), 26},
		{"beyond the last isl: a line", m.Prefill(1, 200, 0), 22},
		{"beyond the last prefix: a line", m.Prefill(1, 610, 600), 2 + 1 + 6},
		{"nothing computed", m.Prefill(1, 600, 600), 0},
		{"decode at a point", m.Decode(2, 200), 12},
		{"decode between", m.Decode(5, 5*40+4), 9},
		{"decode before the first context", m.Decode(2, 6), 3},
		{"decode beyond", m.Decode(16, 16*500), 66},
		{"no sequences", m.Decode(0, 10), 0},
	} {
		if math.Abs(c.got-c.want) > 1e-6 { // a nanosecond
			t.Errorf("%s: %v ms, want %v", c.name, c.got, c.want)
		}
	}
}

// TestGridNeverBelowItsEdge: a falling last interval does not go on falling.
func TestGridNeverBelowItsEdge(t *testing.T) {
	g := smallGrid()
	g.DecodeMs[len(g.DecodeMs)-1] = 30 // batch 8, context 250; 18 at 100; 27 at batch 2
	g.PrefillMs[4], g.PrefillMs[5] = 1, 1
	m := gridded(g)
	if got := m.Prefill(1, 1000, 0); got != 1 {
		t.Errorf("prefill beyond a falling interval: %v, want the edge's 1", got)
	}
	g.DecodeMs[2] = 5 // batch 1: 11 at context 100, 5 at 250
	m = gridded(g)
	if got := m.Decode(1, 100_000); got != 5 {
		t.Errorf("decode beyond a falling interval: %v, want the edge's 5", got)
	}
	if got := m.Decode(8, 8*400); got != 42 {
		t.Errorf("decode beyond a rising interval: %v, want 42", got)
	}
}

// TestGridAtPoints: at every point the value is the grid's own, rounded to
// whole ns, and nothing is ever outside the values around it.
func TestGridAtPoints(t *testing.T) {
	rng := rand.New(rand.NewSource(9))
	for range 200 {
		g := smallGrid()
		for i := range g.PrefillMs {
			g.PrefillMs[i] = math.Round(rng.Float64()*1e8) / 1e6
		}
		for i := range g.DecodeMs {
			g.DecodeMs[i] = math.Round(rng.Float64()*1e8) / 1e6
		}
		m := gridded(g)
		at := 0
		for _, b := range g.PrefillBatch {
			for _, i := range g.PrefillISL {
				for _, p := range g.PrefillPrefix {
					if got := m.Prefill(int(b), int(b*(i+p)), int(b*p)); math.Abs(got-g.PrefillMs[at]) > 1e-9 {
						t.Fatalf("prefill at %v, %v, %v: %v, want %v", b, i, p, got, g.PrefillMs[at])
					}
					at++
				}
			}
		}
		at = 0
		for _, b := range g.DecodeBatch {
			for _, c := range g.DecodeContext {
				if got := m.Decode(int(b), int(b*c)); math.Abs(got-g.DecodeMs[at]) > 1e-9 {
					t.Fatalf("decode at %v, %v: %v, want %v", b, c, got, g.DecodeMs[at])
				}
				at++
			}
		}
		low, high := leastOf(g.DecodeMs), 0.0
		for _, x := range g.DecodeMs {
			high = max(high, x)
		}
		for range 50 {
			b, c := 1+rng.Intn(8), rng.Intn(251)
			if got := m.Decode(b, b*c); got < low-1e-6 || got > high+1e-6 {
				t.Fatalf("decode at %d, %d: %v outside %v to %v", b, c, got, low, high)
			}
		}
	}
}
