package report

import (
	"encoding/hex"
	"math"
	"strconv"
	"strings"

	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/workload"
	"github.com/dryserve/dryserve/host/native/cliutil"
)

// agents adds what the reference reports of a graph of requests.
func (e *entries) agents(a *replay.AgentsSummary, g *workload.Graph, target string) {
	e.whole("total_trajectories", a.Plays)
	e.whole("completed_trajectories", a.Completed)
	e.whole("incomplete_trajectories", a.Plays-a.Completed)
	e.dist("trajectory_e2e_latency", "_ms", a.Latency)
	e.real("p50_trajectory_e2e_latency_ms", a.Latency.Median)
	if a.Outcomes != nil {
		e.whole("agentic_lifecycle_event_count", a.Events)
		*e = append(*e,
			entry{"agentic_lifecycle_digest", text(hex.EncodeToString(a.Digest[:]))},
			entry{"agentic_play_outcomes", outcomes(a, g).json(1)},
		)
	}
	*e = append(*e,
		entry{"agentic_graph", graphObject(g).json(1)},
		entry{"agentic_model_projection", object{
			{"policy", text("project_to_configured_target")}, {"source_models", models(g).json(2)}, {"target_model", text(target)},
		}.json(1)},
	)
	if g.NestedBasis != "" {
		*e = append(*e, entry{"weka_nested_timestamp_basis", text(g.NestedBasis)})
	}
}

func graphObject(g *workload.Graph) object {
	return object{
		{"block_size", strconv.Itoa(g.BlockSize)}, {"graph_digest", text(hex.EncodeToString(g.Digest[:]))},
		{"node_count", strconv.Itoa(len(g.Nodes) - 1)}, {"play_count", strconv.Itoa(len(g.Plays))},
		{"source", object{{"digest", text(g.SourceDigest)}, {"format", text(g.SourceFormat)}}.json(2)},
		{"source_models", models(g).json(2)},
	}
}

func models(g *workload.Graph) list {
	var l list
	for _, m := range g.Models {
		l = append(l, text(string(g.Texts.At(m))))
	}
	return l
}

func outcomes(a *replay.AgentsSummary, g *workload.Graph) list {
	var l list
	for i, p := range a.Outcomes {
		var o object
		if !math.IsNaN(p.TerminalMs) {
			o = append(o, entry{"causal_terminal_ms", string(cliutil.AppendPythonFloat(nil, p.TerminalMs))})
		}
		if p.Failed {
			o = append(o, entry{"failure_request_id", text(string(g.Request(p.FailedNode)))}, entry{"failure_status", text(p.Status.String())})
		}
		o = append(o, entry{"play_id", text(string(g.PlayID(int32(i))))})
		if p.Settled {
			o = append(o, entry{"settled_at_ms", string(cliutil.AppendPythonFloat(nil, p.SettledMs))})
		}
		status := "incomplete"
		switch {
		case !p.Settled:
		case p.Failed:
			status = "failed"
		default:
			status = "completed"
		}
		l = append(l, append(o, entry{"status", text(status)}).json(2))
	}
	return l
}

// object and list are spelt as json.dumps with indent=2 does, at a depth.
type (
	object []entry
	list   []string
)

func (o object) json(depth int) string {
	items := make(list, len(o))
	for i, kv := range o {
		items[i] = text(kv.key) + ": " + kv.value
	}
	return items.enclose("{", "}", depth)
}

func (l list) json(depth int) string { return l.enclose("[", "]", depth) }

func (l list) enclose(open, end string, depth int) string {
	if len(l) == 0 {
		return open + end
	}
	indent := "\n" + strings.Repeat("  ", depth+1)
	return open + indent + strings.Join(l, ","+indent) + indent[:len(indent)-2] + end
}

func text(s string) string { return string(cliutil.AppendJSONString(nil, s)) }
