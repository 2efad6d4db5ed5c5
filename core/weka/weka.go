// Package weka makes graphs of Weka traces: what an agent and the agents it
// called asked a server for, with block hashes but without a word on which
// request followed which.
//
// It owns the reconstruction: which requests continue each other (by their
// prompts' prefixes and by time), which agents wait for which, and in which
// order they ran. It does not read bytes (core/trace does), nor does it check
// or run graphs (core/agentic, core/replay). Source: replay notes §3.7, and
// many questions to the reference where they are silent.
//
// Invariants: objects share nothing but the block size and whether nested
// times count from their subagent's; their order is the plays'.
//
// A block's id is eight bytes of a hash. The reference would rehash a block
// whose id another one has; with 2^32 blocks that happens once in two traces,
// and is not done here.
package weka

import (
	"math"

	"github.com/dryserve/dryserve/core/blake3"
	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/workload"
)

const (
	maxCount = math.MaxInt32 // of everything an index names
	slackS   = 1e-6          // times that differ by so little are the same
)

// Basis says what the times in a subagent count from.
type Basis uint8

// The bases. Auto is Relative if a nested request would else begin before its
// subagent, for all of the trace.
const (
	Auto     Basis = iota
	Absolute       // the beginning, like all others
	Relative       // the time of the subagent
)

// Place is where an object stands.
type Place struct {
	File int32
	Line int64 // 0: the file is one object
}

// request is a request as it came.
type request struct {
	timeS, apiS   float64
	hasAPI        bool
	model         int32 // index into texts
	input, output int32
	hashes        []uint64 // into the builder's
	outer, inner  int32    // index among the entries, inner -1: not nested
}

// subagent is a marker as it came. Its requests are those of its object from
// first to last, excluded.
type subagent struct {
	timeS       float64
	agent       int32 // index into texts
	background  bool
	durationMs  int64
	hasDuration bool
	outer       int32
	first, last int32
}

// object is one trace.
type object struct {
	id, name    int32 // indices into texts; the name says where it stands
	at          Place
	roots       []request // not nested
	nested      []request
	subagents   []subagent
	hashes      []uint64
	firstParent int32 // outer index of the first request that is not nested
}

// Builder collects objects. After a fault it must not be used any more.
type Builder struct {
	texts     workload.Texts
	objects   []object
	blockSize int64 // 0: no object yet
	requests  int
	hashes    int
	nested    bool // there are nested requests
	raw       blake3.Hasher
	began     bool
}

// NewBuilder makes an empty builder.
func NewBuilder() *Builder { return &Builder{} }

// BlockSize is the tokens of a hash, 0 without an object.
func (b *Builder) BlockSize() int64 { return b.blockSize }

// Objects is how many there are.
func (b *Builder) Objects() int { return len(b.objects) }

// File begins a file: its path below the trace's and its size in bytes. Text
// that follows must be as long as that.
func (b *Builder) File(path string, size int64) {
	if !b.began {
		_, _ = b.raw.Write([]byte("aisimulate-weka-corpus-v1\x00"))
		b.began = true
	}
	b.measured(int64(len(path)))
	_, _ = b.raw.Write([]byte(path))
	b.measured(size)
}

// Text is the next text of the file, which says what the trace is to others.
func (b *Builder) Text(text []byte) { _, _ = b.raw.Write(text) }

func (b *Builder) measured(n int64) {
	var length [8]byte
	for i := range length {
		length[i] = byte(n >> (8 * i))
	}
	_, _ = b.raw.Write(length[:])
}

// Add adds an object. The name says where it stands: the path of its file
// below the trace's and, if that has a line for every object, its number.
func (b *Builder) Add(r *trace.WekaTrace, name string, at Place) Fault {
	f := b.object(r, name, at)
	if f.Code != OK {
		f.At = at
	}
	return f
}

func (b *Builder) object(r *trace.WekaTrace, name string, at Place) Fault {
	switch {
	case trace.Blank(r.ID):
		return Fault{Code: Blank, Field: trace.WekaID, Outer: -1}
	case r.BlockSize == 0:
		return Fault{Code: BlockSizeZero, Outer: -1}
	case r.BlockSize > maxCount:
		return Fault{Code: BlockSizeTooLarge, Found: r.BlockSize, Limit: maxCount, Outer: -1}
	case b.blockSize > 0 && r.BlockSize != b.blockSize:
		return Fault{Code: MixedBlockSizes, Found: r.BlockSize, Limit: b.blockSize, Outer: -1}
	case b.hashes+len(r.Hashes) > maxCount:
		return Fault{Code: TooManyHashes, Limit: maxCount, Outer: -1}
	case b.requests+len(r.Entries) > maxCount:
		return Fault{Code: TooManyRequests, Limit: maxCount, Outer: -1}
	}
	b.blockSize = r.BlockSize
	b.hashes += len(r.Hashes)
	o := object{at: at, firstParent: -1, hashes: append([]uint64(nil), r.Hashes...)}
	if o.id, o.name = b.texts.Add(r.ID), b.texts.Add([]byte(name)); o.id < 0 || o.name < 0 {
		return Fault{Code: TooMuchText, Limit: math.MaxUint32, Outer: -1}
	}
	for _, m := range r.Models {
		if trace.Blank(m) {
			return Fault{Code: Blank, Field: trace.WekaModels, Outer: -1}
		}
	}
	outer, inner := int32(-1), int32(-1)
	for i := range r.Entries {
		e := &r.Entries[i]
		if e.Nested {
			inner++
		} else {
			outer, inner = outer+1, -1
		}
		if f := b.entry(&o, r, e, outer, inner); f.Code != OK {
			f.Outer, f.Inner = outer, inner
			return f
		}
	}
	return b.complete(o)
}

// complete checks an object whose entries have all come, and keeps it.
func (b *Builder) complete(o object) Fault {
	for i := range o.subagents {
		switch s := &o.subagents[i]; {
		case s.first == s.last && !s.background:
			return Fault{Code: IdleSubagent, Name: b.texts.At(s.agent), Outer: s.outer, Inner: -1}
		case o.firstParent < 0:
			return Fault{Code: NoParents, Outer: -1}
		case o.firstParent > s.outer:
			return Fault{Code: Orphan, Name: b.texts.At(s.agent), Outer: s.outer, Inner: -1}
		}
	}
	if len(o.roots) == 0 {
		return Fault{Code: NoParents, Outer: -1}
	}
	b.requests += len(o.roots) + len(o.nested)
	b.objects = append(b.objects, o)
	return Fault{}
}

// entry checks and keeps a request or a subagent.
func (b *Builder) entry(o *object, r *trace.WekaTrace, e *trace.WekaEntry, outer, inner int32) Fault {
	if !(e.TimeS >= 0 && e.TimeS <= maxS) {
		return Fault{Code: BadTime, Field: trace.EntryTime, Found64: e.TimeS, Limit64: maxS}
	}
	if e.Subagent {
		return b.subagent(o, e, outer)
	}
	switch {
	case trace.Blank(e.Model):
		return Fault{Code: Blank, Field: trace.EntryModel}
	case len(r.Models) > 0 && !declared(r.Models, e.Model):
		return Fault{Code: UndeclaredModel, Name: e.Model}
	case e.Input == 0:
		return Fault{Code: InputZero}
	case e.Input > maxCount:
		return Fault{Code: TooLong, Field: trace.EntryInput, Found: e.Input, Limit: maxCount}
	case e.Output > maxCount:
		return Fault{Code: TooLong, Field: trace.EntryOutput, Found: e.Output, Limit: maxCount}
	case e.HasAPI && !(e.APITimeS >= 0 && e.APITimeS <= maxS):
		return Fault{Code: BadTime, Field: trace.EntryAPITime, Found64: e.APITimeS, Limit64: maxS}
	}
	q := request{
		timeS: e.TimeS, apiS: e.APITimeS, hasAPI: e.HasAPI, model: b.texts.Add(e.Model), input: int32(e.Input), output: int32(e.Output),
		hashes: o.hashes[e.From:e.To:e.To], outer: outer, inner: inner,
	}
	if q.model < 0 {
		return Fault{Code: TooMuchText, Limit: math.MaxUint32}
	}
	if !e.Nested {
		if o.firstParent < 0 {
			o.firstParent = outer
		}
		o.roots = append(o.roots, q)
		return Fault{}
	}
	o.nested = append(o.nested, q)
	s := &o.subagents[len(o.subagents)-1]
	s.last++
	b.nested = true
	return Fault{}
}

func (b *Builder) subagent(o *object, e *trace.WekaEntry, outer int32) Fault {
	switch {
	case trace.Blank(e.Agent):
		return Fault{Code: Blank, Field: trace.EntryAgent}
	case e.DurationMs < 0:
		return Fault{Code: NegativeDuration, Found: e.DurationMs}
	}
	s := subagent{
		timeS: e.TimeS, agent: b.texts.Add(e.Agent), background: e.Background, durationMs: e.DurationMs, hasDuration: e.HasDuration,
		outer: outer, first: int32(len(o.nested)), last: int32(len(o.nested)),
	}
	if s.agent < 0 {
		return Fault{Code: TooMuchText, Limit: math.MaxUint32}
	}
	o.subagents = append(o.subagents, s)
	return Fault{}
}

func declared(models [][]byte, model []byte) bool {
	for _, m := range models {
		if string(m) == string(model) {
			return true
		}
	}
	return false
}
