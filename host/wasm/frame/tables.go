package frame

import (
	"github.com/dryserve/dryserve/core/intake"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/synth"
	"github.com/dryserve/dryserve/core/timing"
	"github.com/dryserve/dryserve/core/workload"
)

// MaxReserve is the most rows that a Feed may reserve room for.
const MaxReserve = 1 << 20

// Fields lists what the error has; its code first.
func (f *Fault) Fields() []Field {
	fields := []Field{{Name: "error", Var: (*uint8)(&f.Code), Need: true}}
	switch f.Code {
	case BadFrame:
		return append(fields, Field{Name: "at", Var: &f.At})
	case UnknownKey, WrongType, NotInRange, MissingKey, TwiceKey:
		return append(fields, Field{Name: "name", Var: &f.Name})
	}
	return append(fields, Field{Name: "found", Var: &f.Found})
}

// Feeding is the request of Feed.
type Feeding struct {
	Text    []byte // the next part of the file
	End     bool   // and the last one
	More    bool   // with End: another file follows
	Reserve int    // rows to make room for, about
	File    string // with the first part: its path below the trace's
	Size    int64  // and its bytes, -1: unknown
}

// Fields lists its keys.
func (f *Feeding) Fields() []Field {
	return []Field{
		{Name: "text", Var: &f.Text, Need: true}, {Name: "end", Var: &f.End}, {Name: "reserve", Var: &f.Reserve},
		{Name: "more", Var: &f.More}, {Name: FileKey, Var: &f.File}, {Name: "size", Var: &f.Size},
	}
}

// FileKey begins a file.
const FileKey = "file"

// Fed is the answer: what was read so far and, at the end, what the workload
// has.
type Fed struct {
	Lines, Rows, Failed int64
	Format              intake.Format // Auto: not known yet
	Turns, Sessions     int
	BlockSizes          workload.BlockSizes
	Named, Drawn        bool // see workload.Workload
	Unlined             bool
	Graph               bool // it is one of requests that wait for each other
}

// Fields lists the keys before the end.
func (f *Fed) Fields() []Field {
	return []Field{{Name: "lines", Var: &f.Lines}, {Name: "rows", Var: &f.Rows}, {Name: "failed", Var: &f.Failed}, {Name: "format", Var: (*uint8)(&f.Format)}}
}

// AllFields lists the keys at the end.
func (f *Fed) AllFields() []Field {
	b := &f.BlockSizes
	return append(f.Fields(),
		Field{Name: "turns", Var: &f.Turns}, Field{Name: "sessions", Var: &f.Sessions},
		Field{Name: "odd_rows", Var: &b.Rows}, Field{Name: "odd_line", Var: &b.FirstLine},
		Field{Name: "block_size_min", Var: &b.Min}, Field{Name: "block_size_max", Var: &b.Max},
		Field{Name: "named", Var: &f.Named}, Field{Name: "drawn", Var: &f.Drawn},
		Field{Name: "unlined", Var: &f.Unlined}, Field{Name: "graph", Var: &f.Graph})
}

// SpecFields lists the keys of Synthesize.
func SpecFields(s *synth.Spec) []Field {
	return []Field{
		{Name: "input_tokens", Var: &s.InputTokens, Need: true}, {Name: "output_tokens", Var: &s.OutputTokens, Need: true},
		{Name: "sessions", Var: &s.Sessions, Need: true}, {Name: "turns", Var: &s.Turns},
		{Name: "arrival", Var: (*uint8)(&s.Arrival)}, {Name: "rate_per_s", Var: &s.RatePerS}, {Name: "interval_ms", Var: &s.IntervalMs},
		{Name: "arrival_seed", Var: &s.ArrivalSeed}, {Name: "prefix_ratio", Var: &s.PrefixRatio}, {Name: "prefix_groups", Var: &s.PrefixGroups},
		{Name: "turn_delay_ms", Var: &s.TurnDelayMs}, {Name: "block_size", Var: &s.BlockSize},
	}
}

// SpecKey is the key of a field of Synthesize that is out of its range.
func SpecKey(f synth.Field) string {
	switch f {
	case synth.InputTokens:
		return "input_tokens"
	case synth.OutputTokens:
		return "output_tokens"
	case synth.Sessions:
		return "sessions"
	case synth.Turns:
		return "turns"
	case synth.RatePerS:
		return "rate_per_s"
	case synth.IntervalMs:
		return "interval_ms"
	case synth.PrefixRatio:
		return "prefix_ratio"
	}
	return "turn_delay_ms"
}

// Stepping is the request of Step.
type Stepping struct {
	Events   int
	AnswerMs float64         // to the question, in status NeedTiming only
	Decision replay.Decision // of the policy, in status NeedScaling only
}

// Fields lists its keys in a status, the answer if there was a question.
func (s *Stepping) Fields(status Status) []Field {
	fields := []Field{{Name: "events", Var: &s.Events, Need: true}}
	switch status {
	case NeedTiming:
		fields = append(fields, Field{Name: "answer_ms", Var: &s.AnswerMs, Need: true})
	case NeedScaling:
		fields = append(fields, Deciding(&s.Decision)...)
	}
	return fields
}

// Progressed is the answer of Step and Progress.
type Progressed struct {
	Status      Status
	Done, Total int64        // requests
	Fault       replay.Fault // of a run that has failed while it was stepped
	Class       string       // of the router that is full, if one is
	Query       timing.Query // of a run that needs a duration
}

// Fields lists the keys that every answer has.
func (p *Progressed) Fields() []Field {
	return []Field{{Name: "status", Var: (*uint32)(&p.Status), Need: true}, {Name: "done", Var: &p.Done}, {Name: "total", Var: &p.Total}}
}

// FaultFields lists those of a run that has failed besides.
func (p *Progressed) FaultFields() []Field {
	return append(p.Fields(), Field{Name: "in_flight", Var: &p.Fault.InFlight},
		Field{Name: "now_ms", Var: &p.Fault.NowMs}, Field{Name: "endless", Var: &p.Fault.Endless}, Field{Name: "nobody", Var: &p.Fault.Nobody})
}

// RouterKey is there if the KV router is why a run has failed.
const RouterKey = "router.code"

// RouterFields lists besides why the KV router cannot go on.
func (p *Progressed) RouterFields() []Field {
	f := &p.Fault.Router
	e := &f.Event
	return append(p.FaultFields(), Field{Name: RouterKey, Var: (*uint8)(&f.Code)}, Field{Name: "router.class", Var: &p.Class},
		Field{Name: "router.limit", Var: (*uint8)(&f.Full.Limit)}, Field{Name: "router.have", Var: &f.Full.Have}, Field{Name: "router.most", Var: &f.Full.Most},
		Field{Name: "router.why", Var: (*uint8)(&e.Why)}, Field{Name: "router.event", Var: (*uint8)(&e.Kind)},
		Field{Name: "router.worker", Var: &e.Worker}, Field{Name: "router.rank", Var: &e.Rank}, Field{Name: "router.event_id", Var: &e.ID},
		Field{Name: "router.has_parent", Var: &e.HasParent}, Field{Name: "router.parent", Var: &e.Parent},
		Field{Name: "router.count", Var: &e.Count}, Field{Name: "router.first", Var: &e.First}, Field{Name: "router.last", Var: &e.Last})
}

// QueryFields lists those of a run that needs a duration besides.
func (p *Progressed) QueryFields() []Field {
	return append(p.Fields(), p.AskFields()...)
}

// AskFields lists those of the question alone.
func (p *Progressed) AskFields() []Field {
	q := &p.Query
	return []Field{{Name: "ask_kind", Var: (*uint8)(&q.Kind)}, {Name: "ask_batch", Var: &q.Batch},
		{Name: "ask_isl", Var: &q.ISL}, {Name: "ask_prefix", Var: &q.Prefix}, {Name: "ask_osl", Var: &q.OSL}}
}

// Part asks for some rows of a table: Most of them from row From on. A table
// ends where it ends.
type Part struct{ From, Most int }

// Fields lists the keys.
func (p *Part) Fields() []Field {
	return []Field{{Name: "from", Var: &p.From}, {Name: "most", Var: &p.Most}}
}

// TurnColumns are the requests of a workload in file order: their session,
// their place in it, the turn after them, -1: none, and the tokens of prompt and
// answer that the trace names.
type TurnColumns struct{ Session, Index, Next, Input, Output []int32 }

// Fields lists the columns.
func (c *TurnColumns) Fields() []Field {
	return []Field{{Name: "session", Var: &c.Session}, {Name: "index", Var: &c.Index}, {Name: "next", Var: &c.Next},
		{Name: "input", Var: &c.Input}, {Name: "output", Var: &c.Output}}
}

// Add appends a row.
func (c *TurnColumns) Add(t *workload.Turn) {
	push(&c.Session, t.Session)
	push(&c.Index, t.Index)
	push(&c.Next, t.Next)
	push(&c.Input, t.Input)
	push(&c.Output, t.Output)
}

// Turns appends the columns' rows; false: they do not belong together.
func (c *TurnColumns) Turns(to []workload.Turn) ([]workload.Turn, bool) {
	n, ok := even(c.Fields())
	for i := range n {
		to = append(to, workload.Turn{Session: c.Session[i], Index: c.Index[i], Next: c.Next[i], Input: c.Input[i], Output: c.Output[i]})
	}
	return to, ok
}

// SessionColumns are the sessions of a workload in file order: their first
// turn, the line with it, and their ids, one after the other.
type SessionColumns struct {
	First, Line, IDLength []int32
	IDs                   []byte
}

// Fields lists the columns.
func (c *SessionColumns) Fields() []Field {
	return []Field{{Name: "first", Var: &c.First}, {Name: "line", Var: &c.Line}, {Name: "id_length", Var: &c.IDLength}, {Name: "ids", Var: &c.IDs}}
}
