package weka

import (
	"cmp"
	"math"
	"slices"

	"github.com/dryserve/dryserve/core/sorting"
	"github.com/dryserve/dryserve/core/trace"
)

// edge is a request waiting for another one of its object.
type edge struct {
	from     int32
	trigger  trace.Trigger
	relation trace.Relation
	delayMs  float64
}

// scope is the requests of one agent, and its streams.
type scope struct {
	first, last int32 // its requests, last excluded
	streams     []stream
}

// weaver finds out which request of an object waited for which. Requests are
// numbered in the order they came, those of subagents last.
type weaver struct {
	*object
	q      []request
	t, end []float64
	scopes []scope // the agent's, then its subagents'
	of     []int32 // by request: its stream within the scope
	edges  [][]edge
}

// ms is seconds as milliseconds, none below 0, whole nanoseconds.
func ms(s float64) float64 { return math.Round(float64(max(0, s)*1e9)) / 1e6 }

// weave finds the streams and the edges of an object.
func weave(o *object, basis Basis) *weaver {
	n := len(o.roots) + len(o.nested)
	w := &weaver{
		object: o, q: append(slices.Clip(o.roots), o.nested...), t: make([]float64, n), end: make([]float64, n), of: make([]int32, n), edges: make([][]edge, n),
	}
	w.times(basis)
	w.scope(0, int32(len(o.roots)))
	for _, s := range o.subagents {
		w.scope(int32(len(o.roots))+s.first, int32(len(o.roots))+s.last)
	}
	for i := range w.scopes {
		w.chain(&w.scopes[i])
	}
	for i := range o.subagents {
		w.call(&o.subagents[i], &w.scopes[i+1])
	}
	for i := range w.scopes {
		w.barriers(&w.scopes[i])
	}
	w.anchor()
	return w
}

// times are when requests began and ended, in seconds.
func (w *weaver) times(basis Basis) {
	for i := range w.q {
		w.t[i] = w.q[i].timeS
	}
	for _, s := range w.subagents {
		for i := int32(len(w.roots)) + s.first; i < int32(len(w.roots))+s.last; i++ {
			if basis == Relative {
				w.t[i] += s.timeS
			} else {
				w.t[i] = max(w.t[i], s.timeS)
			}
		}
	}
	for i := range w.q {
		w.end[i] = w.t[i] + w.q[i].apiS
	}
}

// scope splits the requests of one agent.
func (w *weaver) scope(first, last int32) {
	s := scope{first: first, last: last}
	if first < last {
		s.streams = split(w.q[first:last], w.t[first:last], w.end[first:last])
	}
	for k := range s.streams {
		x := &s.streams[k]
		if x.fork >= 0 {
			x.fork += first
		}
		for i := range x.nodes {
			x.nodes[i] += first
			w.of[x.nodes[i]] = int32(k)
		}
	}
	w.scopes = append(w.scopes, s)
}

func (w *weaver) add(to, from int32, trigger trace.Trigger, relation trace.Relation, delayMs float64) {
	w.edges[to] = append(w.edges[to], edge{from, trigger, relation, delayMs})
}

// spawn lets a request begin as long after another one as it did.
func (w *weaver) spawn(to, from int32) {
	if w.t[to] < w.end[from] {
		w.add(to, from, trace.Dispatch, trace.Spawn, ms(w.t[to]-w.t[from]))
	} else {
		w.add(to, from, trace.Completion, trace.Spawn, ms(w.t[to]-w.end[from]))
	}
}

// chain lets the requests of a stream follow each other, and streams follow
// what they branch off from.
func (w *weaver) chain(s *scope) {
	for _, x := range s.streams {
		if x.fork >= 0 {
			w.spawn(x.nodes[0], x.fork)
		}
		for k, i := range x.nodes[1:] {
			before := x.nodes[k]
			w.add(i, before, trace.Completion, trace.Sequence, ms(w.t[i]-w.end[before]))
		}
	}
}

// call lets a subagent begin with the request before it, and, unless it ran in
// the background, the first request of that one's stream that came after the
// subagent had ended wait for all of it.
func (w *weaver) call(sub *subagent, s *scope) {
	if len(s.streams) == 0 {
		return
	}
	after, _ := slices.BinarySearchFunc(w.roots, sub.outer, func(q request, outer int32) int { return cmp.Compare(q.outer, outer) })
	owner := int32(after) - 1
	w.spawn(s.streams[0].nodes[0], owner)
	if sub.background {
		return
	}
	end := sub.timeS + float64(sub.durationMs)/1000
	if !sub.hasDuration {
		end = slices.Max(w.end[s.first:s.last])
	}
	for i := int32(after); int(i) < len(w.roots); i++ {
		if w.of[i] != w.of[owner] || w.t[i]+slackS < end {
			continue
		}
		for _, x := range s.streams {
			last := x.nodes[len(x.nodes)-1]
			w.add(i, last, trace.Completion, trace.Join, ms(w.t[i]-w.end[last]))
		}
		return
	}
}

// barriers lets every request wait for what had ended before it in the other
// streams of its agent: the last of each, unless another one of them began
// after its end.
func (w *weaver) barriers(s *scope) {
	if len(s.streams) < 2 {
		return
	}
	order := make([]int32, 0, s.last-s.first)
	for i := s.first; i < s.last; i++ {
		order = append(order, i)
	}
	ends := slices.Clone(order)
	sorting.Stable(order, func(x, y int32) int { return cmp.Or(cmp.Compare(w.t[x], w.t[y]), cmp.Compare(x, y)) })
	sorting.Stable(ends, w.sooner)
	last := make([]int32, len(s.streams)) // of those that had ended, by stream
	for k := range last {
		last[k] = -1
	}
	var early []int32 // had ended, but did not begin before
	for k := 0; k < len(order); {
		now := w.t[order[k]]
		for len(ends) > 0 && w.end[ends[0]] <= now+slackS {
			early, ends = append(early, ends[0]), ends[1:]
		}
		early = slices.DeleteFunc(early, func(i int32) bool {
			if w.t[i] >= now {
				return false
			}
			if at := &last[w.of[i]]; *at < 0 || w.sooner(*at, i) < 0 {
				*at = i
			}
			return true
		})
		for ; k < len(order) && w.t[order[k]] == now; k++ {
			w.wait(order[k], last)
		}
	}
}

// sooner is the order in which requests ended.
func (w *weaver) sooner(x, y int32) int {
	return cmp.Or(cmp.Compare(w.end[x], w.end[y]), cmp.Compare(w.t[x], w.t[y]), cmp.Compare(x, y))
}

// wait lets request i wait for those of last that are in other streams and
// that none of the others followed.
func (w *weaver) wait(i int32, last []int32) {
	latest := math.Inf(-1)
	for k, y := range last {
		if y >= 0 && int32(k) != w.of[i] {
			latest = max(latest, w.t[y])
		}
	}
	for k, y := range last {
		if y >= 0 && int32(k) != w.of[i] && (w.t[y] == latest || w.end[y] > latest+slackS) {
			w.add(i, y, trace.Completion, trace.Barrier, 0)
		}
	}
}

// anchor lets streams that wait for nothing begin as long after the agent's
// first request as they did.
func (w *weaver) anchor() {
	main := w.scopes[0].streams[0].nodes[0]
	for i := range w.scopes {
		for _, x := range w.scopes[i].streams {
			if first := x.nodes[0]; first != main && len(w.edges[first]) == 0 {
				w.add(first, main, trace.Dispatch, trace.Spawn, ms(w.t[first]-w.t[main]))
			}
		}
	}
}
