package kvindex

import (
	"cmp"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

type goldenTierEvent struct {
	Tier   string `json:"storage_tier"`
	Worker uint64 `json:"worker_id"`
	Event  struct {
		Rank uint64 `json:"dp_rank"`
		Data tierData
	}
}

type tierData struct {
	Cleared bool
	Stored  *struct {
		Parent *uint64 `json:"parent_hash"`
		Blocks []struct {
			Ext   uint64 `json:"block_hash"`
			Local uint64 `json:"tokens_hash"`
		}
	}
	Removed *struct {
		Exts []uint64 `json:"block_hashes"`
	}
}

func (d *tierData) UnmarshalJSON(text []byte) error {
	if d.Cleared = string(text) == `"cleared"`; d.Cleared {
		return nil
	}
	type plain tierData
	return json.Unmarshal(text, (*plain)(d))
}

var tierNames = []string{Host: "host_pinned", Disk: "disk", External: "external"}

// The reference's lower tiers: events into all of them, then queries. What
// weights make of the hits is core/router's to test.
func TestGoldenTiers(t *testing.T) {
	var file struct {
		Cases []struct {
			Steps []struct {
				Event goldenTierEvent
				OK    bool
			}
			Queries []struct {
				Locals []uint64
				Device [][3]uint64            `json:"device_scores"`
				Lower  map[string][][3]uint64 `json:"lower_hits"`
			}
		}
	}
	golden(t, "tiers.json", &file)
	if len(file.Cases) != 16 {
		t.Fatalf("%d cases", len(file.Cases))
	}
	for _, c := range file.Cases {
		x := newSubject()
		tiers := NewTiers(0)
		for _, s := range c.Steps {
			w := x.of(s.Event.Worker, s.Event.Event.Rank)
			x.index.Grow(int(w) + 1)
			tiers.Grow(int(w) + 1)
			if ok := applyTo(x.index, tiers, w, s.Event); ok != s.OK {
				t.Fatalf("%+v: %v", s.Event, ok)
			}
		}
		for _, q := range c.Queries {
			m := Matches{Lasts: true}
			var hits [TierCount]Hits
			x.index.Match(q.Locals, false, &m)
			tiers.Extend(q.Locals, &m, &hits)
			sameRows(t, x.rows(m.Slots, m.Depths), q.Device)
			for i, h := range hits {
				sameRows(t, x.rows(h.Slots, h.Blocks), q.Lower[tierNames[i]])
			}
		}
		for w := range x.keys {
			for in := range TierCount {
				tiers.Clear(in, Slot(w))
				if tiers.tiers[in].sizes[w] != 0 {
					t.Fatalf("slot %d keeps edges in tier %d", w, in)
				}
			}
		}
		noEdges(t, tiers)
	}
}

func noEdges(t *testing.T, x *Tiers) {
	t.Helper()
	for in := range x.tiers {
		r := &x.tiers[in]
		free := 0
		for id := r.free; id != 0; id = r.edges[id].owned {
			free++
		}
		if r.keys.used != 0 || r.names.used != 0 || free != len(r.edges)-1 {
			t.Fatalf("tier %d keeps %d edges, %d names", in, r.keys.used, r.names.used)
		}
	}
}

func (s *slotMap) rows(slots []Slot, values []int32) (rows [][3]uint64) {
	for i, w := range slots {
		rows = append(rows, [3]uint64{s.keys[w].worker, s.keys[w].rank, uint64(values[i])})
	}
	return rows
}

func applyTo(index *Index, tiers *Tiers, w Slot, e goldenTierEvent) (ok bool) {
	d := e.Event.Data
	in := Tier(slices.Index(tierNames, e.Tier)) // 255: the device
	var locals, exts []uint64
	hasParent, parent := false, uint64(0)
	if d.Stored != nil {
		if hasParent = d.Stored.Parent != nil; hasParent {
			parent = *d.Stored.Parent
		}
		for _, b := range d.Stored.Blocks {
			locals, exts = append(locals, b.Local), append(exts, b.Ext)
		}
	}
	device := e.Tier == "device"
	switch {
	case d.Stored != nil && device:
		return index.Store(w, hasParent, parent, locals, exts) == Applied
	case d.Stored != nil:
		tiers.Store(in, w, hasParent, parent, locals, exts)
	case d.Removed != nil && device:
		return index.Remove(w, d.Removed.Exts) == Applied
	case d.Removed != nil:
		tiers.Remove(in, w, d.Removed.Exts)
	case device:
		index.Clear(w)
	default:
		tiers.Clear(in, w)
	}
	return true
}

// naiveTier is a tier as router notes §3 describe it.
type naiveTier struct {
	edges map[naiveEdge]*naiveTarget
	names map[Slot]map[uint64]naiveEdge
}

type naiveEdge struct {
	hasParent     bool
	parent, local uint64
}

type naiveTarget struct {
	ext    uint64
	owners map[Slot]bool
}

func newNaiveTier() *naiveTier {
	return &naiveTier{edges: map[naiveEdge]*naiveTarget{}, names: map[Slot]map[uint64]naiveEdge{}}
}

func (n *naiveTier) store(w Slot, hasParent bool, parent uint64, blocks []naiveBlock) {
	if n.names[w] == nil {
		n.names[w] = map[uint64]naiveEdge{}
	}
	for _, b := range blocks {
		key := naiveEdge{hasParent, parent, b.local}
		if !hasParent {
			key.parent = 0
		}
		if had, ok := n.names[w][b.ext]; ok && had != key {
			return
		}
		if to := n.edges[key]; to == nil {
			n.edges[key] = &naiveTarget{b.ext, map[Slot]bool{}}
		} else if to.ext != b.ext {
			return
		}
		n.edges[key].owners[w] = true
		n.names[w][b.ext] = key
		hasParent, parent = true, b.ext
	}
}

func (n *naiveTier) remove(w Slot, ext uint64) {
	key, ok := n.names[w][ext]
	if !ok {
		return
	}
	delete(n.names[w], ext)
	delete(n.edges[key].owners, w)
	if len(n.edges[key].owners) == 0 {
		delete(n.edges, key)
	}
}

// walk continues a slot's match, whose last block is last at depth.
func (n *naiveTier) walk(w Slot, locals []uint64, depth int, last uint64) (int, uint64) {
	for depth < len(locals) {
		key := naiveEdge{depth > 0, last, locals[depth]}
		if depth == 0 {
			key.parent = 0
		}
		to := n.edges[key]
		if to == nil || !to.owners[w] {
			break
		}
		depth, last = depth+1, to.ext
	}
	return depth, last
}

// playTiers runs tiers and the model side by side.
func playTiers(t *testing.T, data []byte) {
	d := &dice{data}
	slots := 1 + d.roll(5)
	if d.roll(8) == 0 {
		slots = 130
	}
	x := NewTiers(0)
	x.Grow(slots)
	models := [TierCount]*naiveTier{newNaiveTier(), newNaiveTier(), newNaiveTier()}
	seen := [TierCount]bool{}
	s := style{2 + d.roll(4), d.roll(6)}
	index := New(slots)
	for len(d.data) > 0 {
		w, in := Slot(d.roll(slots)), Tier(d.roll(int(TierCount)))
		blocks := s.path(d)
		var locals, exts []uint64
		for _, b := range blocks {
			locals, exts = append(locals, b.local), append(exts, b.ext)
		}
		from := 0
		if d.roll(2) == 0 {
			from = d.roll(len(blocks))
		}
		parent := uint64(0)
		if from > 0 {
			parent = blocks[from-1].ext
		}
		seen[in] = true
		switch k := d.roll(20); {
		case k < 3:
			seen[in] = seen[in] && x.Seen(in)
			index.Store(w, from > 0, parent, locals[from:], exts[from:])
		case k < 14:
			x.Store(in, w, from > 0, parent, locals[from:], exts[from:])
			models[in].store(w, from > 0, parent, blocks[from:])
		case k < 19:
			x.Remove(in, w, exts[from:])
			for _, ext := range exts[from:] {
				models[in].remove(w, ext)
			}
		default:
			x.Clear(in, w)
			for ext := range maps.Clone(models[in].names[w]) {
				models[in].remove(w, ext)
			}
		}
		compareTiers(t, x, index, models, seen, s.path(d))
	}
	for w := range slots {
		for in := range TierCount {
			x.Forget(in, Slot(w))
		}
	}
	noEdges(t, x)
}

func compareTiers(t *testing.T, x *Tiers, index *Index, models [TierCount]*naiveTier, seen [TierCount]bool, query []naiveBlock) {
	t.Helper()
	var locals []uint64
	for _, b := range query {
		locals = append(locals, b.local)
	}
	m := Matches{Lasts: true}
	var hits [TierCount]Hits
	index.Match(locals, false, &m)
	x.Extend(locals, &m, &hits)
	type at struct {
		depth int
		last  uint64
	}
	going := map[Slot]at{}
	for i, w := range m.Slots {
		going[w] = at{int(m.Depths[i]), m.Last[i]}
	}
	for in, n := range models {
		var want []naiveMatch
		if seen[in] {
			if to := n.edges[naiveEdge{local: locals[0]}]; to != nil {
				for w := range to.owners {
					if _, ok := going[w]; !ok {
						going[w] = at{}
					}
				}
			}
			for w, p := range going {
				depth, last := n.walk(w, locals, p.depth, p.last)
				want = append(want, naiveMatch{slot: w, depth: depth - p.depth})
				going[w] = at{depth, last}
			}
		}
		var got []naiveMatch
		for i, w := range hits[in].Slots {
			got = append(got, naiveMatch{slot: w, depth: int(hits[in].Blocks[i])})
		}
		order := func(a, b naiveMatch) int { return cmp.Compare(a.slot, b.slot) }
		slices.SortFunc(got, order)
		slices.SortFunc(want, order)
		if !slices.Equal(got, want) {
			t.Fatalf("tier %d of %v: %v, want %v", in, locals, got, want)
		}
		names := 0
		for _, owned := range n.names {
			names += len(owned)
		}
		if x.Size(Tier(in)) != names {
			t.Fatalf("tier %d: size %d, want %d", in, x.Size(Tier(in)), names)
		}
	}
}

func FuzzTiers(f *testing.F) {
	f.Add([]byte("host, disk and what lies beyond"))
	f.Fuzz(playTiers)
}

func TestRandomTiers(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	for range 1000 {
		data := make([]byte, 200+r.IntN(2000))
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		playTiers(t, data)
	}
}
