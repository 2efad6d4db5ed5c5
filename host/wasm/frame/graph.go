package frame

import (
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/workload"
)

// Names are a column of texts: their lengths in bytes, and all of them one after
// the other.
type Names struct {
	Lengths []int32
	Text    []byte
}

// fields are the two columns; rows are counted by the first.
func (n *Names) fields(name string) []Field {
	return []Field{{Name: name + "_length", Var: &n.Lengths}, {Name: name + "s", Var: &n.Text}}
}

func (n *Names) add(text []byte) {
	push(&n.Lengths, int32(len(text)))
	n.Text = append(n.Text, text...)
}

// Each calls with every text; false: the columns do not belong together.
func (n *Names) Each(visit func(i int, text []byte)) bool {
	rest := n.Text
	for i, length := range n.Lengths {
		if length < 0 || int(length) > len(rest) {
			return false
		}
		visit(i, rest[:length])
		rest = rest[length:]
	}
	return len(rest) == 0
}

// GraphAbout is what a graph of requests is as a whole.
type GraphAbout struct {
	BlockSize, Nodes, Plays                 int
	Digest                                  [32]byte
	SourceFormat, SourceDigest, NestedBasis string
	Models                                  Names
}

// Fields lists the keys.
func (a *GraphAbout) Fields() []Field {
	return append([]Field{
		{Name: "block_size", Var: &a.BlockSize}, {Name: "nodes", Var: &a.Nodes}, {Name: "plays", Var: &a.Plays}, {Name: "digest", Var: &a.Digest},
		{Name: "source_format", Var: &a.SourceFormat}, {Name: "source_digest", Var: &a.SourceDigest}, {Name: "nested_basis", Var: &a.NestedBasis},
	}, a.Models.fields("model")...)
}

// About describes a graph.
func About(g *workload.Graph) *GraphAbout {
	a := &GraphAbout{
		BlockSize: g.BlockSize, Nodes: len(g.Nodes) - 1, Plays: len(g.Plays), Digest: g.Digest,
		SourceFormat: g.SourceFormat, SourceDigest: g.SourceDigest, NestedBasis: g.NestedBasis,
	}
	for _, m := range g.Models {
		a.Models.add(g.Texts.At(m))
	}
	return a
}

// NodeColumns are the requests of a graph in the order of the turns: their
// names, their play, and the request that spawned them, -1: none.
type NodeColumns struct {
	Play, Parent []int32
	Requests     Names
}

// Fields lists the columns.
func (c *NodeColumns) Fields() []Field {
	return append([]Field{{Name: "play", Var: &c.Play}, {Name: "parent", Var: &c.Parent}}, c.Requests.fields("request")...)
}

// Add appends a row.
func (c *NodeColumns) Add(g *workload.Graph, i int32) {
	push(&c.Play, g.Nodes[i].Play)
	push(&c.Parent, g.Nodes[i].Parent)
	c.Requests.add(g.Request(i))
}

// Rows is how many rows there are; false: the columns do not belong together.
func (c *NodeColumns) Rows() (int, bool) { return even(c.Fields()[:3]) }

// PlayColumns are the plays of a graph: their names, and the request that they
// begin with, -1: with several.
type PlayColumns struct {
	Root  []int32
	Plays Names
}

// Fields lists the columns.
func (c *PlayColumns) Fields() []Field {
	return append([]Field{{Name: "root", Var: &c.Root}}, c.Plays.fields("play")...)
}

// Add appends a row.
func (c *PlayColumns) Add(g *workload.Graph, i int32) {
	push(&c.Root, g.Plays[i].Root)
	c.Plays.add(g.PlayID(i))
}

// Rows is how many rows there are; false: the columns do not belong together.
func (c *PlayColumns) Rows() (int, bool) { return even(c.Fields()[:2]) }

// OutcomeColumns are what became of the plays of a graph.
type OutcomeColumns struct {
	Lane, Settled, Failed, FailedNode, Status []int32
	TerminalMs, SettledMs                     []float64
}

// Fields lists the columns.
func (c *OutcomeColumns) Fields() []Field {
	return []Field{
		{Name: "lane", Var: &c.Lane}, {Name: "settled", Var: &c.Settled}, {Name: "failed", Var: &c.Failed},
		{Name: "failed_node", Var: &c.FailedNode}, {Name: "status", Var: &c.Status},
		{Name: "terminal_ms", Var: &c.TerminalMs}, {Name: "settled_ms", Var: &c.SettledMs},
	}
}

// Add appends a row.
func (c *OutcomeColumns) Add(o *replay.PlayOutcome, lane int32) {
	push(&c.Lane, lane)
	push(&c.Settled, oneIf(o.Settled))
	push(&c.Failed, oneIf(o.Failed))
	push(&c.FailedNode, o.FailedNode)
	push(&c.Status, int32(o.Status))
	note(&c.TerminalMs, o.TerminalMs)
	note(&c.SettledMs, o.SettledMs)
}

// Rows appends the columns' rows; false: they do not belong together.
func (c *OutcomeColumns) Rows(outcomes []replay.PlayOutcome, lanes []int32) ([]replay.PlayOutcome, []int32, bool) {
	n, ok := even(c.Fields())
	for i := range n {
		if c.Status[i] < 0 || c.Status[i] > int32(replay.Failed) {
			return outcomes, lanes, false
		}
		outcomes = append(outcomes, replay.PlayOutcome{
			Settled: c.Settled[i] != 0, Failed: c.Failed[i] != 0, TerminalMs: c.TerminalMs[i], SettledMs: c.SettledMs[i],
			FailedNode: c.FailedNode[i], Status: replay.TerminalStatus(c.Status[i]),
		})
	}
	return outcomes, append(lanes, c.Lane...), ok
}
