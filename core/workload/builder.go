package workload

import (
	"math"
	"slices"

	"github.com/dryserve/dryserve/core/prefix"
	"github.com/dryserve/dryserve/core/trace"
)

// The most of everything an index can name.
const (
	MaxTurns = maxCount
	MaxIDs   = math.MaxInt32 / 2 // a segment of the tree may be split once per id
	maxCount = math.MaxInt32
)

// Options say how the sessions of a workload will be started.
type Options struct {
	Concurrency    bool    // a cap starts them; else their timestamps do
	Delta          bool    // rows have what is new in their session only
	AsWritten      bool    // sessions may have no start, and times stay as they are: the workload is not for a run
	ArrivalSpeedup float64 // > 0, finite; divides starts and delays unless Concurrency
}

// Builder makes a workload from rows. After a fault it must not be used any
// more, but for AppendSessionID.
type Builder struct {
	w         Workload
	names     names
	blockSize int64
	ids       int // in the tree, an upper bound
}

// NewBuilder makes a builder for rows whose hash ids cover traceBlockSize > 0
// tokens each.
func NewBuilder(traceBlockSize int) *Builder {
	return &Builder{
		w:         Workload{Prompts: prefix.New(), TraceBlockSize: traceBlockSize, BlockSizes: all()},
		blockSize: int64(traceBlockSize),
	}
}

// Reserve makes room for about this many rows more, each a session of its own
// as in most traces and with as many new hash ids as those so far; it saves
// copying, and changes no result.
func (b *Builder) Reserve(rows int) {
	if n := len(b.w.Turns); n > 0 {
		b.w.Prompts.Reserve(float64(rows) / float64(n))
	}
	b.w.Turns = slices.Grow(b.w.Turns, rows)
	b.w.Sessions = slices.Grow(b.w.Sessions, rows)
}

// AppendSessionID appends the id of the session of a Fault.
func (b *Builder) AppendSessionID(dst []byte, i int32) []byte {
	return b.w.AppendSessionID(dst, i)
}

// Add adds the row of a line; lines ascend.
func (b *Builder) Add(row *trace.Row, line int64) Fault {
	if line > maxCount {
		return Fault{Code: TooManyLines, Line: line, Limit: maxCount}
	}
	if len(b.w.Turns) == maxCount {
		return Fault{Code: TooManyRows, Line: line, Limit: maxCount}
	}
	input, blocks, f := promptOf(row, b.blockSize)
	if f.Code == OK {
		f = outputOf(row, int64(len(b.w.Planned)))
	}
	if f.Code != OK {
		f.Line = line
		return f
	}
	s, fresh, code := b.session(row.SessionID, line)
	if code != OK {
		return Fault{Code: code, Line: line, Limit: maxText}
	}
	t := Turn{Input: int32(input), Output: int32(row.OutputLength), Session: s, Planned: -1}
	if f := b.chain(&t, row, fresh); f.Code != OK {
		f.Line, f.Session, f.Turn = line, s, t.Index
		return f
	}
	if row.InputLength >= 0 {
		b.w.BlockSizes.note(input, int64(len(row.HashIDs)), blocks, line)
	}
	if t.Leaf, f = b.path(row.HashIDs); f.Code != OK {
		f.Line = line
		return f
	}
	t.IDs = int32(len(row.HashIDs))
	if !b.classify(row.Priority, row.StrictPriority, row.PolicyClass) {
		return Fault{Code: TooMuchText, Line: line, Limit: maxText}
	}
	b.plan(&t, row)
	b.w.Turns = append(b.w.Turns, t)
	return Fault{}
}

// path puts ids into the tree. All of a row's are kept, also those past the
// prompt's end: they count in the numbering of the ids as tokens.
func (b *Builder) path(ids []uint64) (leaf int32, f Fault) {
	if b.ids += len(ids); b.ids > MaxIDs {
		return 0, Fault{Code: TooManyIDs, Limit: MaxIDs}
	}
	known := int32(b.w.Prompts.Len())
	if leaf = b.w.Prompts.Insert(ids, nil); leaf < known {
		b.ids -= len(ids)
	} else {
		b.ids -= len(ids) - int(b.w.Prompts.Seg(leaf).Len)
	}
	return leaf, Fault{}
}

// classify keeps what a router may order the turn by that is added next;
// false: there is no room for the name of its class.
func (b *Builder) classify(priority int32, strict uint32, policy []byte) bool {
	c := Class{Priority: priority, Strict: strict, Policy: -1}
	if policy != nil {
		if c.Policy = b.w.Policies.Add(policy); c.Policy < 0 {
			return false
		}
	}
	w := &b.w
	if w.Classes == nil {
		if c == noClass {
			return true
		}
		w.Classes = make([]Class, len(w.Turns), cap(w.Turns))
		for i := range w.Classes {
			w.Classes[i] = noClass
		}
	}
	w.Classes = append(w.Classes, c)
	return true
}

// promptOf checks a row's input: its tokens and how many hash ids those need.
func promptOf(row *trace.Row, blockSize int64) (input, blocks int64, f Fault) {
	n := int64(len(row.HashIDs))
	input, blocks = row.InputLength, n
	if input >= 0 {
		if blocks = ceilDiv(input, blockSize); blocks > n {
			return 0, 0, Fault{Code: InputOverCapacity, Found: input, Limit: n * blockSize}
		}
	} else if n <= maxCount/blockSize {
		input = n * blockSize
	} else {
		return 0, 0, Fault{Code: InputTooLong, Found: saturated(n, blockSize), Limit: maxCount}
	}
	if input == 0 {
		return 0, 0, Fault{Code: InputZero}
	}
	if input > maxCount {
		return 0, 0, Fault{Code: InputTooLong, Found: input, Limit: maxCount}
	}
	return input, blocks, Fault{}
}

// saturated is a*b, or the greatest int64.
func saturated(a, b int64) int64 {
	if a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}

// outputOf checks a row's output; planned output ids came before it.
func outputOf(row *trace.Row, planned int64) Fault {
	n := int64(len(row.OutputIDs))
	if row.OutputLength > maxCount {
		return Fault{Code: OutputTooLong, Found: row.OutputLength, Limit: maxCount}
	}
	if row.HasOutputIDs && n != row.OutputLength {
		return Fault{Code: OutputIDsMismatch, Found: n, Limit: row.OutputLength}
	}
	if planned+n > maxCount {
		return Fault{Code: TooManyOutputIDs, Limit: maxCount}
	}
	return Fault{}
}

// plan keeps the row's output ids.
func (b *Builder) plan(t *Turn, row *trace.Row) {
	if !row.HasOutputIDs {
		return
	}
	w := &b.w
	if len(w.PlannedOff) == 0 {
		w.PlannedOff = append(w.PlannedOff, 0)
	}
	t.Planned = int32(len(w.PlannedOff) - 1)
	w.Planned = append(w.Planned, row.OutputIDs...)
	w.PlannedOff = append(w.PlannedOff, int32(len(w.Planned)))
}

// chain puts the turn at the end of its session and finds its delay.
//
// While rows come in, a session's First is its last turn and that turn's Next
// is the session's first turn, whose DelayMs (always 0) keeps the session's
// last timestamp, NaN: none yet. settle puts things right.
func (b *Builder) chain(t *Turn, row *trace.Row, fresh bool) Fault {
	s, self := &b.w.Sessions[t.Session], int32(len(b.w.Turns))
	if fresh {
		if row.DelayMs != 0 {
			return Fault{Code: FirstTurnDelay, Ms: row.DelayMs}
		}
		s.StartMs, s.HasStart = row.TimestampMs, row.HasTimestamp
		s.First, t.Next = self, self
		t.DelayMs = math.NaN()
		if row.HasTimestamp {
			t.DelayMs = row.TimestampMs
		}
		return Fault{}
	}
	last := &b.w.Turns[s.First]
	head := &b.w.Turns[last.Next]
	t.Index = last.Index + 1
	var f Fault
	if t.DelayMs, f = gapOf(row, head.DelayMs); f.Code != OK {
		return f
	}
	if row.HasTimestamp {
		head.DelayMs = row.TimestampMs
	}
	t.Next, last.Next, s.First = last.Next, self, self
	return Fault{}
}

// gapOf is how long a later turn waits for the one before it; lastMs is the
// last timestamp of its session, NaN: none yet.
func gapOf(row *trace.Row, lastMs float64) (ms float64, f Fault) {
	gap := row.TimestampMs - lastMs
	switch {
	case row.HasDelay && row.DelayMs < 0:
		return 0, Fault{Code: NegativeDelay, Ms: row.DelayMs}
	case row.HasDelay:
		return row.DelayMs, Fault{}
	case !row.HasTimestamp:
		return 0, Fault{}
	case math.IsNaN(gap):
		return 0, Fault{Code: NoTimestampBefore}
	case gap < 0:
		return 0, Fault{Code: TimestampBackward, Ms: gap}
	case math.IsInf(gap, 1):
		return 0, Fault{Code: TimestampTooFar}
	}
	return gap, Fault{}
}

// settle turns the rings of chain into chains.
func (b *Builder) settle() {
	for i := range b.w.Sessions {
		s := &b.w.Sessions[i]
		last := &b.w.Turns[s.First]
		s.First, last.Next = last.Next, -1
		b.w.Turns[s.First].DelayMs = 0
	}
}

// Finish returns the workload. The builder is of no use afterwards.
func (b *Builder) Finish(o Options) (*Workload, Fault) {
	if len(b.w.Turns) == 0 {
		return nil, Fault{Code: Empty}
	}
	b.settle()
	f := Fault{}
	switch {
	case o.AsWritten:
	case o.Concurrency:
		f = b.checkStarts()
	default:
		f = b.normalise(o.ArrivalSpeedup)
	}
	if f.Code != OK {
		return nil, f
	}
	if b.w.Delta = o.Delta && len(b.w.Turns) > len(b.w.Sessions); b.w.Delta {
		if f := b.checkTalks(); f.Code != OK {
			return nil, f
		}
	}
	return &b.w, Fault{}
}

// checkTalks refuses sessions whose last prompt can become too long.
func (b *Builder) checkTalks() Fault {
	for i, s := range b.w.Sessions {
		said := int64(0)
		for at := s.First; at >= 0; at = b.w.Turns[at].Next {
			t := &b.w.Turns[at]
			if said += int64(t.Input); said > maxCount {
				return Fault{Code: TalkTooLong, Line: int64(s.Line), Session: int32(i), Turn: t.Index, Found: said, Limit: maxCount}
			}
			said += int64(t.Output)
		}
	}
	return Fault{}
}

// checkStarts refuses negative starts, which a cap leaves as they are and does
// not use.
func (b *Builder) checkStarts() Fault {
	for i, s := range b.w.Sessions {
		if s.StartMs < 0 {
			return Fault{Code: NegativeStart, Line: int64(s.Line), Session: int32(i), Ms: s.StartMs}
		}
	}
	return Fault{}
}

// normalise lets the earliest session start at 0 and divides all times by the
// speed-up.
func (b *Builder) normalise(speedup float64) Fault {
	least := math.Inf(1)
	for i, s := range b.w.Sessions {
		if !s.HasStart {
			return Fault{Code: NoStart, Line: int64(s.Line), Session: int32(i)}
		}
		least = min(least, s.StartMs)
	}
	for i := range b.w.Sessions {
		s := &b.w.Sessions[i]
		if s.StartMs = (s.StartMs - least) / speedup; math.IsInf(s.StartMs, 0) {
			return Fault{Code: StartTooLate, Line: int64(s.Line), Session: int32(i)}
		}
	}
	for i := range b.w.Turns {
		t := &b.w.Turns[i]
		if t.DelayMs /= speedup; math.IsInf(t.DelayMs, 0) {
			line := int64(b.w.Sessions[t.Session].Line)
			return Fault{Code: DelayTooLong, Line: line, Session: t.Session, Turn: t.Index}
		}
	}
	return Fault{}
}
