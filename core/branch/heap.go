package branch

// Stamp is when a node was last used: the decode step before or in which that
// was, and the place within it.
type Stamp struct {
	Step int64
	Seq  uint64
}

func (a Stamp) before(b Stamp) bool {
	return a.Step < b.Step || a.Step == b.Step && a.Seq < b.Seq
}

// mark stamps a node.
func (c *Cache) mark(n int32, s Stamp) {
	c.nodes[n].stamp = s
	if at := c.nodes[n].at; at >= 0 {
		c.siftDown(int(at))
	}
}

// push enters an unlocked leaf into the heap.
func (c *Cache) push(n int32) {
	c.nodes[n].at = int32(len(c.heap))
	c.heap = append(c.heap, n)
	c.siftUp(len(c.heap) - 1)
}

// pull takes a node out of the heap if it is there.
func (c *Cache) pull(n int32) {
	i := int(c.nodes[n].at)
	if n == 0 || i < 0 {
		return
	}
	c.nodes[n].at = -1
	last := len(c.heap) - 1
	moved := c.heap[last]
	c.heap = c.heap[:last]
	if i == last {
		return
	}
	c.heap[i] = moved
	c.nodes[moved].at = int32(i)
	c.siftUp(i)
	c.siftDown(int(c.nodes[moved].at))
}

func (c *Cache) siftUp(i int) {
	n := c.heap[i]
	stamp := c.nodes[n].stamp
	for i > 0 {
		up := (i - 1) / 2
		o := c.heap[up]
		if !stamp.before(c.nodes[o].stamp) {
			break
		}
		c.heap[i] = o
		c.nodes[o].at = int32(i)
		i = up
	}
	c.heap[i] = n
	c.nodes[n].at = int32(i)
}

func (c *Cache) siftDown(i int) {
	n := c.heap[i]
	stamp := c.nodes[n].stamp
	for {
		child := 2*i + 1
		if child >= len(c.heap) {
			break
		}
		if r := child + 1; r < len(c.heap) && c.nodes[c.heap[r]].stamp.before(c.nodes[c.heap[child]].stamp) {
			child = r
		}
		o := c.heap[child]
		if !c.nodes[o].stamp.before(stamp) {
			break
		}
		c.heap[i] = o
		c.nodes[o].at = int32(i)
		i = child
	}
	c.heap[i] = n
	c.nodes[n].at = int32(i)
}
