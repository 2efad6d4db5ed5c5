package replay

import (
	"slices"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/stretch"
)

// settle does everything that happens at the current timestamp, or as much as
// it can before a session is fed that begins now, somebody outside is asked or a
// worker spins too long. It returns how many events that were: the timestamp and
// the passes begun.
func (s *Sim) settle() int {
	before := s.begun
	for {
		if !s.driving {
			if s.halfway = !s.receive(); s.halfway || s.arrivals.owed > 0 {
				return 1 + int(s.begun-before)
			}
			s.unpark(s.received)
			s.received = false
			slices.Sort(s.due)
			s.driving = true
		}
		last := len(s.due) == 0
		for s.driven < len(s.due) {
			w := s.due[s.driven]
			if s.landing >= 0 {
				w = s.landing // it was being told when the router asked
			}
			if !s.drive(w) {
				return 1 + int(s.begun-before)
			}
			if s.due[s.driven] != w {
				continue // one before it was woken
			}
			s.isDue[w] = false
			s.driven++
		}
		s.due, s.driven, s.driving = s.due[:0], 0, false
		for _, w := range s.copied {
			s.wake(w)
		}
		s.again, s.copied = s.again[:0], s.copied[:0]
		if c := s.control; c != nil {
			last = !c.attend(last) && last
			if c.asked || c.again {
				return 1 + int(s.begun-before)
			}
		}
		if last {
			return 1 + int(s.begun-before)
		}
	}
}

// receive lets copies to and from host memory end, completes the passes that
// end now, then lets arrive what is due; what waits for requests of a graph that
// have ended is decided in between. received tells whether anything ended or
// arrived. False: the router asks or is at fault; it is called again to go on.
func (s *Sim) receive() bool {
	if !s.internal() {
		return false
	}
	for {
		if s.landing < 0 {
			if len(s.busy) == 0 || s.busy[0].atMs != s.books.nowMs {
				break
			}
			s.landing = s.busy.pop().id
			s.flying[s.landing] = false
			s.received = true
			complete(s.workers[s.landing], s.books.nowMs)
		}
		w := s.landing
		if !s.hear(w) {
			return false
		}
		s.show(w)
		s.landing = -1
		s.wake(w)
	}
	if s.sharesTiers() && !s.internal() {
		return false
	}
	if s.control != nil && !s.control.ready() {
		return false
	}
	if a := s.arrivals.agents; a != nil {
		a.flush(s.books.nowMs)
	}
	for {
		if !s.dispatch() {
			return false
		}
		turn, atMs, ok := s.arrivals.pop(s.books.nowMs)
		if !ok {
			return true
		}
		s.received = true
		s.books.arrive(turn, atMs)
		if s.kv != nil {
			s.told(s.kv.place(turn, s.books.nowMs))
			continue
		}
		w := s.pick(turn)
		if w < 0 {
			s.dead, s.fault = true, Fault{InFlight: s.books.inFlight(), NowMs: s.books.nowMs, Nobody: true}
			return false
		}
		s.placing.loads[w]++
		s.workers[w].Push(turn)
		if !s.flying[w] {
			s.wake(w)
		}
	}
}

// wake makes an idle worker due. While the due ones are driven it takes its
// place among those still to come.
func (s *Sim) wake(w int32) {
	if s.isDue[w] {
		return
	}
	s.isDue[w] = true
	if !s.driving {
		s.due = append(s.due, w)
		return
	}
	at, _ := slices.BinarySearch(s.due[s.driven:], w)
	s.due = slices.Insert(s.due, s.driven+at, w)
}

// spins is how many passes without duration drive runs in one go: under parity
// there may be no end of them (corrections §4), and Step has to return.
const spins = 1 << 10

// drive runs an idle worker's passes at the current timestamp: those that take
// no time, until one takes time or has no effect, or another worker's turn has
// come. False: there may be more, or the run is dead, or somebody outside has to
// be asked.
func (s *Sim) drive(id int32) bool {
	w := s.workers[id]
	for n := 0; s.asking == id || s.landing == id || w.Ready(); n++ {
		if n == spins {
			return false
		}
		if s.landing != id {
			endMs, ok := s.begin(w, id)
			if !ok {
				return false
			}
			if endMs > s.books.nowMs {
				s.busy.push(event{atMs: endMs, id: id})
				s.flying[id] = true
				s.affect()
				s.rescan()
				return true
			}
			complete(w, endMs)
			s.landing = id
		}
		if !s.hear(id) {
			return false
		}
		if w.Effect() {
			s.affect()
		} else if len(w.Ended()) == 0 {
			switch s.leave(id) {
			case repeated:
				s.landing = -1
				continue
			case left:
				s.landing = -1
				return !s.dead
			}
			w.FailHead()
			if !s.hear(id) {
				return false
			}
		}
		s.show(id)
		s.landing = -1
		if s.rescan(); s.due[s.driven] != id {
			return true
		}
	}
	return true
}

// leaving is what becomes of a worker whose pass took no time and did nothing
// that could be seen.
type leaving uint8

const (
	repeated leaving = iota // it begins another pass
	left                    // it is left alone
	hopeless                // what it waits for never comes: that is to fail
)

func (s *Sim) leave(id int32) leaving {
	if s.copiers != nil && s.copiers[id].Began() {
		return repeated
	}
	if s.copiers != nil && s.later(id) {
		return left
	}
	w := s.workers[id]
	v := w.Idle()
	switch {
	case v == stretch.Again:
		return repeated
	case v == stretch.Parked:
		s.park(id)
		return left
	case s.cfg.Parity:
		s.park(id)
		s.giveUp(w, v)
		return left
	}
	return hopeless
}

// giveUp is what the reference does with a worker that cannot go on: one of
// vLLM's family is left alone until something arrives, one of SGLang ends the
// run.
func (s *Sim) giveUp(w worker, v stretch.Verdict) {
	if s.cfg.Engine.Backend == config.SGLang {
		s.dead = true
		s.fault = Fault{InFlight: int64(w.InFlight()), NowMs: s.books.nowMs, Endless: v == stretch.Endless}
	}
}

// show books what a completed pass has done.
func (s *Sim) show(id int32) {
	w := s.workers[id]
	s.books.committed += int64(w.CommittedPrefill())
	ended := w.Ended()
	for _, r := range ended {
		e := s.book(w, id, r)
		if s.talk != nil {
			s.talk.heard(e.Turn, e.Emitted)
		}
		s.arrivals.feedback(e.Turn, e.Fate, s.books.nowMs)
		s.arrivals.settled(e.Turn)
		w.Free(r)
	}
	if len(ended) > 0 {
		s.placing.loads[id] -= int32(len(ended))
		w.Trim()
	}
}
