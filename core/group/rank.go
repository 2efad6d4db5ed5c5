package group

import (
	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/engine"
)

// rank is one scheduler of the group. It is the seam between schedulers: what
// a group asks of a rank it asks through the methods here, each of which
// chooses the scheduler once per pass. They share the types of package engine.
//
// There is one kind so far, the family of vLLM. Another is a second pointer and
// a branch in each method.
type rank struct {
	engine *engine.Engine
}

func newRank(cfg config.Engine, workerID uint64, index int) rank {
	return rank{engine: engine.NewRank(cfg, workerID, index)}
}

func (r *rank) ready() bool { return r.engine.Ready() }

// begin runs the rank's part of a pass, or lets it rest, and returns its end.
func (r *rank) begin(nowMs float64, waveStep int) (endMs float64) {
	r.engine.SetWaveStep(waveStep)
	if endMs, ok := r.engine.Begin(nowMs); ok {
		return endMs
	}
	r.engine.Rest(nowMs)
	return nowMs
}

func (r *rank) complete(endMs float64) { r.engine.Complete(endMs) }
func (r *rank) drained() bool          { return r.engine.Drained() }
func (r *rank) out() *engine.Out       { return r.engine.Out() }

func (r *rank) nextInternalMs() (ms float64, ok bool) { return r.engine.NextInternalMs() }
func (r *rank) internal(nowMs float64) bool           { return r.engine.Internal(nowMs) }
