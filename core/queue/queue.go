// Package queue is the policy queue of a KV router: requests that wait until a
// worker has room, in classes that share the dispatches by deficit round robin.
//
// It owns the order: within a class by strict priority, then by the score that
// the class's policy gave when the request came, then first come; between
// classes by what each may still spend. It does not own when a request must
// wait, which class it belongs to, or which classes may dispatch just now: its
// caller says so.
//
// Invariants:
//   - a request's place in its class never changes while it waits.
//   - only the first request of a class is looked at.
//   - a class without requests has nothing to spend.
//   - slabs grow with use and are reused from then on: a warm queue allocates
//     nothing.
//
// Source: router notes §6.2, §6.4, §6.5.
package queue

import "github.com/dryserve/dryserve/core/config"

// Item is a handle of a waiting request, above 0.
type Item int32

// Request is what waits.
type Request struct {
	Tag    int32  // the caller's name for it
	Class  int32  // index into the classes
	Tokens uint64 // of the prompt
	Cached uint64 // of these, what the best worker has
	Jump   float64
	Strict uint32
	Secs   float64 // when it came
}

// Cost is the prompt tokens that a request makes a worker compute, at least 1.
func (r *Request) Cost() uint64 {
	return max(1, r.Tokens-min(r.Cached, r.Tokens))
}

// Limit says which limit of its class a request met.
type Limit uint8

// Limits, in the order in which they are checked.
const (
	Free Limit = iota
	Requests
	Tokens
	Cached
)

// Full says that a request was not let in: the class had Current of something
// of which Limit is the most.
type Full struct {
	Limit Limit
	Class int32
	Have  uint64
	Most  uint64
}

// Queue is the state. Take it from New.
type Queue struct {
	classes []class
	items   []item
	free    Item // linked through at, 0: none
	next    uint64
	n       int

	cursor int
	carry  int // class that goes on spending; -1: none
}

type class struct {
	config.PolicyClass
	heap    []Item
	deficit uint64

	tokens, cached uint64 // of all its requests
}

type item struct {
	Request
	cost  uint64
	score float64
	order uint64
	at    int32 // place in the heap
}

// New returns an empty queue of classes.
func New(classes []config.PolicyClass) *Queue {
	q := &Queue{classes: make([]class, len(classes)), items: make([]item, 1), carry: -1}
	for i, c := range classes {
		q.classes[i].PolicyClass = c
	}
	return q
}

// Len counts the waiting requests, ClassLen those of one class.
func (q *Queue) Len() int { return q.n }

// ClassLen counts the waiting requests of a class.
func (q *Queue) ClassLen(class int32) int { return len(q.classes[class].heap) }

// Push lets a request wait, unless its class is full. ranks is the number of
// ranks that serve; the limits of a class hold for each of them.
func (q *Queue) Push(r Request, ranks int) (Item, Full) {
	c := &q.classes[r.Class]
	have := [...]uint64{Requests: uint64(len(c.heap)), Tokens: c.tokens, Cached: c.cached}
	for limit, each := range [...]int64{Free: config.NoLimit, Requests: c.MaxRequests, Tokens: c.MaxTokens, Cached: c.MaxCached} {
		if each == config.NoLimit {
			continue
		}
		if most := uint64(each) * uint64(ranks); have[limit] >= most {
			return 0, Full{Limit(limit), r.Class, have[limit], most}
		}
	}
	id := q.free
	if id != 0 {
		q.free = Item(q.items[id].at)
	} else {
		id = Item(len(q.items))
		q.items = append(q.items, item{})
	}
	x := item{Request: r, cost: r.Cost(), order: q.next}
	x.score = score(c.Queue, &x)
	q.items[id] = x
	q.next++
	q.n++
	c.tokens += r.Tokens
	c.cached += r.Cached
	q.items[id].at = int32(len(c.heap))
	c.heap = append(c.heap, id)
	q.up(c, len(c.heap)-1)
	return id, Full{}
}

// score is higher for what comes first.
func score(p config.QueuePolicy, x *item) float64 {
	jump := max(x.Jump, 0)
	switch p {
	case config.QueueLCFS:
		return jump + x.Secs
	case config.QueueWSPT:
		return (1 + jump) / float64(x.cost)
	}
	return jump - x.Secs
}

// before is the order within a class.
func (q *Queue) before(a, b Item) bool {
	x, y := &q.items[a], &q.items[b]
	switch {
	case x.Strict != y.Strict:
		return x.Strict > y.Strict
	case x.score != y.score:
		return x.score > y.score
	}
	return x.order < y.order
}

func (q *Queue) up(c *class, i int) {
	for i > 0 {
		up := (i - 1) / 2
		if !q.before(c.heap[i], c.heap[up]) {
			return
		}
		q.swap(c, i, up)
		i = up
	}
}

func (q *Queue) down(c *class, i int) {
	for {
		first := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(c.heap); child++ {
			if q.before(c.heap[child], c.heap[first]) {
				first = child
			}
		}
		if first == i {
			return
		}
		q.swap(c, i, first)
		i = first
	}
}

func (q *Queue) swap(c *class, i, j int) {
	c.heap[i], c.heap[j] = c.heap[j], c.heap[i]
	q.items[c.heap[i]].at, q.items[c.heap[j]].at = int32(i), int32(j)
}

// Remove takes a waiting request out, as if it had not come.
func (q *Queue) Remove(id Item) Request {
	r := q.items[id].Request
	c := &q.classes[r.Class]
	last := len(c.heap) - 1
	if i := int(q.items[id].at); i < last {
		q.swap(c, i, last)
		c.heap = c.heap[:last]
		moved := c.heap[i]
		q.up(c, i)
		q.down(c, int(q.items[moved].at))
	} else {
		c.heap = c.heap[:last]
	}
	c.tokens -= r.Tokens
	c.cached -= r.Cached
	q.items[id] = item{at: int32(q.free)}
	q.free = id
	q.n--
	return r
}

// Request is what waits under a handle.
func (q *Queue) Request(id Item) *Request { return &q.items[id].Request }
