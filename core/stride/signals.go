package stride

import (
	"github.com/dryserve/dryserve/core/coverage"
	"github.com/dryserve/dryserve/core/stretch"
)

// begin is a request that got its first token, when so many had ended.
type begin struct {
	turn  int32
	ended int32
}

// appendSignals appends the signals of the last pass in their order (engine notes
// §6.3, §6.4), those of requests that failed left out.
func (w *Worker) appendSignals(dst []stretch.Signal) []stretch.Signal {
	k := 0
	for i, id := range w.ended {
		for ; k < len(w.begins) && int(w.begins[k].ended) <= i; k++ {
			dst = append(dst, stretch.Signal{Turn: w.begins[k].turn})
		}
		if r := &w.reqs[id]; r.fate != stretch.Failed {
			dst = append(dst, stretch.Signal{Turn: r.turn(), Ended: true})
		}
	}
	for ; k < len(w.begins); k++ {
		dst = append(dst, stretch.Signal{Turn: w.begins[k].turn})
	}
	return dst
}

func (w *Worker) appendFailures(dst []stretch.Signal) []stretch.Signal {
	for _, id := range w.ended {
		if r := &w.reqs[id]; r.fate == stretch.Failed {
			dst = append(dst, stretch.Signal{Turn: r.turn(), Ended: true})
		}
	}
	return dst
}

// AppendSignals appends what the last pass said of requests, then the ends of
// those that failed.
func (w *Worker) AppendSignals(dst []stretch.Signal) []stretch.Signal {
	return w.appendFailures(w.appendSignals(dst))
}

// Begun reports whether the last pass gave a request its first token, but not its
// last.
func (w *Worker) Begun() bool { return len(w.begins) > 0 }

// PushTo is Push; there is one rank.
func (w *Worker) PushTo(turn int32, _ int) { w.Push(turn) }

// Ranks is 1.
func (w *Worker) Ranks() int { return 1 }

// Watch lets the worker keep what Changes tells.
func (w *Worker) Watch() { w.cache.Changes.On = true }

// Changes is what passes before the given one have made of the cache since it was
// last asked for, see coverage.Log.
func (w *Worker) Changes(_ int, before int64) []coverage.Change { return w.cache.Changes.Take(before) }

// Passes is the number of passes begun, as Changes counts them.
func (w *Worker) Passes() int64 { return w.passes }

// AppendSignals appends what the last pass said of requests, rank by rank, then
// the ends of those that failed.
func (g *Group) AppendSignals(dst []stretch.Signal) []stretch.Signal {
	for _, r := range g.ranks {
		dst = r.appendSignals(dst)
	}
	for _, r := range g.ranks {
		dst = r.appendFailures(dst)
	}
	return dst
}

// Begun reports whether the last pass gave a request its first token, but not its
// last.
func (g *Group) Begun() bool {
	for _, r := range g.ranks {
		if r.Begun() {
			return true
		}
	}
	return false
}

// PushTo queues a turn on a rank. It is seen by the next pass.
func (g *Group) PushTo(turn int32, rank int) { g.ranks[rank].Push(turn) }

// Ranks is the number of ranks.
func (g *Group) Ranks() int { return len(g.ranks) }

// Watch lets the ranks keep what Changes tells.
func (g *Group) Watch() {
	for _, r := range g.ranks {
		r.Watch()
	}
}

// Changes is what passes before the given one have made of a rank's cache since
// it was last asked for, see coverage.Log.
func (g *Group) Changes(rank int, before int64) []coverage.Change {
	return g.ranks[rank].Changes(0, before)
}

// Passes is the number of passes begun, as Changes counts them.
func (g *Group) Passes() int64 { return g.ranks[0].passes }
