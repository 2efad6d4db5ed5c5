package tracestat

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/host/native/tracefile"
)

// describe looks at a trace from standard input.
func describe(t *testing.T, format tracefile.Format, text io.Reader) *Stats {
	t.Helper()
	c := New(format, 512, func(e *tracefile.Error) bool {
		t.Error(e)
		return true
	})
	trace, err := tracefile.Load(context.Background(), []string{"-"}, tracefile.Options{Format: format, TraceBlockSize: 512, Stdin: text, Survey: c})
	if err != nil {
		t.Fatal(err)
	}
	return c.Finish(trace)
}

func TestCounts(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for _, most := range []int64{1, 10, 5000, 1<<17 - 1, 1 << 20, math.MaxInt32} {
		var c counts
		var all []int64
		for range 1 + rng.Intn(3000) {
			v := rng.Int63n(most + 1)
			all = append(all, v)
			c.add(v)
		}
		slices.Sort(all)
		at := func(p float64) int64 { return all[int(math.Round(float64(len(all)-1)*p))] }
		got := c.lengths()
		if got.Min != all[0] || got.Max != all[len(all)-1] {
			t.Errorf("to %d: %+v", most, got)
		}
		for _, p := range []struct {
			got  int64
			want int64
		}{{got.P50, at(0.5)}, {got.P75, at(0.75)}, {got.P90, at(0.9)}, {got.P95, at(0.95)}, {got.P99, at(0.99)}} {
			if p.got > p.want || p.want < 1<<17 && p.got != p.want || float64(p.want-p.got) > float64(p.want)/(1<<16) {
				t.Errorf("to %d: %d, want %d", most, p.got, p.want)
			}
		}
	}
}

// paths are prompts that share beginnings.
func paths(rng *rand.Rand, n int, visit func(ids []uint64)) {
	var known [][]uint64
	next := uint64(0)
	for range n {
		var ids []uint64
		if len(known) > 0 && rng.Intn(3) > 0 {
			old := known[rng.Intn(len(known))]
			ids = append(ids, old[:rng.Intn(len(old)+1)]...)
		}
		for range rng.Intn(20) {
			if next++; rng.Intn(4) == 0 {
				ids = append(ids, uint64(rng.Intn(8)))
			} else {
				ids = append(ids, next)
			}
		}
		if len(known) < 1000 {
			known = append(known, ids)
		}
		visit(ids)
	}
}

// Few blocks are counted exactly, as a set of their paths counts them.
func TestDistinctExact(t *testing.T) {
	for seed := range int64(5) {
		set, short := map[string]bool{}, int64(0)
		var d distinct
		paths(rand.New(rand.NewSource(seed)), 1000, func(ids []uint64) {
			lacks := int64(len(ids) % 5)
			for n := range ids {
				path := fmt.Sprint(ids[:n+1])
				if !set[path] && n == len(ids)-1 {
					short += lacks
				}
				set[path] = true
			}
			d.addPath(ids, lacks)
		})
		if n, lacks := d.count(); d.level != 0 || n != int64(len(set)) || lacks != short {
			t.Errorf("seed %d: %d lacking %d at level %d, want %d lacking %d", seed, n, lacks, d.level, len(set), short)
		}
	}
}

// Many blocks are counted by a sample: each path here is new.
func TestDistinctSampled(t *testing.T) {
	var d distinct
	const n, long = 90_000, 100
	ids := make([]uint64, long)
	for i := range uint64(n) {
		for k := range ids {
			ids[k] = i*long + uint64(k)
		}
		d.addPath(ids, 7)
		if i%8 == 0 {
			d.addPath(ids, 7)
		}
	}
	blocks, lacks := d.count()
	if off := float64(blocks)/(n*long) - 1; d.level == 0 || math.Abs(off) > 0.004 {
		t.Errorf("%d at level %d, off by %v", blocks, d.level, off)
	}
	if off := float64(lacks)/(7*n) - 1; math.Abs(off) > 0.04 {
		t.Errorf("they lack %d tokens, off by %v", lacks, off)
	}
	if len(d.slots) > maxSlots {
		t.Errorf("%d slots", len(d.slots))
	}
}

func TestArrivals(t *testing.T) {
	for seed := range int64(50) {
		rng := rand.New(rand.NewSource(seed))
		var a arrivals
		var all []float64
		at := rng.NormFloat64() * 1e6
		scale := math.Pow(10, float64(rng.Intn(7)))
		ordered := seed%2 == 0
		for range 3 + rng.Intn(400) {
			at += rng.ExpFloat64() * scale
			ms := at
			if !ordered {
				ms += rng.NormFloat64() * 3 * scale
			}
			all = append(all, ms)
			a.add(ms)
		}
		got := a.finish()
		first := all[0]
		sorted := slices.Clone(all)
		slices.Sort(sorted)
		n := len(sorted)
		span := sorted[n-1] - sorted[0]
		if got.N != int64(n) || got.DurationMs != span || (got.Late == 0) != slices.IsSorted(all) {
			t.Fatalf("seed %d: %+v", seed, got)
		}
		windows := map[float64]int{}
		for _, ms := range all {
			windows[math.Floor((ms-first)/got.WindowMs)]++
		}
		low, high := math.Floor((sorted[0]-first)/got.WindowMs), math.Floor((sorted[n-1]-first)/got.WindowMs)
		mean, squares, peak := float64(n)/(high-low+1), 0.0, 0
		for w := low; w <= high; w++ {
			squares += math.Pow(float64(windows[w])-mean, 2)
			peak = max(peak, windows[w])
		}
		near(t, "dispersion", got.Dispersion, squares/(high-low+1)/mean)
		near(t, "peak", got.PeakPerS, float64(peak)/got.WindowMs*1000)
		near(t, "rate", got.RatePerS, float64(n-1)/span*1000)
		if ordered {
			gap, square := span/float64(n-1), 0.0
			for i := range n - 1 {
				square += math.Pow(sorted[i+1]-sorted[i]-gap, 2)
			}
			near(t, "burstiness", got.Burstiness, math.Sqrt(square/float64(n-1))/gap)
		}
		if high-low >= maxWindows || got.WindowMs > 1000 && (high-low+1)*2 < maxWindows-2 {
			t.Errorf("seed %d: %v windows of %v ms", seed, high-low+1, got.WindowMs)
		}
	}
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*max(math.Abs(got), math.Abs(want)) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// The description of a small trace, by hand.
func TestDescription(t *testing.T) {
	s := describe(t, tracefile.Auto, strings.NewReader(`{"timestamp":1000,"input_length":1024,"output_length":5,"hash_ids":[1,2]}
{"session_id":"s","timestamp":2000,"input_length":1000,"output_length":15,"hash_ids":[1,3]}
{"session_id":"s","delay":250,"input_length":1600,"output_length":10,"hash_ids":[1,3,4,99]}
{"timestamp":5000,"input_length":10,"output_length":1,"output_token_ids":[7],"hash_ids":[3]}
`))
	var b bytes.Buffer
	if err := s.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	const want = `Format           mooncake
Requests         4
Sessions         3, of 1.33 requests on average, 2 at most
Planned answers  1, given as token ids
Block size       512 tokens a hash id, as the trace does not say it

Tokens   total   mean  min    p50    p75    p90    p95    p99    max
Prompts  3,634  908.5   10  1,024  1,024  1,600  1,600  1,600  1,600
Answers     31    7.8    1     10     10     15     15     15     15

Prompt blocks    9, 6 different ones
Reuse potential  33.33 % of the prompt blocks, 42.27 % of the tokens, came before: an infinite cache has them
Duration         4.000 s from the first start to the last
Arrivals         0.500 starts a second on average, 1 in the busiest second
Burstiness       0.50 (deviation of the gaps between starts over their mean; 1 at random, 0 even)
Delays           250.0 ms on average between one request and the next, 250.0 at most
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// Increments count with what was said before: 600+50 tokens are one block and
// a bit, so the 740 of the second prompt need a second block that is new.
func TestIncrements(t *testing.T) {
	s := describe(t, tracefile.MooncakeDelta, strings.NewReader(`{"session_id":"a","timestamp":0,"input_length":600,"output_length":50,"hash_ids":[1,2]}
{"session_id":"a","delay":1000,"input_length":90,"output_length":50,"hash_ids":[3]}
`))
	if s.Prompt.Total != 600+740 || s.Blocks != 4 || s.UniqueBlocks != 3 || s.UniqueTokens != 600+138+90 || strings.Join(s.Needs(), " ") != "--trace-format mooncake-delta" {
		t.Errorf("%+v", s)
	}
}

// endless gives n rows, each with blocks of its own.
type endless struct {
	n, at      int
	text, left []byte
}

func (e *endless) Read(p []byte) (int, error) {
	if len(e.left) == 0 {
		if e.at == e.n {
			return 0, io.EOF
		}
		e.text = append(strconv.AppendInt(append(e.text[:0], `{"input_length": 32768, "output_length": 9, "timestamp": `...), int64(e.at*7), 10), `, "hash_ids": [`...)
		for i := range 64 {
			if i > 0 {
				e.text = append(e.text, ',')
			}
			e.text = strconv.AppendInt(e.text, int64(64*e.at+i), 10)
		}
		e.text = append(e.text, "]}\n"...)
		e.left = e.text
		e.at++
	}
	n := copy(p, e.left)
	e.left = e.left[n:]
	return n, nil
}

// However many rows there are, memory stays the same once the tables are full.
func TestMemoryIsBounded(t *testing.T) {
	allocated := func(rows int) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s := describe(t, tracefile.Mooncake, &endless{n: rows})
		runtime.ReadMemStats(&after)
		if s.Requests != int64(rows) || !s.Sampled {
			t.Fatalf("%+v", s)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	few := allocated(30_000)
	if many := allocated(60_000); many > few+1<<20 {
		t.Errorf("%d bytes for 30,000 rows, %d for twice as many", few, many)
	}
}
