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
	var c frame.NodeColumns
	return g.table(request, len(s.load.Turns), func(i int) { c.Add(s.load.Graph, int32(i)) }, c.Fields)
}

func (g *Guest) plays(s *sim, request []byte) []byte {
	if !g.woven(s) {
		return g.answer
	}
	var c frame.PlayColumns
	return g.table(request, len(s.load.Graph.Plays), func(i int) { c.Add(s.load.Graph, int32(i)) }, c.Fields)
}

func (g *Guest) outcomes(s *sim, request []byte) []byte {
	if !g.ended(s) || !g.woven(s) {
		return g.answer
	}
	all := s.reduced().Agents.Outcomes
	var c frame.OutcomeColumns
	return g.table(request, len(all), func(i int) { c.Add(&all[i], s.replay.Lane(int32(i))) }, c.Fields)
}
