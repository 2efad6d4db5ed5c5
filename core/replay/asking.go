package replay

import "github.com/dryserve/dryserve/core/timing"

// Query is what the run waits for if Step has returned NeedTiming.
func (s *Sim) Query() (q timing.Query, ask bool) {
	if s.pools != nil {
		return s.pools.question()
	}
	if q, ask = s.kv.question(); ask || s.asking < 0 {
		return q, ask
	}
	return s.workers[s.asking].Ask()
}

// Answer gives the duration in ms that Query asks for; Step then goes on. The
// same question is asked once in a run. It reports false, and keeps nothing, if
// the duration is not finite or nothing is asked. One below 0 counts as 0, and
// that of a decode step as 1 or more.
func (s *Sim) Answer(ms float64) bool {
	q, ask := s.Query()
	return ask && s.answers.Store(q, ms)
}

// unanswered reports whether the run cannot go on.
func (s *Sim) unanswered() bool {
	_, ask := s.Query()
	return ask
}

// begin begins a worker's pass, or goes on with the one that had to wait for
// its duration. False: it has to wait.
func (s *Sim) begin(w worker, id int32) (endMs float64, ok bool) {
	if s.asking == id {
		endMs = w.Resume()
	} else {
		s.begun++
		endMs = w.Begin(s.books.nowMs)
	}
	if endMs == timing.Unknown {
		s.asking = id
		return 0, false
	}
	s.asking = -1
	return endMs, true
}
