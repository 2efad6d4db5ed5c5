package fleet_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/host/native/fleet"
)

func TestNames(t *testing.T) {
	cfg := config.DefaultReplay(config.VLLM)
	cfg.NumWorkers = 2
	names := func() (list []string) {
		f := fleet.Of(cfg)
		for id := range f.Ranks {
			list = append(list, f.Name(id))
			p := f.Pool(id)
			at := id - p.First
			if got := f.Rank(p.ID, int32(at/p.Engine.DPSize), int32(at%p.Engine.DPSize)); got != id {
				t.Errorf("%s is %d, want %d", f.Name(id), got, id)
			}
		}
		return append(list, f.Noun())
	}
	if d := cmp.Diff([]string{"worker 0", "worker 1", "worker"}, names()); d != "" {
		t.Error(d)
	}
	cfg.Prefill = config.Pool{Engine: cfg.Engine, Workers: 1}
	cfg.Prefill.Engine.DPSize, cfg.Engine.TensorParallelSize = 2, 4
	want := []string{"prefill worker 0, rank 0", "prefill worker 0, rank 1", "decode worker 0", "decode worker 1", "rank"}
	if d := cmp.Diff(want, names()); d != "" {
		t.Error(d)
	}
	f := fleet.Of(cfg)
	if f.GPUs() != 2+2*4 || f.Pools[0].Name() != "prefill" || f.Pools[1].ID != replay.ServingPool {
		t.Errorf("%d GPUs in %v", f.GPUs(), f.Pools)
	}
}
