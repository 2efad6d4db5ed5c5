package events

import (
	"fmt"
	"slices"
	"sync"

	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/host/native/live/wire"
	"github.com/dryserve/dryserve/host/native/routerwire"
)

// Limits of the reference.
const (
	mostBlocks = 128  // of a joined event
	remembered = 1024 // events, for those who missed some
)

// Cache is what one rank has said of its cache.
type Cache struct {
	worker uint64
	rank   uint32

	mu     sync.Mutex
	refs   map[place]int
	nodes  map[uint64]*node // on the device
	order  uint64           // of nodes
	last   uint64           // id
	recent []routerwire.RouterEvent
}

// place is a block in a kind of memory.
type place struct {
	tier routerwire.Tier
	hash uint64
}

// node is a block that is there.
type node struct {
	hash, local uint64
	parent      *uint64
	order       uint64
}

// NewCache returns the memory of a rank's cache that holds nothing.
func NewCache(worker uint64, rank int) *Cache {
	return &Cache{worker: worker, rank: uint32(rank), refs: map[place]int{}, nodes: map[uint64]*node{}}
}

// Tell takes what the engine said and returns what is published of it.
func (c *Cache) Tell(raw []engine.KVEvent, blocks []engine.KVBlock) []routerwire.RouterEvent {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []routerwire.RouterEvent
	for _, e := range raw {
		next, ok := c.translate(e, blocks[e.First:e.First+e.Count])
		if !ok {
			continue
		}
		if n := len(out) - 1; n >= 0 && join(&out[n], &next) {
			continue
		}
		out = append(out, next)
	}
	for i := range out {
		c.last++
		out[i].Event.ID = c.last
	}
	c.recent = append(c.recent, out...)
	if n := len(c.recent) - remembered; n > 0 {
		c.recent = slices.Delete(c.recent, 0, n)
	}
	return out
}

// translate books an event and words it. ok is false if nothing is left of it.
func (c *Cache) translate(e engine.KVEvent, blocks []engine.KVBlock) (out routerwire.RouterEvent, ok bool) {
	out = routerwire.RouterEvent{WorkerID: c.worker, Tier: routerwire.Device, Residency: "worker", Event: routerwire.CacheEvent{Rank: c.rank}}
	if e.Host {
		out.Tier = routerwire.HostPinned
	}
	if e.Kind == engine.Removed {
		var gone []uint64
		for _, b := range blocks {
			at := place{out.Tier, b.Hash}
			if n := c.refs[at]; n > 1 {
				c.refs[at] = n - 1
				continue
			}
			delete(c.refs, at)
			if !e.Host {
				delete(c.nodes, b.Hash)
			}
			gone = append(gone, b.Hash)
		}
		out.Event.Data.Removed = &routerwire.RemovedBlocks{Blocks: gone}
		return out, len(gone) > 0
	}
	s := &routerwire.StoredBlocks{}
	if e.HasParent {
		s.Parent = &e.Parent
	}
	if e.Host {
		start := uint32(e.Start)
		s.Start = &start
	}
	parent := s.Parent
	for _, b := range blocks {
		s.Blocks = append(s.Blocks, routerwire.StoredBlock{Block: b.Hash, Tokens: b.Local})
		c.refs[place{out.Tier, b.Hash}]++
		if !e.Host {
			c.order++
			c.nodes[b.Hash] = &node{b.Hash, b.Local, parent, c.order}
			hash := b.Hash
			parent = &hash
		}
	}
	out.Event.Data.Stored = s
	return out, true
}

// join appends b to a if they are one event: blocks that follow those of a, or
// more that were removed.
func join(a, b *routerwire.RouterEvent) bool {
	x, y := a.Event.Data, b.Event.Data
	switch {
	case a.Tier != b.Tier:
		return false
	case x.Stored != nil && y.Stored != nil:
		n := len(x.Stored.Blocks)
		if n >= mostBlocks || y.Stored.Parent == nil || *y.Stored.Parent != x.Stored.Blocks[n-1].Block {
			return false
		}
		x.Stored.Blocks = append(x.Stored.Blocks, y.Stored.Blocks...)
		return true
	case x.Removed != nil && y.Removed != nil && len(x.Removed.Blocks) < mostBlocks:
		x.Removed.Blocks = append(x.Removed.Blocks, y.Removed.Blocks...)
		return true
	}
	return false
}

// Answers to queries; each is one entry of a map.
type (
	eventList struct {
		Events []routerwire.RouterEvent `json:"events" msgpack:"events"`
		Last   uint64                   `json:"last_event_id" msgpack:"last_event_id"`
	}
	treeDump struct {
		Events []routerwire.RouterEvent `json:"events" msgpack:"events"`
		Last   uint64                   `json:"last_event_id" msgpack:"last_event_id"`
		Scope  string                   `json:"reset_scope" msgpack:"reset_scope"`
	}
	tooNew struct {
		Start  *uint64 `json:"requested_start" msgpack:"requested_start"`
		End    *uint64 `json:"requested_end" msgpack:"requested_end"`
		Newest uint64  `json:"newest_available" msgpack:"newest_available"`
	}
	invalidRange struct {
		Start uint64 `json:"start_id" msgpack:"start_id"`
		End   uint64 `json:"end_id" msgpack:"end_id"`
	}
)

// Query answers who has missed something: with the events, or with all there is.
func (c *Cache) Query(q wire.KVQuery) map[string]any {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case q.WorkerID != c.worker || q.Rank != c.rank:
		return map[string]any{"Error": fmt.Sprintf("this is worker %d, rank %d; worker %d, rank %d is asked for", c.worker, c.rank, q.WorkerID, q.Rank)}
	case q.Start != nil && q.End != nil && *q.Start > *q.End:
		return map[string]any{"InvalidRange": invalidRange{*q.Start, *q.End}}
	case q.Start == nil || len(c.recent) == 0 || *q.Start < c.recent[0].Event.ID:
		return map[string]any{"TreeDump": treeDump{c.dump(), c.last, "all"}}
	case *q.Start > c.last:
		return map[string]any{"TooNew": tooNew{q.Start, q.End, c.last}}
	}
	list := []routerwire.RouterEvent{}
	for _, e := range c.recent {
		if e.Event.ID >= *q.Start && (q.End == nil || e.Event.ID <= *q.End) {
			list = append(list, e)
		}
	}
	return map[string]any{"Events": eventList{list, c.last}}
}

// dump is the events that lead from nothing to what is on the device.
func (c *Cache) dump() []routerwire.RouterEvent {
	children := map[uint64][]*node{}
	var roots []*node
	for _, n := range c.nodes {
		if n.parent == nil {
			roots = append(roots, n)
		} else {
			children[*n.parent] = append(children[*n.parent], n)
		}
	}
	oldest := func(a, b *node) int { return int(int64(a.order) - int64(b.order)) }
	events := []routerwire.RouterEvent{}
	slices.SortFunc(roots, oldest)
	for stack := slices.Clone(roots); len(stack) > 0; {
		n := stack[0]
		stack = stack[1:]
		s := &routerwire.StoredBlocks{Parent: n.parent}
		for {
			s.Blocks = append(s.Blocks, routerwire.StoredBlock{Block: n.hash, Tokens: n.local})
			next := children[n.hash]
			if len(next) == 1 && len(s.Blocks) < mostBlocks {
				n = next[0]
				continue
			}
			slices.SortFunc(next, oldest)
			stack = append(stack, next...)
			break
		}
		events = append(events, routerwire.RouterEvent{
			WorkerID: c.worker, Tier: routerwire.Device, Residency: "worker",
			Event: routerwire.CacheEvent{ID: uint64(len(events)) + 1, Rank: c.rank, Data: routerwire.EventData{Stored: s}},
		})
	}
	return events
}
