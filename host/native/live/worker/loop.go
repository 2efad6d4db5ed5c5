package worker

import (
	"context"
	"runtime"
	"sync"

	"github.com/dryserve/dryserve/host/native/live/clock"
)

// Loop runs a worker on a clock. Its methods may be called from anywhere.
type Loop struct {
	// Rested is called by the loop's goroutine when everything that was due has been
	// said; nil: nobody asks. It must not block, and is set before Run.
	Rested func()

	worker *Worker
	clock  clock.Clock
	wake   chan struct{} // holds one token: the inbox has something

	mu     sync.Mutex
	inbox  []command
	closed bool

	taken []command // of the loop's goroutine
}

// command brings a job, or does something with it.
type command struct {
	job  *Job
	what order
	atMs float64
}

type order uint8

const (
	submission order = iota
	cancellation
	activating
	releasing
)

// Job is a request in a loop.
type Job struct {
	loop    *Loop
	request Request
	sink    Sink

	// Of the loop's goroutine.
	ticket Ticket
	ended  bool
}

// NewLoop returns a loop around a worker, which is the loop's from now on.
func NewLoop(w *Worker, c clock.Clock) *Loop {
	return &Loop{worker: w, clock: c, wake: make(chan struct{}, 1)}
}

// Ranks is the number of the worker's ranks.
func (l *Loop) Ranks() int { return l.worker.Ranks() }

// Submit brings a request now, or at the time when it came: what has been done to
// it since then took no time for the engine, if that was idle. The sink is told
// what happens, also if the loop has ended.
func (l *Loop) Submit(q Request, to Sink) *Job {
	j := l.NewJob(q, to)
	l.SubmitAll(j)
	return j
}

// NewJob returns a job that is not submitted yet.
func (l *Loop) NewJob(q Request, to Sink) *Job { return &Job{loop: l, request: q, sink: to} }

// SubmitAll is Submit for jobs of the loop that come together: no pass begins with
// some of them that could have all.
func (l *Loop) SubmitAll(jobs ...*Job) {
	nowMs := l.clock.NowMs()
	list := make([]command, len(jobs))
	for i, j := range jobs {
		list[i] = command{job: j, atMs: nowMs}
		if came := j.request.CameMs; came > 0 {
			list[i].atMs = min(nowMs, came)
		}
	}
	if l.send(list...) {
		return
	}
	for _, j := range jobs {
		j.sink.Signal(Signal{AtMs: nowMs, End: Closed, First: true})
	}
}

// Cancel ends the request. Signals that are under way may still come.
func (j *Job) Cancel() {
	j.loop.send(command{job: j, what: cancellation, atMs: j.loop.clock.NowMs()})
}

// Activate says that the prompt has arrived for which there is room. A fact
// follows.
func (j *Job) Activate() {
	j.loop.send(command{job: j, what: activating, atMs: j.loop.clock.NowMs()})
}

// Release gives the blocks of the prompt back; the job has ended.
func (j *Job) Release() {
	j.loop.send(command{job: j, what: releasing, atMs: j.loop.clock.NowMs()})
}

// Signal passes on what the worker says; it is a Sink for the worker only.
func (j *Job) Signal(s Signal) {
	if s.End != Running {
		j.ended = true
	}
	j.sink.Signal(s)
}

func (l *Loop) send(list ...command) bool {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return false
	}
	l.inbox = append(l.inbox, list...)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
	return true
}

// Run runs the worker until ctx ends, then ends its requests.
func (l *Loop) Run(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() {
		select {
		case l.wake <- struct{}{}:
		default:
		}
	})
	defer stop()
	wait := l.clock.Waiter()
	for ctx.Err() == nil {
		l.take()
		now := l.clock.NowMs()
		at := l.worker.Advance(now)
		if l.Rested != nil {
			l.Rested()
		}
		if at > now {
			wait.Until(at, l.wake)
		} else {
			runtime.Gosched()
		}
	}
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.take()
	l.worker.Close(l.clock.NowMs())
}

// take carries out what came in.
func (l *Loop) take() {
	l.mu.Lock()
	l.taken, l.inbox = l.inbox, l.taken[:0]
	l.mu.Unlock()
	for i, c := range l.taken {
		l.taken[i] = command{}
		j := c.job
		l.worker.Reach(c.atMs)
		if j.ended {
			continue
		}
		switch c.what {
		case submission:
			q := j.request
			j.request = Request{}
			j.ticket = l.worker.Submit(q, j, c.atMs)
		case cancellation:
			j.ended = true
			l.worker.Cancel(j.ticket, c.atMs)
		case activating:
			l.worker.Activate(j.ticket, c.atMs)
		case releasing:
			j.ended = true
			l.worker.Release(j.ticket, c.atMs)
		}
	}
}
