package group

import "github.com/dryserve/dryserve/core/engine"

// Drained reports whether no rank knows a request or copies anything.
func (g *Group) Drained() bool {
	for i := range g.ranks {
		if !g.ranks[i].drained() {
			return false
		}
	}
	return true
}

// Metrics describes rank i at this moment (engine notes §10.2).
func (g *Group) Metrics(i int) engine.Metrics {
	if r := &g.ranks[i]; r.sglang != nil {
		return r.sglang.Metrics()
	}
	return g.ranks[i].engine.Metrics()
}
