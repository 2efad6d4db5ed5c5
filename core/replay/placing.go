package replay

import (
	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/rng"
)

// placing spreads turns over workers without a look at their caches. Which rank
// of a worker serves is the worker's business.
type placing struct {
	mode  config.RouterMode
	next  int32      // in turn: the next worker
	lots  rng.Wyrand // one stream
	loads []int32    // by worker: its turns that have not ended

	changes bool    // workers come and go, and
	active  []int32 // these get turns, ascending
}

func (p *placing) init(cfg config.Replay) {
	p.mode, p.lots = cfg.Routing.Mode, rng.Wyrand(cfg.Routing.Seed)
	p.loads = make([]int32, cfg.NumWorkers)
}

// inTurn reports whether the n-th arrival goes to the n-th worker whatever
// happens.
func (p *placing) inTurn() bool { return p.mode == config.RoundRobin }

// count is how many workers get turns, and worker one of them.
func (p *placing) count() int32 {
	if p.changes {
		return int32(len(p.active))
	}
	return int32(len(p.loads))
}

func (p *placing) worker(i int32) int32 {
	if p.changes {
		return p.active[i]
	}
	return i
}

// pick is the worker that an arriving turn goes to (router notes §7.1); -1:
// there is none. Turn by turn the count goes on when workers come or go.
func (s *Sim) pick(turn int32) int32 {
	p := &s.placing
	n := p.count()
	if n == 0 {
		return -1
	}
	switch p.mode {
	case config.Random:
		return p.worker(p.draw(n))
	case config.PowerOfTwo:
		if n == 1 {
			return p.worker(0)
		}
		a, b := p.draw(n), p.draw(n-1)
		if b >= a {
			b++ // another one
		}
		a, b = p.worker(a), p.worker(b)
		if p.loads[b] < p.loads[a] {
			return b
		}
		return a
	case config.LeastLoaded:
		return p.leastLoaded()
	case config.Direct:
		return s.load.Targets[turn]
	}
	w := p.next
	if w >= n {
		w %= n
	}
	p.next = w + 1
	return p.worker(w)
}

// draw is one of the workers below n.
func (p *placing) draw(n int32) int32 { return int32(p.lots.Below(uint64(n))) }

// leastLoaded is the worker with the fewest turns, by lot among equals; a lot is
// drawn for each that equals the fewest so far.
func (p *placing) leastLoaded() int32 {
	best, ties := p.worker(0), uint64(1)
	for i := int32(1); i < p.count(); i++ {
		w := p.worker(i)
		switch least := p.loads[best]; {
		case p.loads[w] < least:
			best, ties = w, 1
		case p.loads[w] == least:
			if ties++; p.lots.Below(ties) == 0 {
				best = w
			}
		}
	}
	return best
}
