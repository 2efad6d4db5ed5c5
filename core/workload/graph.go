package workload

import "github.com/dryserve/dryserve/core/trace"

// Dep is one request that another one waits for.
type Dep struct {
	Node     int32
	Trigger  trace.Trigger
	Relation trace.Relation
	DelayMs  float64 // after the moment
}

// Node is a request of a graph.
type Node struct {
	NotBeforeMs float64
	Request     int32 // index into Texts
	Play        int32
	Deps        int32 // its dependencies begin here in Graph.Deps; the next node's end them
	Follows     int32 // likewise what depends on it, in Graph.Follows
	Parent      int32 // node that spawned it, -1: none
}

// Follow is a dependency seen from the request that is waited for.
type Follow struct {
	Node    int32 // that waits
	Trigger trace.Trigger
	DelayMs float64
}

// Play is a connected part of a graph: one run of an agent with all it calls.
type Play struct {
	ID      int32   // index into Texts
	FirstMs float64 // the earliest NotBeforeMs of its roots
	Nodes   int32   // number of them
	Root    int32   // the node without dependencies, if it is the only one, else -1
}

// Graph is a workload of requests that wait for each other (replay notes
// §3.4). Node i is turn i, in a session of its own; sessions of one id are one
// conversation. Nodes are in order of their ids, plays in the order they are
// to be run.
type Graph struct {
	Nodes   []Node // and one more, which ends the lists of the last
	Deps    []Dep
	Follows []Follow
	Plays   []Play
	Texts   Texts

	BlockSize    int
	SourceFormat string
	SourceDigest string
	NestedBasis  string  // what nested times counted from, where the source may leave that open
	Models       []int32 // the requests' models, each once, sorted; indices into Texts
	Digest       [32]byte
}

// Request and PlayID are the names of a node and of a play.
func (g *Graph) Request(node int32) []byte { return g.Texts.At(g.Nodes[node].Request) }
func (g *Graph) PlayID(play int32) []byte  { return g.Texts.At(g.Plays[play].ID) }
