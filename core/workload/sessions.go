package workload

import (
	"math"

	"github.com/dryserve/dryserve/core/trace"
)

// NameSessions gives the sessions added with Open the ids prefix<line>, or
// prefix<place> where the line is 0.
func (b *Builder) NameSessions(prefix string) { b.w.prefix = prefix }

// Open begins a session at startMs, which counts from any time. line is the
// one of the trace that describes it, 0: none. Sessions of rows (Add) and of
// Open are not mixed.
func (b *Builder) Open(line int64, startMs float64, hasStart bool) Fault {
	if line > maxCount {
		return Fault{Code: TooManyLines, Line: line, Limit: maxCount}
	}
	if len(b.w.Sessions) == maxCount {
		return Fault{Code: TooManyRows, Line: line, Limit: maxCount}
	}
	s := &b.w.Sessions[b.open(0, line)]
	s.StartMs, s.HasStart = startMs, hasStart
	return Fault{}
}

// Named is a request of a graph with all that is known of it. Sessions of one
// id may be many.
type Named struct {
	Line          int64
	Session       []byte
	Input, Output int64
	HashIDs       []uint64
	OutputIDs     []uint32
	Planned       bool // OutputIDs are given
	Priority      int32
	Strict        uint32
	Policy        []byte // nil: none
}

// Node adds a request of a graph, in a session of its own.
func (b *Builder) Node(n *Named) Fault {
	name := b.w.ids.Add(n.Session)
	if name < 0 {
		return Fault{Code: TooMuchText, Line: n.Line, Limit: maxText}
	}
	b.open(name+1, n.Line)
	if !b.classify(n.Priority, n.Strict, n.Policy) {
		return Fault{Code: TooMuchText, Line: n.Line, Limit: maxText}
	}
	if f := b.Turn(n.HashIDs, n.Input, n.Output, 0); f.Code != OK {
		return f
	}
	b.plan(&b.w.Turns[len(b.w.Turns)-1], &trace.Row{HasOutputIDs: n.Planned, OutputIDs: n.OutputIDs})
	return Fault{}
}

// FinishGraph returns the workload of the nodes added with Node. The builder
// is of no use afterwards.
func (b *Builder) FinishGraph(g *Graph) *Workload {
	b.settle()
	b.w.Graph = g
	return &b.w
}

// Turn adds a turn to the session opened last. ids cover input > 0 tokens;
// delayMs is 0 for the first turn.
func (b *Builder) Turn(ids []uint64, input, output int64, delayMs float64) Fault {
	w := &b.w
	s := int32(len(w.Sessions) - 1)
	session := &w.Sessions[s]
	t := Turn{IDs: int32(len(ids)), Input: int32(input), Output: int32(output), Session: s, Next: -1, Planned: -1, DelayMs: delayMs}
	f := Fault{}
	switch {
	case len(w.Turns) == maxCount:
		f = Fault{Code: TooManyRows, Limit: maxCount}
	case input > maxCount:
		f = Fault{Code: InputTooLong, Found: input, Limit: maxCount}
	case output > maxCount:
		f = Fault{Code: OutputTooLong, Found: output, Limit: maxCount}
	default:
		t.Leaf, f = b.path(ids)
	}
	if f.Code != OK {
		f.Line, f.Session = int64(session.Line), s
		return f
	}
	// As in chain: First is the last turn, whose Next is the first one.
	self := int32(len(w.Turns))
	if session.First < 0 {
		t.Next = self
		t.DelayMs = math.NaN()
	} else {
		last := &w.Turns[session.First]
		t.Index, t.Next = last.Index+1, last.Next
		last.Next = self
	}
	session.First = self
	w.Turns = append(w.Turns, t)
	return Fault{}
}
