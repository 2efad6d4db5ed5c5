package replay

import (
	"math"

	"github.com/dryserve/dryserve/core/offload"
)

// copier is what the event loop needs besides of workers with host memory.
type copier interface {
	// NextInternalMs is when a copy ends next, +Inf if none is under way or a
	// pass is in flight.
	NextInternalMs() float64
	// Internal does what is due and reports whether there was anything.
	Internal(nowMs float64) bool
	// Copied reports whether a copy ended with the last pass.
	Copied() bool
	// Began reports whether the last pass calls for another, also if it had no
	// effect.
	Began() bool
}

// nextInternalMs is when an idle worker next has something to do by itself: a
// copy to or from host memory ends. What ends while a pass is under way is seen
// at its end (engine notes §11). +Inf: nothing.
func (s *Sim) nextInternalMs() float64 {
	ms := math.Inf(1)
	for id, w := range s.copiers {
		if w != nil && !s.flying[id] {
			ms = min(ms, w.NextInternalMs())
		}
	}
	return ms
}

// internal lets the idle workers do what is due by now, in the order of their
// ids. A worker that did something is driven. Anything due counts as received,
// which where workers share something may be that a copy's first byte comes.
// False: the router asks or is at fault; it is called again to go on.
func (s *Sim) internal() bool {
	if t := s.tiers; t.Host != nil && t.Host.NextMs() <= s.books.nowMs || t.Disk != nil && t.Disk.NextMs() <= s.books.nowMs {
		s.received = true
	}
	for id, w := range s.copiers {
		if w != nil && !s.flying[id] && w.Internal(s.books.nowMs) {
			s.received = true
			s.wake(int32(id))
			s.publishCopies(int32(id))
			if p := s.workers[id].(*plain); p.meter != nil && s.tiers.Host != nil && p.inFlight > 0 {
				p.reread()
			}
		}
	}
	return s.dispatch()
}

// diskStats are the counts of the disks; nil: there are none.
func (s *Sim) diskStats() *offload.DiskStats {
	if s.tiers.Disk == nil {
		return nil
	}
	stats := s.tiers.Disk.Stats()
	return &stats
}

// sharesTiers reports whether workers share host memory or a disk.
func (s *Sim) sharesTiers() bool { return s.tiers.Host != nil || s.tiers.Disk != nil }

// later reports whether an idle worker that did nothing that could be seen is
// left for now: it is driven again after the next effect of another, for what
// that may have changed in shared host memory, and in any case if it ended
// copies (corrections §3).
func (s *Sim) later(id int32) bool {
	copied := s.copiers[id].Copied()
	if copied {
		s.copied = append(s.copied, id)
		s.parked.again = true
	}
	if copied || s.sharesTiers() {
		s.again = append(s.again, id)
		return true
	}
	return false
}

// rescan begins the scan of the due workers anew, because the one being driven
// has done something: those before it whose last pass ended copies but did
// nothing else come next (corrections §3). Of the workers driven so far all
// others have nothing left to do.
func (s *Sim) rescan() {
	for _, w := range s.again {
		s.wake(w)
	}
	s.again, s.copied = s.again[:0], s.copied[:0]
}

// unblock lets a run with shared host memory go on that has no next timestamp:
// only now is it certain that a worker's head waits for nothing. It fails that
// of the first worker that has one, as drive does with other workers; settle
// tells of it.
func (s *Sim) unblock() bool {
	if !s.sharesTiers() || s.cfg.Parity {
		return false
	}
	for id, w := range s.workers {
		if w != nil && w.Ready() {
			w.FailHead()
			s.landing = int32(id)
			return true
		}
	}
	return false
}
