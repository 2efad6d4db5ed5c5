package replay

// Cause is why workers came, went or became ready.
type Cause uint8

// The causes of operations.
const (
	ScaleCause  Cause = iota // the policy's decision
	ReadyCause               // a worker has started
	SettleCause              // workers that drained are idle
)

// WorkerState is what a worker is about to do.
type WorkerState uint8

// States of workers. Absent is that of one that is not there yet, or not any
// more.
const (
	Absent WorkerState = iota
	Starting
	Active
	Draining
)

// Transition is one worker's step from one state to another. From Absent it
// goes to Starting or, if workers start at once, to Active.
type Transition struct {
	Worker   int32
	From, To WorkerState
	Origin   int32 // the operation that brought the worker where it was, or that began this
}

// Operation is what happened to the workers of a pool in one go (replay notes
// §7). Its lists ascend but for the transitions, which stand in the order of the
// reference: those that drain and those whose start is cancelled from the
// highest number down, then those that are gone from the lowest up.
type Operation struct {
	AtMs        float64
	Pool        PoolID
	Split       bool // there are two pools
	Cause       Cause
	Tick        int64 // of the policy; -1: it was not the cause
	Origin      int32 // the one operation that it completes; -1: none, or several
	Transitions []Transition

	Active, Starting, Draining []int32 // afterwards
	Released                   []int32 // turns that waited at the router and went to a worker for it
}

// Lifecycle is what happened to the workers so far.
func (s *Sim) Lifecycle() []Operation {
	if s.control == nil {
		return nil
	}
	return s.control.ops
}

// seal ends an operation of a fleet: it is kept if anything has happened.
func (c *control) seal(f *fleet, cause Cause, tick int64) {
	if len(c.steps) == 0 {
		return
	}
	own := int32(len(c.ops))
	op := Operation{AtMs: c.sim.books.nowMs, Pool: f.pool, Split: c.sim.pools != nil, Cause: cause, Tick: tick, Origin: -1}
	op.Transitions = append(op.Transitions, c.steps...)
	many := false
	for _, t := range c.steps {
		if t.Origin != own && t.Origin != op.Origin {
			many = many || op.Origin >= 0
			op.Origin = t.Origin
		}
	}
	if many {
		op.Origin = -1
	}
	op.Active = appendIDs(nil, f.active)
	op.Starting = appendIDs(nil, f.starting)
	op.Draining = appendIDs(nil, f.draining)
	c.ops = append(c.ops, op)
	c.steps = c.steps[:0]
}
