package branch

// entry is a node under the name of its first page: open addressing, at most
// three quarters full, no tombstones.
type entry struct {
	key  uint64
	node int32 // 0: empty
}

func (c *Cache) home(key uint64) int {
	x := key * 0x9E3779B97F4A7C15
	return int(x>>32^x>>17) & (len(c.table) - 1)
}

// find is the node whose edge begins with the page named key, or 0.
func (c *Cache) find(key uint64) int32 {
	mask := len(c.table) - 1
	for i := c.home(key); ; i = (i + 1) & mask {
		if e := &c.table[i]; e.node == 0 || e.key == key {
			return e.node
		}
	}
}

// put enters a node whose key is new.
func (c *Cache) put(key uint64, n int32) {
	if (c.entries+1)*4 > len(c.table)*3 {
		old := c.table
		c.table = make([]entry, 2*len(old))
		for _, e := range old {
			if e.node != 0 {
				c.place(e)
			}
		}
	}
	c.place(entry{key: key, node: n})
	c.entries++
}

func (c *Cache) place(e entry) {
	mask := len(c.table) - 1
	i := c.home(e.key)
	for c.table[i].node != 0 {
		i = (i + 1) & mask
	}
	c.table[i] = e
}

// remove takes out a key that is there, moving later entries of its run back.
func (c *Cache) remove(key uint64) {
	mask := len(c.table) - 1
	hole := c.home(key)
	for c.table[hole].key != key || c.table[hole].node == 0 {
		hole = (hole + 1) & mask
	}
	c.entries--
	for i := (hole + 1) & mask; c.table[i].node != 0; i = (i + 1) & mask {
		// An entry may move back to the hole unless its home lies after it.
		if (i-c.home(c.table[i].key))&mask >= (i-hole)&mask {
			c.table[hole] = c.table[i]
			hole = i
		}
	}
	c.table[hole] = entry{}
}
