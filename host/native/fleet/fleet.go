// Package fleet numbers and names the workers and ranks of a run, for programs
// that show what was recorded of it.
//
// It owns the order in which they are shown: a pool that computes prompts comes
// before that which decodes. It does not own what they do.
//
// Invariant: IDs of ranks count from 0 without gaps.
package fleet

import (
	"fmt"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/replay"
)

// Pool is a number of like workers.
type Pool struct {
	Engine  config.Engine
	Workers int
	ID      replay.PoolID
	First   int    // ID of its first rank
	word    string // before "worker", with a blank
}

// Fleet is all workers of a run.
type Fleet struct {
	Pools []Pool
	Ranks int // of all workers
}

// Of is the fleet of a run.
func Of(cfg config.Replay) Fleet {
	serving := Pool{Engine: cfg.Engine, Workers: cfg.NumWorkers, ID: replay.ServingPool}
	if !cfg.Disaggregated() {
		return Fleet{[]Pool{serving}, serving.ranks()}
	}
	prefill := Pool{Engine: cfg.Prefill.Engine, Workers: cfg.Prefill.Workers, ID: replay.PrefillPool, word: "prefill "}
	serving.First, serving.word = prefill.ranks(), "decode "
	return Fleet{[]Pool{prefill, serving}, prefill.ranks() + serving.ranks()}
}

func (p *Pool) ranks() int { return p.Workers * p.Engine.DPSize }

// Name is what the pool is called: "", "prefill" or "decode".
func (p *Pool) Name() string { return p.word[:max(len(p.word)-1, 0)] }

// WorkerName names a worker.
func (p *Pool) WorkerName(worker int) string { return fmt.Sprintf("%sworker %d", p.word, worker) }

// Noun is what a rank is called where each is shown: a worker, if it is alone in
// it.
func (f Fleet) Noun() string {
	for i := range f.Pools {
		if f.Pools[i].Engine.DPSize > 1 {
			return "rank"
		}
	}
	return "worker"
}

// Pool is the pool of a rank.
func (f Fleet) Pool(id int) *Pool {
	i := len(f.Pools) - 1
	for f.Pools[i].First > id {
		i--
	}
	return &f.Pools[i]
}

// Name names a rank; one that is alone in its worker has the worker's name.
func (f Fleet) Name(id int) string {
	p := f.Pool(id)
	ranks := p.Engine.DPSize
	worker, rank := (id-p.First)/ranks, (id-p.First)%ranks
	if ranks == 1 {
		return p.WorkerName(worker)
	}
	return fmt.Sprintf("%s, rank %d", p.WorkerName(worker), rank)
}

// Rank is the ID of a rank by its pool, its worker there and its number.
func (f Fleet) Rank(pool replay.PoolID, worker, rank int32) int {
	for i := range f.Pools {
		if p := &f.Pools[i]; p.ID == pool {
			return p.First + int(worker)*p.Engine.DPSize + int(rank)
		}
	}
	return -1
}

// GPUs is how many the fleet has.
func (f Fleet) GPUs() int {
	n := 0
	for i := range f.Pools {
		p := &f.Pools[i]
		n += p.Workers * p.Engine.DPSize * p.Engine.TensorParallelSize
	}
	return n
}
