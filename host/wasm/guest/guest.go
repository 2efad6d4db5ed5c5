// Package guest answers the calls that cross the boundary of core.wasm: it
// opens simulations, feeds them text, steps them and hands out what they found,
// every one by its handle and apart from the others.
//
// It owns the operations and their order. It does not own the spelling of
// frames (host/wasm/frame), memory that a host can see (guest/reactor), or
// anything that is simulated (core/). It knows no sentences, files or clocks.
//
// Invariants: whatever bytes a call brings, it is answered by one frame; a call
// that is refused changes nothing, except that a trace at fault ends its
// simulation. The package is plain Go, so tests run it natively; in core.wasm
// it must stay small, and a test counts its imports and bytes.
package guest

import (
	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/intake"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/workload"
	"github.com/dryserve/dryserve/host/wasm/frame"
)

// Guest is a set of simulations. The zero Guest has none.
type Guest struct {
	sims   []*sim // by handle-1; nil: closed
	answer []byte // of the last call
}

// sim is one simulation.
type sim struct {
	status  frame.Status
	run     frame.Run
	read    *intake.Feeder     // until all text is fed
	load    *workload.Workload // from then on
	replay  *replay.Sim        // from the first step on
	summary *replay.Summary    // once asked for
	tape    replay.Recording   // what was taken last
	columns frame.RecordingColumns
}

// Open opens a simulation and returns its handle, which is never 0 and never
// used again.
func (g *Guest) Open() uint32 {
	g.sims = append(g.sims, &sim{status: frame.Opened})
	return uint32(len(g.sims))
}

// Close drops a simulation. A handle that is not open is left alone.
func (g *Guest) Close(handle uint32) {
	if g.find(handle) != nil {
		g.sims[handle-1] = nil
	}
}

// Status is what a simulation waits for.
func (g *Guest) Status(handle uint32) frame.Status {
	if s := g.find(handle); s != nil {
		return s.status
	}
	return frame.NoSimulation
}

func (g *Guest) find(handle uint32) *sim {
	if handle == 0 || uint64(handle) > uint64(len(g.sims)) {
		return nil
	}
	return g.sims[handle-1]
}

// Call does one operation. The answer is a frame, valid until the next call;
// request is not kept.
func (g *Guest) Call(handle uint32, op frame.Op, request []byte) []byte {
	g.answer = g.answer[:0]
	s := g.find(handle)
	if s == nil {
		return g.refuse(frame.Fault{Code: frame.UnknownHandle, Found: int64(handle)})
	}
	switch op {
	case frame.Configure:
		return g.configure(s, request)
	case frame.Feed:
		return g.feed(s, request)
	case frame.Step:
		return g.step(s, request)
	case frame.Progress:
		return g.progress(s, request)
	case frame.Summarize:
		return g.summarize(s, request)
	case frame.Records:
		return g.records(s, request)
	case frame.Unservable:
		return g.unservable(s, request)
	case frame.Turns:
		return g.turns(s, request)
	case frame.Sessions:
		return g.sessions(s, request)
	case frame.Synthesize:
		return g.synthesize(s, request)
	case frame.Handoffs:
		return g.handoffs(s, request)
	case frame.Routes:
		return g.routes(s, request)
	case frame.Direct:
		return g.direct(s, request)
	case frame.TakeRecording:
		return g.recording(s, request)
	case frame.Graph:
		return g.graph(s, request)
	case frame.Nodes:
		return g.nodes(s, request)
	case frame.Plays:
		return g.plays(s, request)
	case frame.Outcomes:
		return g.outcomes(s, request)
	case frame.Tick:
		return g.tick(s, request)
	case frame.TakeSamples:
		return g.samples(s, request)
	case frame.Lifecycle:
		return g.lifecycle(s, request)
	}
	return g.refuse(frame.Fault{Code: frame.UnknownOp, Found: int64(op)})
}

// say answers with fields.
func (g *Guest) say(fields ...frame.Field) []byte {
	g.answer = frame.Append(g.answer, fields)
	return g.answer
}

// refuse answers with a fault.
func (g *Guest) refuse(f frame.Fault) []byte { return g.say(f.Fields()...) }

// place refuses an operation that has no place in the simulation's status.
func (g *Guest) place(s *sim, accepted ...frame.Status) bool {
	for _, status := range accepted {
		if s.status == status {
			return true
		}
	}
	g.refuse(frame.Fault{Code: frame.WrongState, Found: int64(s.status)})
	return false
}

// read decodes a request.
func (g *Guest) read(request []byte, fields ...frame.Field) bool {
	f := frame.Decode(request, fields)
	if f.Code != frame.OK {
		g.refuse(f)
	}
	return f.Code == frame.OK
}

func (g *Guest) configure(s *sim, request []byte) []byte {
	if !g.place(s, frame.Opened) {
		return g.answer
	}
	run, f := frame.DecodeRun(request)
	if f.Code != frame.OK {
		return g.refuse(f)
	}
	fault := run.Check()
	if fault.OK() {
		fault = run.Engine.CheckChunk()
	}
	if fault.OK() && run.Disaggregated() {
		fault = run.Prefill.Engine.CheckChunk()
	}
	if !fault.OK() {
		code := uint8(frame.BadConfig)
		return g.say(frame.Field{Name: "error", Var: &code},
			frame.Field{Name: "code", Var: (*uint8)(&fault.Code)}, frame.Field{Name: "field", Var: (*uint8)(&fault.Field)})
	}
	if x := run.Routing.Router; x != nil && !g.checkRouter(x) {
		return g.answer
	}
	s.run, s.status = *run, frame.Idle
	s.read = intake.NewFeeder(run.Intake())
	return g.say()
}

// checkRouter refuses a router that breaks a rule.
func (g *Guest) checkRouter(x *config.Router) bool {
	if fault := x.Check(); !fault.OK() {
		code := uint8(frame.BadRouter)
		g.say(frame.Field{Name: "error", Var: &code},
			frame.Field{Name: "code", Var: (*uint8)(&fault.Code)}, frame.Field{Name: "field", Var: (*uint8)(&fault.Field)})
		return false
	}
	if x.Policy == nil {
		return true
	}
	fault := x.Policy.Check()
	if !fault.OK() {
		code := uint8(frame.BadPolicy)
		g.say(frame.Field{Name: "error", Var: &code}, frame.Field{Name: "code", Var: (*uint8)(&fault.Code)},
			frame.Field{Name: "class", Var: &fault.Class}, frame.Field{Name: "bucket", Var: &fault.Bucket}, frame.Field{Name: "name", Var: &fault.Name})
	}
	return fault.OK()
}
