package router

import (
	"slices"

	"github.com/dryserve/dryserve/core/kvindex"
)

// Tier is a kind of memory that a cache lies in.
type Tier uint8

// The tiers, from the device downwards.
const (
	Device Tier = iota
	HostPinned
	Disk
	External
)

// EventKind tells events apart.
type EventKind uint8

// Blocks were stored, blocks were removed, everything was.
const (
	Stored EventKind = iota
	Removed
	Cleared
)

// Event is what a cache says of itself. Exts are the engine's names of the
// blocks; Locals, of stored ones only, the hashes of their own tokens. The router
// copies what it keeps.
type Event struct {
	Worker, Rank int
	ID           uint64 // echoed in a Fault, otherwise unused
	Tier         Tier
	Kind         EventKind
	HasParent    bool   // Stored: the first block continues Parent
	Parent       uint64 // an external hash
	Locals       []uint64
	Exts         []uint64
}

// Apply lets the router know of an event that became visible at nowMs. With a
// lag it is believed at the first call after the lag has passed.
func (r *Router) Apply(e *Event, nowMs float64) Fault {
	if f := r.at(nowMs); !f.OK() {
		return f
	}
	if _, ok := r.slot(e.Worker, e.Rank); !ok {
		return Fault{Code: UnknownWorker, Event: describe(e)}
	}
	if r.LagMs > 0 {
		r.late.add(e, nowMs+r.LagMs)
		return Fault{}
	}
	return r.apply(e)
}

// apply believes an event.
func (r *Router) apply(e *Event) Fault {
	slot, ok := r.slot(e.Worker, e.Rank)
	if !ok {
		return Fault{}
	}
	r.fed = true
	if e.Tier != Device {
		r.below = true
		switch in := kvindex.Tier(e.Tier - HostPinned); e.Kind {
		case Stored:
			r.tiers.Store(in, slot, e.HasParent, e.Parent, e.Locals, e.Exts)
		case Removed:
			r.tiers.Remove(in, slot, e.Exts)
		case Cleared:
			r.tiers.Clear(in, slot)
		}
		return Fault{}
	}
	why := kvindex.Applied
	switch e.Kind {
	case Stored:
		why = r.index.Store(slot, e.HasParent, e.Parent, e.Locals, e.Exts)
	case Removed:
		why = r.index.Remove(slot, e.Exts)
	case Cleared:
		r.index.Clear(slot)
	}
	if why != kvindex.Applied {
		f := describe(e)
		f.Why = why
		return Fault{Code: EventRefused, Event: f}
	}
	return Fault{}
}

func describe(e *Event) EventFault {
	f := EventFault{Kind: e.Kind, Worker: e.Worker, Rank: e.Rank, ID: e.ID, HasParent: e.HasParent, Parent: e.Parent, Count: len(e.Exts)}
	if f.Count > 0 {
		f.First, f.Last = e.Exts[0], e.Exts[f.Count-1]
	}
	return f
}

// late is the events that are not believed yet, in the order they came.
type late struct {
	events []lateEvent
	hashes []uint64 // of these, one after the other
	done   int      // events at the front that are over
}

// lateEvent is an event whose hashes lie in late.hashes.
type lateEvent struct {
	event  Event // without hashes
	dueMs  float64
	from   int
	locals int
	exts   int
}

func (l *late) add(e *Event, dueMs float64) {
	if l.done == len(l.events) {
		l.events, l.hashes, l.done = l.events[:0], l.hashes[:0], 0
	} else if l.done > len(l.events)/2 {
		from := l.events[l.done].from
		l.hashes = slices.Delete(l.hashes, 0, from)
		l.events = slices.Delete(l.events, 0, l.done)
		for i := range l.events {
			l.events[i].from -= from
		}
		l.done = 0
	}
	x := lateEvent{event: *e, dueMs: dueMs, from: len(l.hashes), locals: len(e.Locals), exts: len(e.Exts)}
	x.event.Locals, x.event.Exts = nil, nil
	l.events = append(l.events, x)
	l.hashes = append(append(l.hashes, e.Locals...), e.Exts...)
}

// drop forgets the events of a worker.
func (l *late) drop(id int) {
	for i := l.done; i < len(l.events); i++ {
		if l.events[i].event.Worker == id {
			l.events[i].event.Worker = -1
		}
	}
}

// believe applies the events whose time has come.
func (r *Router) believe() Fault {
	l := &r.late
	for l.done < len(l.events) && l.events[l.done].dueMs <= r.nowMs {
		x := &l.events[l.done]
		l.done++
		x.event.Locals = l.hashes[x.from:][:x.locals]
		x.event.Exts = l.hashes[x.from+x.locals:][:x.exts]
		if f := r.apply(&x.event); !f.OK() {
			return f
		}
	}
	return Fault{}
}
