// Package relay passes on what the caches of engines say to a router.
//
// It owns the words of one in those of the other. It does not own events, nor
// does it say when a router hears of them. The router's package knows nothing of
// engines, and theirs nothing of routers.
package relay

import (
	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/core/router"
)

// Event spells an event of a rank of a worker for the router, into dst, whose
// memory is used. blocks are those of all events that came with it.
func Event(dst *router.Event, worker, rank int, e *engine.KVEvent, blocks []engine.KVBlock) {
	*dst = router.Event{
		Worker: worker, Rank: rank, ID: e.ID, HasParent: e.HasParent, Parent: e.Parent,
		Locals: dst.Locals[:0], Exts: dst.Exts[:0],
	}
	if e.Host {
		dst.Tier = router.HostPinned
	}
	if e.Kind == engine.Removed {
		dst.Kind = router.Removed
	}
	for _, b := range blocks[e.First : e.First+e.Count] {
		dst.Exts = append(dst.Exts, b.Hash)
		if dst.Kind == router.Stored {
			dst.Locals = append(dst.Locals, b.Local)
		}
	}
}
