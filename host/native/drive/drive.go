// Package drive runs a replay to its end on this machine. It owns how the
// core's steps are spread over processors, how often progress is told, how a
// run is stopped, and whom the core's questions about durations go to; what
// happens in a step is core/replay's.
package drive

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/timing"
)

// batches is how many windows may be under way: some being produced or
// waiting, one being absorbed.
const batches = 4

// Options are the host's part in a run.
type Options struct {
	// Progress is told every now and then how many of all requests have ended;
	// calls never overlap.
	Progress func(done, total int64)
	// Provider says how many ms what is asked takes, where the engine's timing
	// is External. Calls never overlap, and none repeats a question.
	Provider func(timing.Query) (ms float64, err error)
	// Policy says how many workers there are to be, where scaling is Asked.
	Policy func(*replay.Tick) (replay.Decision, error)
	// Samples is given those that were taken. They are valid until it returns.
	Samples func([]replay.Sample) error
	// Record is given what was recorded (replay.Options.Record) after every
	// step; the recording is the callee's until it returns. An error ends the run.
	Record func(*replay.Recording) error
	// Alone keeps the run on one processor, for hosts that have several at once.
	Alone bool
}

// Run steps s until it is done or stuck, or ctx ends (then the error is the
// context's), or the provider fails.
//
// Where the run is windowed and there is a second processor, workers are
// simulated on one and accounts kept on the other; the outcome is the same.
func Run(ctx context.Context, s *replay.Sim, o Options) (replay.Status, error) {
	if o.Progress == nil {
		o.Progress = func(done, total int64) {}
	}
	if !o.Alone && s.Windowed() && runtime.GOMAXPROCS(0) > 1 {
		return pipeline(ctx, s, o.Progress)
	}
	var pace Pace
	var tape replay.Recording
	for {
		start := time.Now()
		status := s.Step(pace.Events())
		pace.Took(time.Since(start))
		if o.Record != nil {
			s.TakeRecording(&tape)
			if err := o.Record(&tape); err != nil {
				return status, err
			}
		}
		if list := s.Samples(); o.Samples != nil && len(list) > 0 {
			if err := o.Samples(list); err != nil {
				return status, err
			}
			s.ForgetSamples()
		}
		switch status {
		case replay.NeedScaling:
			if err := o.decide(s); err != nil {
				return status, err
			}
		case replay.NeedTiming:
			if err := o.answer(s); err != nil {
				return status, err
			}
		case replay.Running:
			o.Progress(s.Progress())
		default:
			o.Progress(s.Progress())
			return status, nil
		}
		if err := ctx.Err(); err != nil {
			return status, err
		}
	}
}

// decide asks the policy what s asks.
func (o Options) decide(s *replay.Sim) error {
	t, _ := s.Tick()
	d, err := o.Decide(t)
	if err == nil && !s.Scale(d) {
		err = fmt.Errorf("the simulation does not take %d and %d workers at %g ms", d.Prefill, d.Decode, t.NowMs)
	}
	return err
}

// Decide returns the policy's answer, whose numbers can be taken, or says why
// there is none.
func (o Options) Decide(t *replay.Tick) (replay.Decision, error) {
	if o.Policy == nil {
		return replay.Decision{}, errors.New("the run asks how many workers there are to be and nobody answers; a policy is accepted")
	}
	d, err := o.Policy(t)
	switch {
	case err != nil:
		return d, fmt.Errorf("the scaling policy failed at %g ms: %w", t.NowMs, err)
	case d.Prefill < config.KeepWorkers || d.Decode < config.KeepWorkers:
		return d, fmt.Errorf("the scaling policy answered %d and %d workers at %g ms; numbers of at least 0 are accepted", d.Prefill, d.Decode, t.NowMs)
	}
	return d, nil
}

// answer asks the provider what s asks.
func (o Options) answer(s *replay.Sim) error {
	q, _ := s.Query()
	ms, err := o.Ask(q)
	if err != nil {
		return err
	}
	if !s.Answer(ms) {
		return fmt.Errorf("the simulation does not take %v ms for %s", ms, spell(q))
	}
	return nil
}

// Ask returns the provider's answer, a finite number of ms, or says why there
// is none.
func (o Options) Ask(q timing.Query) (ms float64, err error) {
	if o.Provider == nil {
		return 0, errors.New("the engine's timing model is external and nobody answers it; a provider, or another timing model, is accepted")
	}
	if ms, err = o.Provider(q); err != nil {
		return 0, fmt.Errorf("the timing provider failed for %s: %w", spell(q), err)
	}
	if math.IsNaN(ms) || math.IsInf(ms, 0) {
		return 0, fmt.Errorf("the timing provider answered %v ms for %s; a finite number is accepted", ms, spell(q))
	}
	return ms, nil
}

// spell words a query with the names of its arguments.
func spell(q timing.Query) string {
	if q.Kind == timing.AskPrefill {
		return fmt.Sprintf("a prefill of batch %d, isl %d, prefix %d", q.Batch, q.ISL, q.Prefix)
	}
	return fmt.Sprintf("a decode step of batch %d, isl %d, osl %d", q.Batch, q.ISL, q.OSL)
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
