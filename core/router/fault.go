package router

import (
	"github.com/dryserve/dryserve/core/kvindex"
	"github.com/dryserve/dryserve/core/queue"
)

// Code says why a call failed.
type Code uint8

// Reasons. After all but EventRefused the router is as it was before.
const (
	OK            Code = iota
	NoWorkers          // there is nobody to place a request with, and it may not wait
	QueueFull          // the request may not wait: see Full
	NotFinite          // the cost of a rank is not a number
	EventRefused       // an event contradicts what the index knows: see Event
	UnknownWorker      // an event of a worker or rank there is not
	OtherSeat          // by Seats a request goes to a rank that costs more than another: see Tag
)

// Fault is why a call failed, with the numbers of it; the zero value means that
// it did not.
type Fault struct {
	Code  Code
	Full  queue.Full
	Event EventFault
	Tag   uint32
}

// EventFault describes an event that was refused.
type EventFault struct {
	Why         kvindex.Code
	Kind        EventKind
	Worker      int
	Rank        int
	ID          uint64
	HasParent   bool
	Parent      uint64
	Count       int // blocks
	First, Last uint64
}

// OK reports whether nothing failed.
func (f Fault) OK() bool { return f.Code == OK }
