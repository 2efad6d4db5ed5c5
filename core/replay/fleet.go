package replay

import (
	"cmp"
	"math"
	"slices"
)

// crew is what is done to the workers of a pool whose number changes. A number
// is given to one worker only.
type crew interface {
	// hire makes a worker; join lets requests go to it, retire lets none go there
	// any more; dismiss ends one that is idle or has not joined.
	hire(id int32)
	join(id int32)
	retire(id int32)
	dismiss(id int32)
	// idle reports whether a worker has no request and no pass under way.
	idle(id int32) bool
	// meter is what is known of its ranks, nil if nobody wants to know.
	meter(id int32) *meter
	// settle lets the pool's router, if it has one, look at the requests that wait,
	// because workers have come or gone. False: it asks, and goes on later.
	settle() bool
	// waiting counts those requests.
	waiting() int
}

// fleet is the workers of a pool by what they are about to do: those that
// start, those that get requests, and those that get none any more and go when
// they are idle.
type fleet struct {
	pool      PoolID
	crew      crew
	startupMs float64
	ids       int32 // given out so far
	active    []post
	starting  []post
	draining  []post
	freed     int // the operation for which the router looks at those that wait; -1: none

	// When workers would have started whose start was cancelled: the reference's
	// clock stops there all the same. Ascending.
	stops []float64
}

// post is a worker of a fleet. Lists of posts ascend by id.
type post struct {
	id      int32
	op      int32   // the operation that brought it where it is; -1: none, it was there
	readyMs float64 // of one that starts
}

func byID(p post, id int32) int { return cmp.Compare(p.id, id) }

func (f *fleet) init(pool PoolID, c crew, startupMs float64, workers int) {
	f.pool, f.crew, f.startupMs, f.ids, f.freed = pool, c, startupMs, int32(workers), -1
	for id := range f.ids {
		f.active = append(f.active, post{id: id, op: -1})
	}
}

// count is how many workers are there: each costs time.
func (f *fleet) count() int { return len(f.active) + len(f.starting) + len(f.draining) }

// nextMs is when the clock has to stop for a start, +Inf: never.
func (f *fleet) nextMs() float64 {
	_, ms := f.next()
	if len(f.stops) > 0 {
		ms = min(ms, f.stops[0])
	}
	return ms
}

// next is the worker that has started first, and when; -1: none starts.
func (f *fleet) next() (id int32, ms float64) {
	id, ms = -1, math.Inf(1)
	for _, p := range f.starting {
		if id < 0 || p.readyMs < ms {
			id, ms = p.id, p.readyMs
		}
	}
	return id, ms
}

// take takes a post out of a list.
func take(list *[]post, id int32) post {
	i, _ := slices.BinarySearchFunc(*list, id, byID)
	p := (*list)[i]
	*list = slices.Delete(*list, i, i+1)
	return p
}

func put(list *[]post, p post) {
	i, _ := slices.BinarySearchFunc(*list, p.id, byID)
	*list = slices.Insert(*list, i, p)
}

// with and without put a number into an ascending list and take it out.
func with(list []int32, id int32) []int32 {
	i, _ := slices.BinarySearch(list, id)
	return slices.Insert(list, i, id)
}

func without(list []int32, id int32) []int32 {
	i, _ := slices.BinarySearch(list, id)
	return slices.Delete(list, i, i+1)
}

func appendIDs(to []int32, list []post) []int32 {
	for _, p := range list {
		to = append(to, p.id)
	}
	return to
}
