package main

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/dryserve/dryserve/core/timing"
	"github.com/dryserve/dryserve/host/wasm/frame"
)

// ask puts a question of a run to its client and waits for the answer, or for
// the end of the run.
func (s *server) ask(ctx context.Context, r *serving, q timing.Query) (ms float64, err error) {
	s.mu.Lock()
	r.asked = true
	s.mu.Unlock()
	fields := (&frame.Progressed{Query: q}).AskFields()
	if err := s.answer(r.id, "ask", fields...); err != nil {
		return 0, err
	}
	select {
	case a := <-r.answers:
		return a.ms, a.err
	case <-ctx.Done():
		return 0, ctx.Err()
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
	case !r.asked:
		return fmt.Sprintf("the run with the id %d has no open question", q.id)
	case q.fault == "" && (math.IsNaN(q.ms) || math.IsInf(q.ms, 0)):
		return "an answer needs answer_ms, a finite number, or answer_error, a text"
	}
	r.asked = false
	a := timed{ms: q.ms}
	if q.fault != "" {
		a.err = errors.New(q.fault)
	}
	r.answers <- a // there is room: it is the only answer to the only question
	return ""
}
