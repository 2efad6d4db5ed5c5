package oracle

import (
	"maps"
	"slices"
	"strings"

	"github.com/dryserve/dryserve/internal/gen"
)

// Shrink makes a case smaller while keep still holds of it: rows go, settings
// go back to their defaults, rows lose what they need not have. It asks keep
// at most budget times and reports whether it reached a case that none of its
// steps makes smaller.
func Shrink(c *gen.ReplayCase, keep func(*gen.ReplayCase) bool, budget int) (smallest *gen.ReplayCase, minimal bool) {
	s := &shrinker{best: c, keep: keep, budget: budget}
	for changed := true; changed && s.budget > 0; {
		before := s.kept
		s.dropRows()
		s.dropLines()
		s.dropSettings(func(c *gen.ReplayCase) map[string]any { return c.Kwargs })
		s.dropSettings((*gen.ReplayCase).Engine)
		s.dropSettings((*gen.ReplayCase).DecodeEngine)
		s.dropDecisions()
		s.simplifyNumbers()
		s.simplifyRows()
		changed = s.kept > before
	}
	return s.best, s.budget > 0
}

type shrinker struct {
	best   *gen.ReplayCase
	keep   func(*gen.ReplayCase) bool
	budget int
	kept   int // candidates that became the best
}

// try makes the changed copy the best if it is still wanted.
func (s *shrinker) try(change func(*gen.ReplayCase)) bool {
	if s.budget <= 0 {
		return false
	}
	candidate := s.best.Clone()
	change(candidate)
	s.budget--
	if !s.keep(candidate) {
		return false
	}
	s.best = candidate
	s.kept++
	return true
}

// dropRows removes runs of rows, long runs first.
func (s *shrinker) dropRows() {
	for size := max(1, len(s.best.Rows)/2); size >= 1; size /= 2 {
		for at := 0; at < len(s.best.Rows) && len(s.best.Rows) > 1; {
			end := min(at+size, len(s.best.Rows))
			if end-at == len(s.best.Rows) || !s.try(func(c *gen.ReplayCase) {
				c.Rows = slices.Delete(c.Rows, at, end)
			}) {
				at += size
			}
		}
	}
}

// dropLines removes lines of the other formats.
func (s *shrinker) dropLines() {
	for d := range s.best.Docs {
		for size := max(1, len(s.best.Docs[d].Lines)/2); size >= 1; size /= 2 {
			for at := 0; at < len(s.best.Docs[d].Lines); {
				end := min(at+size, len(s.best.Docs[d].Lines))
				if !s.try(func(c *gen.ReplayCase) { c.Docs[d].Lines = slices.Delete(c.Docs[d].Lines, at, end) }) {
					at += size
				}
			}
		}
	}
}

// dropSettings removes settings one by one, so their defaults apply. The
// timing model does not go but becomes simple.
func (s *shrinker) dropSettings(of func(*gen.ReplayCase) map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(of(s.best))) {
		if !strings.HasSuffix(key, "engine_args") && key != "backend" && key != "worker_type" && key != "timing_model" && key != "trace_format" && key != "execution_model" {
			s.try(func(c *gen.ReplayCase) { delete(of(c), key) })
		}
	}
}

// dropDecisions shortens the policy from its end, and lets it leave things as
// they are.
func (s *shrinker) dropDecisions() {
	if s.best.Scaling == nil {
		return
	}
	for s.try(func(c *gen.ReplayCase) {
		d := c.Scaling.Decisions
		c.Scaling.Decisions = d[:max(0, len(d)-1)]
	}) && len(s.best.Scaling.Decisions) > 0 {
	}
	for i := range s.best.Scaling.Decisions {
		if s.best.Scaling.Decisions[i].Decode != nil {
			s.try(func(c *gen.ReplayCase) { c.Scaling.Decisions[i].Decode = nil })
		}
	}
}

// simplifyNumbers tries rounder and smaller values of what cannot go.
func (s *shrinker) simplifyNumbers() {
	for _, key := range []string{"num_workers", "num_prefill_workers", "num_decode_workers", "replay_concurrency"} {
		for v, ok := number(s.best.Kwargs[key]); ok && v > 1; v-- {
			if !s.try(func(c *gen.ReplayCase) { c.Kwargs[key] = v - 1 }) {
				break
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.best.Synthetic)) {
		for v, ok := number(s.best.Synthetic[key]); ok && v > 1; v, ok = number(s.best.Synthetic[key]) {
			if !s.try(func(c *gen.ReplayCase) { c.Synthetic[key] = v / 2 }) && !s.try(func(c *gen.ReplayCase) { c.Synthetic[key] = v - 1 }) {
				break
			}
		}
	}
	fixed := map[string]any{"type": "fixed", "prefill_ms": 10, "decode_ms": 2}
	if show(s.best.Engine()["timing_model"]) != show(fixed) {
		s.try(func(c *gen.ReplayCase) { c.Engine()["timing_model"], c.Profile = fixed, nil })
	}
	if show(s.best.DecodeEngine()["timing_model"]) != show(fixed) {
		s.try(func(c *gen.ReplayCase) { c.DecodeEngine()["timing_model"] = fixed })
	}
	engine, hasEngine := number(s.best.Engine()["block_size"])
	trace, hasTrace := number(s.best.Kwargs["trace_block_size"])
	if hasEngine && hasTrace && (engine != 4 || trace != 4) {
		s.try(func(c *gen.ReplayCase) {
			c.Engine()["block_size"], c.DecodeEngine()["block_size"], c.Kwargs["trace_block_size"] = 4, 4, 4
		})
	}
}

func number(v any) (int, bool) {
	switch n := v.(type) {
	case int:
		return n, true
	case float64:
		return int(n), true
	}
	return 0, false
}

// simplifyRows tries to take each row's optional keys away and to shorten its
// output and its prompt.
func (s *shrinker) simplifyRows() {
	clear := []func(*gen.Row) bool{
		func(r *gen.Row) bool { had := r.SessionID != nil; r.SessionID = nil; return had },
		func(r *gen.Row) bool { had := r.RequestID != nil; r.RequestID = nil; return had },
		func(r *gen.Row) bool { had := r.OutputTokenIDs != nil; r.OutputTokenIDs = nil; return had },
		func(r *gen.Row) bool { had := r.Priority != nil; r.Priority = nil; return had },
		func(r *gen.Row) bool { had := r.StrictPriority != nil; r.StrictPriority = nil; return had },
		func(r *gen.Row) bool { had := r.Note != nil; r.Note = nil; return had },
		func(r *gen.Row) bool { had := r.BlankBefore; r.BlankBefore = false; return had },
		func(r *gen.Row) bool { return zero(&r.Timestamp) },
		func(r *gen.Row) bool { return zero(&r.Delay) },
		func(r *gen.Row) bool { return shortenOutput(r, func(n int64) int64 { return min(n, 1) }) },
		func(r *gen.Row) bool { return shortenOutput(r, func(n int64) int64 { return n / 2 }) },
		func(r *gen.Row) bool { return halve(&r.InputLength) },
		func(r *gen.Row) bool { return shortenIDs(r) },
	}
	for i := range s.best.Rows {
		for _, simplify := range clear {
			probe := s.best.Rows[i]
			if simplify(&probe) {
				s.try(func(c *gen.ReplayCase) { c.Rows[i] = probe })
			}
		}
	}
}

// The helpers below put a new value behind the pointer's owner: rows of other
// cases share the old one. They report whether anything changed.

func zero(at **float64) bool {
	if *at == nil || **at == 0 {
		return false
	}
	*at = new(float64)
	return true
}

func halve(at **int64) bool {
	if *at == nil || **at < 2 {
		return false
	}
	half := **at / 2
	*at = &half
	return true
}

// shortenIDs drops the last hash id; the shrinker keeps that only if the rest
// still covers the input.
func shortenIDs(r *gen.Row) bool {
	if len(r.HashIDs) < 2 {
		return false
	}
	r.HashIDs = r.HashIDs[: len(r.HashIDs)-1 : len(r.HashIDs)-1]
	return true
}

// shortenOutput lowers the output length and cuts its planned ids to match.
func shortenOutput(r *gen.Row, shorter func(int64) int64) bool {
	if r.OutputLength == nil || shorter(*r.OutputLength) >= *r.OutputLength {
		return false
	}
	n := shorter(*r.OutputLength)
	r.OutputLength = &n
	if int64(len(r.OutputTokenIDs)) > n {
		r.OutputTokenIDs = r.OutputTokenIDs[:n:n]
	}
	return true
}
