package tracewrite

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/workload"
)

// graph writes requests that wait for each other, as far as rows can: a request
// that waits for the end of another one of its session becomes the next turn
// after it; every other request begins a session, as early as it could if no
// answer took any time.
func (w *writer) graph() error {
	heads, next := w.chains()
	g, earliest := w.load.Graph, w.earliest()
	w.losses.Plays = int64(len(g.Plays))
	slices.SortStableFunc(heads, func(a, b int32) int { return cmp.Compare(earliest[a], earliest[b]) })
	used := map[string]int{}
	for _, head := range heads {
		id := w.load.SessionID(w.load.Turns[head].Session)
		used[string(id)]++
		if n := used[string(id)]; n > 1 {
			id = strconv.AppendInt(append(slices.Clone(id), '#'), int64(n), 10)
		}
		at := workload.Dep{Node: -1, DelayMs: earliest[head]}
		for i := head; i >= 0; i = next[i].Node {
			if err := w.node(i, at, id); err != nil {
				return err
			}
			at = next[i]
			at.Node = i
		}
	}
	return nil
}

// chains finds the requests that begin sessions, and for every request the turn
// after it with its delay.
func (w *writer) chains() (heads []int32, next []workload.Dep) {
	g := w.load.Graph
	n := len(w.load.Turns)
	next = make([]workload.Dep, n)
	for i := range next {
		next[i].Node = -1
	}
	for i := range int32(n) {
		deps := g.Deps[g.Nodes[i].Deps:g.Nodes[i+1].Deps]
		follows := slices.IndexFunc(deps, func(d workload.Dep) bool {
			return d.Trigger == trace.Completion && next[d.Node].Node < 0 && w.sameSession(i, d.Node)
		})
		if len(deps) > 0 {
			w.losses.Waits++
		}
		if follows < 0 {
			heads = append(heads, i)
			continue
		}
		next[deps[follows].Node] = workload.Dep{Node: i, DelayMs: deps[follows].DelayMs}
		w.losses.Turns++
		if len(deps) > 1 {
			w.losses.PartTurns++
		}
		if g.Nodes[i].NotBeforeMs > 0 {
			w.losses.Floors++
		}
	}
	return heads, next
}

// earliest is when each request could begin if no answer took any time.
func (w *writer) earliest() []float64 {
	g := w.load.Graph
	n := len(w.load.Turns)
	at, open := make([]float64, n), make([]int32, n)
	var ready []int32
	for i := range n {
		at[i], open[i] = g.Nodes[i].NotBeforeMs, g.Nodes[i+1].Deps-g.Nodes[i].Deps
		if open[i] == 0 {
			ready = append(ready, int32(i))
		}
	}
	for len(ready) > 0 {
		i := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		for _, f := range g.Follows[g.Nodes[i].Follows:g.Nodes[i+1].Follows] {
			at[f.Node] = max(at[f.Node], at[i]+f.DelayMs)
			if open[f.Node]--; open[f.Node] == 0 {
				ready = append(ready, f.Node)
			}
		}
	}
	return at
}

func (w *writer) sameSession(a, b int32) bool {
	s := w.load.Turns
	return string(w.load.SessionID(s[a].Session)) == string(w.load.SessionID(s[b].Session))
}

// node writes a request of a graph: at.DelayMs after the one before, or at that
// time if there is none (at.Node is -1).
func (w *writer) node(i int32, at workload.Dep, session []byte) error {
	w.row = append(w.row[:0], '{')
	w.text("request_id", w.load.Graph.Request(i))
	w.text("session_id", session)
	if at.Node < 0 {
		w.time("timestamp", at.DelayMs)
	} else {
		w.time("delay", at.DelayMs)
	}
	w.prompt(i)
	return w.finish()
}
