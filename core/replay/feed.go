package replay

import (
	"math"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/prefix"
	"github.com/dryserve/dryserve/core/workload"
)

// Input is one turn as it is fed: its prompt as the hash ids that cover it.
type Input struct {
	HashIDs []uint64
	Input   int32   // prompt tokens, > 0, at most TraceBlockSize*len(HashIDs)
	Output  int32   // requested tokens
	DelayMs float64 // after the end of the turn before it

	// What a KV router orders turns by, and for direct routing the worker.
	Priority int32
	Strict   uint32
	Class    string // of its policy; "": none
	Worker   int32
}

// NewStream prepares a run whose sessions are fed while it goes on. The
// result is that of New with the same sessions. single promises that every
// session has one turn.
func NewStream(cfg config.Replay, single bool, o Options) *Sim {
	s := newSim(cfg, &workload.Workload{Prompts: prefix.New()}, o, true)
	s.arrivals.single = single
	if !s.arrivals.capped {
		s.arrivals.horizonMs = math.Inf(-1)
	}
	if !s.arrivals.fixed() {
		s.windows = nil
		s.books.arriveMs = make([]float64, 0, 64)
	}
	return s
}

// Feed adds the next session. Sessions come in order of their starts (which a
// concurrency cap ignores); false: this one starts before the last one fed.
func (s *Sim) Feed(startMs float64, turns []Input) bool {
	a := &s.arrivals
	w := s.load
	if !a.capped {
		if startMs < a.horizonMs {
			return false
		}
		a.horizonMs = startMs
	}
	session := int32(len(w.Sessions))
	w.Sessions = append(w.Sessions, workload.Session{StartMs: startMs, HasStart: true, First: int32(len(w.Turns))})
	for i, t := range turns {
		next := int32(-1)
		if i+1 < len(turns) {
			next = int32(len(w.Turns)) + 1
		}
		w.Turns = append(w.Turns, workload.Turn{
			Leaf: w.Prompts.Insert(t.HashIDs, s.divide), IDs: int32(len(t.HashIDs)), Input: t.Input, Output: t.Output,
			Session: session, Index: int32(i), Next: next, Planned: -1, DelayMs: t.DelayMs,
		})
		s.classify(&t)
		if s.numbers != nil {
			s.numbers.addAll(w, len(w.Turns)-1)
		}
		if s.books.arriveMs != nil {
			s.books.arriveMs = append(s.books.arriveMs, 0)
		}
	}
	if a.owed > 0 {
		a.owed--
		a.open(a.owedMs)
	}
	return true
}

// classify keeps what a router needs of the turn added last.
func (s *Sim) classify(t *Input) {
	w := s.load
	if s.cfg.Routing.Mode == config.Direct {
		w.Targets = append(w.Targets, t.Worker)
	}
	c := workload.Class{Priority: t.Priority, Strict: t.Strict, Policy: -1}
	if t.Class != "" {
		c.Policy = w.Policies.Add([]byte(t.Class))
	}
	if none := (workload.Class{Policy: -1}); w.Classes == nil && c != none {
		for range len(w.Turns) - 1 {
			w.Classes = append(w.Classes, none)
		}
	} else if w.Classes == nil {
		return
	}
	w.Classes = append(w.Classes, c)
}

// Close says that every session was fed.
func (s *Sim) Close() {
	a := &s.arrivals
	a.streaming, a.owed = false, 0
	a.horizonMs = math.Inf(1)
}

// divide lets the caches follow a split in the prefix tree.
func (s *Sim) divide(segment, front int32) {
	for _, p := range s.caches {
		p.Divide(segment, front)
	}
}
