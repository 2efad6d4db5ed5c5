package group

import (
	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/core/offload"
	"github.com/dryserve/dryserve/core/sglang"
	"github.com/dryserve/dryserve/core/timing"
)

// rank is one scheduler of the group. It is the seam between schedulers: what
// a group asks of a rank it asks through the methods here, each of which
// chooses the scheduler once per pass. They share the types of package engine.
//
// There are two kinds, the family of vLLM and SGLang: one of the pointers is
// set.
type rank struct {
	engine *engine.Engine
	sglang *sglang.Rank
}

func newRank(cfg config.Engine, workerID uint64, index int, tiers offload.Tiers) rank {
	if cfg.Backend == config.SGLang {
		return rank{sglang: sglang.NewRank(cfg, workerID, index)}
	}
	return rank{engine: engine.NewSharing(cfg, workerID, index, tiers)}
}

func (r *rank) ready() bool {
	if r.sglang != nil {
		return r.sglang.Ready()
	}
	return r.engine.Ready()
}

// begin runs the rank's part of a pass, or lets it rest, and returns its end.
func (r *rank) begin(nowMs float64, waveStep int) (endMs float64) {
	if r.sglang != nil {
		if endMs, ok := r.sglang.Begin(nowMs); ok {
			return endMs
		}
		r.sglang.Rest(nowMs)
		return nowMs
	}
	r.engine.SetWaveStep(waveStep)
	if endMs, ok := r.engine.Begin(nowMs); ok {
		return endMs
	}
	r.engine.Rest(nowMs)
	return nowMs
}

func (r *rank) endMs() float64 {
	if r.sglang != nil {
		return r.sglang.EndMs()
	}
	return r.engine.EndMs()
}

func (r *rank) ask() (timing.Query, bool) {
	if r.sglang != nil {
		return r.sglang.Ask()
	}
	return r.engine.Ask()
}

func (r *rank) shareAnswers(c *timing.Cache) {
	if r.sglang != nil {
		r.sglang.ShareAnswers(c)
		return
	}
	r.engine.ShareAnswers(c)
}

func (r *rank) complete(endMs float64) {
	if r.sglang != nil {
		r.sglang.Complete(endMs)
		return
	}
	r.engine.Complete(endMs)
}

func (r *rank) drained() bool {
	if r.sglang != nil {
		return r.sglang.Drained()
	}
	return r.engine.Drained()
}

func (r *rank) out() *engine.Out {
	if r.sglang != nil {
		return r.sglang.Out()
	}
	return r.engine.Out()
}

func (r *rank) nextInternalMs() (ms float64, ok bool) {
	if r.sglang != nil {
		return 0, false
	}
	return r.engine.NextInternalMs()
}

func (r *rank) internal(nowMs float64) bool {
	return r.sglang == nil && r.engine.Internal(nowMs)
}
