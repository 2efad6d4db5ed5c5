package replay

import (
	"cmp"
	"math"
	"slices"

	"github.com/dryserve/dryserve/core/sorting"
	"github.com/dryserve/dryserve/core/stats"
	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/workload"
)

// agents issues the requests of a graph: each when what it waits for has
// happened (replay notes §3.4). Without lanes every play is under way from the
// start and a request comes no earlier than its own time; with lanes so many
// plays are under way at once, in their order, and a play's times count from
// when its lane took it up.
type agents struct {
	graph *workload.Graph
	nodes []agentNode
	plays []agentPlay
	lanes int     // 0: none
	taken int     // plays taken up, with lanes
	order []int32 // nodes by play, in order of the nodes
	ready heap
	ended []endedNode // at this timestamp, not flushed yet
	quiet []int32     // those of which nothing is left, not flushed yet
	log   lifecycle
}

// agentNode is the state of a request.
type agentNode struct {
	readyMs float64 // no earlier than this, by what has happened
	open    int32   // dependencies that have not happened
	state   agentState
}

type agentState uint8

const (
	blocked agentState = iota // waits for others, or for its play
	ready                     // waits for its time
	underWay
	over // ended, or skipped
)

// agentPlay is the state of a play.
type agentPlay struct {
	first    int32 // its nodes begin here in agents.order
	todo     int32 // nodes that have not ended
	left     int32 // nodes of which something is left
	flying   int32 // of them, those that have begun
	lane     int32 // -1: none
	laneFree bool  // its lane has taken up another
	begunMs  float64
	lastMs   float64 // the last node's end, or the first failure
	settleMs float64
	failed   int32 // the node that failed first, -1: none
	fate     TerminalStatus
	settled  bool
}

// endedNode is a request that has ended.
type endedNode struct {
	node int32
	fate TerminalStatus
}

func newAgents(g *workload.Graph, lanes int) *agents {
	n := len(g.Nodes) - 1
	a := &agents{
		graph: g, lanes: min(lanes, len(g.Plays)), nodes: make([]agentNode, n), plays: make([]agentPlay, len(g.Plays)), order: make([]int32, n),
		ready: make(heap, 0, n), ended: make([]endedNode, 0, n), quiet: make([]int32, 0, n),
	}
	at := int32(0)
	for i := range a.plays {
		a.plays[i] = agentPlay{first: at, lane: -1, begunMs: math.NaN(), lastMs: math.NaN(), settleMs: math.NaN(), failed: -1}
		at += g.Plays[i].Nodes
	}
	for i := range a.nodes {
		a.nodes[i].open = g.Nodes[i+1].Deps - g.Nodes[i].Deps
		p := &a.plays[g.Nodes[i].Play]
		a.order[p.first+p.left] = int32(i)
		p.left++
		p.todo++
	}
	a.log.begin(g)
	for i := range a.plays {
		if a.lanes == 0 {
			a.start(int32(i), 0)
		} else if i < a.lanes {
			a.takeUp(int32(i), 0)
		}
	}
	return a
}

// takeUp lets a lane take up the next play.
func (a *agents) takeUp(lane int32, nowMs float64) {
	if a.taken == len(a.plays) {
		return
	}
	a.plays[a.taken].lane = lane
	a.taken++
	a.start(int32(a.taken-1), nowMs)
}

// start begins a play.
func (a *agents) start(play int32, nowMs float64) {
	p := &a.plays[play]
	for _, i := range a.order[p.first : p.first+p.left] {
		n := &a.nodes[i]
		n.readyMs = a.graph.Nodes[i].NotBeforeMs
		if a.lanes > 0 {
			n.readyMs = nowMs + max(0, n.readyMs-a.graph.Plays[play].FirstMs)
		}
		if n.open == 0 {
			a.wake(i)
		}
	}
}

// wake makes a node that waits for nothing any more wait for its time.
func (a *agents) wake(i int32) {
	a.nodes[i].state = ready
	a.ready.push(event{a.nodes[i].readyMs, i, i})
}

// skipStale drops entries of nodes that were skipped.
func (a *agents) skipStale() {
	for len(a.ready) > 0 && a.nodes[a.ready[0].id].state != ready {
		a.ready.pop()
	}
}

// next is the time of the next request in ms, +Inf if none is due by itself.
func (a *agents) next() float64 {
	a.skipStale()
	if len(a.ready) == 0 {
		return math.Inf(1)
	}
	return a.ready[0].atMs
}

// pop takes the first request due at nowMs.
func (a *agents) pop(nowMs float64) (turn int32, atMs float64, ok bool) {
	if a.next() > nowMs {
		return 0, 0, false
	}
	e := a.ready.pop()
	n := &a.nodes[e.id]
	n.state = underWay
	play := a.graph.Nodes[e.id].Play
	p := &a.plays[play]
	p.flying++
	if !(p.begunMs <= nowMs) {
		p.begunMs = nowMs
	}
	a.log.node(nowMs, play, e.id, "dispatch", "")
	a.fire(e.id, trace.Dispatch, nowMs)
	return e.id, e.atMs, true
}

// fire tells those that wait for a moment of a node that it has come.
func (a *agents) fire(i int32, moment trace.Trigger, nowMs float64) {
	for _, f := range a.graph.Follows[a.graph.Nodes[i].Follows:a.graph.Nodes[i+1].Follows] {
		n := &a.nodes[f.Node]
		if f.Trigger != moment || n.state != blocked {
			continue
		}
		n.readyMs = max(n.readyMs, nowMs+f.DelayMs)
		if n.open--; n.open == 0 {
			a.wake(f.Node)
		}
	}
}

// feedback takes a request that has ended at this timestamp; what follows from
// it happens in flush.
func (a *agents) feedback(turn int32, fate TerminalStatus) {
	a.ended = append(a.ended, endedNode{turn, fate})
}

// settled takes a request of which nothing is left, at this timestamp.
func (a *agents) settled(turn int32) { a.quiet = append(a.quiet, turn) }

// flush does what follows from the requests that have ended at nowMs: first
// their ends, then what they leave, each in order of the nodes.
func (a *agents) flush(nowMs float64) {
	if len(a.ended)+len(a.quiet) == 0 {
		return
	}
	sorting.Stable(a.ended, func(x, y endedNode) int { return cmp.Compare(x.node, y.node) })
	for _, e := range a.ended {
		play := a.graph.Nodes[e.node].Play
		a.log.node(nowMs, play, e.node, "causal_terminal", e.fate.String())
		a.nodes[e.node].state = over
		p := &a.plays[play]
		if p.failed < 0 {
			p.lastMs = nowMs
		}
		if p.todo--; p.todo == 0 && p.failed < 0 && e.fate == Completed {
			a.freeLane(p, nowMs)
		}
		if e.fate == Completed {
			a.fire(e.node, trace.Completion, nowMs)
		} else if p.failed < 0 {
			p.failed, p.fate = e.node, e.fate
			a.skip(play, nowMs)
		}
	}
	slices.Sort(a.quiet)
	for _, node := range a.quiet {
		play := a.graph.Nodes[node].Play
		a.log.node(nowMs, play, node, "quiescent", "")
		p := &a.plays[play]
		p.left--
		p.flying--
		if p.left == 0 || p.failed >= 0 && p.flying == 0 {
			a.settle(play, nowMs)
		}
	}
	a.ended, a.quiet = a.ended[:0], a.quiet[:0]
}

// skip ends the nodes of a failed play that have not begun.
func (a *agents) skip(play int32, nowMs float64) {
	p := &a.plays[play]
	for _, i := range a.order[p.first : p.first+a.graph.Plays[play].Nodes] {
		if n := &a.nodes[i]; n.state == blocked || n.state == ready {
			n.state = over
			a.log.node(nowMs, play, i, "skipped", "")
		}
	}
}

// settle ends a play.
func (a *agents) settle(play int32, nowMs float64) {
	p := &a.plays[play]
	p.settled, p.settleMs = true, nowMs
	a.log.play(nowMs, play, "play_quiescent")
	a.freeLane(p, nowMs)
}

// freeLane lets the lane of a play take up the next one: once all its requests
// have ended, or it has failed and nothing of it is left.
func (a *agents) freeLane(p *agentPlay, nowMs float64) {
	if p.lane >= 0 && !p.laneFree {
		p.laneFree = true
		a.takeUp(p.lane, nowMs)
	}
}

// String is the reference's word.
func (s TerminalStatus) String() string {
	switch s {
	case Completed:
		return "completed"
	case Rejected:
		return "rejected"
	case Canceled:
		return "canceled"
	}
	return "failed"
}

// summary says what became of the plays.
func (a *agents) summary() *AgentsSummary {
	s := &AgentsSummary{Plays: int64(len(a.plays)), Events: a.log.count, Digest: a.log.hash.Sum()}
	var latencies []float64 // ms, in order of the plays
	for i := range a.plays {
		p := &a.plays[i]
		if p.settled && p.failed < 0 {
			latencies = append(latencies, p.lastMs-p.begunMs)
		}
		s.Outcomes = append(s.Outcomes, PlayOutcome{
			Settled: p.settled, Failed: p.failed >= 0, TerminalMs: p.lastMs, SettledMs: p.settleMs, FailedNode: p.failed, Status: p.fate,
		})
	}
	s.Completed, s.Latency = int64(len(latencies)), stats.Of(latencies)
	return s
}

// Lane is the lane that took up a play of a graph, -1 if there are no lanes.
func (s *Sim) Lane(play int32) int32 { return s.arrivals.agents.plays[play].lane }
