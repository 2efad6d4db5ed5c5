package dynamo

import (
	"slices"
	"strconv"

	"github.com/dryserve/dryserve/core/agentic"
	"github.com/dryserve/dryserve/core/sorting"
	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/workload"
)

// format is what the reference calls the source of such graphs.
const format = "dynamo.request.trace.v1"

// session is one agent's requests.
type session struct {
	name     int32   // index into texts
	parent   int32   // session that called it, -1: none
	tool     int32   // tool call that called it, -1: unknown
	requests []int32 // in order
	last     int32   // of them, the one that ended last
}

// edge is a request waiting for another one.
type edge struct {
	to, from int32
	trigger  trace.Trigger
	relation trace.Relation
	delayMs  float64
}

// weaver finds out which request waited for which.
type weaver struct {
	*Builder
	sessions []session
	of       []int32  // by text: 1 + the session of that name
	edges    [][]edge // by request that waits
	told     []told   // pairs of sessions that records tie together, sorted
}

// told is a pair of sessions, the smaller one first.
type told struct{ a, b int32 }

// graph makes a graph of the requests.
func (b *Builder) graph(o workload.Options) (*workload.Workload, Fault) {
	w := &weaver{Builder: b, of: make([]int32, b.texts.Len()), edges: make([][]edge, len(b.requests))}
	for _, step := range []func() Fault{w.group, w.assign, w.chain, w.named, w.calls} {
		if f := step(); f.Code != OK {
			return nil, f
		}
	}
	return w.build(o)
}

// group finds the sessions and their parents.
func (w *weaver) group() Fault {
	for i := range w.requests {
		q := &w.requests[i]
		if w.of[q.session] == 0 {
			w.sessions = append(w.sessions, session{name: q.session, parent: -1, tool: -1})
			w.of[q.session] = int32(len(w.sessions))
		}
		s := &w.sessions[w.of[q.session]-1]
		s.requests = append(s.requests, int32(i))
		if len(s.requests) == 1 || w.later(int32(i), s.last) {
			s.last = int32(i)
		}
		if q.parent < 0 {
			continue
		}
		if s.parent >= 0 && s.parent != q.parent {
			return Fault{Code: ParentConflict, At: q.at, Name: w.texts.At(q.session), Other: w.texts.At(q.parent)}
		}
		s.parent = q.parent
	}
	for i := range w.sessions {
		s := &w.sessions[i]
		if s.parent < 0 {
			continue
		}
		p := w.of[s.parent]
		if p == 0 {
			return Fault{Code: UnknownParent, At: w.requests[s.requests[0]].at, Name: w.texts.At(s.name), Other: w.texts.At(s.parent)}
		}
		s.parent = p - 1
	}
	return Fault{}
}

// later reports whether request i ended after request j: by end, start, id.
func (w *weaver) later(i, j int32) bool {
	x, y := &w.requests[i], &w.requests[j]
	if x.endMs != y.endMs {
		return x.endMs > y.endMs
	}
	return i > j
}

// assign checks the tool calls and gives each to the session it called.
func (w *weaver) assign() Fault {
	for i := range w.tools {
		t := &w.tools[i]
		f := Fault{At: t.at, Name: w.texts.At(t.call)}
		if !t.known {
			f.Code, f.Other = UnknownMode, w.texts.At(t.mode)
			return f
		}
		for _, name := range []int32{t.source, t.consumer} {
			if name < 0 {
				continue
			}
			f.Other = w.texts.At(name)
			if w.node[name] < 0 {
				f.Code = UnknownSource
				return f
			}
			if w.requests[w.node[name]].session != t.session {
				f.Code = WrongSession
				return f
			}
		}
		if t.child < 0 || w.of[t.child] == 0 {
			continue
		}
		s := &w.sessions[w.of[t.child]-1]
		f.Other = w.texts.At(t.child)
		if s.tool >= 0 {
			f.Code = SeveralTools
			return f
		}
		s.tool = int32(i)
		if s.parent >= 0 && w.sessions[s.parent].name != t.session {
			f.Code = WrongParent
			return f
		}
	}
	return Fault{}
}

// tie makes request to wait for a moment of request from, unless it does so
// already. A delay below 0 is a fault of the trace, or counts as none.
func (w *weaver) tie(to, from int32, trigger trace.Trigger, relation trace.Relation, clamp bool) Fault {
	for _, e := range w.edges[to] {
		if e.from == from && e.trigger == trigger {
			return Fault{}
		}
	}
	x, y := &w.requests[to], &w.requests[from]
	since := y.endMs
	if trigger == trace.Dispatch {
		since = y.startMs
	}
	delayMs := float64(x.startMs - since)
	if delayMs < 0 {
		if !clamp {
			return Fault{Code: NegativeDelay, At: x.at, Name: w.texts.At(x.id), Other: w.texts.At(y.id), Ms: delayMs}
		}
		delayMs = 0
	}
	w.edges[to] = append(w.edges[to], edge{to, from, trigger, relation, delayMs})
	return Fault{}
}

// chain ties the requests of each session.
func (w *weaver) chain() Fault {
	for i := range w.sessions {
		list := w.sessions[i].requests
		for k := 1; k < len(list); k++ {
			if f := w.tie(list[k], list[k-1], trace.Completion, trace.Sequence, false); f.Code != OK {
				return f
			}
		}
	}
	return Fault{}
}

// named ties what records name.
func (w *weaver) named() Fault {
	for i := range w.requests {
		q := &w.requests[i]
		for _, d := range w.deps[q.deps : q.deps+q.numDeps] {
			from := w.node[d.request]
			if from < 0 {
				return Fault{Code: UnknownRequest, At: q.at, Name: w.texts.At(q.id), Other: w.texts.At(d.request)}
			}
			if w.requests[from].startMs > q.startMs {
				return Fault{Code: LaterRequest, At: q.at, Name: w.texts.At(q.id), Other: w.texts.At(d.request)}
			}
			if f := w.tie(int32(i), from, d.trigger, d.relation, true); f.Code != OK {
				return f
			}
			a, b := w.of[q.session], w.of[w.requests[from].session]
			w.told = append(w.told, told{min(a, b), max(a, b)})
		}
	}
	sorting.Stable(w.told, compareTold)
	return Fault{}
}

func compareTold(x, y told) int {
	if x.a != y.a {
		return int(x.a) - int(y.a)
	}
	return int(x.b) - int(y.b)
}

// calls ties every session to the one that called it.
func (w *weaver) calls() Fault {
	for i := range w.sessions {
		s := &w.sessions[i]
		if s.parent < 0 {
			continue
		}
		f := Fault{}
		if s.tool >= 0 {
			f = w.called(s, &w.tools[s.tool])
		} else {
			a, b := int32(i)+1, s.parent+1
			if _, ok := slices.BinarySearchFunc(w.told, told{min(a, b), max(a, b)}, compareTold); !ok {
				f = w.guessed(s, &w.sessions[s.parent])
			}
		}
		if f.Code != OK {
			return f
		}
	}
	return Fault{}
}

// called ties a session by the tool call: its first request to the call's
// source, and the call's consumer to the latest of its requests that had ended
// by then.
func (w *weaver) called(s *session, t *tool) Fault {
	if f := w.tie(s.requests[0], w.node[t.source], trace.Dispatch, trace.Spawn, false); f.Code != OK || t.consumer < 0 {
		return f
	}
	consumer := w.node[t.consumer]
	latest := int32(-1)
	for _, i := range s.requests {
		if w.requests[i].endMs <= w.requests[consumer].startMs && (latest < 0 || w.later(i, latest)) {
			latest = i
		}
	}
	if latest < 0 {
		return Fault{}
	}
	return w.tie(consumer, latest, trace.Completion, trace.Join, false)
}

// guessed ties a session by its times: its first request to the parent's
// latest that had begun by then, and the parent's first request after all of
// the session had ended to the one that ended last.
func (w *weaver) guessed(s, parent *session) Fault {
	first, last := s.requests[0], s.last
	from, to := int32(-1), int32(-1)
	for _, i := range parent.requests {
		if w.requests[i].startMs <= w.requests[first].startMs {
			from = i
		}
		if to < 0 && w.requests[i].startMs >= w.requests[last].endMs {
			to = i
		}
	}
	if from >= 0 {
		if f := w.tie(first, from, trace.Dispatch, trace.Spawn, false); f.Code != OK {
			return f
		}
	}
	if to >= 0 {
		return w.tie(to, last, trace.Completion, trace.Join, false)
	}
	return Fault{}
}

// build makes the graph: a play is what hangs together, named after its
// earliest request that waits for none.
func (w *weaver) build(o workload.Options) (*workload.Workload, Fault) {
	play := w.plays()
	source := strconv.AppendInt([]byte("requests:"), int64(len(w.requests)), 10)
	source = strconv.AppendInt(append(source, ";tools:"...), int64(w.toolCount), 10)
	g := agentic.NewBuilder(w.blockSize, format, string(source))
	first := w.requests[0].startMs
	var deps []trace.Dependency
	for i := range w.requests {
		q := &w.requests[i]
		deps = deps[:0]
		for _, e := range w.edges[i] {
			deps = append(deps, trace.Dependency{RequestID: w.texts.At(w.requests[e.from].id), Trigger: e.trigger, Relation: e.relation, DelayMs: e.delayMs})
		}
		row := trace.AgenticRow{
			RequestID: w.texts.At(q.id), PlayID: append([]byte("dynamo-play:"), w.texts.At(w.requests[play[i]].id)...),
			SessionID: w.texts.At(q.session), Model: []byte("unknown"), PlayOrdinal: -1,
			InputLength: q.input, OutputLength: q.output, HashIDs: w.hashes[q.hashes : q.hashes+q.numHashes],
			Dependencies: deps,
		}
		if len(deps) == 0 { // what waits has no time of its own
			row.NotBeforeMs = float64(q.startMs - first)
		}
		if q.model >= 0 {
			row.Model = w.texts.At(q.model)
		}
		if f := g.Add(&row, int64(i)+1); f.Code != agentic.OK {
			return nil, Fault{Code: Graph, At: q.at, Graph: f}
		}
	}
	load, f := g.Finish(o.ArrivalSpeedup)
	if f.Code != agentic.OK {
		at := Place{}
		if f.Line > 0 {
			at = w.requests[f.Line-1].at
		}
		return nil, Fault{Code: Graph, At: at, Graph: f}
	}
	load.Unlined = true
	return load, Fault{}
}

// plays finds for every request the one its play is named after.
func (w *weaver) plays() []int32 {
	up := make([]int32, len(w.requests)) // a forest of what hangs together
	for i := range up {
		up[i] = int32(i)
	}
	top := func(i int32) int32 {
		for up[i] != i {
			up[i] = up[up[i]]
			i = up[i]
		}
		return i
	}
	for i := range w.edges {
		for _, e := range w.edges[i] {
			up[top(int32(i))] = top(e.from)
		}
	}
	// By start, then id: not the order of requests, which looks at ends first.
	root := make([]int32, len(w.requests))
	for i := range root {
		root[i] = -1
	}
	for i := range w.requests {
		r := &root[top(int32(i))]
		if len(w.edges[i]) == 0 && (*r < 0 || w.requests[i].startMs == w.requests[*r].startMs &&
			slices.Compare(w.texts.At(w.requests[i].id), w.texts.At(w.requests[*r].id)) < 0) {
			*r = int32(i)
		}
	}
	play := make([]int32, len(w.requests))
	for i := range play {
		if play[i] = root[top(int32(i))]; play[i] < 0 {
			play[i] = top(int32(i)) // all wait for each other, which is refused later
		}
	}
	return play
}
