//go:build invariants

package radix

// Check panics if the cache breaks an invariant of the package. It looks at
// every node and page.
func (c *Cache) Check() {
	free := map[Node]bool{}
	for n := c.freeNode; n != 0; n = c.nodes[n].parent {
		free[n] = true
	}
	tree := 0
	sums := [2]int{} // pages unlocked, locked
	children := make([]int32, len(c.nodes))
	locks := make([]int32, len(c.nodes)) // of the children
	for i := range c.nodes {
		n := Node(i)
		if n == 0 || free[n] {
			continue
		}
		x := c.nodes[n]
		children[x.parent]++
		locks[x.parent] += x.locks
		tree++
		c.checkEdge(n)
		locked := 0
		if x.locks > 0 {
			locked = 1
		}
		sums[locked] += int(x.count)
		if c.child(x.parent, c.pages[x.first].local) != n {
			panic("radix: a node cannot be found")
		}
		if leaf := x.locks == 0 && x.children == 0; leaf != (x.at >= 0) || leaf && c.heap[x.at] != n {
			panic("radix: the heap does not hold the unlocked leaves")
		}
	}
	for i := range c.nodes {
		if i > 0 && free[Node(i)] {
			continue
		}
		if c.nodes[i].children != children[i] || i > 0 && c.nodes[i].locks < locks[i] {
			panic("radix: the children of a node are miscounted")
		}
	}
	if tree != c.children.used || sums != [2]int{c.evictable, c.protected} {
		panic("radix: the sums of the tree are wrong")
	}
	for i := 1; i < len(c.heap); i++ {
		if c.nodes[c.heap[(i-1)/2]].stamp >= c.nodes[c.heap[i]].stamp {
			panic("radix: the heap is out of order, or two leaves tie")
		}
	}
	c.checkPages()
}

func (c *Cache) checkEdge(n Node) {
	x := c.nodes[n]
	count, last := int32(0), Page(0)
	for p := x.first; p != 0; p = c.pages[p].next {
		if c.pages[p].prev != last {
			panic("radix: an edge is not linked")
		}
		last = p
		count++
	}
	if count == 0 || count != x.count || last != x.last {
		panic("radix: an edge is miscounted")
	}
}

func (c *Cache) checkPages() {
	if c.pool.given > c.pool.total || c.evictable+c.protected+c.pool.available() > c.pool.total {
		panic("radix: more pages than there are")
	}
	freed := map[Page]bool{}
	for _, p := range c.pool.stack {
		if freed[p] || c.pages[p] != (page{}) {
			panic("radix: a page is freed twice, or not forgotten")
		}
		freed[p] = true
	}
	published := map[uint64]int32{}
	for _, x := range c.pages {
		if x.published {
			published[x.hash]++
		}
	}
	for hash, n := range published {
		if c.hashes.pages.Get(hash) != n {
			panic("radix: the pages of a hash are miscounted")
		}
	}
	if len(published) != c.hashes.pages.Len() {
		panic("radix: a hash without pages")
	}
}
