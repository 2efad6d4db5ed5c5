package runner

import (
	"errors"

	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/workload"
	"github.com/dryserve/dryserve/host/wasm/frame"
)

// rowsPerCall bounds the memory of an answer.
const rowsPerCall = 1 << 13

var errColumns = errors.New("core.wasm has answered with columns that do not belong together")

// parts asks for a table of n rows, -1 for unknown, part by part. take returns
// how many rows an answer had.
func (s *Sim) parts(op frame.Op, n int, fields func() []frame.Field, take func() (int, error)) error {
	for from := 0; from != n; {
		p := frame.Part{From: from, Most: rowsPerCall}
		if err := s.do(op, p.Fields(), fields()); err != nil {
			return err
		}
		rows, err := take()
		switch {
		case err != nil:
			return err
		case rows > rowsPerCall || rows < rowsPerCall && n >= 0 && from+rows != n:
			return errColumns
		case rows < rowsPerCall && n < 0:
			return nil
		}
		from += rows
	}
	return nil
}

// Records returns what is known of every request that has ended.
func (s *Sim) Records() (records []replay.Record, admissions []replay.Admission, err error) {
	var c frame.RowColumns
	err = s.parts(frame.Records, -1, c.Fields, func() (int, error) {
		var ok bool
		if records, admissions, ok = c.Rows(records, admissions); !ok {
			return 0, errColumns
		}
		return len(c.Turn), nil
	})
	return records, admissions, err
}

// Unservable lists the turns that failed because they can never be served, in
// file order.
func (s *Sim) Unservable() (turns []int32, err error) {
	var column []int32
	fields := func() []frame.Field { return []frame.Field{{Name: "turn", Var: &column}} }
	err = s.parts(frame.Unservable, -1, fields, func() (int, error) {
		turns = append(turns, column...)
		return len(column), nil
	})
	return turns, err
}

// rows asks for a whole table, whose columns' rows go behind those there are.
func rows[T any](s *Sim, op frame.Op, fields func() []frame.Field, add func([]T) ([]T, bool)) (all []T, err error) {
	err = s.parts(op, -1, fields, func() (int, error) {
		before := len(all)
		var ok bool
		if all, ok = add(all); !ok {
			return 0, errColumns
		}
		return len(all) - before, nil
	})
	return all, err
}

// Handoffs returns what is known besides of every record of a run in two pools.
func (s *Sim) Handoffs() ([]replay.Handoff, error) {
	var c frame.HandoffColumns
	return rows(s, frame.Handoffs, c.Fields, c.Rows)
}

// Routes returns what the KV router said of each turn, see replay.Sim.Route.
func (s *Sim) Routes() (func(turn int32) (replay.Route, bool), error) {
	type row struct {
		route  replay.Route
		routed bool
	}
	var all []row
	var c frame.RouteColumns
	err := s.parts(frame.Routes, s.fed.Turns, c.Fields, func() (int, error) {
		n, ok := c.Rows()
		if !ok {
			return 0, errColumns
		}
		for i := range n {
			r, routed := c.Row(i)
			all = append(all, row{r, routed})
		}
		return n, nil
	})
	return func(turn int32) (replay.Route, bool) {
		if int(turn) >= len(all) {
			return replay.Route{}, false
		}
		return all[turn].route, all[turn].routed
	}, err
}

// takeRecording gives what has happened since the last call to whom it may
// concern.
func (s *Sim) takeRecording(to func(*replay.Recording) error) error {
	if err := s.do(frame.TakeRecording, nil, s.columns.Fields()); err != nil {
		return err
	}
	if !s.columns.Get(&s.tape) {
		return errColumns
	}
	return to(&s.tape)
}

// Direct says to which worker each turn goes, where the routing is direct.
func (s *Sim) Direct(workers []int32) error {
	return s.do(frame.Direct, []frame.Field{{Name: "worker", Var: &workers}}, nil)
}

// Lifecycle returns what happened to the workers.
func (s *Sim) Lifecycle() ([]replay.Operation, error) {
	var c frame.LifecycleColumns
	return rows(s, frame.Lifecycle, c.Fields, c.Rows)
}

// Turns is the number of requests in the trace.
func (s *Sim) Turns() int { return s.fed.Turns }

// BlockSizes is what the trace says of its block size.
func (s *Sim) BlockSizes() workload.BlockSizes { return s.fed.BlockSizes }

// Outline returns the workload without its prompts and answers: which turns
// and sessions there are, how long they are, and what they are called.
func (s *Sim) Outline() (*workload.Workload, error) {
	turns := make([]workload.Turn, 0, s.fed.Turns)
	var t frame.TurnColumns
	err := s.parts(frame.Turns, s.fed.Turns, t.Fields, func() (int, error) {
		before := len(turns)
		var ok bool
		if turns, ok = t.Turns(turns); !ok {
			return 0, errColumns
		}
		return len(turns) - before, nil
	})
	if err != nil {
		return nil, err
	}
	sessions := make([]workload.Session, 0, s.fed.Sessions)
	var ids [][]byte
	var c frame.SessionColumns
	err = s.parts(frame.Sessions, s.fed.Sessions, c.Fields, func() (int, error) {
		if len(c.Line) != len(c.First) || len(c.IDLength) != len(c.First) {
			return 0, errColumns
		}
		text := c.IDs
		for i := range c.First {
			n := int(c.IDLength[i])
			if n < 0 || n > len(text) {
				return 0, errColumns
			}
			sessions = append(sessions, workload.Session{First: c.First[i], Line: c.Line[i]})
			ids = append(ids, text[:n])
			text = text[n:]
		}
		return len(c.First), nil
	})
	if err != nil {
		return nil, err
	}
	w := workload.Outline(turns, sessions, ids)
	if w == nil {
		return nil, errColumns
	}
	w.BlockSizes, w.Drawn, w.Unlined = s.fed.BlockSizes, s.fed.Drawn, s.fed.Unlined
	if s.fed.Graph {
		w.Graph, err = s.graph()
	}
	return w, err
}
