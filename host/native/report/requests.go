package report

import (
	"cmp"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/workload"
	"github.com/dryserve/dryserve/host/native/cliutil"
)

// Requests is what the per-request records are written from.
type Requests struct {
	Records    []replay.Record    // any order
	Admissions []replay.Admission // that the records point into
	Workload   *workload.Workload
	Ranks      int32 // data-parallel ranks of a worker; 0 means 1
	Tiers      bool  // say which tokens were found on the GPU and which in host memory

	Handoffs     []replay.Handoff // by record, of a disaggregated run
	PrefillRanks int32            // data-parallel ranks of a worker that computes prompts

	// SessionID names a session of the workload in the records. Nil leaves
	// session and turn null, as the reference does where every session has
	// one turn and arrivals follow the trace.
	SessionID func(session int32) []byte

	// Lane is the lane that took up a play of a graph of agents, -1: none. It
	// is needed for such a workload only.
	Lane func(play int32) int32

	// Route is what the KV router said of a turn; nil without one. BlockSize is
	// that of the engines then.
	Route     func(turn int32) (replay.Route, bool)
	BlockSize int32
}

// flushBytes bounds the text kept before it is written.
const flushBytes = 32 << 10

// WriteJSONL writes one line per record in order of arrival; requests that
// arrive together stand in order of their ids. The id of a request is its
// ordinal from 1, counted session by session and turn by turn, as a UUID.
func (r *Requests) WriteJSONL(w io.Writer) error {
	ordinals := r.ordinals()
	order := make([]int32, len(r.Records))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		x, y := &r.Records[a], &r.Records[b]
		if c := cmp.Compare(x.ArrivalMs, y.ArrivalMs); c != 0 {
			return c
		}
		return cmp.Compare(ordinal(ordinals, x.Turn), ordinal(ordinals, y.Turn))
	})
	buf := make([]byte, 0, flushBytes+8<<10)
	for _, i := range order {
		var handoff *replay.Handoff
		if r.Handoffs != nil {
			handoff = &r.Handoffs[i]
		}
		buf = r.appendRecord(buf, &r.Records[i], handoff, ordinal(ordinals, r.Records[i].Turn))
		if len(buf) >= flushBytes {
			if _, err := w.Write(buf); err != nil {
				return err
			}
			buf = buf[:0]
		}
	}
	_, err := w.Write(buf)
	return err
}

func (r *Requests) ordinals() []int32 { return Ordinals(r.Workload) }

// Ordinal is the number of a turn in the id of its request.
func Ordinal(ordinals []int32, turn int32) int32 { return ordinal(ordinals, turn) }

// Ordinals numbers the turns session by session, from 1 on. Nil stands for the order of
// the trace: sessions are in trace order, so single turns already agree.
func Ordinals(w *workload.Workload) []int32 {
	if len(w.Sessions) == len(w.Turns) {
		return nil
	}
	numbers := make([]int32, len(w.Turns))
	n := int32(0)
	for _, s := range w.Sessions {
		for t := s.First; t >= 0; t = w.Turns[t].Next {
			n++
			numbers[t] = n
		}
	}
	return numbers
}

func ordinal(ordinals []int32, turn int32) int32 {
	if ordinals == nil {
		return turn + 1
	}
	return ordinals[turn]
}

// appendRecord writes one line with the fields of the reference in their
// order. Fields of disaggregated serving are null without a handoff, those of
// pressure events are always null or empty here.
func (r *Requests) appendRecord(b []byte, rec *replay.Record, handoff *replay.Handoff, ordinal int32) []byte {
	t := &r.Workload.Turns[rec.Turn]
	dispatchedMs := math.NaN()
	if r.Workload.Graph != nil {
		b = r.appendNode(b, rec.Turn)
		dispatchedMs = rec.ArrivalMs
	} else if r.SessionID == nil {
		b = append(b, `{"session_id":null,"turn_index":null,"uuid":"`...)
	} else {
		b = cliutil.AppendJSONString(append(b, `{"session_id":`...), r.SessionID(t.Session))
		b = appendWhole(b, `,"turn_index":`, t.Index)
		b = append(b, `,"uuid":"`...)
	}
	b = appendUUID(b, uint64(ordinal))
	b = appendMs(b, `","arrival_time_ms":`, rec.ArrivalMs)
	b = appendMs(b, `,"dispatched_at_ms":`, dispatchedMs)
	b = appendMs(b, `,"first_admit_ms":`, rec.FirstAdmitMs)
	b = appendMs(b, `,"terminal_time_ms":`, rec.TerminalMs)
	b = appendMs(b, `,"first_token_ms":`, rec.FirstTokenMs)
	b = appendMs(b, `,"last_token_ms":`, rec.LastTokenMs)
	b = appendMs(b, `,"ttft_ms":`, span(rec.ArrivalMs, rec.FirstTokenMs))
	b = appendMs(b, `,"ttst_ms":`, span(rec.FirstTokenMs, rec.SecondTokenMs))
	b = appendMs(b, `,"e2e_latency_ms":`, span(rec.ArrivalMs, rec.LastTokenMs))
	b = appendMs(b, `,"itl_ms":`, meanGap(rec))
	b = appendWhole(b, `,"input_length":`, rec.InputLength)
	b = appendWhole(b, `,"requested_output_length":`, rec.RequestedOutput)
	b = appendWhole(b, `,"output_length":`, rec.OutputLength)
	b = appendWhole(b, `,"reused_input_tokens":`, rec.ReusedTokens)
	if r.Tiers {
		b = r.appendTiers(b, rec)
	}
	if handoff != nil {
		b = r.appendHandoff(b, rec, handoff)
	} else {
		b = appendWhole(b, `,"prefill_worker_idx":null,"decode_worker_idx":`, rec.Worker)
		b = append(b, `,"prefill_admit_ms":null,"source_held_ms":null,"destination_reserved_ms":null`...)
		b = append(b, `,"destination_activated_ms":null,"decode_admit_ms":null,"source_released_ms":null`...)
		b = append(b, `,"decode_reused_input_tokens":null,"prefill_route_overlap_tokens":null,"decode_route_overlap_tokens":null`...)
		b = append(b, `,"routing_history":[`...)
		b = append(r.appendRoute(b, "agg", rec.Worker, max(r.Ranks, 1), r.route(rec.Turn)), ']')
	}
	b = r.appendAdmissions(b, rec, handoff)
	b = append(b, `,"pressure_record_ordinals":[],"terminal_status":"`...)
	b = append(b, statusWord(rec.Status)...)
	return append(b, "\"}\n"...)
}

// appendNode begins the line of a request of a graph.
func (r *Requests) appendNode(b []byte, turn int32) []byte {
	g := r.Workload.Graph
	n := &g.Nodes[turn]
	text := func(before string, s []byte) { b = cliutil.AppendJSONString(append(b, before...), s) }
	conversation := r.Workload.SessionID(r.Workload.Turns[turn].Session)
	text(`{"request_id":`, g.Request(turn))
	text(`,"play_id":`, g.PlayID(n.Play))
	text(`,"session_id":`, conversation)
	text(`,"turn_index":null,"agentic":{"request_id":`, g.Request(turn))
	text(`,"play_id":`, g.PlayID(n.Play))
	text(`,"conversation_id":`, conversation)
	if lane := r.Lane(n.Play); lane >= 0 {
		b = append(appendWhole(b, `,"lane_id":"lane:`, lane), '"')
	}
	if root := g.Plays[n.Play].Root; root >= 0 {
		text(`,"root_id":`, g.Request(root))
	}
	if n.Parent >= 0 {
		text(`,"parent_id":`, g.Request(n.Parent))
	}
	return append(b, `},"uuid":"`...)
}

// route is what the KV router said of a turn.
func (r *Requests) route(turn int32) routed {
	if r.Route == nil {
		return routed{}
	}
	route, known := r.Route(turn)
	return routed{route, known}
}

// routed is what a KV router said of a request, if it has.
type routed struct {
	replay.Route
	known bool
}

// appendRoute writes where a request was placed. Only a KV router knows of
// blocks and lets requests wait.
func (r *Requests) appendRoute(b []byte, pool string, scheduler, ranks int32, route routed) []byte {
	enteredMs, releasedMs := math.NaN(), math.NaN()
	outcome := "immediate"
	if route.Waited {
		outcome, enteredMs, releasedMs = "queued", route.EnteredMs, route.ReleasedMs
	}
	b = append(append(b, `{"pool":"`...), pool...)
	b = append(append(b, `","outcome":"`...), outcome...)
	b = appendMs(b, `","queue_entered_at_ms":`, enteredMs)
	b = appendMs(b, `,"released_at_ms":`, releasedMs)
	b = appendMs(b, `,"queue_wait_ms":`, route.ReleasedMs-route.EnteredMs)
	b = appendWhole(b, `,"logical_worker_id":`, scheduler/ranks)
	b = appendWhole(b, `,"scheduler_id":`, scheduler)
	b = appendWhole(b, `,"dp_rank":`, scheduler%ranks)
	b = appendWhole(b, `,"reported_overlap_tokens":`, route.OverlapBlocks*r.BlockSize)
	if !route.known {
		return append(b, `,"selected_overlap_blocks":null,"best_available_overlap_blocks":null,"overlap_regret_blocks":null,"placement_replica_id":null}`...)
	}
	b = appendWhole(b, `,"selected_overlap_blocks":`, route.OverlapBlocks)
	b = appendWhole(b, `,"best_available_overlap_blocks":`, route.BestBlocks)
	b = appendWhole(b, `,"overlap_regret_blocks":`, route.BestBlocks-route.OverlapBlocks)
	return append(b, `,"placement_replica_id":null}`...)
}

func (r *Requests) appendAdmissions(b []byte, rec *replay.Record, handoff *replay.Handoff) []byte {
	pool, first := "agg", int32(0) // of the pool
	readmissions := max(rec.AdmissionCount-1, 0)
	if handoff != nil {
		pool = "prefill"
		readmissions = max(handoff.PrefillAdmits-1, 0) + max(rec.AdmissionCount-handoff.PrefillAdmits-1, 0)
	}
	b = append(b, `,"admission_history":[`...)
	for i, a := range r.Admissions[rec.AdmissionStart : rec.AdmissionStart+rec.AdmissionCount] {
		if i > 0 {
			b = append(b, ',')
		}
		if handoff != nil && int32(i) == handoff.PrefillAdmits {
			pool, first = "decode", int32(i)
		}
		b = appendWhole(b, `{"admission_ordinal":`, int32(i))
		b = appendWhole(b, `,"pool_admission_ordinal":`, int32(i)-first)
		b = append(append(b, `,"pool":"`...), pool...)
		b = appendMs(b, `","at_ms":`, a.AtMs)
		b = appendWhole(b, `,"reused_input_tokens":`, a.Reused)
		if r.Tiers && i == 0 { // the reference tells them apart at the first only
			b = appendWhole(b, `,"g1_reused_input_tokens":`, a.Reused-rec.FirstHostTokens)
			b = appendWhole(b, `,"host_reused_input_tokens":`, rec.FirstHostTokens)
		}
		b = strconv.AppendBool(append(b, `,"is_readmission":`...), int32(i) > first)
		b = append(b, '}')
	}
	b = appendWhole(b, `],"admission_count":`, rec.AdmissionCount)
	return appendWhole(b, `,"readmission_count":`, readmissions)
}

// appendTiers splits what was reused at the first admission by where it was.
func (r *Requests) appendTiers(b []byte, rec *replay.Record) []byte {
	if rec.AdmissionCount == 0 {
		return append(b, `,"first_admission_g1_reused_input_tokens":null,"first_admission_host_reused_input_tokens":null`...)
	}
	reused := r.Admissions[rec.AdmissionStart].Reused
	b = appendWhole(b, `,"first_admission_g1_reused_input_tokens":`, reused-rec.FirstHostTokens)
	return appendWhole(b, `,"first_admission_host_reused_input_tokens":`, rec.FirstHostTokens)
}

// span is a latency: absent if an end is absent, never below 0.
func span(fromMs, toMs float64) float64 {
	d := toMs - fromMs
	if d < 0 {
		return 0
	}
	return d
}

// meanGap is the mean inter-token latency of requests with two tokens or more.
func meanGap(rec *replay.Record) float64 {
	if rec.OutputLength < 2 {
		return math.NaN()
	}
	return span(rec.FirstTokenMs, rec.LastTokenMs) / float64(rec.OutputLength-1)
}

func statusWord(s replay.TerminalStatus) string {
	switch s {
	case replay.Completed:
		return "completed"
	case replay.Rejected:
		return "rejected"
	case replay.Canceled:
		return "canceled"
	default:
		return "failed"
	}
}

func appendWhole(b []byte, before string, n int32) []byte {
	return strconv.AppendInt(append(b, before...), int64(n), 10)
}

// appendMs writes a time; NaN is absent and becomes null.
func appendMs(b []byte, before string, ms float64) []byte {
	return cliutil.AppendSerdeFloat(append(b, before...), ms)
}

// appendUUID writes n as the low half of a UUID.
func appendUUID(b []byte, n uint64) []byte {
	const hex = "0123456789abcdef"
	b = append(b, "00000000-0000-0000-"...)
	for shift := 60; shift >= 0; shift -= 4 {
		if shift == 44 {
			b = append(b, '-')
		}
		b = append(b, hex[n>>shift&15])
	}
	return b
}
