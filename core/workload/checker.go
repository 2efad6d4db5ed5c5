package workload

import (
	"math"

	"github.com/dryserve/dryserve/core/trace"
	"github.com/zeebo/xxh3"
)

// Checker checks Mooncake rows as a Builder does and keeps none of them. What
// it keeps is some 40 bytes for every session with an id, however long the trace.
// A row that is wrong does not end the check.
//
// Sessions are told apart by XXH3-64 of their ids: two of ten million share one
// with odds of 1 in 400,000. An id request_<line> of a row before is not known
// to belong to that row (Unsure).
type Checker struct {
	BlockSizes BlockSizes
	Rows       int64 // that were right
	Unsure     int64 // line of the first id request_<line> that names a row before, 0: none

	Unstarted int64   // sessions without a start
	NoStarts  []Named // the first of them, by Line and Session

	blockSize int64
	delta     bool
	planned   int64
	sessions  []talk
	table     []int32 // open addressing: 1 + index into sessions, 0: empty
	ahead     bool    // an id request_<line> of a line still to come exists
	scratch   []byte

	earliestMs, latestMs float64
	latest               Named // the session that starts last
}

// talk is a session up to its last row.
type talk struct {
	hash    uint64
	lastMs  float64 // its last timestamp, NaN: none yet
	said    int64   // tokens of all rows
	turns   int32
	spoiled bool // a row was wrong: those after it cannot be checked against it
}

// Checked is what a row that is right says.
type Checked struct {
	Line    int64
	Input   int64 // tokens
	Output  int64 // tokens
	Blocks  int64 // hash ids that the input needs; more are given sometimes
	Session int32 // number of its session, from 0; -1: a session of its own without an id
	Turn    int32 // ordinal in the session
	Said    int64 // tokens of the session before

	HasStart bool // the row begins a session, at StartMs
	StartMs  float64
	DelayMs  float64 // of later turns
}

// maxNoStarts bounds the sessions that are kept.
const maxNoStarts = 20

// NewChecker makes a checker for rows whose hash ids cover traceBlockSize > 0
// tokens each; delta: they hold what is new in their session only.
func NewChecker(traceBlockSize int, delta bool) *Checker {
	return &Checker{
		BlockSizes: all(), blockSize: int64(traceBlockSize), delta: delta, table: make([]int32, 64),
		earliestMs: math.Inf(1), latestMs: math.Inf(-1),
	}
}

// Sessions is the number of sessions with an id.
func (c *Checker) Sessions() int { return len(c.sessions) }

// Turns is how many rows session i has.
func (c *Checker) Turns(i int32) int32 { return c.sessions[i].turns }

// Add checks the row of a line; lines ascend.
func (c *Checker) Add(row *trace.Row, line int64) (Checked, Fault) {
	if line > maxCount {
		return Checked{}, Fault{Code: TooManyLines, Line: line, Limit: maxCount}
	}
	if c.Rows == maxCount {
		return Checked{}, Fault{Code: TooManyRows, Line: line, Limit: maxCount}
	}
	input, blocks, f := promptOf(row, c.blockSize)
	if f.Code == OK {
		f = outputOf(row, c.planned)
	}
	alone := talk{}
	s, at := &alone, c.session(row.SessionID, line)
	if at >= 0 {
		s = &c.sessions[at]
	}
	k := Checked{Line: line, Input: input, Output: row.OutputLength, Blocks: blocks, Session: at, Turn: s.turns, Said: s.said}
	if f.Code == OK {
		k.DelayMs, f = c.chain(row, s, input)
	}
	if f.Code != OK {
		s.spoiled = true
		f.Line = line
		return Checked{}, f
	}
	if s.turns == 0 {
		k.HasStart, k.StartMs = row.HasTimestamp, row.TimestampMs
		c.begin(row, s, line)
	}
	if row.HasTimestamp {
		s.lastMs = row.TimestampMs
	}
	s.turns++
	s.said += input + row.OutputLength
	if row.InputLength >= 0 {
		c.BlockSizes.note(input, int64(len(row.HashIDs)), blocks, line)
	}
	c.planned += int64(len(row.OutputIDs))
	c.Rows++
	return k, Fault{}
}

// begin notes the start of a session. One whose first row was wrong need have
// none.
func (c *Checker) begin(row *trace.Row, s *talk, line int64) {
	switch {
	case row.HasTimestamp:
		c.earliestMs = min(c.earliestMs, row.TimestampMs)
		if row.TimestampMs > c.latestMs {
			c.latestMs, c.latest.Line = row.TimestampMs, line
			c.latest.Session = c.appendID(c.latest.Session[:0], row, line)
		}
	case !s.spoiled:
		if c.Unstarted++; len(c.NoStarts) < maxNoStarts {
			c.NoStarts = append(c.NoStarts, Named{Line: line, Session: c.appendID(nil, row, line)})
		}
	}
}

func (c *Checker) appendID(dst []byte, row *trace.Row, line int64) []byte {
	if row.SessionID != nil {
		return append(dst, row.SessionID...)
	}
	return AppendLineID(dst, line)
}

// Started reports whether any session has a start.
func (c *Checker) Started() bool { return c.latest.Line > 0 }

// Latest is the id of the session that starts last.
func (c *Checker) Latest() []byte { return c.latest.Session }

// Finish checks the rows together.
func (c *Checker) Finish() Fault {
	switch {
	case c.Rows == 0:
		return Fault{Code: Empty}
	case math.IsInf(c.latestMs-c.earliestMs, 1):
		return Fault{Code: StartTooLate, Line: c.latest.Line}
	}
	return Fault{}
}

// chain checks a row against its session and finds its delay.
func (c *Checker) chain(row *trace.Row, s *talk, input int64) (delayMs float64, f Fault) {
	switch {
	case s.turns == 0 && !s.spoiled && row.DelayMs != 0:
		return 0, Fault{Code: FirstTurnDelay, Ms: row.DelayMs}
	case s.turns == 0 && !s.spoiled:
		return 0, Fault{}
	}
	if delayMs, f = gapOf(row, s.lastMs); f.Code != OK {
		f.Turn = s.turns
		if s.spoiled && f.Code != NegativeDelay {
			return 0, Fault{} // the row it follows is not known
		}
		return 0, f
	}
	if c.delta && s.said+input > maxCount {
		return 0, Fault{Code: TalkTooLong, Turn: s.turns, Found: s.said + input, Limit: maxCount}
	}
	return delayMs, Fault{}
}

// session finds the session of a row, or makes it; -1: it has no id.
func (c *Checker) session(id []byte, line int64) int32 {
	if id == nil {
		if c.ahead {
			c.scratch = AppendLineID(c.scratch[:0], line)
			return c.table[c.slot(xxh3.Hash(c.scratch))] - 1
		}
		return -1
	}
	if named := lineOf(id); named > line {
		c.ahead = true
	} else if named > 0 && named < line && c.Unsure == 0 {
		c.Unsure = line
	}
	hash := xxh3.Hash(id)
	slot := c.slot(hash)
	if i := c.table[slot]; i > 0 {
		return i - 1
	}
	if len(c.sessions)*4 >= len(c.table)*3 {
		c.grow()
		slot = c.slot(hash)
	}
	c.sessions = append(c.sessions, talk{hash: hash, lastMs: math.NaN()})
	c.table[slot] = int32(len(c.sessions))
	return c.table[slot] - 1
}

// slot is where a session is or belongs.
func (c *Checker) slot(hash uint64) int {
	mask := uint64(len(c.table) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		n := c.table[i]
		if n == 0 || c.sessions[n-1].hash == hash {
			return int(i)
		}
	}
}

func (c *Checker) grow() {
	c.table = make([]int32, 2*len(c.table))
	for i := range c.sessions {
		c.table[c.slot(c.sessions[i].hash)] = int32(i + 1)
	}
}
