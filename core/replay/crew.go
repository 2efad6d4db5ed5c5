package replay

import (
	"slices"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/router"
)

// aggregate is the crew of a run whose workers serve whole requests.
type aggregate struct{ *Sim }

func (s aggregate) hire(id int32) {
	w := s.newWorker(int(id))
	if s.cfg.Engine.Timing.Kind == config.External {
		w.ShareAnswers(s.answers)
	}
	s.flying, s.isDue = append(s.flying, false), append(s.isDue, false)
	s.placing.loads = append(s.placing.loads, 0)
}

func (s aggregate) join(id int32) {
	p := &s.placing
	p.active = with(p.active, id)
	if m := s.meter(id); m != nil {
		m.begin(s.books.nowMs)
	}
	if s.kv != nil {
		for len(s.kv.workers) <= int(id) {
			s.kv.workers, s.kv.plains = append(s.kv.workers, nil), append(s.kv.plains, nil)
		}
		p := s.workers[id].(*plain) // a changing fleet has readable engines behind a KV router
		s.kv.workers[id], s.kv.plains[id] = p, p
		s.kv.enter(id, s.cfg.Engine)
	}
}

func (s aggregate) retire(id int32) {
	p := &s.placing
	p.active = without(p.active, id)
	if s.kv != nil {
		s.kv.router.Drain(int(id))
	}
}

func (s aggregate) dismiss(id int32) {
	w := s.workers[id]
	s.gone += w.Preemptions()
	s.workers[id] = nil
	if s.copiers != nil {
		s.copiers[id] = nil
	}
	if d, ok := w.(divider); ok {
		s.caches = slices.DeleteFunc(s.caches, func(x divider) bool { return x == d })
	}
	s.parked.list = slices.DeleteFunc(s.parked.list, func(x int32) bool { return x == id })
	if k := s.kv; k != nil && int(id) < len(k.workers) && k.workers[id] != nil {
		k.workers[id], k.plains[id] = nil, nil
		k.router.RemoveWorker(int(id))
	}
}

func (s aggregate) idle(id int32) bool {
	if p, ok := s.workers[id].(*plain); ok && p.copies && !p.g.Drained() {
		return false
	}
	return !s.flying[id] && !s.isDue[id] && s.workers[id].InFlight() == 0
}

func (s aggregate) meter(id int32) *meter {
	if p, ok := s.workers[id].(*plain); ok {
		return p.meter
	}
	return nil
}

func (s aggregate) settle() bool {
	if s.kv == nil {
		return true
	}
	s.told(s.kv.router.Settle(s.books.nowMs))
	s.halfway = !s.dispatch()
	return !s.halfway
}

func (s aggregate) waiting() int { return s.kv.waiting() }

// waiting is the number of requests in the queue of the router, if there is one.
func (k *kvRouting) waiting() int {
	if k == nil {
		return 0
	}
	return k.router.Waiting()
}

// enter lets the router know a worker.
func (k *kvRouting) enter(id int32, e config.Engine) {
	k.router.AddWorker(int(id), e.DPSize, min(e.MaxNumBatchedTokens, router.NoBudget))
}
