package workload

import (
	"math"

	"github.com/dryserve/dryserve/core/trace"
)

// Counted makes a workload of requests of which only times and lengths are
// known. Prompts get blocks of their own, with two exceptions: a share of their
// first blocks may be their group's, and in a session a prompt that is longer
// than the prompt and the answer before it goes on from them.
type Counted struct {
	b         *Builder
	table     trace.Table
	blockSize int64
	ratio     float64
	groups    uint32
	capped    bool
	base      int64 // TimeNs of the first row
	rows      int64 // that were added
	sessions  uint64
	fresh     uint64 // blocks numbered so far
	ids       Texts  // of sessions
	open      []talkSoFar
	alone     talkSoFar // for requests without a session
	row       trace.Row
}

// talkSoFar is a session up to its last request.
type talkSoFar struct {
	number uint64
	ids    []uint64
	tokens int64   // of the last prompt and its answer
	endS   float64 // when the answer was complete
}

// NewCounted makes a builder. ratio, from 0 to 1, is the share of a prompt's
// blocks that all sessions of a group begin with; session i belongs to group i
// mod groups, and a request without a session is one of its own. With 0 groups
// nothing is shared. capped: a cap starts the sessions.
func NewCounted(table trace.Table, traceBlockSize int, ratio float64, groups uint32, capped bool) *Counted {
	return &Counted{
		b: NewBuilder(traceBlockSize), table: table, blockSize: int64(traceBlockSize), ratio: ratio, groups: groups, capped: capped,
	}
}

// AppendSessionID appends the id of the session of a Fault.
func (c *Counted) AppendSessionID(dst []byte, i int32) []byte { return c.b.AppendSessionID(dst, i) }

// Add adds the request of a line; lines ascend.
func (c *Counted) Add(r *trace.TableRow, line int64) Fault {
	switch {
	case r.Input == 0:
		return Fault{Code: InputZero, Line: line}
	case r.Input > maxCount:
		return Fault{Code: InputTooLong, Line: line, Found: r.Input, Limit: maxCount}
	case r.Output > maxCount:
		return Fault{Code: OutputTooLong, Line: line, Found: r.Output, Limit: maxCount}
	case ceilDiv(r.Input, c.blockSize) > MaxIDs:
		return Fault{Code: TooManyIDs, Line: line, Limit: MaxIDs}
	}
	timeMs := r.TimeS * 1000
	if c.table == trace.AzureTable {
		if c.rows == 0 {
			c.base = r.TimeNs
		}
		timeMs = float64(r.TimeNs-c.base) / 1e6
	}
	if math.IsInf(timeMs, 0) {
		return Fault{Code: StartTooLate, Line: line}
	}
	c.rows++
	talk, first, f := c.talk(r.Session, line)
	if f.Code != OK {
		return f
	}
	c.row = trace.Row{SessionID: r.Session, InputLength: r.Input, OutputLength: r.Output}
	switch {
	case !first: // so much later than the answer before was complete
		c.row.DelayMs, c.row.HasDelay = float64(max(0, r.TimeS-talk.endS)*1000), true
	case !c.capped:
		c.row.TimestampMs, c.row.HasTimestamp = timeMs, true
	}
	c.prompt(talk, r.Input)
	talk.tokens, talk.endS = r.Input+r.Output, r.TimeS+r.ElapsedS
	c.row.HashIDs = talk.ids
	return c.b.Add(&c.row, line)
}

// talk finds the session of a request, or opens it.
func (c *Counted) talk(session []byte, line int64) (talk *talkSoFar, first bool, f Fault) {
	if session == nil {
		c.alone = talkSoFar{number: c.sessions, ids: c.alone.ids[:0]}
		c.sessions++
		return &c.alone, true, Fault{}
	}
	i := c.ids.Add(session)
	if i < 0 {
		return nil, false, Fault{Code: TooMuchText, Line: line, Limit: maxText}
	}
	if first = int(i) == len(c.open); first {
		c.open = append(c.open, talkSoFar{number: c.sessions})
		c.sessions++
	}
	return &c.open[i], first, Fault{}
}

// prompt names the blocks of the talk's next prompt.
func (c *Counted) prompt(talk *talkSoFar, input int64) {
	if input <= talk.tokens { // it does not repeat what was said
		talk.ids = talk.ids[:0]
	}
	common := 0
	if c.ratio > 0 && c.groups > 0 && len(talk.ids) == 0 {
		common = int(math.Round(float64(ceilDiv(input, c.blockSize)) * c.ratio))
	}
	for int64(len(talk.ids))*c.blockSize < input {
		const shared = 0xA63E << 48 // the namespace of groups
		if i := len(talk.ids); i < common {
			talk.ids = append(talk.ids, shared|talk.number%uint64(c.groups)<<32|uint64(i))
		} else {
			c.fresh++
			talk.ids = append(talk.ids, c.fresh)
		}
	}
}

// Finish returns the workload.
func (c *Counted) Finish(o Options) (*Workload, Fault) { return c.b.Finish(o) }
