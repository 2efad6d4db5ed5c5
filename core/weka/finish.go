package weka

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"github.com/dryserve/dryserve/core/agentic"
	"github.com/dryserve/dryserve/core/blake3"
	"github.com/dryserve/dryserve/core/hashtable"
	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/workload"
)

// maxS is the greatest time in seconds; a greater one has no milliseconds.
const maxS = 1e299

// Finish returns the workload. speedup is finite and above 0; it divides times
// and delays. The builder is of no use afterwards.
func (b *Builder) Finish(basis Basis, speedup float64) (*workload.Workload, Fault) {
	if len(b.objects) == 0 {
		return nil, Fault{Code: NoObjects, Outer: -1, Inner: -1}
	}
	word := "absolute"
	switch {
	case basis == Auto && !b.nested:
		word = "not_applicable"
	case basis == Auto && slices.ContainsFunc(b.objects, func(o object) bool { return o.early().Code != OK }):
		basis = Relative
	}
	if basis == Relative {
		word = "relative"
	}
	g := agentic.NewBuilder(b.blockSize, "weka", b.source(word))
	var at []Place // by row
	for i := range b.objects {
		o := &b.objects[i]
		if f := o.early(); basis == Absolute && f.Code != OK {
			return nil, f
		}
		w := weave(o, basis)
		m := &maker{Builder: b, weaver: w, graph: g, ordinal: int64(i), known: hashtable.New()}
		for k := range w.q {
			at = append(at, o.at)
			if f := m.row(int32(k), int64(len(at))); f.Code != OK {
				f.At = o.at
				return nil, f
			}
		}
		*o = object{} // the graph has a copy
	}
	load, f := g.Finish(speedup)
	if f.Code != agentic.OK {
		fault := Fault{Code: Graph, Outer: -1, Inner: -1, Graph: f}
		if f.Line > 0 {
			fault.At = at[f.Line-1]
		}
		return nil, fault
	}
	load.Unlined, load.Graph.NestedBasis = true, word
	return load, Fault{}
}

// early finds a request that began before its subagent, were times absolute.
func (o *object) early() Fault {
	for _, s := range o.subagents {
		for i := s.first; i < s.last; i++ {
			if q := &o.nested[i]; q.timeS < s.timeS-slackS {
				return Fault{Code: BeforeSubagent, At: o.at, Outer: q.outer, Inner: q.inner, Found64: q.timeS, Limit64: s.timeS}
			}
		}
	}
	return Fault{}
}

// source says what the graph was made of: the files, and how nested times were
// read.
func (b *Builder) source(basis string) string {
	raw := b.raw.Sum()
	b.raw = blake3.Hasher{}
	_, _ = b.raw.Write([]byte("aisimulate-weka-corpus-semantics-v2\x00"))
	text := appendHex(nil, raw[:])
	b.measured(int64(len(text)))
	_, _ = b.raw.Write(text)
	b.measured(int64(len(basis)))
	_, _ = b.raw.Write([]byte(basis))
	sum := b.raw.Sum()
	return string(appendHex(nil, sum[:]))
}

func appendHex(t, sum []byte) []byte {
	for _, c := range sum {
		t = append(t, "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
	}
	return t
}

// maker makes the graph's rows of an object.
type maker struct {
	*Builder
	*weaver
	graph   *agentic.Builder
	ordinal int64
	space   []byte // what the object's names begin with
	first   float64
	known   hashtable.Table // by hash: 1 + where its block is in blocks
	blocks  []uint64
	ids     []uint64
	text    []byte
}

// row adds the row of request i.
func (m *maker) row(i int32, line int64) Fault {
	q := &m.q[i]
	if math.IsInf(ms(m.t[i]), 0) {
		return Fault{Code: TooLate, Found64: m.t[i], Outer: q.outer, Inner: q.inner}
	}
	if m.space == nil {
		sum := blake3.Sum256(m.texts.At(m.name))
		m.space = append(appendHex([]byte("weka:"), sum[:8]), ':')
		m.first = slices.Min(m.t)
	}
	id := m.requestID(nil, i)
	row := trace.AgenticRow{
		RequestID: id, PlayID: append(append(slices.Clone(m.space), "play:"...), m.texts.At(m.id)...), SessionID: m.session(i),
		Model: m.texts.At(q.model), PlayOrdinal: m.ordinal, InputLength: int64(q.input), OutputLength: int64(q.output), HashIDs: m.prompt(q, id),
		NotBeforeMs: ms(m.t[i] - m.first), HasAPITime: q.hasAPI, APITimeMs: ms(q.apiS),
	}
	for _, e := range m.edges[i] {
		row.Dependencies = append(row.Dependencies, trace.Dependency{
			RequestID: m.requestID(nil, e.from), Trigger: e.trigger, Relation: e.relation, DelayMs: e.delayMs,
		})
	}
	if f := m.graph.Add(&row, line); f.Code != agentic.OK {
		return Fault{Code: Graph, Outer: q.outer, Inner: q.inner, Graph: f}
	}
	return Fault{}
}

func (m *maker) requestID(t []byte, i int32) []byte {
	q := &m.q[i]
	t = append(append(t, m.space...), "request:outer:"...)
	t = strconv.AppendInt(t, int64(q.outer), 10)
	if q.inner >= 0 {
		t = strconv.AppendInt(append(t, ":inner:"...), int64(q.inner), 10)
	}
	return t
}

// session names the stream of request i.
func (m *maker) session(i int32) []byte {
	t := append(slices.Clone(m.space), "session:"...)
	if q := &m.q[i]; q.inner < 0 {
		t = append(t, "root"...)
	} else {
		at, _ := slices.BinarySearchFunc(m.subagents, q.outer, func(s subagent, outer int32) int { return int(s.outer - outer) })
		t = strconv.AppendInt(append(t, "subagent:"...), int64(q.outer), 10)
		t = append(append(t, ':'), m.texts.At(m.subagents[at].agent)...)
	}
	if k := m.of[i]; k > 0 {
		t = strconv.AppendInt(append(t, ":worker:"...), int64(k-1), 10)
	}
	return t
}

// prompt are the ids of a prompt's blocks: of a hash of this object, or of the
// request's own where a hash is missing or the block is not full.
func (m *maker) prompt(q *request, request []byte) []uint64 {
	m.ids = m.ids[:0]
	size := int32(m.blockSize)
	full := q.input / size
	for i := range full {
		if int(i) < len(q.hashes) {
			m.ids = append(m.ids, m.block(q.hashes[i]))
			continue
		}
		m.text = append(append(m.text[:0], "weka-full-block\x00private:missing:"...), request...)
		m.text = strconv.AppendInt(append(m.text, ':'), int64(i), 10)
		m.ids = append(m.ids, m.hash())
	}
	if full*size < q.input {
		m.text = append(append(m.text[:0], "weka-partial-tail\x00"...), request...)
		m.text = strconv.AppendInt(append(m.text, ':'), int64(full), 10)
		m.text = strconv.AppendInt(append(m.text, ':'), int64(q.input), 10)
		m.ids = append(m.ids, m.hash())
	}
	return m.ids
}

// block is the id of the block of a hash.
func (m *maker) block(hash uint64) uint64 {
	if at := m.known.Get(hash); at > 0 {
		return m.blocks[at-1]
	}
	m.text = append(append(m.text[:0], "weka-full-block\x00source:"...), m.texts.At(m.name)...)
	m.text = strconv.AppendUint(append(m.text, ':'), hash, 10)
	m.blocks = append(m.blocks, m.hash())
	m.known.Set(hash, int32(len(m.blocks)))
	return m.blocks[len(m.blocks)-1]
}

// hash is the id that the text stands for, the first of its kind.
func (m *maker) hash() uint64 {
	m.text = append(m.text, "\x000"...)
	sum := blake3.Sum256(m.text)
	return binary.LittleEndian.Uint64(sum[:])
}
