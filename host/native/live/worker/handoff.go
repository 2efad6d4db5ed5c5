package worker

import "github.com/dryserve/dryserve/core/engine"

// errand is what is done at the end of the pass in flight.
type errand struct {
	ticket Ticket
	what   what
}

type what uint8

const (
	admission what = iota
	activation
	discharge
)

// run does the errands. One may end others.
func (w *Worker) run(nowMs float64) {
	for len(w.later) > 0 {
		x := w.later[0]
		w.later = append(w.later[:0], w.later[1:]...)
		switch x.what {
		case admission:
			w.admit(x.ticket, nowMs)
		case activation:
			w.activate(x.ticket, nowMs)
		case discharge:
			w.discharge(x.ticket, nowMs)
		}
	}
}

// reserve asks for room for a prompt that is computed elsewhere, also during a
// pass.
func (w *Worker) reserve(t Ticket, nowMs float64) {
	e := &w.entries[t]
	if !w.g.InFlight() {
		w.cursorMs = max(w.cursorMs, nowMs)
	}
	h, code := w.g.Reserve(e.rank, e.request.to(t))
	if code != engine.Applied {
		w.finish(t, Signal{AtMs: nowMs, End: Refused, Code: code})
		return
	}
	e.state, e.handle, e.request = submitted, h, Request{}
	w.parked = false
	w.fact(t, Signal{AtMs: nowMs, Fact: Accepted})
	w.tellEffects(e.rank, nowMs)
}

// Activate says at nowMs that the prompt has arrived for which there is room. It
// is done at the end of the pass in flight.
func (w *Worker) Activate(t Ticket, nowMs float64) { w.soon(errand{t, activation}, nowMs) }

// Release gives the blocks of a prompt back at nowMs, or at the end of the pass in
// flight. Nothing more is said of the request.
func (w *Worker) Release(t Ticket, nowMs float64) { w.soon(errand{t, discharge}, nowMs) }

// soon does an errand now, or at the end of the pass in flight.
func (w *Worker) soon(x errand, nowMs float64) {
	if w.entries[x.ticket].state == absent {
		return
	}
	w.later = append(w.later, x)
	if !w.g.InFlight() {
		w.cursorMs = max(w.cursorMs, nowMs)
		w.run(nowMs)
	}
}

func (w *Worker) activate(t Ticket, nowMs float64) {
	e := &w.entries[t]
	if e.state != submitted || w.g.Activate(e.rank, e.handle) != engine.Applied {
		w.fact(t, Signal{AtMs: nowMs, Fact: Idle})
		return
	}
	w.inside(e)
	w.parked = false
	rank := e.rank
	w.fact(t, Signal{AtMs: nowMs, Fact: Activated})
	w.tellEffects(rank, nowMs)
}

func (w *Worker) discharge(t Ticket, nowMs float64) {
	rank, handle := w.entries[t].rank, w.entries[t].handle
	applied := w.g.ReleaseSource(rank, handle) == engine.Applied || w.g.CancelSource(rank, handle) == engine.Applied
	w.release(t)
	w.parked = false
	if applied {
		w.tellEffects(rank, nowMs)
	}
}

// facts takes what ranks say of handoffs.
func (w *Worker) facts(list []engine.Lifecycle, nowMs float64) {
	for _, f := range list {
		t := Ticket(f.Tag)
		e := &w.entries[t]
		if !e.outside {
			e.outside = true
			w.outside++
		}
		s := Signal{AtMs: nowMs, Fact: Held, Tokens: f.Tokens}
		if f.Kind == engine.DestinationReserved {
			s.Fact = Reserved
		}
		w.fact(t, s)
	}
}

// inside: nobody has to ask for it any more.
func (w *Worker) inside(e *entry) {
	if e.outside {
		e.outside = false
		w.outside--
	}
}

// fact tells a request what has happened to it.
func (w *Worker) fact(t Ticket, s Signal) {
	e := &w.entries[t]
	s.Worker, s.Rank = w.id, e.rank
	e.sink.Signal(s)
}
