// Package clock is the time that live workers run by.
//
// It owns what milliseconds since the start of a process are, and how a
// goroutine waits for one of them more exactly than the runtime's timers do. It
// does not own what happens then.
//
// Invariants: a clock never goes backwards and starts at 0.
package clock

import "time"

// Clock tells the time in ms since the process made it.
type Clock interface {
	// NowMs is the time.
	NowMs() float64
	// Waiter returns something to wait with, for one goroutine.
	Waiter() Waiter
}

// Waiter lets one goroutine wait.
type Waiter interface {
	// Until waits until the clock shows ms, +Inf for ever, or until something
	// comes from a channel, which it takes. It reports whether something came.
	// It may be late by what the machine needs, and never returns early without
	// reason.
	Until(ms float64, wake <-chan struct{}) (woken bool)
}

// Wall is the machine's monotonic clock.
type Wall struct {
	start   time.Time
	precise bool
}

// NewWall returns a clock that shows 0 now. Precise: its waiters come to within
// some 50 µs where the system allows it, for the price of a system call that
// blocks a thread through the last part of a wait. Timers of the Go runtime are
// late by up to 1 ms.
func NewWall(precise bool) *Wall { return &Wall{start: time.Now(), precise: precise && canPause} }

// NowMs is the time since the clock was made.
func (c *Wall) NowMs() float64 { return float64(time.Since(c.start)) / 1e6 }

// Waiter returns a waiter of its own timer.
func (c *Wall) Waiter() Waiter {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &waiter{clock: c, timer: t}
}

type waiter struct {
	clock *Wall
	timer *time.Timer
}

// lastMs is how much before the end of a wait a precise waiter leaves its
// timer: by so much a timer can be late.
const lastMs = 1.2

// mostMs is the longest time that is asked of a timer at once.
const mostMs = 1e9

func (w *waiter) Until(ms float64, wake <-chan struct{}) bool {
	for {
		left := ms - w.clock.NowMs()
		if left <= 0 {
			return false
		}
		if w.clock.precise && left <= lastMs {
			// Not to be woken from, but short.
			pause(time.Duration(left * 1e6))
			continue
		}
		if w.clock.precise {
			left -= lastMs
		}
		w.timer.Reset(time.Duration(min(left, mostMs)*1e6) + 1)
		select {
		case <-wake:
			w.timer.Stop()
			return true
		case <-w.timer.C:
		}
	}
}
