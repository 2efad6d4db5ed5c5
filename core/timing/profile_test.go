package timing

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/dryserve/dryserve/core/config"
)

// e18 is the profile of engine notes §8.5.
func e18() *config.ProfileTable {
	return &config.ProfileTable{
		PrefillISL:           []float64{4, 8, 16},
		PrefillTTFTMs:        []float64{10, 14, 30},
		DecodeActiveKVTokens: []float64{8, 16, 32},
		DecodeContextLength:  []float64{4, 8, 16},
		DecodeITLMs:          []float64{1, 2, 4, 3, 5, 9, 8, 12, 20},
	}
}

func profiled(p *config.ProfileTable) config.Engine {
	e := engine(16, 4)
	e.Timing = config.Timing{Kind: config.Profile, Profile: p}
	return e
}

func TestProfileKnownValues(t *testing.T) {
	m := New(profiled(e18()))
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"prefill of 10", m.Prefill(1, 10, 0), 18},
		{"prefill of 6", m.Prefill(1, 6, 0), 12},
		{"prefill of 40, beyond", m.Prefill(1, 40, 0), 78},
		{"prefill of 2, before", m.Prefill(1, 2, 0), 8},
		{"prefill at points", m.Prefill(1, 4, 0) + m.Prefill(1, 8, 0) + m.Prefill(1, 16, 0), 54},
		{"prefill of two, means floored", m.Prefill(2, 25, 13), 22}, // 2 prompts of 12-6 tokens
		{"nothing computed", m.Prefill(2, 24, 24), 0},
		{"decode 11", m.Decode(1, 11), 4.15625},
		{"decode 19 of two", m.Decode(2, 19), 6.90625},
		{"decode 3", m.Decode(1, 3), 1},
		{"E18, second pass", 18 + m.Prefill(1, 6, 0) + m.Decode(1, 11), 34.15625},
		{"E18, third pass", 34.15625 + m.Decode(2, 12+7), 41.0625},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v ms, want %v", c.name, c.got, c.want)
		}
	}
	// Falling profiles stop at the floor.
	fall := e18()
	slices.Reverse(fall.PrefillTTFTMs)
	slices.Reverse(fall.DecodeITLMs)
	f := New(profiled(fall))
	if got := f.Prefill(1, 20, 0); got != 8 {
		t.Errorf("falling prefill of 20 tokens: %v ms, want 8", got)
	}
	if got := f.Prefill(1, 37, 0); got != 0 {
		t.Errorf("falling prefill of 37 tokens: %v ms, want 0", got)
	}
	if got := f.Decode(250, 1000); got != 1 {
		t.Errorf("falling decode: %v ms, want 1", got)
	}
}

// recordedRun is a replay of the reference with a profile: requests of
// arrival, prompt and output length, and what became of them.
type recordedRun struct {
	ISL, TTFT, KV, Ctx, ITL []float64
	Size, Blocks            int
	Shared                  bool // all prompts are equal and arrive together
	Speedup, DecodeSpeedup  float64
	Requests                [][3]int
	Times                   [][5]float64 // arrival, lengths, first token, last token
}

func (r recordedRun) engine() config.Engine {
	e := engine(r.Blocks, r.Size)
	e.SpeedupRatio, e.DecodeSpeedupRatio = r.Speedup, r.DecodeSpeedup
	e.Timing = config.Timing{Kind: config.Profile, Profile: &config.ProfileTable{
		PrefillISL: r.ISL, PrefillTTFTMs: r.TTFT,
		DecodeActiveKVTokens: r.KV, DecodeContextLength: r.Ctx, DecodeITLMs: r.ITL,
	}}
	return e
}

// drive runs the requests by hand: each pass prefills what has arrived and
// decodes what was running. Pool and budget are large enough for all.
func (r recordedRun) drive(m *Model) [][5]float64 {
	type live struct{ at, tokens int }
	var out [][5]float64
	for _, q := range r.Requests {
		out = append(out, [5]float64{float64(q[0]), float64(q[1]), float64(q[2])})
	}
	var running []live
	now, next := 0.0, 0
	for next < len(out) || len(running) > 0 {
		if len(running) == 0 {
			now = max(now, out[next][0])
		}
		first, isl, prefix := next, 0, 0
		for next < len(out) && out[next][0] <= now {
			prompt := r.Requests[next][1]
			if isl += prompt; r.Shared && next > 0 {
				prefix += (prompt - 1) / r.Size * r.Size
			}
			next++
		}
		sum := 0
		for _, l := range running {
			sum += r.Requests[l.at][1] + l.tokens
		}
		now += m.Prefill(next-first, isl, prefix)
		now += m.Decode(len(running), sum)
		for i := range next - first {
			out[first+i][3] = now
			running = append(running, live{at: first + i})
		}
		for i := range running {
			running[i].tokens++
			out[running[i].at][4] = now
		}
		running = slices.DeleteFunc(running, func(l live) bool { return l.tokens >= r.Requests[l.at][2] })
	}
	slices.SortFunc(out, func(a, b [5]float64) int { return slices.Compare(a[:], b[:]) })
	return out
}

// TestRecordedProfileRuns compares with the reference's replays of random
// profiles and requests, inside and outside the axes.
func TestRecordedProfileRuns(t *testing.T) {
	name := "testdata/profile-runs.jsonl.gz"
	if other := os.Getenv("PROFILE_RUNS"); other != "" {
		name = other
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	runs := 0
	var below, above, low, high, shared, beyond int
	for lines.Scan() {
		var r recordedRun
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if fault := r.engine().Timing.Profile.Check(); !fault.OK() {
			t.Fatalf("run %d: %+v", runs, fault)
		}
		m := New(r.engine())
		if got := r.drive(&m); !slices.Equal(got, r.Times) {
			t.Errorf("run %d: got %v, want %v\n%s", runs, got, r.Times, lines.Bytes())
		}
		runs++
		tokens := float64(r.Requests[0][1])
		total := 0
		for _, q := range r.Requests {
			total += q[1]
		}
		count(&below, tokens < r.ISL[0])
		count(&above, tokens > r.ISL[len(r.ISL)-1])
		count(&low, tokens+1 < max(r.KV[0], r.Ctx[0]))
		count(&high, tokens+1 > max(r.KV[len(r.KV)-1], r.Ctx[len(r.Ctx)-1]))
		count(&shared, r.Shared && len(r.Requests) > 1)
		count(&beyond, total > r.Blocks*r.Size)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d runs: %d start below the prefill axis, %d above, %d below the decode axes, %d above, %d share a prompt, %d hold more tokens than the pool",
		runs, below, above, low, high, shared, beyond)
	if runs < 200 || min(below, above, low, high, shared, beyond) < 10 {
		t.Error("too few runs of a kind")
	}
}

func count(n *int, yes bool) {
	if yes {
		*n++
	}
}
