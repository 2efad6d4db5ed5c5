package group

import "github.com/dryserve/dryserve/core/engine"

// Submit is the Submit of rank i.
func (g *Group) Submit(i int, q engine.Request) (engine.Handle, engine.Code) {
	if r := &g.ranks[i]; r.sglang != nil {
		return r.sglang.Submit(q)
	}
	return g.ranks[i].engine.Submit(q)
}

// Out is what rank i said of the pass.
func (g *Group) Out(i int) *engine.Out { return g.ranks[i].out() }

// Copied reports whether a copy of any rank to or from host memory ended with
// the pass completed last.
func (g *Group) Copied() bool {
	for i := range g.ranks {
		if g.ranks[i].out().Copied {
			return true
		}
	}
	return false
}

// Began reports whether any rank with a disk began to load or to read in the
// pass completed last.
func (g *Group) Began() bool {
	for i := range g.ranks {
		if g.ranks[i].out().Began {
			return true
		}
	}
	return false
}

// Running is the number of requests that run on rank i.
func (g *Group) Running(i int) int {
	if r := &g.ranks[i]; r.sglang != nil {
		return r.sglang.RunningLen()
	}
	return g.ranks[i].engine.RunningLen()
}

// FailHead is the FailHead of rank i.
func (g *Group) FailHead(i int) (h engine.Handle, tag uint32, ok bool) {
	if r := &g.ranks[i]; r.sglang != nil {
		return r.sglang.FailHead()
	}
	return g.ranks[i].engine.FailHead()
}

// Unload is the Unload of rank i.
func (g *Group) Unload(i int) bool {
	r := &g.ranks[i]
	return r.sglang == nil && r.engine.Unload()
}

// Preemptions counts the requests preempted on rank i since the start.
func (g *Group) Preemptions(i int) int {
	if r := &g.ranks[i]; r.sglang != nil {
		return r.sglang.Metrics().Preemptions
	}
	return g.ranks[i].engine.Metrics().Preemptions
}
