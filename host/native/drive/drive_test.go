package drive_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/workload"
	"github.com/dryserve/dryserve/host/native/drive"
	"github.com/dryserve/dryserve/host/native/tracefile"
)

func load(t *testing.T) *workload.Workload {
	t.Helper()
	loaded, err := tracefile.Load(context.Background(), []string{"../../../examples/conversation-2k.jsonl"},
		tracefile.Options{TraceBlockSize: 512, ArrivalSpeedup: 1})
	if err != nil {
		t.Fatal(err)
	}
	return loaded.Workload
}

func configs() map[string]config.Replay {
	one := config.DefaultReplay(config.VLLM)
	four, capped := one, one
	four.NumWorkers = 4
	capped.NumWorkers, capped.Concurrency = 3, 20
	return map[string]config.Replay{"one worker": one, "four": four, "a cap": capped}
}

// However the steps are spread, the outcome is that of one Step.
func TestRunEqualsStep(t *testing.T) {
	for name, cfg := range configs() {
		t.Run(name, func(t *testing.T) {
			s := replay.New(cfg, load(t), replay.Options{})
			if status := s.Step(math.MaxInt); status != replay.Done {
				t.Fatalf("status %d", status)
			}
			r := replay.New(cfg, load(t), replay.Options{})
			var last, total int64
			status, err := drive.Run(context.Background(), r, drive.Options{Progress: func(done, all int64) {
				if done < last {
					t.Errorf("progress falls from %d to %d", last, done)
				}
				last, total = done, all
			}})
			if status != replay.Done || err != nil {
				t.Fatalf("status %d, %v", status, err)
			}
			if last != 2000 || total != 2000 {
				t.Errorf("progress ends at %d of %d", last, total)
			}
			if d := cmp.Diff(s.Summary(), r.Summary()); d != "" {
				t.Errorf("-step +run:\n%s", d)
			}
		})
	}
}

func TestRunStops(t *testing.T) {
	for name, cfg := range configs() {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			s := replay.New(cfg, load(t), replay.Options{})
			if _, err := drive.Run(ctx, s, drive.Options{}); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		})
	}
}
