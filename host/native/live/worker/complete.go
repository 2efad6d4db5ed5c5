package worker

import (
	"slices"

	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/core/group"
	"github.com/dryserve/dryserve/core/stretch"
)

// complete ends the pass in flight, tells everybody, and lets in who came
// meanwhile.
func (w *Worker) complete() {
	w.g.Complete(w.endMs)
	w.cursorMs = w.endMs
	effect, stuck := w.endMs > w.startMs, false
	for rank := range w.g.Ranks() {
		out := w.g.Out(rank)
		stuck = stuck || out.Stuck
		// A decode step that found no room is an effect only if somebody else
		// got something (corrections §4).
		effect = effect || out.Effect && (!out.Stuck || len(out.Outputs) > 0 || len(out.Pressure) > 0)
		if w.watch != nil {
			w.watch.Passed(rank, out, w.endMs)
		}
		for _, o := range out.Outputs {
			w.signal(o)
		}
		w.facts(out.Lifecycle, w.endMs)
		if w.speculates {
			w.judge(rank, out)
		}
	}
	if effect {
		w.retries = 0
	} else {
		w.rest(stuck)
	}
	w.run(w.endMs)
}

// rest decides what follows a pass without time and effect.
func (w *Worker) rest(stuck bool) {
	switch w.g.Convergence().Repeat {
	case group.Countdown:
		return
	case group.Retry:
		if w.retries++; w.retries <= group.MaxRetries {
			return
		}
	case group.NotApplicable:
		if _, copies := w.g.NextInternalMs(); copies || w.running() > 0 || w.outside > 0 {
			w.parked = true
			return
		}
	}
	w.retries = 0
	failed := false
	for rank := range w.g.Ranks() {
		failed = w.failHead(rank) || failed
	}
	// Nobody to give up: it is left alone until something else happens.
	w.parked = !failed
}

func (w *Worker) running() int {
	n := 0
	for rank := range w.g.Ranks() {
		n += w.g.Running(rank)
	}
	return n
}

// judge fails a request that keeps a speculating rank from ever giving anybody
// a token (stretch.Circling).
func (w *Worker) judge(rank int, out *engine.Out) {
	if len(out.Outputs) > 0 {
		w.fruitless[rank] = 0
		return
	}
	if len(out.Pressure) == 0 {
		return
	}
	w.fruitless[rank]++
	if w.g.Running(rank) == 0 && w.outside == 0 || w.fruitless[rank] == stretch.Circling {
		w.fruitless[rank] = 0
		w.failHead(rank)
	}
}

// failHead ends the request that keeps a rank from going on.
func (w *Worker) failHead(rank int) bool {
	_, tag, ok := w.g.FailHead(rank)
	if ok {
		w.finish(Ticket(tag), Signal{AtMs: w.endMs, End: Unservable})
		w.tellEffects(rank, w.endMs)
	}
	return ok
}

// signal passes an output on.
func (w *Worker) signal(o engine.Output) {
	s := Signal{AtMs: w.endMs, Token: o.HasToken}
	switch {
	case o.Rejected:
		s.End = Rejected
	case o.Completed && w.entries[o.Tag].duty != Prompt: // which is kept
		s.End = Completed
	}
	if s.End != Running {
		w.finish(Ticket(o.Tag), s)
		return
	}
	w.tell(&w.entries[o.Tag], s)
}

// finish tells a request that it has ended.
func (w *Worker) finish(t Ticket, s Signal) {
	w.tell(&w.entries[t], s)
	w.release(t)
}

func (w *Worker) tell(e *entry, s Signal) {
	s.Worker, s.Rank = w.id, e.rank
	s.First, e.told = !e.told, true
	if s.First && len(e.admits) > 0 {
		s.Cached = e.admits[0].Reused
	}
	if s.End != Running {
		s.Admits = e.admits
	}
	e.sink.Signal(s)
}

// release makes a ticket free, and forgets what was still to be done for it.
func (w *Worker) release(t Ticket) {
	if w.entries[t].outside {
		w.outside--
	}
	w.later = slices.DeleteFunc(w.later, func(x errand) bool { return x.ticket == t })
	w.entries[t] = entry{}
	w.free = append(w.free, t)
	w.active--
}
