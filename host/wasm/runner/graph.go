package runner

import (
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/workload"
	"github.com/dryserve/dryserve/host/wasm/frame"
)

// graph returns the graph of the workload without its dependencies and times:
// what its requests and plays are called and how they belong together.
func (s *Sim) graph() (*workload.Graph, error) {
	var about frame.GraphAbout
	if err := s.do(frame.Graph, nil, about.Fields()); err != nil {
		return nil, err
	}
	g := &workload.Graph{
		BlockSize: about.BlockSize, SourceFormat: about.SourceFormat, SourceDigest: about.SourceDigest, NestedBasis: about.NestedBasis, Digest: about.Digest,
	}
	fits := true
	name := func(text []byte) int32 {
		i := g.Texts.Add(text)
		fits = fits && i >= 0
		return i
	}
	fits = about.Models.Each(func(_ int, text []byte) { g.Models = append(g.Models, name(text)) }) && fits
	if err := s.nodes(g, name); err != nil {
		return nil, err
	}
	if err := s.plays(g, about.Plays, name); err != nil {
		return nil, err
	}
	n, plays := int32(len(g.Nodes)), int32(len(g.Plays))
	for _, x := range g.Nodes {
		fits = fits && x.Play >= 0 && x.Play < plays && x.Parent >= -1 && x.Parent < n
	}
	for _, p := range g.Plays {
		fits = fits && p.Root >= -1 && p.Root < n
	}
	if !fits || about.Nodes != s.fed.Turns {
		return nil, errColumns
	}
	g.Nodes = append(g.Nodes, workload.Node{}) // ends the lists of the last
	return g, nil
}

func (s *Sim) nodes(g *workload.Graph, name func([]byte) int32) error {
	var c frame.NodeColumns
	return s.parts(frame.Nodes, s.fed.Turns, c.Fields, func() (int, error) {
		n, ok := c.Rows()
		ok = ok && c.Requests.Each(func(i int, text []byte) {
			g.Nodes = append(g.Nodes, workload.Node{Request: name(text), Play: c.Play[i], Parent: c.Parent[i]})
		})
		if !ok {
			return 0, errColumns
		}
		return n, nil
	})
}

func (s *Sim) plays(g *workload.Graph, plays int, name func([]byte) int32) error {
	var c frame.PlayColumns
	return s.parts(frame.Plays, plays, c.Fields, func() (int, error) {
		n, ok := c.Rows()
		ok = ok && c.Plays.Each(func(i int, text []byte) {
			g.Plays = append(g.Plays, workload.Play{ID: name(text), Root: c.Root[i]})
		})
		if !ok {
			return 0, errColumns
		}
		return n, nil
	})
}

// Outcomes adds to the summary of a graph what became of its plays, and returns
// their lanes.
func (s *Sim) Outcomes(a *replay.AgentsSummary) (lanes []int32, err error) {
	var c frame.OutcomeColumns
	err = s.parts(frame.Outcomes, int(a.Plays), c.Fields, func() (int, error) {
		before := len(lanes)
		var ok bool
		if a.Outcomes, lanes, ok = c.Rows(a.Outcomes, lanes); !ok {
			return 0, errColumns
		}
		return len(lanes) - before, nil
	})
	for _, o := range a.Outcomes {
		if o.FailedNode < -1 || int(o.FailedNode) >= s.fed.Turns || o.Failed && o.FailedNode < 0 {
			return nil, errColumns
		}
	}
	return lanes, err
}
