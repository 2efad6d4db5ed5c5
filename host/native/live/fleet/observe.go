package fleet

import (
	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/core/router"
	"github.com/dryserve/dryserve/host/native/live/worker"
)

// observer tells the router what a worker's caches hold, and whoever else
// watches what they said.
type observer struct {
	fleet  *Fleet
	worker int
	next   worker.Observer
	event  router.Event // reused
}

// observer is the observer of worker i, nil if nobody watches.
func (f *Fleet) observer(i int) worker.Observer {
	var next worker.Observer
	if f.o.Observer != nil {
		next = f.o.Observer(i)
	}
	if f.o.Mode != KV {
		return next
	}
	return &observer{fleet: f, worker: i, next: next}
}

func (o *observer) Passed(rank int, out *engine.Out, nowMs float64) {
	o.publish(rank, out.KVEvents, out.KVBlocks)
	if o.next != nil {
		o.next.Passed(rank, out, nowMs)
	}
}

func (o *observer) Commanded(rank int, said *engine.Effects, m engine.Metrics, nowMs float64) {
	o.publish(rank, said.KVEvents, said.KVBlocks)
	if o.next != nil {
		o.next.Commanded(rank, said, m, nowMs)
	}
}

func (o *observer) publish(rank int, events []engine.KVEvent, blocks []engine.KVBlock) {
	if len(events) == 0 {
		return
	}
	f := o.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.o.Clock.NowMs()
	for _, e := range events {
		x := &o.event
		*x = router.Event{Worker: o.worker, Rank: rank, ID: e.ID, HasParent: e.HasParent, Parent: e.Parent, Locals: x.Locals[:0], Exts: x.Exts[:0]}
		if e.Host {
			x.Tier = router.HostPinned
		}
		if e.Kind == engine.Removed {
			x.Kind = router.Removed
		}
		for _, b := range blocks[e.First : e.First+e.Count] {
			x.Exts = append(x.Exts, b.Hash)
			if x.Kind == router.Stored {
				x.Locals = append(x.Locals, b.Local)
			}
		}
		if fault := f.router.Apply(x, now); !fault.OK() {
			f.warn("the router refuses an event of a cache", "worker", o.worker, "rank", rank, "event", e.ID, "reason", fault.Event.Why)
		}
	}
}
