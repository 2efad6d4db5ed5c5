//go:build invariants

package kv

// Check panics if the pool breaks an invariant of the package. It looks at
// every block.
func (p *Pool) Check() {
	if p.Free() < 0 {
		panic("kv: more blocks than the pool has")
	}
	inactive := 0
	for b := p.blocks[0].next; b != 0; b = p.blocks[b].next {
		x := p.blocks[b]
		if x.refs != 0 || !x.cached || p.blocks[x.next].prev != b {
			panic("kv: a block that is not inactive stands in the eviction order")
		}
		inactive++
	}
	free := 0
	for b := p.freeSlot; b != 0; b = p.blocks[b].next {
		free++
	}
	if inactive != p.inactive || free+p.inactive+p.active != len(p.blocks)-1 {
		panic("kv: the counts of blocks are wrong")
	}
	copies := 0
	for i := range p.index.Slots() {
		hash, value := p.index.At(i)
		if value == 0 {
			continue
		}
		first := Block(value)
		for b := first; ; {
			x := p.blocks[b]
			if !x.cached || x.hash != hash || p.blocks[x.newer].older != b {
				panic("kv: the index leads to a wrong block")
			}
			copies++
			if b = x.newer; b == first {
				break
			}
		}
	}
	for _, x := range p.blocks[1:] {
		if x.cached {
			copies--
		}
	}
	if copies != 0 {
		panic("kv: a cached block cannot be found")
	}
}
