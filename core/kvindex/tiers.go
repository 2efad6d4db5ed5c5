package kvindex

import (
	"math/bits"
	"slices"
)

// Tier is a kind of memory below the devices.
type Tier uint8

// The tiers below the devices, in the order a query goes through them.
const (
	Host Tier = iota
	Disk
	External
	TierCount // how many there are
)

// Tiers is what the workers hold below their devices: for each tier a table of
// edges, from a block (or the start of a prompt) by a local hash to the next
// block, each with the slots that have it (router notes §3). A slot may have
// an edge without having what leads to it. Take it from NewTiers.
type Tiers struct {
	tiers [TierCount]tier
	slots int
	words int // of 64 slots in a set of slots
	walk  walk
}

type tier struct {
	edges []edge   // 0 is none
	more  []uint64 // words-1 for each edge: owners beyond the first word
	free  int32    // first free edge, linked through owned; 0: none
	keys  table    // edges by parent and local hash
	names table    // edges by slot and external hash
	sizes []int    // by slot: edges it has
	seen  bool     // there has been an event
}

// edge leads to a block.
type edge struct {
	parent, local, ext uint64
	owners             uint64 // slots 0 to 63
	owned              int32  // number of owners
	start              bool   // it begins prompts: there is no parent
}

// NewTiers returns empty tiers for slots 0 to slots-1; Grow adds more.
func NewTiers(slots int) *Tiers {
	x := &Tiers{}
	for i := range x.tiers {
		x.tiers[i] = tier{edges: make([]edge, 1), keys: newTable(), names: newTable()}
	}
	x.Grow(slots)
	return x
}

// Grow makes room for slots 0 to slots-1.
func (x *Tiers) Grow(slots int) {
	x.slots = max(x.slots, slots)
	words := max(1, (x.slots+63)/64)
	for i := range x.tiers {
		t := &x.tiers[i]
		t.sizes = append(t.sizes, make([]int, x.slots-len(t.sizes))...)
		if words != x.words {
			wide := make([]uint64, len(t.edges)*(words-1))
			for e := range t.edges {
				if x.words > 1 {
					copy(wide[e*(words-1):], t.more[e*(x.words-1):][:x.words-1])
				}
			}
			t.more = wide
		}
	}
	x.words = words
	x.walk.grow(x.slots)
}

// Size is the number of blocks all slots have in a tier, each counted once per
// slot.
func (x *Tiers) Size(in Tier) int { return x.tiers[in].names.used }

// Seen reports whether a tier ever had an event.
func (x *Tiers) Seen(in Tier) bool { return x.tiers[in].seen }

func edgeTag(start bool, parent, local uint64) uint32 {
	if start {
		return tagOf(local)
	}
	return tagOf(local ^ bits.RotateLeft64(parent*0xD6E8FEB86659FD93, 32))
}

// edge is the edge from a parent by a local hash, 0 if there is none.
func (t *tier) edge(start bool, parent, local uint64) int32 {
	slots := t.keys.slots
	mask := len(slots) - 1
	tag := edgeTag(start, parent, local)
	for i := int(tag >> t.keys.shift); ; i++ {
		s := slots[i&mask]
		if s == 0 {
			return 0
		}
		if uint32(s>>32) == tag {
			id := int32(uint32(s)) - 1
			if e := &t.edges[id]; e.local == local && e.start == start && (start || e.parent == parent) {
				return id
			}
		}
	}
}

// name is the edge by which slot w has an external hash, 0 if it has not.
func (t *tier) name(w Slot, ext uint64, words int) int32 {
	slots := t.names.slots
	mask := len(slots) - 1
	tag := entryTag(w, ext)
	for i := int(tag >> t.names.shift); ; i++ {
		s := slots[i&mask]
		if s == 0 {
			return 0
		}
		if uint32(s>>32) == tag {
			id := int32(uint32(s)) - 1
			if t.edges[id].ext == ext && t.owns(id, w, words) {
				return id
			}
		}
	}
}

func (t *tier) word(id int32, k, words int) *uint64 {
	if k == 0 {
		return &t.edges[id].owners
	}
	return &t.more[int(id)*(words-1)+k-1]
}

func (t *tier) owns(id int32, w Slot, words int) bool {
	return *t.word(id, int(w)>>6, words)&(1<<(w&63)) != 0
}

// Store says that slot w has stored blocks in a tier, as Index.Store does for
// its device. Nothing is refused; but from the first block on that contradicts
// what the tier knows, the blocks are ignored.
func (x *Tiers) Store(in Tier, w Slot, hasParent bool, parent uint64, locals, exts []uint64) {
	t := &x.tiers[in]
	t.seen = true
	start := !hasParent
	for i, local := range locals {
		ext := exts[i]
		id := t.edge(start, parent, local)
		if id != 0 && t.edges[id].ext != ext {
			return
		}
		if had := t.name(w, ext, x.words); had != 0 && had != id {
			return
		}
		if id == 0 {
			id = t.add(edge{start: start, parent: parent, local: local, ext: ext}, x.words)
		}
		if !t.owns(id, w, x.words) {
			*t.word(id, int(w)>>6, x.words) |= 1 << (w & 63)
			t.edges[id].owned++
			t.sizes[w]++
			t.names.put(entryTag(w, ext), id)
		}
		start, parent = false, ext
	}
}

func (t *tier) add(e edge, words int) (id int32) {
	if e.start {
		e.parent = 0
	}
	if id = t.free; id != 0 {
		t.free = t.edges[id].owned
	} else {
		id = int32(len(t.edges))
		t.edges = append(t.edges, edge{})
		for range words - 1 {
			t.more = append(t.more, 0)
		}
	}
	t.edges[id] = e
	t.keys.put(edgeTag(e.start, e.parent, e.local), id)
	return id
}

// drop takes an edge from a slot that has it.
func (t *tier) drop(id int32, w Slot, words int) {
	e := &t.edges[id]
	*t.word(id, int(w)>>6, words) &^= 1 << (w & 63)
	t.names.drop(t.names.where(entryTag(w, e.ext), id))
	t.sizes[w]--
	if e.owned--; e.owned == 0 {
		t.keys.drop(t.keys.where(edgeTag(e.start, e.parent, e.local), id))
		*e = edge{owned: t.free}
		t.free = id
	}
}

// Remove says that slot w has removed blocks from a tier; those it does not
// have are ignored.
func (x *Tiers) Remove(in Tier, w Slot, exts []uint64) {
	t := &x.tiers[in]
	t.seen = true
	for _, ext := range exts {
		if id := t.name(w, ext, x.words); id != 0 {
			t.drop(id, w, x.words)
		}
	}
}

// Clear says that slot w has nothing in a tier any more.
func (x *Tiers) Clear(in Tier, w Slot) {
	t := &x.tiers[in]
	t.seen = true
	x.Forget(in, w)
}

// Forget is Clear for a slot that is gone: it is no event.
func (x *Tiers) Forget(in Tier, w Slot) {
	t := &x.tiers[in]
	for id := int32(1); int(id) < len(t.edges) && t.sizes[w] > 0; id++ {
		if t.edges[id].owned > 0 && t.owns(id, w, x.words) {
			t.drop(id, w, x.words)
		}
	}
}

// walk is the state of a query: how far each slot is.
type walk struct {
	slots []Slot
	at    []position // by slot, if it is on its way
}

type position struct {
	going bool
	start bool // nothing found yet
	depth int32
	last  uint64 // external hash of the last block found
}

func (k *walk) grow(slots int) {
	k.at = append(k.at, make([]position, slots-len(k.at))...)
}

func (k *walk) begin(w Slot, p position) {
	p.going = true
	k.at[w] = p
	k.slots = append(k.slots, w)
}

// Hits is what a tier has of a prompt beyond the tiers before it: Blocks[i] of
// slot Slots[i], 0 included. It is valid until the next query.
type Hits struct {
	Slots  []Slot
	Blocks []int32
}

// Extend finds what each tier adds to the matches on the devices, which have
// been asked for with Lasts (router notes §3). Tiers that never had an event
// have no hits. It fills hits by tier.
func (x *Tiers) Extend(locals []uint64, device *Matches, hits *[TierCount]Hits) {
	k := &x.walk
	for _, w := range k.slots {
		k.at[w] = position{}
	}
	k.slots = k.slots[:0]
	for i, w := range device.Slots {
		if int(w) < x.slots {
			k.begin(w, position{depth: device.Depths[i], last: device.Last[i]})
		}
	}
	for i := range x.tiers {
		t := &x.tiers[i]
		h := &hits[i]
		h.Slots, h.Blocks = h.Slots[:0], h.Blocks[:0]
		if !t.seen || len(locals) == 0 {
			continue
		}
		x.join(t, locals[0])
		for _, w := range k.slots {
			p := &k.at[w]
			from := p.depth
			for int(p.depth) < len(locals) {
				id := t.edge(p.start, p.last, locals[p.depth])
				if id == 0 || !t.owns(id, w, x.words) {
					break
				}
				p.depth++
				p.start, p.last = false, t.edges[id].ext
			}
			h.Slots = append(h.Slots, w)
			h.Blocks = append(h.Blocks, p.depth-from)
		}
	}
}

// join lets the owners of a prompt's first block in a tier set out, if they
// have not.
func (x *Tiers) join(t *tier, local uint64) {
	id := t.edge(true, 0, local)
	if id == 0 {
		return
	}
	for i := range x.words {
		for set := *t.word(id, i, x.words); set != 0; set &= set - 1 {
			if w := Slot(i<<6 + lowest(set)); !x.walk.at[w].going {
				x.walk.begin(w, position{start: true})
			}
		}
	}
	slices.Sort(x.walk.slots)
}
