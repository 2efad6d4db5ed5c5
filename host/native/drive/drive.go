// Package drive runs a replay to its end on this machine. It owns how the
// core's steps are spread over processors, how often progress is told and
// how a run is stopped; what happens in a step is core/replay's.
package drive

import (
	"context"
	"runtime"
	"sync/atomic"

	"github.com/dryserve/dryserve/core/replay"
)

// stepEvents is how many events pass between two looks at the context.
const stepEvents = 1 << 16

// Run steps s until it is done or stuck, or ctx ends (then the error is the
// context's). progress, when not nil, is told every now and then how many of
// all requests have ended; calls never overlap.
//
// Where the run is windowed and there is a second processor, two goroutines
// share the work; the outcome is the same.
func Run(ctx context.Context, s *replay.Sim, progress func(done, total int64)) (replay.Status, error) {
	if progress == nil {
		progress = func(done, total int64) {}
	}
	if s.Windowed() && runtime.GOMAXPROCS(0) > 1 {
		return pipeline(ctx, s, progress)
	}
	for {
		status := s.Step(stepEvents)
		progress(s.Progress())
		if status != replay.Running {
			return status, nil
		}
		if err := ctx.Err(); err != nil {
			return status, err
		}
	}
}

// crew is two goroutines that share the work of a window: the lanes of the
// window now, and the accounts of the window before.
type crew struct {
	sim    *replay.Sim
	lanes  int32
	next   atomic.Int32 // lane to run next
	orders chan order
	done   chan struct{}
}

// order is the helper's part of a window: absorb (nil: nothing), then lanes of
// window.
type order struct{ absorb, window *replay.Batch }

// pipeline runs a windowed replay with a crew.
func pipeline(ctx context.Context, s *replay.Sim, progress func(done, total int64)) (replay.Status, error) {
	c := &crew{sim: s, lanes: int32(s.Lanes()), orders: make(chan order), done: make(chan struct{})}
	go c.help(progress)
	defer close(c.orders)
	var batches [2]replay.Batch
	var before *replay.Batch
	for i := 0; ; i = 1 - i {
		now := &batches[i]
		status := s.Open(now)
		if status != replay.Running {
			if before != nil {
				s.Absorb(before)
				progress(s.Progress())
			}
			return s.Conclude(status), nil
		}
		c.next.Store(0)
		c.orders <- order{before, now}
		c.run(now)
		<-c.done
		if err := ctx.Err(); err != nil {
			return status, err
		}
		before = now
	}
}

// help carries out orders until there are no more.
func (c *crew) help(progress func(done, total int64)) {
	for o := range c.orders {
		if o.absorb != nil {
			c.sim.Absorb(o.absorb)
			progress(c.sim.Progress())
		}
		c.run(o.window)
		c.done <- struct{}{}
	}
}

// run takes lanes until all are taken.
func (c *crew) run(b *replay.Batch) {
	for i := c.next.Add(1) - 1; i < c.lanes; i = c.next.Add(1) - 1 {
		c.sim.RunLane(b, int(i))
	}
}
