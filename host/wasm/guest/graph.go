package guest

import "github.com/dryserve/dryserve/host/wasm/frame"

// woven reports whether a simulation has a graph of requests.
func (g *Guest) woven(s *sim) bool {
	if !g.loaded(s) {
		return false
	}
	if s.load.Graph == nil {
		g.refuse(frame.Fault{Code: frame.WrongState, Found: int64(s.status)})
		return false
	}
	return true
}

func (g *Guest) graph(s *sim, request []byte) []byte {
	if !g.woven(s) || !g.read(request) {
		return g.answer
	}
	return g.say(frame.About(s.load.Graph).Fields()...)
}

func (g *Guest) nodes(s *sim, request []byte) []byte {
	if !g.woven(s) {
		return g.answer
	}
	from, to, ok := g.part(request, len(s.load.Turns))
	if !ok {
		return g.answer
	}
	var c frame.NodeColumns
	for i := from; i < to; i++ {
		c.Add(s.load.Graph, int32(i))
	}
	return g.say(c.Fields()...)
}

func (g *Guest) plays(s *sim, request []byte) []byte {
	if !g.woven(s) {
		return g.answer
	}
	from, to, ok := g.part(request, len(s.load.Graph.Plays))
	if !ok {
		return g.answer
	}
	var c frame.PlayColumns
	for i := from; i < to; i++ {
		c.Add(s.load.Graph, int32(i))
	}
	return g.say(c.Fields()...)
}

func (g *Guest) outcomes(s *sim, request []byte) []byte {
	if !g.ended(s) || !g.woven(s) {
		return g.answer
	}
	all := s.reduced().Agents.Outcomes
	from, to, ok := g.part(request, len(all))
	if !ok {
		return g.answer
	}
	var c frame.OutcomeColumns
	for i := from; i < to; i++ {
		c.Add(&all[i], s.replay.Lane(int32(i)))
	}
	return g.say(c.Fields()...)
}
