package main

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/timing"
	"github.com/dryserve/dryserve/host/native/report"
	"github.com/dryserve/dryserve/host/wasm/frame"
)

// ask puts a question of a run to its client and waits for the answer, or for
// the end of the run.
func (s *server) ask(ctx context.Context, r *serving, q timing.Query) (ms float64, err error) {
	a := s.wait(ctx, r, aDuration, (&frame.Progressed{Query: q}).AskFields()...)
	return a.ms, a.err
}

// askTarget is ask for the number of workers there are to be.
func (s *server) askTarget(ctx context.Context, r *serving, t *replay.Tick) (replay.Decision, error) {
	a := s.wait(ctx, r, aTarget, text("ask_tick", string(report.AppendTick(nil, t))))
	return a.target, a.err
}

// wait asks and waits.
func (s *server) wait(ctx context.Context, r *serving, q question, fields ...frame.Field) answered {
	s.mu.Lock()
	r.asked = q
	s.mu.Unlock()
	if err := s.answer(r.id, "ask", fields...); err != nil {
		return answered{err: err}
	}
	select {
	case a := <-r.answers:
		return a
	case <-ctx.Done():
		return answered{err: ctx.Err()}
	}
}

// settle hands an answer to the run that waits for it. If there is none, or no
// answer, it says so.
func (s *server) settle(q *request) (sentence string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.runs[q.id]
	switch {
	case r == nil:
		return fmt.Sprintf("no run has the id %d", q.id)
	case r.asked == nothing:
		return fmt.Sprintf("the run with the id %d has no open question", q.id)
	case r.asked == aDuration && q.fault == "" && (math.IsNaN(q.ms) || math.IsInf(q.ms, 0)):
		return "an answer needs answer_ms, a finite number, or answer_error, a text"
	}
	r.asked = nothing
	a := answered{ms: q.ms, target: q.target}
	if q.fault != "" {
		a.err = errors.New(q.fault)
	}
	r.answers <- a // there is room: it is the only answer to the only question
	return ""
}
