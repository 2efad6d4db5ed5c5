package queue

import "math"

// Pop takes out the request whose turn it is. blocked says, for each class,
// whether nothing of it can be dispatched now; a short list blocks nothing
// more. It returns false if nothing can be, which may still leave the classes
// more to spend.
//
// Classes take turns. The one whose turn it is may go on while what it has left
// pays for its next request; a request costs the prompt tokens that have to be
// computed for it.
func (q *Queue) Pop(blocked []bool) (Request, bool) {
	carry := q.carry
	q.carry = -1
	if q.n == 0 {
		return Request{}, false
	}
	if carry >= 0 {
		if cost, ok := q.head(carry, blocked); ok && cost <= q.classes[carry].deficit {
			return q.take(carry), true
		}
	}
	n := len(q.classes)
	rounds := uint64(math.MaxUint64)
	for i := range n {
		k := (q.cursor + i) % n
		cost, ok := q.head(k, blocked)
		if !ok {
			continue
		}
		c := &q.classes[k]
		if cost <= c.deficit {
			return q.take(k), true
		}
		c.deficit = add(c.deficit, uint64(c.Quantum))
		if cost <= c.deficit {
			return q.take(k), true
		}
		short, quantum := cost-c.deficit, uint64(c.Quantum)
		rounds = min(rounds, (short-1)/quantum+1)
	}
	if rounds == math.MaxUint64 {
		return Request{}, false
	}
	first := -1
	for i := range n {
		k := (q.cursor + i) % n
		if cost, ok := q.head(k, blocked); ok {
			c := &q.classes[k]
			if c.deficit = add(c.deficit, mul(uint64(c.Quantum), rounds)); first < 0 && cost <= c.deficit {
				first = k
			}
		}
	}
	return q.take(first), true
}

// head is the cost of a class's first request, if it can be dispatched. A class
// without requests loses what it had to spend.
func (q *Queue) head(k int, blocked []bool) (cost uint64, ok bool) {
	c := &q.classes[k]
	if len(c.heap) == 0 {
		c.deficit = 0
		return 0, false
	}
	if k < len(blocked) && blocked[k] {
		return 0, false
	}
	return q.items[c.heap[0]].cost, true
}

// take dispatches the first request of a class.
func (q *Queue) take(k int) Request {
	c := &q.classes[k]
	q.cursor = (k + 1) % len(q.classes)
	id := c.heap[0]
	cost := q.items[id].cost
	r := q.Remove(id)
	c.deficit -= min(cost, c.deficit)
	if len(c.heap) == 0 {
		c.deficit = 0
	} else if c.deficit > 0 {
		q.carry = k
	}
	return r
}

func add(a, b uint64) uint64 {
	if s := a + b; s >= a {
		return s
	}
	return math.MaxUint64
}

func mul(a, b uint64) uint64 {
	if a == 0 || b <= math.MaxUint64/a {
		return a * b
	}
	return math.MaxUint64
}
