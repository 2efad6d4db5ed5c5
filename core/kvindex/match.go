package kvindex

// Matches is how much of a prompt each slot has. Set Lasts to ask for the
// external hashes as well. The lists are valid until the next Match.
type Matches struct {
	Slots  []Slot  // those with at least one block, in the order they fell behind
	Depths []int32 // blocks of each
	Last   []uint64
	Lasts  bool // fill Last: the external hash of each slot's last block
}

func (m *Matches) add(w Slot, depth int32, last uint64) {
	m.Slots = append(m.Slots, w)
	m.Depths = append(m.Depths, depth)
	if m.Lasts {
		m.Last = append(m.Last, last)
	}
}

// Match finds who has how long a prefix of a prompt, given by the local hashes
// of its complete blocks (router notes §2.5). With early it stops where one slot
// is left, which may have more than is said then.
func (x *Index) Match(locals []uint64, early bool, m *Matches) {
	m.Slots, m.Depths, m.Last = m.Slots[:0], m.Depths[:0], m.Last[:0]
	clear(x.alive)
	depth, last := int32(0), uint64(0)
	for n := int32(0); int(depth) < len(locals); {
		if n = x.child(n, locals[depth]); n == 0 {
			break
		}
		k := int32(x.common(n, locals[depth:]))
		if depth == 0 {
			x.enterPath(n, k, m)
		} else {
			x.fallBehind(n, k, depth, last, m)
		}
		depth += k
		last = x.lastOf(n, k, m)
		if k < x.nodes[n].n || x.few(early) {
			break
		}
	}
	for i, word := range x.alive {
		for ; word != 0; word &= word - 1 {
			m.add(Slot(i<<6+lowest(word)), depth, last)
		}
	}
}

// enterPath begins a match that has k blocks of the first node: slots that
// cover all of the edge stay alive, the others are done.
func (x *Index) enterPath(n, k int32, m *Matches) {
	for i := range x.alive {
		x.alive[i] = *x.fullWord(n, i)
	}
	c := x.nodes[n].cut
	for _, e := range x.cuts.slab[c.at:][:c.n] {
		m.add(e.slot, min(e.k, k), x.lastOf(n, min(e.k, k), m))
	}
}

// fallBehind lets the slots go that do not cover all of a later node, of which
// the query has k blocks.
func (x *Index) fallBehind(n, k, depth int32, last uint64, m *Matches) {
	for i := range x.alive {
		gone := x.alive[i] &^ *x.fullWord(n, i)
		x.alive[i] &^= gone
		for ; gone != 0; gone &= gone - 1 {
			w := Slot(i<<6 + lowest(gone))
			if c := min(x.cuts.get(x.nodes[n].cut, w), k); c > 0 {
				m.add(w, depth+c, x.lastOf(n, c, m))
			} else {
				m.add(w, depth, last)
			}
		}
	}
}

// few reports whether a match can end: nobody is alive, or, if it is to end
// early, one slot is.
func (x *Index) few(early bool) bool {
	count := 0
	for _, word := range x.alive {
		if word != 0 {
			if !early || word&(word-1) != 0 {
				return false
			}
			count++
		}
	}
	return count <= 1
}

// lastOf is the external hash of the k-th block of an edge, if it is wanted.
func (x *Index) lastOf(n, k int32, m *Matches) uint64 {
	if !m.Lasts {
		return 0
	}
	return x.ext[x.at(n, k-1)]
}
