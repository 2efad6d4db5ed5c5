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

// table answers with a part of a table with n rows: add takes a row into columns,
// which fields are of.
func (g *Guest) table(request []byte, n int, add func(i int), fields func() []frame.Field) []byte {
	from, to, ok := g.part(request, n)
	if !ok {
		return g.answer
	}
	for i := from; i < to; i++ {
		add(i)
	}
	return g.say(fields()...)
}

func (g *Guest) records(s *sim, request []byte) []byte {
	if !g.ended(s) {
		return g.answer
	}
	all := s.replay.Records()
	var c frame.RowColumns
	return g.table(request, len(all), func(i int) {
		r := &all[i]
		c.Add(r, s.replay.Admissions()[r.AdmissionStart:r.AdmissionStart+r.AdmissionCount])
	}, c.Fields)
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
	var c frame.TurnColumns
	return g.table(request, len(all), func(i int) { c.Add(&all[i]) }, c.Fields)
}

func (g *Guest) sessions(s *sim, request []byte) []byte {
	if !g.loaded(s) {
		return g.answer
	}
	all := s.load.Sessions
	var c frame.SessionColumns
	return g.table(request, len(all), func(i int) {
		c.First = append(c.First, all[i].First)
		c.Line = append(c.Line, all[i].Line)
		before := len(c.IDs)
		c.IDs = s.load.AppendSessionID(c.IDs, int32(i))
		c.IDLength = append(c.IDLength, int32(len(c.IDs)-before))
	}, c.Fields)
}

// handoffs are the rows beside those of records, of two pools.
func (g *Guest) handoffs(s *sim, request []byte) []byte {
	if !g.ended(s) {
		return g.answer
	}
	all := s.replay.Handoffs()
	var c frame.HandoffColumns
	return g.table(request, len(all), func(i int) { c.Add(&all[i]) }, c.Fields)
}

// routes has a row for each turn.
func (g *Guest) routes(s *sim, request []byte) []byte {
	if !g.ended(s) {
		return g.answer
	}
	var c frame.RouteColumns
	return g.table(request, len(s.load.Turns), func(i int) { c.Add(s.replay.Route(int32(i))) }, c.Fields)
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
