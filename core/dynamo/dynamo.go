// Package dynamo makes workloads of Dynamo request traces: records of when
// requests ran, which session each belonged to, and which tools called which
// sessions.
//
// It owns the reconstruction: the order of requests, which of them waited for
// which, and which plays that makes. Requests without a session are sessions
// of one turn (core/workload), others a graph (core/agentic). It does not read
// bytes (core/trace does). Source: replay notes §3.6.
//
// Invariant: records may come in any order and from any number of files; the
// outcome is the same.
package dynamo

import (
	"math"

	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/workload"
)

// maxCount bounds everything an index names.
const maxCount = math.MaxInt32

// Place is where a record stands.
type Place struct {
	File int32
	Line int64
}

// request is a finished request.
type request struct {
	id, session, parent, model int32 // indices into texts, -1: none
	startMs, endMs             int64 // Unix time
	input, output              int64
	hashes, numHashes          int32 // into the hashes
	deps, numDeps              int32
	at                         Place
}

// tool is a finished tool call that names the requests around it.
type tool struct {
	call, session, source, consumer, child, mode int32 // indices into texts, -1: none
	known                                        bool  // its mode; what it says changes nothing
	at                                           Place
}

// needs is a dependency that a record names.
type needs struct {
	request  int32 // index into texts
	trigger  trace.Trigger
	relation trace.Relation
}

// Builder collects records. After a fault it must not be used any more, but
// for Place.
type Builder struct {
	texts     workload.Texts
	node      []int32 // by text: the request of that id, -1: none
	requests  []request
	tools     []tool
	toolCount int // records of tools in a session
	hashes    []uint64
	deps      []needs
	blockSize int64 // 0: no request yet
}

// NewBuilder makes an empty builder.
func NewBuilder() *Builder { return &Builder{} }

// BlockSize is the tokens of a hash, 0 without a request.
func (b *Builder) BlockSize() int64 { return b.blockSize }

// Agentic reports whether requests have sessions.
func (b *Builder) Agentic() bool { return len(b.requests) > 0 && b.requests[0].session >= 0 }

// Add adds the record at a place.
func (b *Builder) Add(r *trace.DynamoRecord, at Place) Fault {
	f := Fault{}
	switch r.Event {
	case trace.RequestEnd:
		f = b.request(r, at)
	case trace.ToolEnd:
		f = b.tool(r, at)
	}
	if f.Code != OK {
		f.At = at
	}
	return f
}

// request checks and keeps a request.
func (b *Builder) request(r *trace.DynamoRecord, at Place) Fault {
	switch {
	case !r.HasRequest:
		return Fault{Code: NoRequest}
	case trace.Blank(r.RequestID):
		return Fault{Code: Blank, Field: trace.RequestName}
	case r.OutputTokens < 0:
		return Fault{Code: NoOutput}
	case r.OutputTokens > maxCount:
		return Fault{Code: OutputTooLong, Found: r.OutputTokens, Limit: maxCount}
	case r.HasTotal && r.TotalMs < 0:
		return Fault{Code: NegativeTotal, Ms: r.TotalMs}
	case r.BlockSize == 0:
		return Fault{Code: BlockSizeZero}
	case r.BlockSize > maxCount:
		return Fault{Code: BlockSizeTooLarge, Found: r.BlockSize, Limit: maxCount}
	case r.HasContext && trace.Blank(r.Session) && len(r.Session) > 0:
		return Fault{Code: Blank, Field: trace.ContextSession}
	case b.blockSize > 0 && r.BlockSize != b.blockSize:
		return Fault{Code: MixedBlockSizes, Found: r.BlockSize, Limit: b.blockSize}
	case len(b.requests) > 0 && r.HasContext != b.Agentic():
		return Fault{Code: MixedContexts}
	case len(b.requests) == maxCount:
		return Fault{Code: TooManyRequests, Limit: maxCount}
	case len(b.hashes)+len(r.Hashes) > workload.MaxIDs:
		return Fault{Code: TooManyHashes, Limit: workload.MaxIDs}
	case len(b.deps)+len(r.Dependencies) > maxCount:
		return Fault{Code: TooManyDeps, Limit: maxCount}
	}
	b.blockSize = r.BlockSize
	q := request{
		input: r.InputLength, output: r.OutputTokens, at: at, session: -1, parent: -1, model: -1,
		hashes: int32(len(b.hashes)), numHashes: int32(len(r.Hashes)), deps: int32(len(b.deps)), numDeps: int32(len(r.Dependencies)),
	}
	q.startMs, q.endMs = times(r)
	if !b.names(naming{&q.id, r.RequestID}, naming{&q.session, r.Session}, naming{&q.parent, r.ParentSession}, naming{&q.model, r.Model}) {
		return Fault{Code: TooMuchText, Limit: math.MaxUint32}
	}
	if b.node[q.id] >= 0 {
		return Fault{Code: DuplicateRequest, Name: r.RequestID}
	}
	b.node[q.id] = int32(len(b.requests))
	b.hashes = append(b.hashes, r.Hashes...)
	for _, d := range r.Dependencies {
		on := b.name(d.RequestID)
		if on < 0 {
			return Fault{Code: TooMuchText, Limit: math.MaxUint32}
		}
		b.deps = append(b.deps, needs{on, d.Trigger, d.Relation})
	}
	b.requests = append(b.requests, q)
	return Fault{}
}

// times are a request's start and end.
func times(r *trace.DynamoRecord) (startMs, endMs int64) {
	total := int64(0)
	if r.HasTotal {
		total = math.MaxInt64
		if ms := math.Round(r.TotalMs); ms < 1<<62 {
			total = int64(ms)
		}
	}
	if r.ReceivedMs < 0 {
		return max(r.EventTimeMs-total, 0), r.EventTimeMs
	}
	if !r.HasTotal {
		return r.ReceivedMs, r.EventTimeMs
	}
	if total > math.MaxInt64-r.ReceivedMs {
		return r.ReceivedMs, math.MaxInt64
	}
	return r.ReceivedMs, r.ReceivedMs + total
}

// tool keeps a tool call. One outside a session, or that names no requests,
// says nothing.
func (b *Builder) tool(r *trace.DynamoRecord, at Place) Fault {
	if !r.HasTool || !r.HasContext {
		return Fault{}
	}
	b.toolCount++
	if !r.HasClaude {
		return Fault{}
	}
	t := tool{at: at, consumer: -1, child: -1}
	if !b.names(naming{&t.call, r.ToolCall}, naming{&t.session, r.Session}, naming{&t.source, r.Source},
		naming{&t.consumer, r.Consumer}, naming{&t.child, r.Child}, naming{&t.mode, r.Mode}) {
		return Fault{Code: TooMuchText, Limit: math.MaxUint32}
	}
	t.known = string(r.Mode) == "blocking" || string(r.Mode) == "background"
	b.tools = append(b.tools, t)
	return Fault{}
}

// naming is a text, nil: absent, and where its number goes.
type naming struct {
	to   *int32
	text []byte
}

// names numbers texts; false: there is no room for one.
func (b *Builder) names(list ...naming) bool {
	for _, n := range list {
		if n.text == nil {
			continue
		}
		if *n.to = b.name(n.text); *n.to < 0 {
			return false
		}
	}
	return true
}

// name is the number of a text, -1 if there is no room for it.
func (b *Builder) name(text []byte) int32 {
	i := b.texts.Add(text)
	if int(i) == len(b.node) {
		b.node = append(b.node, -1)
	}
	return i
}
