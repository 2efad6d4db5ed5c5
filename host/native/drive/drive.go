// Package drive runs a replay to its end on this machine. It owns how the
// core's steps are spread over processors, how often progress is told and
// how a run is stopped; what happens in a step is core/replay's.
package drive

import (
	"context"
	"runtime"

	"github.com/dryserve/dryserve/core/replay"
)

// stepEvents is how many events pass between two looks at the context.
const stepEvents = 1 << 16

// batches is how many windows may be under way: some being produced or
// waiting, one being absorbed.
const batches = 4

// Run steps s until it is done or stuck, or ctx ends (then the error is the
// context's). progress, when not nil, is told every now and then how many of
// all requests have ended; calls never overlap.
//
// Where the run is windowed and there is a second processor, workers are
// simulated on one and accounts kept on the other; the outcome is the same.
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

// pipeline produces batches here and absorbs them in a goroutine.
func pipeline(ctx context.Context, s *replay.Sim, progress func(done, total int64)) (replay.Status, error) {
	full := make(chan *replay.Batch, batches)
	empty := make(chan *replay.Batch, batches)
	done := make(chan struct{})
	for range batches {
		empty <- new(replay.Batch)
	}
	go func() {
		defer close(done)
		for b := range full {
			s.Absorb(b)
			progress(s.Progress())
			empty <- b
		}
	}()
	status := replay.Running
	for status == replay.Running && ctx.Err() == nil {
		b := <-empty
		if status = s.Produce(b); status == replay.Running {
			full <- b
		}
	}
	close(full)
	<-done
	if status == replay.Running {
		return status, ctx.Err()
	}
	return s.Conclude(status), nil
}
