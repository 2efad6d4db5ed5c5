package replay

import (
	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/coverage"
	"github.com/dryserve/dryserve/core/kvindex"
	"github.com/dryserve/dryserve/core/prefix"
	"github.com/dryserve/dryserve/core/workload"
)

// paths is what the KV router knows of fast engines: what they hold, by places
// in the prefix tree instead of hashes. A change of a pass is known from the end
// of that pass on, or a lag later. Slots are ranks, worker by worker.
type paths struct {
	index  *coverage.Index
	tree   *prefix.Tree
	groups []holder
	lagMs  float64
	late   []late // by slot, with a lag
	bs     int64
	tbs    int64
	names  []int32 // by segment, once one was divided: the number its blocks go by
	line   []int32 // scratch: segments, leaf first
}

// late is the changes of a slot that are not believed yet.
type late struct {
	list []lateChange
	done int // at the front, believed
}

type lateChange struct {
	dueMs   float64
	seg, at int32 // as in coverage.Change
}

func newPaths(cfg config.Replay, w *workload.Workload, groups []holder) *paths {
	slots := len(groups) * cfg.Engine.DPSize
	p := &paths{
		index: coverage.New(w.Prompts, cfg.Engine.BlockSize, cfg.TraceBlockSize, slots), tree: w.Prompts, groups: groups,
		lagMs: cfg.Routing.EventLagMs, bs: int64(cfg.Engine.BlockSize), tbs: int64(cfg.TraceBlockSize),
	}
	if p.lagMs > 0 {
		p.late = make([]late, slots)
	}
	for _, g := range groups {
		g.Watch()
	}
	return p
}

// passEnds is when the latest passes of a worker ended, in ms: the one before ends
// at firstMs, the next ones at ends, or if there are none all at lastMs. The pass
// under way is the one after them, if there is one.
type passEnds struct {
	lastMs   float64
	firstMs  float64
	ends     []float64
	underWay bool
}

// learn takes what the passes of a worker that have ended have changed. All but
// those of e have been learnt of before.
func (p *paths) learn(id int32, e passEnds) {
	g := p.groups[id]
	before := g.Passes()
	if e.underWay {
		before--
	}
	first := before - int64(len(e.ends)) - 1 // ends at firstMs
	for rank := range g.Ranks() {
		slot := id*int32(g.Ranks()) + int32(rank)
		for _, c := range g.Changes(rank, before) {
			if p.lagMs == 0 {
				p.apply(slot, c)
				continue
			}
			endMs := e.lastMs
			switch {
			case len(e.ends) == 0:
			case c.Pass <= first:
				endMs = e.firstMs
			default:
				endMs = e.ends[c.Pass-first-1]
			}
			p.late[slot].add(lateChange{endMs + p.lagMs, c.Seg, c.At})
		}
	}
}

// believe applies what has become known by nowMs.
func (p *paths) believe(nowMs float64) {
	for slot := range p.late {
		l := &p.late[slot]
		for l.done < len(l.list) && l.list[l.done].dueMs <= nowMs {
			c := &l.list[l.done]
			p.apply(int32(slot), coverage.Change{Seg: c.seg, At: c.at})
			l.done++
		}
	}
}

func (p *paths) apply(slot int32, c coverage.Change) {
	if c.Seg > 0 {
		p.index.Store(kvindex.Slot(slot), c.Seg, c.At)
	} else {
		p.index.Remove(kvindex.Slot(slot), -c.Seg, c.At)
	}
}

func (l *late) add(c lateChange) {
	if l.done > len(l.list)/2 {
		l.list = l.list[:copy(l.list, l.list[l.done:])]
		l.done = 0
	}
	l.list = append(l.list, c)
}

// Divide follows a split in the prefix tree. The blocks keep the numbers they go
// by.
func (p *paths) Divide(s, front int32) {
	p.index.Divide(s, front)
	for len(p.names) <= int(front) {
		p.names = append(p.names, int32(len(p.names)))
	}
	p.names[front] = p.names[s]
}

// name is the number that the blocks of a segment go by.
func (p *paths) name(s int32) uint64 {
	if int(s) < len(p.names) {
		s = p.names[s]
	}
	return uint64(uint32(s)) << 32
}

// appendNames appends names of the first n blocks of the path that ends at leaf:
// numbers that are equal exactly where the blocks and all before them are.
func (p *paths) appendNames(dst []uint64, leaf, n int32) []uint64 {
	p.line = p.line[:0]
	for s := leaf; s != 0; s = p.tree.Seg(s).Parent {
		p.line = append(p.line, s)
	}
	j := int32(0)
	for i := len(p.line) - 1; i >= 0 && j < n; i-- {
		seg := p.tree.Seg(p.line[i])
		end := min((int64(seg.Depth)+int64(seg.Len))*p.tbs/p.bs, int64(n))
		for name := p.name(p.line[i]); int64(j) < end; j++ {
			dst = append(dst, name|uint64(uint32(j)))
		}
	}
	return dst
}
