package ranks

import (
	"github.com/dryserve/dryserve/core/coverage"
	"github.com/dryserve/dryserve/core/stretch"
)

// PushTo queues a turn on a rank. It is seen by the next pass.
func (g *Group) PushTo(turn int32, rank int) { g.ranks[rank].Push(turn) }

// Ranks is the number of ranks.
func (g *Group) Ranks() int { return len(g.ranks) }

// AppendSignals appends what the last pass said of requests, rank by rank, then
// the ends of those that failed.
func (g *Group) AppendSignals(dst []stretch.Signal) []stretch.Signal {
	for _, r := range g.ranks {
		dst = r.AppendSignals(dst)
	}
	for _, r := range g.ranks {
		dst = r.AppendFailures(dst)
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

// Watch lets the ranks keep what Changes tells.
func (g *Group) Watch() {
	for _, r := range g.ranks {
		r.Watch()
	}
}

// Changes is what passes before the given one have made of a rank's prefix cache
// since it was last asked for, see coverage.Log.
func (g *Group) Changes(rank int, before int64) []coverage.Change {
	return g.ranks[rank].Changes(before)
}

// Passes is the number of passes begun, as Changes counts them.
func (g *Group) Passes() int64 { return g.log.Next() }
