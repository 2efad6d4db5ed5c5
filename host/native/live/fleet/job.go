package fleet

import (
	"fmt"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/router"
	"github.com/dryserve/dryserve/core/seq"
	"github.com/dryserve/dryserve/host/native/live/worker"
)

// Request is what a fleet is asked.
type Request struct {
	UUID      [16]byte
	Tokens    []uint32
	MaxOutput int
	OutputIDs []uint32 // planned output, see engine.Request
	CameMs    float64  // when it came, if that is before now

	// KV: what the router puts requests in order by.
	Priority float64
	Strict   uint32
	Class    string // of its policy; "": none
}

// Job is a request in a fleet. It is told what its worker says, for the fleet's
// books, and passes it on.
type Job struct {
	fleet   *Fleet
	sink    worker.Sink
	request worker.Request

	// Guarded by the fleet's lock.
	worker int // -1: it waits at the router
	inner  *worker.Job
	handle router.Handle
	tag    uint32
	over   bool // ended, cancelled or refused
	route  router.Placement
}

// dispatch is a job to be given to a loop once the lock is free.
type dispatch struct {
	job  *Job
	loop *worker.Loop
}

// Busy says that no worker may take a request, and it may not wait.
type Busy struct{ Full string }

func (e Busy) Error() string { return e.Full }

// Submit brings a request. The error, a Busy, says why it cannot be taken.
func (f *Fleet) Submit(q Request, to worker.Sink) (*Job, error) {
	jobs, err := f.SubmitAll([]Request{q}, []worker.Sink{to})
	return jobs[0], err
}

// SubmitAll brings requests that come together, each with the sink of the same
// number: no worker begins a pass with some of them that could have all it gets.
// The first that cannot be taken ends it; the job of that one is nothing to go on
// with.
func (f *Fleet) SubmitAll(list []Request, to []worker.Sink) (jobs []*Job, err error) {
	var ready []dispatch
	for i, q := range list {
		j := &Job{fleet: f, sink: to[i], worker: -1, request: worker.Request{
			UUID: q.UUID, Rank: worker.AnyRank, Tokens: q.Tokens, MaxOutput: q.MaxOutput, OutputIDs: q.OutputIDs, CameMs: q.CameMs,
		}}
		jobs = append(jobs, j)
		if f.router != nil {
			placed, wrong := f.place(j, q)
			if ready = append(ready, placed...); wrong != nil {
				err = wrong
				break
			}
			continue
		}
		f.mu.Lock()
		j.worker = f.choose()
		f.loads[j.worker]++
		f.mu.Unlock()
		ready = append(ready, dispatch{j, f.loops[j.worker]})
	}
	send(ready)
	return jobs, err
}

// choose picks a worker without the KV router.
func (f *Fleet) choose() int {
	n := uint64(f.launched)
	switch f.o.Mode {
	case Random:
		return int(f.lots.Below(n))
	case PowerOfTwo:
		a := f.lots.Below(n)
		if n == 1 {
			return int(a)
		}
		b := f.lots.Below(n - 1)
		if b >= a {
			b++
		}
		if f.loads[b] < f.loads[a] {
			a = b
		}
		return int(a)
	case LeastLoaded:
		best, equals := 0, uint64(0)
		for i, load := range f.loads[:n] {
			switch {
			case i > 0 && load > f.loads[best]:
				continue
			case i > 0 && load == f.loads[best]:
				if equals++; f.lots.Below(equals) != 0 {
					continue
				}
			default:
				equals = 1
			}
			best = i
		}
		return best
	}
	w := f.turn % f.launched
	f.turn = w + 1
	return w
}

// place brings a request to the KV router, and returns what that has placed.
func (f *Fleet) place(j *Job, q Request) ([]dispatch, error) {
	h := seq.Plain(f.o.Engine.BlockSize)
	locals := h.AppendLocals(nil, q.Tokens, nil)
	var sequence []uint64
	if f.o.Router.TrackingHash == config.KeyedXXH3 {
		h = f.o.Tracking
		sequence = h.AppendChain(nil, h.AppendLocals(nil, q.Tokens, nil))
	} else {
		sequence = h.AppendChain(nil, locals)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	j.tag = f.tag(j)
	handle, fault := f.router.Place(router.Request{
		Tag: j.tag, Tokens: len(q.Tokens), Locals: locals, Sequence: sequence,
		Class: f.router.Class(q.Class), Priority: q.Priority, Strict: q.Strict,
	}, f.o.Clock.NowMs())
	j.handle = handle
	if !fault.OK() {
		f.forget(j)
		return nil, refusal(fault)
	}
	ready := f.placed(fault)
	if j.worker < 0 {
		j.request.CameMs = 0 // it comes to a worker when the router lets it
	}
	return ready, nil
}

func refusal(f router.Fault) error {
	if f.Code == router.QueueFull {
		return Busy{"every worker is busy and the router's queue is full"}
	}
	return Busy{fmt.Sprintf("the router cannot place the request (code %d)", f.Code)}
}

func (f *Fleet) tag(j *Job) uint32 {
	if n := len(f.free); n > 0 {
		t := f.free[n-1]
		f.free = f.free[:n-1]
		f.jobs[t] = j
		return t
	}
	f.jobs = append(f.jobs, j)
	return uint32(len(f.jobs) - 1)
}

// forget gives a job's tag back; nothing is placed for it any more.
func (f *Fleet) forget(j *Job) {
	j.over = true
	f.jobs[j.tag] = nil
	f.free = append(f.free, j.tag)
}

// predictions answers what the router asks in the middle of a call.
func (f *Fleet) predictions(fault router.Fault) router.Fault {
	for {
		q, asks := f.router.Asks()
		if !asks {
			return fault
		}
		ms := f.predict.Prefill(1, q.Tokens+q.Prefix, q.Prefix)
		if next := f.router.Answer(router.Nanos(ms), true); fault.OK() {
			fault = next
		}
	}
}

// placed books what the router's last call has placed.
func (f *Fleet) placed(fault router.Fault) (ready []dispatch) {
	fault = f.predictions(fault)
	for _, p := range f.router.Placed() {
		j := f.jobs[p.Tag]
		j.worker, j.handle, j.request.Rank, j.route = p.Worker, p.Request, p.Rank, p
		f.loads[p.Worker]++
		ready = append(ready, dispatch{j, f.loops[p.Worker]})
	}
	if !fault.OK() {
		f.warn("the router failed", "code", fault.Code)
	}
	return ready
}

// send gives jobs to their loops, all of a loop together. The fleet is not
// locked: a loop that has ended says so at once.
func send(ready []dispatch) {
	for len(ready) > 0 {
		loop := ready[0].loop
		var jobs []*Job
		var inner []*worker.Job
		var others []dispatch
		for _, d := range ready {
			if d.loop != loop {
				others = append(others, d)
				continue
			}
			jobs, inner = append(jobs, d.job), append(inner, loop.NewJob(d.job.request, d.job))
		}
		loop.SubmitAll(inner...)
		for i, j := range jobs {
			j.entered(inner[i])
		}
		ready = others
	}
}

// entered notes the job in the loop, and cancels it if that was wanted
// meanwhile.
func (j *Job) entered(inner *worker.Job) {
	j.fleet.mu.Lock()
	j.inner, j.request = inner, worker.Request{}
	over := j.over
	j.fleet.mu.Unlock()
	if over {
		inner.Cancel()
	}
}

// Placement is where the KV router has put the request and what it believed of
// it then; false: it still waits there, or there is no such router.
func (j *Job) Placement() (p router.Placement, ok bool) {
	j.fleet.mu.Lock()
	defer j.fleet.mu.Unlock()
	return j.route, j.fleet.router != nil && j.worker >= 0
}

// Cancel ends the request; signals that are under way may still come.
func (j *Job) Cancel() {
	f := j.fleet
	f.mu.Lock()
	if j.over {
		f.mu.Unlock()
		return
	}
	j.over = true
	inner := j.inner
	ready := f.leave(j)
	f.mu.Unlock()
	if inner != nil {
		inner.Cancel()
	}
	send(ready)
}

// leave takes an ended job out of the books.
func (f *Fleet) leave(j *Job) (ready []dispatch) {
	if j.worker >= 0 {
		f.loads[j.worker]--
	}
	if f.router == nil {
		return nil
	}
	if j.worker < 0 {
		f.router.Cancel(j.handle)
	} else {
		ready = f.placed(f.router.Free(j.handle, f.o.Clock.NowMs()))
	}
	f.forget(j)
	return ready
}

// Signal is for the job's worker only.
func (j *Job) Signal(s worker.Signal) {
	if s.End != worker.Running || j.fleet.router != nil && s.First {
		j.book(s)
	}
	j.sink.Signal(s)
}

// book tells the router how far the request is.
func (j *Job) book(s worker.Signal) {
	f := j.fleet
	var ready []dispatch
	f.mu.Lock()
	switch {
	case j.over:
	case s.End != worker.Running:
		j.over = true
		ready = f.leave(j)
	default:
		ready = f.placed(f.router.PrefillDone(j.handle, f.o.Clock.NowMs()))
	}
	f.mu.Unlock()
	send(ready)
}
