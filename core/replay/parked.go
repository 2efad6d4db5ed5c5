package replay

import (
	"slices"

	"github.com/dryserve/dryserve/core/config"
)

// parked keeps the workers whose last pass did nothing that could be seen and
// took no time. They are left alone until something arrives for them, except
// that the reference goes on passing them: with every drive, and again after
// each effect that a later worker has in it (corrections §3). That matters
// only where passes are counted, for the interval between prompts, and only
// under parity: else the request that blocks such a worker has failed.
type parked struct {
	counts bool    // passes are counted
	list   []int32 // of the drive under way, or the last one, ascending
	again  bool    // something happened since the last drive began
}

func (p *parked) init(cfg config.Replay) {
	p.counts = cfg.Parity && counts(cfg.Engine)
}

// counts reports whether it matters how many passes a worker has run: whether an
// interval lies between the prompts of its ranks.
func counts(e config.Engine) bool { return e.DPSize > 1 && e.PrefillScheduleInterval > 1 }

// park is told of every worker that is left alone.
func (s *Sim) park(id int32) {
	if s.parked.counts {
		s.parked.list = append(s.parked.list, id)
	}
}

// unpark makes the parked workers due for the coming drive if something
// happened since the last drive began: an arrival or the end of a pass, or in
// that drive an effect.
func (s *Sim) unpark(received bool) {
	p := &s.parked
	if received || p.again {
		for _, w := range p.list {
			s.wake(w)
		}
		p.list = p.list[:0]
		if s.sharesTiers() {
			s.wakeAll()
		}
	}
	p.again = received
}

// affect is told of every pass that had an effect. The reference then begins
// its scan of the workers anew. Workers that the effect has woken are not parked
// any more: their turn comes.
func (s *Sim) affect() {
	s.parked.again = true
	s.parked.list = slices.DeleteFunc(s.parked.list, func(w int32) bool { return s.isDue[w] })
	for _, w := range s.parked.list {
		s.begun++
		s.workers[w].Begin(s.books.nowMs)
		complete(s.workers[w], s.books.nowMs)
	}
}

// wakeAll makes all idle workers with work due: where they share host memory,
// what one does there another may see.
func (s *Sim) wakeAll() {
	for id, w := range s.workers {
		if w != nil && !s.flying[id] && w.Ready() {
			s.wake(int32(id))
		}
	}
}
