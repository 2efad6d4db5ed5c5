package agentic

import (
	"cmp"
	"math"
	"slices"

	"github.com/dryserve/dryserve/core/sorting"
	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/workload"
)

// Finish returns the workload of the rows. speedup is finite and above 0; it
// divides times and delays. The builder is of no use afterwards.
func (b *Builder) Finish(speedup float64) (*workload.Workload, Fault) {
	if len(b.rows) == 0 {
		return nil, Fault{Code: Empty}
	}
	// Nodes are in order of their ids, which are all different.
	sorting.Stable(b.rows, func(x, y row) int { return slices.Compare(b.texts.At(x.request), b.texts.At(y.request)) })
	for i := range b.rows {
		b.node[b.rows[i].request] = int32(i)
	}
	g := &workload.Graph{
		Nodes: make([]workload.Node, len(b.rows)+1), Texts: b.texts,
		BlockSize: int(b.blockSize), SourceFormat: b.source[0], SourceDigest: b.source[1],
	}
	for _, step := range []func(*workload.Graph) Fault{b.plays, b.link, b.acyclic} {
		if f := step(g); f.Code != OK {
			return nil, f
		}
	}
	b.roots(g)
	if f := b.normalise(g, speedup); f.Code != OK {
		return nil, f
	}
	b.models(g)
	g.Digest = b.digest(g)
	return b.workload(g)
}

// plays groups the nodes and puts the plays in order: by their ordinals if
// they have any, else by their ids.
func (b *Builder) plays(g *workload.Graph) Fault {
	place := make([]int32, b.texts.Len()) // by text: 1 + the play
	ordinals := []int64{}
	any := false
	for i := range b.rows {
		r := &b.rows[i]
		if place[r.play] == 0 {
			g.Plays = append(g.Plays, workload.Play{ID: r.play, FirstMs: math.Inf(1), Root: -1})
			ordinals = append(ordinals, r.ordinal)
			place[r.play] = int32(len(g.Plays))
		}
		p := place[r.play] - 1
		if ordinals[p] != r.ordinal {
			return Fault{Code: MixedOrdinals, Line: int64(r.line), Name: b.texts.At(r.play)}
		}
		any = any || r.ordinal >= 0
		g.Nodes[i].Play = p
		g.Plays[p].Nodes++
	}
	order := make([]int32, len(g.Plays))
	for i := range order {
		order[i] = int32(i)
	}
	sorting.Stable(order, func(x, y int32) int {
		if any {
			return cmp.Compare(ordinals[x], ordinals[y])
		}
		return slices.Compare(b.texts.At(g.Plays[x].ID), b.texts.At(g.Plays[y].ID))
	})
	sorted := make([]workload.Play, len(order))
	for i, p := range order {
		sorted[i], place[g.Plays[p].ID] = g.Plays[p], int32(i)
		switch {
		case any && ordinals[p] < 0:
			return Fault{Code: MissingOrdinals, Name: b.texts.At(g.Plays[p].ID)}
		case any && ordinals[p] != int64(i):
			return Fault{Code: OrdinalGap, Found: ordinals[p], Limit: int64(i)}
		}
	}
	g.Plays = sorted
	for i := range b.rows {
		g.Nodes[i].Play = place[b.rows[i].play]
	}
	return Fault{}
}

// link turns names of dependencies into nodes, both ways.
func (b *Builder) link(g *workload.Graph) Fault {
	g.Deps = make([]workload.Dep, 0, len(b.deps))
	for i := range b.rows {
		r, n := &b.rows[i], &g.Nodes[i]
		n.Request, n.Deps, n.Parent = r.request, int32(len(g.Deps)), -1
		for _, w := range b.deps[r.deps : r.deps+r.numDeps] {
			at := b.node[w.request]
			f := Fault{Line: int64(r.line), Name: b.texts.At(r.request), Other: b.texts.At(w.request)}
			switch {
			case at < 0:
				f.Code = UnknownRequest
			case int(at) == i:
				f.Code = SelfDependency
			case b.rows[at].play != r.play:
				f.Code = OtherPlay
			}
			if f.Code != OK {
				return f
			}
			g.Deps = append(g.Deps, workload.Dep{Node: at, Trigger: w.trigger, Relation: w.relation, DelayMs: w.delayMs})
		}
		deps := g.Deps[n.Deps:]
		sorting.Stable(deps, func(x, y workload.Dep) int {
			return cmp.Or(cmp.Compare(x.Node, y.Node), cmp.Compare(x.Trigger, y.Trigger), cmp.Compare(x.Relation, y.Relation), cmp.Compare(x.DelayMs, y.DelayMs))
		})
		for _, d := range deps {
			if d.Relation == trace.Spawn {
				n.Parent = d.Node
				break
			}
		}
	}
	last := len(b.rows)
	g.Nodes[last].Deps = int32(len(g.Deps))
	b.follow(g)
	return Fault{}
}

// follow lists for every node what waits for it, in order of the nodes.
func (b *Builder) follow(g *workload.Graph) {
	count := make([]int32, len(g.Nodes))
	for _, d := range g.Deps {
		count[d.Node]++
	}
	at := int32(0)
	for i := range g.Nodes {
		g.Nodes[i].Follows = at
		at += count[i]
	}
	g.Follows = make([]workload.Follow, at)
	clear(count)
	for i := range b.rows {
		for _, d := range g.Deps[g.Nodes[i].Deps:g.Nodes[i+1].Deps] {
			g.Follows[g.Nodes[d.Node].Follows+count[d.Node]] = workload.Follow{Node: int32(i), Trigger: d.Trigger, DelayMs: d.DelayMs}
			count[d.Node]++
		}
	}
}

// acyclic refuses graphs in which requests wait for each other for ever.
func (b *Builder) acyclic(g *workload.Graph) Fault {
	open := make([]int32, len(b.rows))
	ready := []int32{}
	for i := range b.rows {
		if open[i] = g.Nodes[i+1].Deps - g.Nodes[i].Deps; open[i] == 0 {
			ready = append(ready, int32(i))
		}
	}
	done := 0
	for ; done < len(ready); done++ {
		i := ready[done]
		for _, f := range g.Follows[g.Nodes[i].Follows:g.Nodes[i+1].Follows] {
			if open[f.Node]--; open[f.Node] == 0 {
				ready = append(ready, f.Node)
			}
		}
	}
	if done == len(b.rows) {
		return Fault{}
	}
	f := Fault{Code: Cycle, Found: int64(len(b.rows) - done)}
	for i, n := range open {
		if n > 0 {
			f.Line, f.Name = int64(b.rows[i].line), b.texts.At(b.rows[i].request)
			break
		}
	}
	return f
}

// roots notes for every play when its first root may run, and which node is
// its only root.
func (b *Builder) roots(g *workload.Graph) {
	several := make([]bool, len(g.Plays))
	for i := range b.rows {
		if g.Nodes[i].Deps < g.Nodes[i+1].Deps {
			continue
		}
		p := &g.Plays[g.Nodes[i].Play]
		switch {
		case p.Root < 0 && !several[g.Nodes[i].Play]:
			p.Root = int32(i)
		default:
			p.Root, several[g.Nodes[i].Play] = -1, true
		}
	}
}

// normalise lets the earliest time be 0 and divides all by the speed-up.
func (b *Builder) normalise(g *workload.Graph, speedup float64) Fault {
	least := math.Inf(1)
	for i := range b.rows {
		least = min(least, b.rows[i].notBeforeMs)
	}
	for i := range b.rows {
		n := &g.Nodes[i]
		n.NotBeforeMs = (b.rows[i].notBeforeMs - least) / speedup
		late := math.IsInf(n.NotBeforeMs, 0)
		deps := g.Deps[n.Deps:g.Nodes[i+1].Deps]
		for k := range deps {
			deps[k].DelayMs /= speedup
			late = late || math.IsInf(deps[k].DelayMs, 0)
		}
		if late {
			return Fault{Code: TimeTooLate, Line: int64(b.rows[i].line)}
		}
		if p := &g.Plays[n.Play]; len(deps) == 0 {
			p.FirstMs = min(p.FirstMs, n.NotBeforeMs)
		}
	}
	for k := range g.Follows {
		g.Follows[k].DelayMs /= speedup
	}
	return Fault{}
}

// models lists the models, sorted.
func (b *Builder) models(g *workload.Graph) {
	seen := make([]bool, b.texts.Len())
	for i := range b.rows {
		if m := b.rows[i].model; !seen[m] {
			seen[m] = true
			g.Models = append(g.Models, m)
		}
	}
	sorting.Stable(g.Models, func(x, y int32) int { return slices.Compare(b.texts.At(x), b.texts.At(y)) })
}

// workload makes the turns of the nodes.
func (b *Builder) workload(g *workload.Graph) (*workload.Workload, Fault) {
	wb := workload.NewBuilder(int(b.blockSize))
	for i := range b.rows {
		r := &b.rows[i]
		n := workload.Named{
			Line: int64(r.line), Session: b.texts.At(r.session), Input: int64(r.input), Output: int64(r.output),
			HashIDs: b.ids[r.ids : r.ids+r.numIDs], Priority: r.priority, Strict: r.strict,
		}
		if r.numOut >= 0 {
			n.OutputIDs, n.Planned = b.out[r.out:r.out+r.numOut], true
		}
		if r.policy >= 0 {
			n.Policy = b.texts.At(r.policy)
		}
		if f := wb.Node(&n); f.Code != workload.OK {
			return nil, Fault{Code: TooManyIDs, Line: int64(r.line), Limit: f.Limit}
		}
	}
	return wb.FinishGraph(g), Fault{}
}
