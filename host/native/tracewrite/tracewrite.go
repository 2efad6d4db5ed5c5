// Package tracewrite writes workloads as Mooncake JSON lines.
//
// It owns which rows a workload becomes and how they are spelt, and says what
// rows cannot carry. It does not read traces (tracefile does) and does not own
// files (report does).
//
// Invariants: what has no losses is read back as the same workload, times to
// the last bit. Fields that change no replay are not written.
package tracewrite

import (
	"bufio"
	"io"
	"strconv"

	"github.com/dryserve/dryserve/core/workload"
	"github.com/dryserve/dryserve/host/native/cliutil"
)

// Losses are what the rows do not say.
type Losses struct {
	BlockSize int64 // tokens of a hash id: a replay has to be told
	Delta     bool  // rows hold increments: a replay has to be told
	NoStarts  bool  // sessions have no start
	Inexact   int64 // times that no number of a trace is read as; the nearest is written

	Plays     int64 // of agents, which become sessions
	Waits     int64 // requests that wait for others
	Turns     int64 // those of them that became the turn after what they wait for
	PartTurns int64 // those of these that wait for others, too
	Floors    int64 // those of the turns that have a time before which they may not begin
}

// Rows is how many rows Write writes.
func Rows(load *workload.Workload) int { return len(load.Turns) }

// Write writes load, which was loaded as it is written.
func Write(w io.Writer, load *workload.Workload) (Losses, error) {
	out := &writer{w: bufio.NewWriterSize(w, 1<<16), load: load}
	out.losses.BlockSize, out.losses.Delta = int64(load.TraceBlockSize), load.Delta
	if load.Graph != nil {
		out.losses.BlockSize = int64(load.Graph.BlockSize)
		return out.losses, out.end(out.graph())
	}
	out.named = namesAll(load)
	for i := range load.Turns {
		if err := out.turn(int32(i)); err != nil {
			return out.losses, err
		}
	}
	return out.losses, out.end(nil)
}

// writer is one Write.
type writer struct {
	w      *bufio.Writer
	load   *workload.Workload
	losses Losses
	named  bool // every row has a session id
	row    []byte
	ids    []uint64
	spell  speller
}

func (w *writer) end(err error) error {
	if err == nil {
		err = w.w.Flush()
	}
	return err
}

// namesAll reports whether rows without a session id could be taken for ones of
// another session, or for another name: then all have theirs.
func namesAll(load *workload.Workload) bool {
	if load.Unlined {
		return true
	}
	for i := range load.Sessions {
		id := load.SessionID(int32(i))
		if !load.Named(int32(i)) {
			s := &load.Sessions[i]
			if string(id) != string(workload.AppendLineID(nil, int64(s.Line))) || load.Turns[s.First].Next >= 0 {
				return true // the format has names of its own, or a row names a line
			}
			continue
		}
		if workload.IsLineID(id) {
			return true
		}
	}
	return false
}

// turn writes turn i of a workload of sessions.
func (w *writer) turn(i int32) error {
	t := &w.load.Turns[i]
	s := &w.load.Sessions[t.Session]
	w.row = append(w.row[:0], '{')
	if w.named || w.load.Named(t.Session) {
		w.text("session_id", w.load.SessionID(t.Session))
	}
	switch {
	case t.Index > 0:
		w.time("delay", t.DelayMs)
	case s.HasStart:
		w.time("timestamp", s.StartMs)
	default:
		w.losses.NoStarts = true
	}
	w.prompt(i)
	return w.finish()
}

func (w *writer) key(name string) {
	if len(w.row) > 1 {
		w.row = append(w.row, ", "...)
	}
	w.row = append(append(append(w.row, '"'), name...), "\": "...)
}

func (w *writer) text(name string, text []byte) {
	w.key(name)
	w.row = cliutil.AppendJSONString(w.row, text)
}

func (w *writer) whole(name string, n int64) {
	w.key(name)
	w.row = strconv.AppendInt(w.row, n, 10)
}

func (w *writer) time(name string, ms float64) {
	w.key(name)
	var exact bool
	if w.row, exact = w.spell.append(w.row, ms); !exact {
		w.losses.Inexact++
	}
}

// prompt writes what a turn asks for, and how a router may treat it.
func (w *writer) prompt(i int32) {
	t := &w.load.Turns[i]
	w.whole("input_length", int64(t.Input))
	w.whole("output_length", int64(t.Output))
	w.key("hash_ids")
	w.ids = w.load.Prompts.AppendIDs(w.ids[:0], t.Leaf, int(t.IDs))
	w.row = append(w.row, '[')
	for n, id := range w.ids {
		if n > 0 {
			w.row = append(w.row, ", "...)
		}
		w.row = strconv.AppendUint(w.row, id, 10)
	}
	w.row = append(w.row, ']')
	if t.Planned >= 0 {
		w.key("output_token_ids")
		w.row = append(w.row, '[')
		for n, id := range w.load.Planned[w.load.PlannedOff[t.Planned]:w.load.PlannedOff[t.Planned+1]] {
			if n > 0 {
				w.row = append(w.row, ", "...)
			}
			w.row = strconv.AppendUint(w.row, uint64(id), 10)
		}
		w.row = append(w.row, ']')
	}
	c := w.load.Class(i)
	if c.Priority != 0 {
		w.whole("priority", int64(c.Priority))
	}
	if c.Strict != 0 {
		w.whole("strict_priority", int64(c.Strict))
	}
	if c.Policy >= 0 {
		w.text("policy_class", w.load.Policies.At(c.Policy))
	}
}

func (w *writer) finish() error {
	_, err := w.w.Write(append(w.row, "}\n"...))
	return err
}
