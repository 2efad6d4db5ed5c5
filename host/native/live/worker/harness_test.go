package worker_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/host/native/live/worker"
	"github.com/dryserve/dryserve/host/native/tracefile"
)

const trace = "../../../../examples/conversation-2k.jsonl"

// arrival is a request of the trace.
type arrival struct {
	atMs   float64
	prompt []uint32
	output int
}

// record is what became of a request.
type record struct {
	firstMs, secondMs, lastMs, endMs float64
	tokens, cached                   int
	end                              worker.End
	ends                             int
	code                             int
}

func (r *record) Signal(s worker.Signal) {
	if s.Token {
		switch r.tokens++; r.tokens {
		case 1:
			r.firstMs = s.AtMs
		case 2:
			r.secondMs = s.AtMs
		}
		r.lastMs = s.AtMs
	}
	if s.First {
		r.cached = s.Cached
	}
	if s.End != worker.Running {
		r.end, r.endMs, r.code = s.End, s.AtMs, int(s.Code)
		r.ends++
	}
}

// offline replays the first n requests of the trace on one worker.
func offline(t testing.TB, cfg config.Engine, n int) ([]arrival, []replay.Record) {
	t.Helper()
	loaded, err := tracefile.Load(context.Background(), []string{trace}, tracefile.Options{TraceBlockSize: 512, ArrivalSpeedup: 1})
	if err != nil {
		t.Fatal(err)
	}
	w := loaded.Workload
	w.Turns, w.Sessions = w.Turns[:n], w.Sessions[:n]
	run := config.DefaultReplay(cfg.Backend)
	run.Engine, run.CaptureRequests = cfg, true
	s := replay.New(run, w, replay.Options{Plain: true})
	if status := s.Step(math.MaxInt); status != replay.Done {
		t.Fatalf("status %d", status)
	}
	records := slices.Clone(s.Records())
	slices.SortFunc(records, func(a, b replay.Record) int { return int(a.Turn - b.Turn) })
	prompts := promptsOf(t, n)
	var arrivals []arrival
	for i, r := range records {
		arrivals = append(arrivals, arrival{r.ArrivalMs, prompts[i], int(r.RequestedOutput)})
	}
	return arrivals, records
}

// promptsOf spells the prompts of the trace as a replay does: the number of each
// hash id, in order of first appearance, is the token.
func promptsOf(t testing.TB, n int) (prompts [][]uint32) {
	t.Helper()
	f, err := os.Open(trace)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	numbers := map[uint64]uint32{}
	for lines := bufio.NewScanner(f); lines.Scan() && len(prompts) < n; {
		var row struct {
			Input int      `json:"input_length"`
			IDs   []uint64 `json:"hash_ids"`
		}
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		tokens := []uint32{}
		for _, id := range row.IDs {
			if _, ok := numbers[id]; !ok {
				numbers[id] = uint32(len(numbers))
			}
			tokens = append(tokens, slices.Repeat([]uint32{numbers[id]}, 512)...)
		}
		prompts = append(prompts, tokens[:row.Input])
	}
	return prompts
}

func uuid(n int) (id [16]byte) {
	binary.BigEndian.PutUint64(id[8:], uint64(n))
	return id
}
