package fleet

import (
	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/core/relay"
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
	for i := range events {
		e := &events[i]
		relay.Event(&o.event, o.worker, rank, e, blocks)
		if fault := f.router.Apply(&o.event, now); !fault.OK() {
			f.warn("the router refuses an event of a cache", "worker", o.worker, "rank", rank, "event", e.ID, "reason", fault.Event.Why)
		}
	}
}
