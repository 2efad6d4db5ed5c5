package group

import "github.com/dryserve/dryserve/core/engine"

// scheduler is what both kinds of rank have for handoffs.
type scheduler interface {
	SubmitPrefill(engine.Request) (engine.Handle, engine.Code)
	Reserve(engine.Request) (engine.Handle, engine.Code)
	Activate(engine.Handle) engine.Code
	ReleaseSource(engine.Handle) engine.Code
	CancelSource(engine.Handle) engine.Code
	CancelDestination(engine.Handle) engine.Code
	Effects() *engine.Effects
}

func (r *rank) scheduler() scheduler {
	if r.sglang != nil {
		return r.sglang
	}
	return r.engine
}

// SubmitPrefill is the SubmitPrefill of rank i.
func (g *Group) SubmitPrefill(i int, q engine.Request) (engine.Handle, engine.Code) {
	return g.ranks[i].scheduler().SubmitPrefill(q)
}

// Reserve is the Reserve of rank i.
func (g *Group) Reserve(i int, q engine.Request) (engine.Handle, engine.Code) {
	return g.ranks[i].scheduler().Reserve(q)
}

// Activate is the Activate of rank i.
func (g *Group) Activate(i int, h engine.Handle) engine.Code {
	return g.ranks[i].scheduler().Activate(h)
}

// ReleaseSource is the ReleaseSource of rank i.
func (g *Group) ReleaseSource(i int, h engine.Handle) engine.Code {
	return g.ended(g.ranks[i].scheduler().ReleaseSource(h))
}

// CancelSource is the CancelSource of rank i.
func (g *Group) CancelSource(i int, h engine.Handle) engine.Code {
	return g.ended(g.ranks[i].scheduler().CancelSource(h))
}

// CancelDestination is the CancelDestination of rank i.
func (g *Group) CancelDestination(i int, h engine.Handle) engine.Code {
	return g.ended(g.ranks[i].scheduler().CancelDestination(h))
}

// Effects is what the last command of rank i that was Applied said.
func (g *Group) Effects(i int) *engine.Effects { return g.ranks[i].scheduler().Effects() }

// ended begins a new wave if a command has ended the last request.
func (g *Group) ended(code engine.Code) engine.Code {
	if code == engine.Applied && !g.inFlight {
		g.restWhenDrained()
	}
	return code
}
