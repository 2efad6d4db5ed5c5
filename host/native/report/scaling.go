package report

import (
	"bufio"
	"io"
	"strconv"

	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/workload"
	"github.com/dryserve/dryserve/host/native/cliutil"
)

// jsonLine spells one JSON value without white space, keys in the order in which
// the reference has them, numbers as it writes them.
type jsonLine struct{ b []byte }

// key begins a member of the object that is open.
func (l *jsonLine) key(name string) {
	l.comma()
	l.b = append(cliutil.AppendJSONString(l.b, name), ':')
}

// comma separates what comes from what was before.
func (l *jsonLine) comma() {
	if n := len(l.b); n > 0 && l.b[n-1] != '{' && l.b[n-1] != '[' && l.b[n-1] != ':' && l.b[n-1] != '\n' {
		l.b = append(l.b, ',')
	}
}

func (l *jsonLine) open(c byte) {
	l.comma()
	l.b = append(l.b, c)
}

func (l *jsonLine) shut(c byte) { l.b = append(l.b, c) }

func (l *jsonLine) whole(name string, n int64) {
	l.key(name)
	l.b = strconv.AppendInt(l.b, n, 10)
}

func (l *jsonLine) real(name string, x float64) {
	l.key(name)
	l.b = cliutil.AppendSerdeFloat(l.b, x)
}

func (l *jsonLine) text(name, s string) {
	l.key(name)
	l.b = cliutil.AppendJSONString(l.b, s)
}

// optional is a number that is not there below 0.
func (l *jsonLine) optional(name string, n int64) {
	if n < 0 {
		l.null(name)
		return
	}
	l.whole(name, n)
}

func (l *jsonLine) null(name string) {
	l.key(name)
	l.b = append(l.b, "null"...)
}

func (l *jsonLine) ids(name string, ids []int32) {
	l.key(name)
	l.open('[')
	for _, id := range ids {
		l.comma()
		l.b = strconv.AppendInt(l.b, int64(id), 10)
	}
	l.shut(']')
}

// AppendTick spells what a policy is told as the reference's on_tick gets it
// (replay notes §7).
func AppendTick(dst []byte, t *replay.Tick) []byte {
	l := jsonLine{dst}
	l.open('{')
	l.whole("tick_ordinal", t.Ordinal)
	l.real("now_ms", t.NowMs)
	l.passes("prefill_fpm_snapshots", t.Prefill.Passes)
	l.passes("decode_fpm_snapshots", t.Decode.Passes)
	for _, state := range []struct {
		name            string
		prefill, decode []int32
	}{
		{"active", t.Prefill.Active, t.Decode.Active}, {"starting", t.Prefill.Starting, t.Decode.Starting},
		{"draining", t.Prefill.Draining, t.Decode.Draining},
	} {
		l.whole(state.name+"_prefill_count", int64(len(state.prefill)))
		l.whole(state.name+"_decode_count", int64(len(state.decode)))
		l.ids(state.name+"_prefill_ids", state.prefill)
		l.ids(state.name+"_decode_ids", state.decode)
	}
	serving := func(p *replay.PoolState) int64 { return int64(len(p.Active) + len(p.Starting)) }
	l.whole("non_draining_prefill_count", serving(&t.Prefill))
	l.whole("non_draining_decode_count", serving(&t.Decode))
	l.whole("total_prefill_count", serving(&t.Prefill)+int64(len(t.Prefill.Draining)))
	l.whole("total_decode_count", serving(&t.Decode)+int64(len(t.Decode.Draining)))
	l.tickTraffic(&t.Traffic)
	l.shut('}')
	return l.b
}

func (l *jsonLine) passes(name string, list []replay.Snapshot) {
	l.key(name)
	l.open('[')
	for i := range list {
		s := &list[i]
		f := &s.Work
		l.open('{')
		l.whole("worker_id", int64(s.Worker))
		l.whole("dp_rank", int64(s.Rank))
		l.real("wall_time", s.WallS)
		l.whole("num_prefill_requests", int64(f.Prefills))
		l.whole("sum_prefill_tokens", int64(f.PrefillTokens))
		l.real("var_prefill_length", f.PrefillVariance)
		l.whole("sum_prefill_kv_tokens", int64(f.PrefillKVTokens))
		l.whole("num_decode_requests", int64(f.Decodes))
		l.whole("sum_decode_kv_tokens", int64(f.DecodeKVTokens))
		l.real("var_decode_kv_tokens", f.DecodeVariance)
		l.whole("num_queued_prefill", int64(f.QueuedPrefills))
		l.whole("sum_queued_prefill_tokens", int64(f.QueuedPrefillLen))
		l.real("var_queued_prefill_length", f.QueuedPrefillVar)
		l.whole("num_queued_decode", int64(f.QueuedDecodes))
		l.whole("sum_queued_decode_kv_tokens", int64(f.QueuedDecodeLen))
		l.real("var_queued_decode_kv_tokens", f.QueuedDecodeVar)
		l.shut('}')
	}
	l.shut(']')
}

func (l *jsonLine) tickTraffic(t *replay.Traffic) {
	l.key("traffic")
	l.open('{')
	l.real("duration_s", t.DurationS)
	l.whole("num_req", t.Arrived)
	l.means(t)
	l.whole("shape_count", t.Completed)
	l.whole("ttft_count", t.TTFTs)
	l.whole("itl_count", t.ITLs)
	l.accepted(t)
	l.real("avg_kv_hit_rate", t.MeanHitRate)
	l.whole("hit_rate_count", t.Routed)
	l.whole("accept_length_forward_count", t.Forwards)
	l.shut('}')
}

func (l *jsonLine) means(t *replay.Traffic) {
	l.real("avg_isl", t.MeanISL)
	l.real("avg_osl", t.MeanOSL)
	l.real("avg_ttft_ms", t.MeanTTFTMs)
	l.real("avg_itl_ms", t.MeanITLMs)
}

func (l *jsonLine) accepted(t *replay.Traffic) {
	if t.Forwards == 0 {
		l.null("avg_accept_length")
		return
	}
	l.real("avg_accept_length", t.MeanAccepted)
}

// AppendSample spells a sample as the reference's telemetry has it (replay notes
// §9.3).
func AppendSample(dst []byte, s *replay.Sample) []byte {
	l := jsonLine{dst}
	t := &s.Traffic
	l.open('{')
	l.whole("sample_ordinal", s.Ordinal)
	l.text("kind", [...]string{"baseline", "periodic", "final"}[s.Kind])
	l.real("interval_start_ms", s.FromMs)
	l.real("sampled_at_ms", s.AtMs)
	l.key("traffic")
	l.open('{')
	l.real("duration_s", t.DurationS)
	l.whole("arriving_requests", t.Arrived)
	l.whole("completed_requests", t.Completed)
	l.means(t)
	l.whole("ttft_count", t.TTFTs)
	l.whole("itl_count", t.ITLs)
	l.real("avg_router_kv_hit_rate", t.MeanHitRate)
	l.whole("router_kv_hit_rate_count", t.Routed)
	l.accepted(t)
	l.whole("accept_length_forward_count", t.Forwards)
	l.shut('}')
	l.gauges("prefill_scheduler_metrics", s.Prefill.Gauges)
	l.gauges("decode_scheduler_metrics", s.Decode.Gauges)
	l.interval("prefill_interval_metrics", s.Prefill.Interval)
	l.interval("decode_interval_metrics", s.Decode.Interval)
	l.whole("router_pending_prefill_requests", int64(s.Prefill.Pending))
	l.whole("router_pending_decode_requests", int64(s.Decode.Pending))
	l.ids("active_prefill_ids", s.Prefill.Active)
	l.ids("active_decode_ids", s.Decode.Active)
	l.ids("starting_prefill_ids", s.Prefill.Starting)
	l.ids("starting_decode_ids", s.Decode.Starting)
	l.ids("draining_prefill_ids", s.Prefill.Draining)
	l.ids("draining_decode_ids", s.Decode.Draining)
	l.shut('}')
	return l.b
}

func (l *jsonLine) gauges(name string, list []replay.Gauge) {
	l.key(name)
	l.open('[')
	for i := range list {
		g := &list[i]
		l.open('{')
		l.whole("worker_id", int64(g.Worker))
		l.whole("dp_rank", int64(g.Rank))
		l.whole("active_blocks", int64(g.ActiveBlocks))
		l.whole("inactive_blocks", int64(g.InactiveBlocks))
		l.whole("total_blocks", int64(g.TotalBlocks))
		l.real("active_cache_usage", g.CacheUsage)
		l.real("physical_cache_usage", g.PhysicalCacheUsage)
		l.whole("running_requests", int64(g.RunningRequests))
		l.whole("waiting_requests", int64(g.WaitingRequests))
		l.shut('}')
	}
	l.shut(']')
}

func (l *jsonLine) interval(name string, p replay.PoolInterval) {
	l.key(name)
	l.open('{')
	l.whole("cache_hit_tokens", p.CacheHitTokens)
	l.whole("cache_total_tokens", p.CacheTotalTokens)
	l.whole("preemptions", p.Preemptions)
	l.shut('}')
}

// WriteSamples writes samples, one a line. It allocates its buffer once.
func WriteSamples(w io.Writer, list []replay.Sample, buf *[]byte) error {
	b := (*buf)[:0]
	for i := range list {
		b = append(AppendSample(b, &list[i]), '\n')
	}
	*buf = b
	_, err := w.Write(b)
	return err
}

// WriteLifecycle writes what happened to the workers in a run of a workload as a
// JSON array, an operation a line. Requests have the ids of Requests.WriteJSONL.
func WriteLifecycle(w io.Writer, ops []replay.Operation, load *workload.Workload) error {
	ordinals := (&Requests{Workload: load}).ordinals()
	out := bufio.NewWriter(w)
	out.WriteByte('[')
	for i := range ops {
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteByte('\n')
		out.Write(appendOperation(nil, int64(i), &ops[i], ordinals))
	}
	out.WriteString("\n]\n")
	return out.Flush()
}

// PoolName is the reference's name of the pool of an operation.
func PoolName(op *replay.Operation) string {
	switch {
	case op.Pool == replay.PrefillPool:
		return "prefill"
	case op.Split:
		return "decode"
	}
	return "agg"
}

// workerStates are the reference's names; a worker that is absent afterwards
// has been removed.
var workerStates = [...]string{"removed", "starting", "active", "draining"}

func appendOperation(dst []byte, number int64, op *replay.Operation, ordinals []int32) []byte {
	l := jsonLine{dst}
	l.open('{')
	l.whole("operation_ordinal", number)
	l.real("at_ms", op.AtMs)
	l.text("pool", PoolName(op))
	l.text("cause", [...]string{"planner_scale", "worker_ready_event", "drain_settlement"}[op.Cause])
	l.optional("planner_tick_ordinal", op.Tick)
	l.optional("origin_operation_ordinal", int64(op.Origin))
	l.key("transitions")
	l.open('[')
	for _, t := range op.Transitions {
		l.open('{')
		l.whole("worker_id", int64(t.Worker))
		l.text("transition", [...]string{"worker_removed", "worker_starting", "worker_ready", "worker_draining"}[t.To])
		if t.From == replay.Absent {
			l.null("prior_state")
		} else {
			l.text("prior_state", workerStates[t.From])
		}
		l.text("state", workerStates[t.To])
		if t.From == replay.Starting && t.To == replay.Absent {
			l.text("reason", "startup_cancelled")
		}
		l.whole("origin_operation_ordinal", int64(t.Origin))
		l.shut('}')
	}
	l.shut(']')
	l.key("state_after_batch")
	l.open('{')
	l.ids("active", op.Active)
	l.ids("starting", op.Starting)
	l.ids("draining", op.Draining)
	l.shut('}')
	l.key("topology_released_request_uuids")
	l.open('[')
	for _, turn := range op.Released {
		l.comma()
		l.b = append(appendUUID(append(l.b, '"'), uint64(ordinal(ordinals, turn))), '"')
	}
	l.shut(']')
	l.shut('}')
	return l.b
}
