package guest

import (
	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/wasm/frame"
)

// part reads a request for a part of a table with n rows.
func (g *Guest) part(request []byte, n int) (from, to int, ok bool) {
	p := frame.Part{Most: n}
	if !g.read(request, p.Fields()...) {
		return 0, 0, false
	}
	for _, f := range p.Fields() {
		if *f.Var.(*int) < 0 {
			g.refuse(frame.Fault{Code: frame.NotInRange, Name: f.Name})
			return 0, 0, false
		}
	}
	from = min(p.From, n)
	return from, from + min(p.Most, n-from), true
}

func (g *Guest) records(s *sim, request []byte) []byte {
	if !g.ended(s) {
		return g.answer
	}
	all := s.replay.Records()
	from, to, ok := g.part(request, len(all))
	if !ok {
		return g.answer
	}
	var c frame.RowColumns
	for i := from; i < to; i++ {
		r := &all[i]
		c.Add(r, s.replay.Admissions()[r.AdmissionStart:r.AdmissionStart+r.AdmissionCount])
	}
	return g.say(c.Fields()...)
}

func (g *Guest) unservable(s *sim, request []byte) []byte {
	if !g.ended(s) {
		return g.answer
	}
	all := s.replay.Unservable()
	from, to, ok := g.part(request, len(all))
	if !ok {
		return g.answer
	}
	all = all[from:to]
	return g.say(frame.Field{Name: "turn", Var: &all})
}

// loaded reports whether a simulation has its whole workload.
func (g *Guest) loaded(s *sim) bool {
	return g.place(s, frame.Running, frame.NeedTiming, frame.NeedScaling, frame.Done)
}

func (g *Guest) turns(s *sim, request []byte) []byte {
	if !g.loaded(s) {
		return g.answer
	}
	all := s.load.Turns
	from, to, ok := g.part(request, len(all))
	if !ok {
		return g.answer
	}
	var c frame.TurnColumns
	for i := from; i < to; i++ {
		t := &all[i]
		c.Add(t)
	}
	return g.say(c.Fields()...)
}

func (g *Guest) sessions(s *sim, request []byte) []byte {
	if !g.loaded(s) {
		return g.answer
	}
	all := s.load.Sessions
	from, to, ok := g.part(request, len(all))
	if !ok {
		return g.answer
	}
	var c frame.SessionColumns
	for i := from; i < to; i++ {
		c.First = append(c.First, all[i].First)
		c.Line = append(c.Line, all[i].Line)
		before := len(c.IDs)
		c.IDs = s.load.AppendSessionID(c.IDs, int32(i))
		c.IDLength = append(c.IDLength, int32(len(c.IDs)-before))
	}
	return g.say(c.Fields()...)
}

// handoffs are the rows beside those of records, of two pools.
func (g *Guest) handoffs(s *sim, request []byte) []byte {
	if !g.ended(s) {
		return g.answer
	}
	all := s.replay.Handoffs()
	from, to, ok := g.part(request, len(all))
	if !ok {
		return g.answer
	}
	var c frame.HandoffColumns
	for i := from; i < to; i++ {
		c.Add(&all[i])
	}
	return g.say(c.Fields()...)
}

// routes has a row for each turn.
func (g *Guest) routes(s *sim, request []byte) []byte {
	if !g.ended(s) {
		return g.answer
	}
	from, to, ok := g.part(request, len(s.load.Turns))
	if !ok {
		return g.answer
	}
	var c frame.RouteColumns
	for i := from; i < to; i++ {
		c.Add(s.replay.Route(int32(i)))
	}
	return g.say(c.Fields()...)
}

// recording gives out what happened since it was asked last.
func (g *Guest) recording(s *sim, request []byte) []byte {
	if !g.read(request) {
		return g.answer
	}
	if s.replay == nil || !s.run.Record {
		return g.refuse(frame.Fault{Code: frame.WrongState, Found: int64(s.status)})
	}
	s.replay.TakeRecording(&s.tape)
	s.columns.Set(&s.tape)
	return g.say(s.columns.Fields()...)
}

// direct takes the worker of each turn.
func (g *Guest) direct(s *sim, request []byte) []byte {
	var workers []int32
	if !g.place(s, frame.Running) || !g.read(request, frame.Field{Name: "worker", Var: &workers, Need: true}) {
		return g.answer
	}
	if s.replay != nil || s.run.Routing.Mode != config.Direct {
		return g.refuse(frame.Fault{Code: frame.WrongState, Found: int64(s.status)})
	}
	fits := len(workers) == len(s.load.Turns)
	for _, w := range workers {
		fits = fits && w >= 0 && int(w) < s.run.NumWorkers
	}
	if !fits {
		return g.refuse(frame.Fault{Code: frame.NotInRange, Name: "worker"})
	}
	s.load.Targets = workers
	return g.say()
}
