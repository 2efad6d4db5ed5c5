package weka

import (
	"cmp"
	"slices"

	"github.com/dryserve/dryserve/core/sorting"
)

const (
	longGapS    = 3600.0 // after which a prompt must still be half the same
	preambleMax = 64     // output tokens of a first request that only prepares
)

// stream is requests one after the other, as one conversation.
type stream struct {
	nodes []int32 // in order
	fork  int32   // the request of another stream that it branches off from, -1: none
}

// chain is a stream that grows: requests each of which begins with all of the
// prompt before it.
type chain struct {
	nodes  []int32
	parent int32 // chain it branches off from, -1: none
	fork   int32 // its request there, which moves on when a chain is put onto the parent
	shared int   // hashes its first prompt has in common with that request's
	onto   int32 // chain it was put onto, itself: none
}

// splitter finds the streams of requests of one agent. Times and requests are
// those of its scope.
type splitter struct {
	q      []request
	t, end []float64
	chains []chain
}

// common is how many hashes two prompts begin with alike.
func common(a, b []uint64) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// split returns the streams of the requests, the main one first.
func split(q []request, t, end []float64) []stream {
	s := &splitter{q: q, t: t, end: end}
	order := make([]int32, 0, len(q)) // those with hashes
	bare := make([]int32, 0)          // those without
	for i := range q {
		if len(q[i].hashes) > 0 {
			order = append(order, int32(i))
		} else {
			bare = append(bare, int32(i))
		}
	}
	sorting.Stable(order, s.before)
	for _, i := range order {
		s.place(i)
	}
	s.splice()
	streams := s.streams()
	first := int32(-1)
	if len(bare) > 0 {
		first = slices.MinFunc(bare, s.before)
	}
	streams = s.preamble(streams, order, first)
	if len(streams) == 0 {
		streams = []stream{{fork: -1}}
	}
	// Only here is the order that of time: a chain put onto another one may
	// begin a microsecond before that ends.
	main := &streams[0]
	main.nodes = append(main.nodes, bare...)
	sorting.Stable(main.nodes, s.before)
	return streams
}

// before is the order of requests: by time, then as they came.
func (s *splitter) before(x, y int32) int {
	return cmp.Or(cmp.Compare(s.t[x], s.t[y]), cmp.Compare(x, y))
}

// follows reports whether request i may come after request tail: the same
// model, and the other had ended.
func (s *splitter) follows(i, tail int32) bool {
	return s.q[tail].model == s.q[i].model && s.end[tail] <= s.t[i]+slackS
}

// place puts the next request onto the chain whose last prompt is the longest
// that it begins with, or opens a chain that branches off from the last
// request it has most in common with.
func (s *splitter) place(i int32) {
	ids := s.q[i].hashes
	on := int32(-1)
	fork := chain{nodes: []int32{i}, parent: -1, fork: -1, onto: int32(len(s.chains))}
	longest, length := 0, 0
	for c := range s.chains {
		tail := s.chains[c].nodes[len(s.chains[c].nodes)-1]
		n, same := len(s.q[tail].hashes), common(s.q[tail].hashes, ids)
		if same == n && n > longest && s.follows(i, tail) {
			longest, on = n, int32(c)
		}
		if same > fork.shared || same > 0 && same == fork.shared && n > length {
			fork.parent, fork.fork, fork.shared, length = int32(c), tail, same, n
		}
	}
	if on >= 0 {
		s.chains[on].nodes = append(s.chains[on].nodes, i)
		return
	}
	s.chains = append(s.chains, fork)
}

// top is the chain that a chain has been put onto in the end.
func (s *splitter) top(c int32) int32 {
	for s.chains[c].onto != c {
		c = s.chains[c].onto
	}
	return c
}

// splice puts chains onto the one they branch off from where that had ended:
// first those that have most in common with it. What branches off from the
// same request then does so from the end of the chain put there, unless that
// came later.
func (s *splitter) splice() {
	forks := make([]int32, 0)
	for c := range s.chains {
		if s.chains[c].parent >= 0 {
			forks = append(forks, int32(c))
		}
	}
	sorting.Stable(forks, func(x, y int32) int {
		a, b := &s.chains[x], &s.chains[y]
		return cmp.Or(cmp.Compare(b.shared, a.shared), cmp.Compare(s.t[a.nodes[0]], s.t[b.nodes[0]]), cmp.Compare(x, y))
	})
	for _, i := range forks {
		c := &s.chains[i]
		at := s.top(c.parent)
		p := &s.chains[at]
		tail, head := p.nodes[len(p.nodes)-1], c.nodes[0]
		if c.fork != tail || !s.follows(head, tail) {
			continue
		}
		before := s.q[tail].hashes
		same := float64(common(before, s.q[head].hashes)) / float64(max(1, len(before)))
		if s.t[head]-s.end[tail] > longGapS && same < 0.5 {
			continue
		}
		p.nodes = append(p.nodes, c.nodes...)
		c.onto = at
		last := p.nodes[len(p.nodes)-1]
		for d := range s.chains {
			if e := &s.chains[d]; int32(d) != i && e.fork == tail && s.t[last] <= s.t[e.nodes[0]]+slackS {
				e.fork = last
			}
		}
	}
}

// streams are the chains that are left, by the time they begin.
func (s *splitter) streams() []stream {
	streams := make([]stream, 0, len(s.chains))
	for c := range s.chains {
		if e := &s.chains[c]; e.onto == int32(c) {
			streams = append(streams, stream{e.nodes, e.fork})
		}
	}
	sorting.Stable(streams, func(x, y stream) int { return s.before(x.nodes[0], y.nodes[0]) })
	return streams
}

// preamble puts a first request that the others share nothing with, like one
// that asks for a title, at the head of the next stream. It must be the first
// of all: bare is the first request without hashes, -1: none.
func (s *splitter) preamble(streams []stream, order []int32, bare int32) []stream {
	if len(streams) < 2 || len(streams[0].nodes) > 1 {
		return streams
	}
	first := streams[0].nodes[0]
	if bare >= 0 && s.before(bare, first) < 0 {
		return streams
	}
	ids := slices.Clone(s.q[first].hashes)
	slices.Sort(ids)
	apart := true // not even a block is the same
	for _, i := range order {
		if i == first {
			continue
		}
		if s.q[i].hashes[0] == s.q[first].hashes[0] {
			return streams
		}
		for _, id := range s.q[i].hashes {
			_, found := slices.BinarySearch(ids, id)
			apart = apart && !found
		}
	}
	if !apart && s.q[first].output > preambleMax {
		return streams
	}
	streams[1].nodes = append([]int32{first}, streams[1].nodes...)
	return streams[1:]
}
