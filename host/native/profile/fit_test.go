package profile

import (
	"bufio"
	"encoding/json"
	"math"
	"math/big"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/core/config"
)

// recordedFit is raw data and what the reference's converter made of it, at a
// few places of its 100 by 100 points.
type recordedFit struct {
	raw     json.RawMessage
	Error   string
	ISL     []float64 `json:"isl"`
	TTFT    []float64 `json:"ttft"`
	KV, Ctx []float64
	ITL     []float64 `json:"itl"`
}

// recordedAt are the places that were recorded.
var (
	recordedAt    = []int{0, 1, 17, 50, 98, 99}
	recordedPairs = [][2]int{{0, 0}, {0, 99}, {99, 0}, {99, 99}, {37, 61}, {98, 1}}
)

// TestRecordedFits compares with the reference's converter. Its axes are
// equal to the last bit; its fits come out of floating-point linear algebra,
// ours are exact.
func TestRecordedFits(t *testing.T) {
	f, err := os.Open("testdata/fits.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	n, refused := 0, 0
	for lines.Scan() {
		r := recordedFit{raw: slices.Clone(lines.Bytes())}
		if err := json.Unmarshal(r.raw, &r); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		write(t, filepath.Join(dir, prefillJSON), r.raw)
		write(t, filepath.Join(dir, decodeJSON), r.raw)
		p, err := LoadResults(dir)
		n++
		switch {
		case r.Error != "":
			refused++
			if err == nil {
				t.Errorf("fit %d: accepted; the reference says %s", n, r.Error)
			}
		case r.ISL[0] == r.ISL[5]:
			if err == nil || !strings.Contains(err.Error(), "two different lengths or more are accepted") {
				t.Errorf("fit %d: %v", n, err)
			}
		case r.Ctx[5] <= 1:
			if err == nil || !strings.Contains(err.Error(), "tokens per sequence at most; more than 1 is accepted") {
				t.Errorf("fit %d: %v", n, err)
			}
		case err != nil:
			t.Errorf("fit %d: %v", n, err)
		default:
			r.compare(t, n, p)
		}
	}
	if n < 60 || refused < 5 || refused > n/2 {
		t.Errorf("%d fits, %d refused", n, refused)
	}
}

func (r recordedFit) compare(t *testing.T, n int, p *config.ProfileTable) {
	t.Helper()
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-10*max(1, math.Abs(b)) }
	for i, at := range recordedAt {
		if p.PrefillISL[at] != r.ISL[i] || p.DecodeActiveKVTokens[at] != r.KV[i] || p.DecodeContextLength[at] != r.Ctx[i] {
			t.Errorf("fit %d: axes %v, %v, %v at %d; want %v, %v, %v", n,
				p.PrefillISL[at], p.DecodeActiveKVTokens[at], p.DecodeContextLength[at], at, r.ISL[i], r.KV[i], r.Ctx[i])
		}
		if !near(p.PrefillTTFTMs[at], r.TTFT[i]) {
			t.Errorf("fit %d: prefill %v at %d, want %v", n, p.PrefillTTFTMs[at], at, r.TTFT[i])
		}
		pair := recordedPairs[i]
		if got := p.DecodeITLMs[pair[0]*samples+pair[1]]; !near(got, r.ITL[i]) {
			t.Errorf("fit %d: decode %v at %v, want %v", n, got, pair, r.ITL[i])
		}
	}
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestUnits(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for _, x := range []float64{0, 1, 0.1, -2.5, 5e-324, 1e-310, 0x1p-1022, math.MaxFloat64, rng.Float64(), rng.NormFloat64() * 1e-300} {
		if got := inMs(new(big.Rat).SetInt(units(x))); got != x {
			t.Errorf("%v comes back as %v", x, got)
		}
	}
}

// TestSolveIsBest: no neighbour of the fit is nearer to the points.
func TestSolveIsBest(t *testing.T) {
	rng := rand.New(rand.NewSource(2))
	for range 300 {
		n := 3 + rng.Intn(20)
		b, k, z := make([]float64, n), make([]float64, n), make([]float64, n)
		var s sums
		for i := range b {
			b[i], k[i] = float64(1+rng.Intn(30)), float64(rng.Intn(3000))
			z[i] = 1 + 0.3*b[i] + 0.01*k[i] + rng.NormFloat64()
			s.add(b[i], k[i], z[i])
		}
		f := s.solve()
		miss := func(p plane) float64 {
			sum := 0.0
			for i := range b {
				d := p.perSequence*b[i] + p.perToken*k[i] + p.base - z[i]
				sum += d * d
			}
			return sum
		}
		best := miss(f)
		for _, d := range []float64{1e-3, -1e-3} {
			for _, p := range []plane{
				{f.perSequence + d, f.perToken, f.base}, {f.perSequence, f.perToken + d/100, f.base}, {f.perSequence, f.perToken, f.base + d},
			} {
				if miss(p) < best {
					t.Fatalf("%+v misses by %v, %+v by %v", f, best, p, miss(p))
				}
			}
		}
	}
}

func TestSolveKnown(t *testing.T) {
	type point struct{ b, k, z float64 }
	for _, c := range []struct {
		name   string
		points []point
		want   plane
	}{
		{"a plane", []point{{1, 0, 3}, {2, 0, 5}, {1, 8, 4}, {2, 8, 6}}, plane{2, 0.125, 1}},
		{"one point", []point{{3, 100, 7}}, plane{0, 0, 7}},
		{"one point twice", []point{{3, 100, 7}, {3, 100, 9}}, plane{0, 0, 8}},
		{"two points: smallest slopes", []point{{0, 0, 1}, {3, 4, 26}}, plane{3, 4, 1}},
		{"0 ms is no measurement", []point{{3, 100, 7}, {5, 200, 0}}, plane{0, 0, 7}},
		{"a line over tokens", []point{{0, 1, 3}, {0, 2, 5}, {0, 4, 9}}, plane{0, 2, 1}},
	} {
		var s sums
		for _, p := range c.points {
			s.add(p.b, p.k, p.z)
		}
		if got := s.solve(); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
