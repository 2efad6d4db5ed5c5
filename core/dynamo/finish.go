package dynamo

import (
	"cmp"
	"slices"

	"github.com/dryserve/dryserve/core/sorting"
	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/workload"
)

// Finish returns the workload. The builder is of no use afterwards.
func (b *Builder) Finish(o workload.Options) (*workload.Workload, Fault) {
	if len(b.requests) == 0 {
		return nil, Fault{Code: NoRequests}
	}
	sorting.Stable(b.requests, b.before)
	for i := range b.requests {
		b.node[b.requests[i].id] = int32(i)
	}
	if b.Agentic() {
		return b.graph(o)
	}
	return b.plain(o)
}

// before is the order of requests: by start, end, id.
func (b *Builder) before(x, y request) int {
	return cmp.Or(cmp.Compare(x.startMs, y.startMs), cmp.Compare(x.endMs, y.endMs), slices.Compare(b.texts.At(x.id), b.texts.At(y.id)))
}

// plain makes single requests, named after their place in order.
func (b *Builder) plain(o workload.Options) (*workload.Workload, Fault) {
	w := workload.NewBuilder(int(b.blockSize))
	first := b.requests[0].startMs
	for i := range b.requests {
		q := &b.requests[i]
		row := trace.Row{
			InputLength: q.input, OutputLength: q.output, HashIDs: b.hashes[q.hashes : q.hashes+q.numHashes],
			TimestampMs: float64(q.startMs - first), HasTimestamp: true,
		}
		if f := w.Add(&row, int64(i)+1); f.Code != workload.OK {
			return nil, Fault{Code: Plain, At: q.at, Row: f}
		}
	}
	load, f := w.Finish(o)
	if f.Code != workload.OK {
		at := Place{}
		if f.Line > 0 {
			at = b.requests[f.Line-1].at
		}
		return nil, Fault{Code: Plain, At: at, Row: f}
	}
	load.Unlined = true
	return load, Fault{}
}
