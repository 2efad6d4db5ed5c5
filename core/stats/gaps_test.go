package stats

import (
	"encoding/json"
	"math"
	"math/rand"
	"os"
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/timing"
)

// requests makes n requests of token times in one of several manners, from
// every gap alike to gaps of all sizes.
func requests(rng *rand.Rand, n int) [][]float64 {
	manner := rng.Intn(9)
	base := math.Exp(rng.Float64()*30 - 10)
	gap := func() float64 {
		switch manner {
		case 0:
			return base
		case 1: // slow drift
			base *= 1 + 0.0003*rng.Float64()
			return base
		case 2: // bursts
			return base * float64(rng.Intn(2))
		case 3: // mostly decode, now and then a prefill
			if rng.Intn(12) == 0 {
				return base * (2 + 20*rng.Float64())
			}
			return base * (1 + 0.1*rng.Float64())
		case 4:
			return math.Exp(rng.Float64()*60 - 30)
		case 5: // whole nanoseconds
			return float64(rng.Intn(50)) / 1e6
		case 6:
			return -base * rng.Float64()
		case 7: // around the limits of keys
			return newSketchScale().last(int64(rng.Intn(4000)-2000)) * (1 + float64(rng.Intn(3)-1)*0x1p-52)
		default:
			return math.Exp(rng.Float64()*1380 - 690)
		}
	}
	out := make([][]float64, n)
	for i := range out {
		times := make([]float64, rng.Intn(400))
		now := 0.0
		if manner != 4 && manner != 7 && manner != 8 {
			now = rng.Float64() * 1e6
		}
		for j := range times {
			times[j] = now
			now += gap()
			if manner == 4 || manner == 7 || manner == 8 {
				// Gaps come out exactly as drawn if every other time is 0.
				if now = gap(); j%2 == 0 {
					now = 0
				}
			}
		}
		out[i] = times
	}
	return out
}

func sameDist(a, b Dist) bool {
	// Comparing values is enough: no field is NaN and no zero is negative.
	return a == b
}

// TestAddEqualsNaive compares both loops with the reference in every field.
func TestAddEqualsNaive(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for round := range 150 {
		var quick, plain, mixed Gaps
		var want naive
		for phase := range 1 + rng.Intn(3) {
			for _, times := range requests(rng, 1+rng.Intn(12)) {
				quick.add(times, true)
				plain.add(times, false)
				mixed.add(times, phase&1 == 0)
				want.add(times)
			}
		}
		for _, g := range []*Gaps{&quick, &plain, &mixed} {
			if got, want := g.ITL(), naiveDist(want.gaps); !sameDist(got, want) {
				t.Fatalf("round %d: ITL\n%+v, want\n%+v", round, got, want)
			}
			if got, want := g.PerUser(), naiveDist(want.rates); !sameDist(got, want) {
				t.Fatalf("round %d: per user\n%+v, want\n%+v", round, got, want)
			}
		}
	}
}

// TestAddManyGaps goes to counts where addQuick almost never has to divide.
func TestAddManyGaps(t *testing.T) {
	rng := rand.New(rand.NewSource(2))
	var g Gaps
	var want naive
	for len(want.gaps) < 600_000 {
		for _, times := range mix(rng) {
			g.add(times, true)
			want.add(times)
		}
	}
	if got, want := g.ITL(), naiveDist(want.gaps); !sameDist(got, want) {
		t.Errorf("ITL\n%+v, want\n%+v", got, want)
	}
	if got, want := g.PerUser(), naiveDist(want.rates); !sameDist(got, want) {
		t.Errorf("per user\n%+v, want\n%+v", got, want)
	}
}

// TestAddQuickTakesAlmostAll guards the speed: from a thousand gaps on, fewer
// than one in fifty falls back to the division.
func TestAddQuickTakesAlmostAll(t *testing.T) {
	all := mix(rand.New(rand.NewSource(3)))
	var g Gaps
	for _, times := range all {
		g.add(times, true)
	}
	taken, total := 0, 0
	for _, times := range all {
		total += len(times) - 1
		for len(times) > 1 {
			done := g.addQuick(times)
			taken += done
			if times = times[done:]; done == 0 {
				g.addOne(times[1] - times[0])
				times = times[1:]
			}
		}
	}
	if taken < total-total/50 {
		t.Errorf("addQuick took %d of %d gaps", taken, total)
	}
}

func TestReciprocalBounds(t *testing.T) {
	var g Gaps
	for _, n := range []float64{0, 1, 4, 100, 1 << 20, 4_000_003, 40_000_000, 1 << 32, 1 << 40, 1<<50 + 1} {
		for range 40 {
			g.fillRecip(n)
			for i, low := range g.recip {
				if k := n + 1 + float64(i); !reciprocalBounds(k, low, low*recipWide) {
					t.Fatalf("1/%v is not within [%x, %x]", k, low, low*recipWide)
				}
			}
			n += recipLen
		}
	}
}

// TestRecordedITL recomputes the token times of single-stream runs of the
// reference and compares with its reports, bit for bit.
func TestRecordedITL(t *testing.T) {
	var cases []struct {
		Blocks, Size           int
		Speedup, DecodeSpeedup float64
		Fixed                  []float64
		Requests               [][3]int // arrival ms, prompt, output tokens
		ITL, PerUser           [9]float64
	}
	b, err := os.ReadFile("testdata/itl.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 20 {
		t.Fatalf("%d cases, want at least 20", len(cases))
	}
	for _, c := range cases {
		e := config.Engine{NumGPUBlocks: c.Blocks, BlockSize: c.Size, SpeedupRatio: c.Speedup, DecodeSpeedupRatio: c.DecodeSpeedup}
		if c.Fixed != nil {
			e.Timing = config.Timing{Kind: config.Fixed, PrefillMs: c.Fixed[0], DecodeMs: c.Fixed[1]}
		}
		m := timing.New(e)
		var g Gaps
		for _, r := range c.Requests {
			times := []float64{float64(r[0]) + m.Prefill(1, r[1], 0)}
			for i := 1; i < r[2]; i++ {
				times = append(times, times[i-1]+m.Decode(1, r[1]+i))
			}
			g.Add(times)
		}
		compareRecorded(t, "itl", g.ITL(), c.ITL)
		compareRecorded(t, "per user", g.PerUser(), c.PerUser)
	}
}

func compareRecorded(t *testing.T, name string, d Dist, want [9]float64) {
	t.Helper()
	got := [9]float64{d.Mean, d.Min, d.Max, d.Median, d.P75, d.P90, d.P95, d.P99, d.Std}
	if got != want {
		t.Errorf("%s: mean, min, max, percentiles, std\n%v, want\n%v", name, got, want)
	}
}

// TestRecordedBursts holds two overlapping requests of the reference whose
// tokens partly share a time.
func TestRecordedBursts(t *testing.T) {
	var g Gaps
	g.Add([]float64{10, 20, 30, 40, 40, 40})
	g.Add([]float64{40, 40, 40})
	compareRecorded(t, "itl", g.ITL(), [9]float64{4.285714285714286, 0, 10, 0, 10.004152608697646, 10.004152608697646, 10.004152608697646, 10.004152608697646, 4.948716593053935})
	compareRecorded(t, "per user", g.PerUser(), [9]float64{100, 100, 100, 99.9830863317801, 99.9830863317801, 99.9830863317801, 99.9830863317801, 99.9830863317801, 0})
}

// TestSketchKnown holds facts of replay notes §9.1 and of runs of the reference.
func TestSketchKnown(t *testing.T) {
	s := newSketchScale()
	if s.perLn != 1/0.0020000006666670666 {
		t.Errorf("1/perLn = %v, want 0.0020000006666670666", 1/s.perLn)
	}
	for _, c := range []struct{ v, want float64 }{
		{30.2607, 30.23501338227365}, {5.878284, 5.876727682014374}, {1e20, 9.993132263983956e+19},
		{1e-17, 1.0009334686349397e-17}, {9.999999992515995e-07, 1.0005055807241339e-06}, {1000000000.7484004, 999740604.3730156},
	} {
		if got := s.value(s.key(c.v)); got != c.want {
			t.Errorf("%v is reported as %v, want %v", c.v, got, c.want)
		}
	}
}

// TestCells checks the table against the keys themselves: whole octaves
// around common gaps, and cells drawn from the whole range.
func TestCells(t *testing.T) {
	s := newSketchScale()
	rng := rand.New(rand.NewSource(4))
	var indexes []uint64
	for _, gap := range []float64{1e-6, 0.25, 1, 5, 10, 20, 40, 300, 1000} {
		start := math.Float64bits(gap) >> cellShift &^ cellMask
		for i := range uint64(cellMask + 1) {
			indexes = append(indexes, start+i)
		}
	}
	for range 3000 {
		indexes = append(indexes, (leastGap+uint64(rng.Int63n(endGap-leastGap)))>>cellShift)
	}
	indexes = append(indexes, leastGap>>cellShift, (endGap-1)>>cellShift)
	for _, index := range indexes {
		var c cell
		s.open(&c, index)
		first, last := index<<cellShift, (index+1)<<cellShift-1
		probes := []uint64{first, first + 1, last, c.low - 1, c.low, c.low + 1, c.high - 1, c.high, c.high + 1}
		for range 5 {
			probes = append(probes, first+uint64(rng.Int63n(1<<cellShift)))
		}
		for _, b := range probes {
			if b < first || b > last {
				continue
			}
			x := math.Float64frombits(b)
			part := c.part(b)
			if want := s.key(x); int64(c.gapKeys[part]) != want {
				t.Fatalf("gap %x counts under key %d, want %d", x, c.gapKeys[part], want)
			}
			if want := s.key(1000 / x); int64(c.rateKeys[part]) != want {
				t.Fatalf("rate of gap %x counts under key %d, want %d", x, c.rateKeys[part], want)
			}
		}
	}
}

// TestLast compares the border of every key that a gap can have with a search
// by keys.
func TestLast(t *testing.T) {
	s := newSketchScale()
	step := int64(1)
	if testing.Short() {
		step = 17
	}
	for k := int64(-20_000); k < 40_000; k += step {
		got := s.last(k)
		if s.key(got) > k || s.key(math.Nextafter(got, math.Inf(1))) <= k {
			t.Fatalf("last of key %d is %x, want %x", k, got, s.search(got, k))
		}
	}
	for k := int64(-346_000); k < 354_000; k += 997 {
		if got := s.last(k); s.key(got) > k || s.key(math.Nextafter(got, math.Inf(1))) <= k {
			t.Fatalf("last of key %d is %x, want %x", k, got, s.search(got, k))
		}
	}
}

func TestEmptyAndReset(t *testing.T) {
	var g Gaps
	check := func(when string) {
		t.Helper()
		if g.ITL() != (Dist{}) || g.PerUser() != (Dist{}) {
			t.Errorf("%s: %+v, %+v, want zeros", when, g.ITL(), g.PerUser())
		}
	}
	check("zero value")
	g.Add(nil)
	g.Add([]float64{3})
	check("no gap")
	all := mix(rand.New(rand.NewSource(5)))
	g.Add(all[0])
	first := g.ITL()
	g.Add([]float64{1, 1, 5, 2})
	g.Reset()
	check("reset")
	g.Add(all[0])
	if got := g.ITL(); got != first {
		t.Errorf("after a reset %+v, want %+v", got, first)
	}
}

func TestNoAllocations(t *testing.T) {
	all := mix(rand.New(rand.NewSource(6)))
	bursts := []float64{1, 1, 2, 2, 3, 1, 4}
	var g Gaps
	samples := make([]float64, 5000)
	work := func() {
		for _, times := range all {
			g.Add(times)
		}
		g.Add(bursts)
		g.Add(all[0])
		g.ITL()
		g.PerUser()
		for i := range samples {
			samples[i] = float64(i * 7919 % 5003)
		}
		Of(samples)
		g.Reset()
	}
	if n := testing.AllocsPerRun(20, work); n != 0 {
		t.Errorf("%v allocations per run, want 0", n)
	}
}

// mix makes requests of 300 tokens whose gaps drift slowly and jump now and
// then, as passes with prefill make them.
func mix(rng *rand.Rand) [][]float64 {
	out := make([][]float64, 64)
	for r := range out {
		now := rng.Float64() * 1e6
		gap := 10 + rng.Float64()*10
		times := make([]float64, 300)
		for i := range times {
			times[i] = now
			now += gap
			gap += 0.003
			if rng.Intn(15) == 0 {
				now += 20 + rng.Float64()*40
			}
		}
		out[r] = times
	}
	return out
}

func constant() [][]float64 {
	out := make([][]float64, 64)
	for r := range out {
		times := make([]float64, 300)
		for i := range times {
			times[i] = float64(r)*1000 + float64(i)*10
		}
		out[r] = times
	}
	return out
}

func benchmarkAdd(b *testing.B, all [][]float64, quick bool) {
	var g Gaps
	for range 50 {
		for _, times := range all {
			g.Add(times)
		}
	}
	b.ResetTimer()
	for i := range b.N {
		g.add(all[i&63], quick)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/299, "ns/gap")
}

func BenchmarkAddMix(b *testing.B)           { benchmarkAdd(b, mix(rand.New(rand.NewSource(1))), true) }
func BenchmarkAddConstant(b *testing.B)      { benchmarkAdd(b, constant(), true) }
func BenchmarkAddPlainMix(b *testing.B)      { benchmarkAdd(b, mix(rand.New(rand.NewSource(1))), false) }
func BenchmarkAddPlainConstant(b *testing.B) { benchmarkAdd(b, constant(), false) }

func BenchmarkOpenCell(b *testing.B) {
	s := newSketchScale()
	start := math.Float64bits(10) >> cellShift
	var c cell
	for i := range b.N {
		s.open(&c, start+uint64(i&511))
	}
}
