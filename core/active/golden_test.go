package active

import (
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/dryserve/dryserve/core/fmath"
)

type goldenStep struct {
	Op       string
	ID       string
	Worker   int
	Rank     int     `json:"dp_rank"`
	AtMs     float64 `json:"t_ms"`
	Tokens   uint64  `json:"prefill_tokens"`
	Ns       *uint64 `json:"expected_prefill_ns"`
	Sequence []string
	After    *struct {
		Blocks   [][3]int    `json:"active_blocks"` // worker, rank, value
		Requests [][3]int    `json:"active_requests"`
		Tokens   [][3]uint64 `json:"active_tokens"`
	}
	Loads [][6]uint64 // worker, rank, tokens, blocks, requests, additional blocks
}

func nanos(ms float64) uint64 {
	d := fmath.RoundSeconds(max(ms, 0) / 1000)
	return d.Secs*1e9 + uint64(d.Nanos)
}

// The reference's active sequences, step by step.
func TestGoldenActiveSequences(t *testing.T) {
	text, err := os.ReadFile("../../testdata/router/active_sequences.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Cases []struct {
			Ranks   int `json:"dp_size"`
			Workers int
			Steps   []goldenStep
		}
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	steps := 0
	for _, c := range file.Cases {
		x := New(c.Workers * c.Ranks)
		live := map[string]Booking{}
		for _, s := range c.Steps {
			replayStep(t, x, live, s, c.Ranks)
			steps++
		}
	}
	if steps != 467 {
		t.Errorf("%d steps, want 467", steps)
	}
}

func replayStep(t *testing.T, x *Tracker, live map[string]Booking, s goldenStep, ranks int) {
	t.Helper()
	now := nanos(s.AtMs)
	slot := func(worker, rank int) Slot { return Slot(worker*ranks + rank) }
	var sequence []uint64
	for _, h := range s.Sequence {
		n, err := strconv.ParseUint(h, 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		sequence = append(sequence, n)
	}
	switch s.Op {
	case "add":
		load := Load{Tokens: s.Tokens, Ns: Unknown}
		if s.Ns != nil {
			load.Ns = *s.Ns
		}
		live[s.ID] = x.Add(slot(s.Worker, s.Rank), sequence, 0, load, now)
	case "prefill_done":
		if b, ok := live[s.ID]; ok {
			x.PrefillDone(b, now)
		}
	case "free":
		if b, ok := live[s.ID]; ok {
			x.Free(b, now)
			delete(live, s.ID)
		}
	case "project":
		var shared Shared
		x.Shared(sequence, &shared)
		for _, want := range s.Loads {
			w := slot(int(want[0]), int(want[1]))
			more := len(sequence)
			if i := slices.Index(shared.Slots, w); i >= 0 {
				more -= int(shared.Blocks[i])
			}
			got := [6]uint64{want[0], want[1], x.Tokens(w, now), uint64(x.Blocks(w)), uint64(x.Requests(w)), uint64(more)}
			if got != want {
				t.Fatalf("at %v, project %v: %v, want %v", s.AtMs, s.Sequence, got, want)
			}
		}
	default:
		t.Fatalf("unknown step %q", s.Op)
	}
	if s.After == nil {
		return
	}
	for i, r := range s.After.Blocks {
		w := slot(r[0], r[1])
		requests, tokens := s.After.Requests[i][2], s.After.Tokens[i][2]
		if x.Blocks(w) != r[2] || x.Requests(w) != requests || x.Tokens(w, now) != tokens {
			t.Fatalf("at %v, %s of %s: slot %d has %d blocks, %d requests, %d tokens; want %d, %d, %d", s.AtMs, s.Op, s.ID, w,
				x.Blocks(w), x.Requests(w), x.Tokens(w, now), r[2], requests, tokens)
		}
	}
}
