package engineargs

import (
	"strconv"
	"strings"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/cliutil"
)

// Marshal writes a in the canonical form with every field, in the reference's
// order: limits that are off are null, and optional fields that the reference
// leaves out when absent are left out. Parsing the result gives a back.
func (a Args) Marshal() []byte {
	w := writer{}
	w.open("engine")
	a.marshalEngine(&w)
	w.shut()
	w.whole("dp_size", uint64(a.Engine.DPSize))
	w.whole("tensor_parallel_size", uint64(a.Engine.TensorParallelSize))
	w.optReal("startup_time", a.StartupTimeS)
	w.boolean("num_gpu_blocks_is_explicit", a.NumGPUBlocksExplicit)
	w.optReal("gpu_memory_utilization", a.GPUMemoryUtilization)
	w.optReal("mem_fraction_static", a.MemFractionStatic)
	w.optReal("free_gpu_memory_fraction", a.FreeGPUMemoryFraction)
	w.optWhole("cuda_graph_reserved_bytes", a.CUDAGraphReservedBytes)
	w.open("dynamo")
	a.Dynamo.marshal(&w)
	w.shut()
	return append(append([]byte{'{'}, w.buf...), '}')
}

func (a Args) marshalEngine(w *writer) {
	e := a.Engine
	w.text("backend", backendWords[e.Backend])
	w.whole("num_gpu_blocks", uint64(e.NumGPUBlocks))
	w.whole("block_size", uint64(e.BlockSize))
	w.optWhole("max_model_len", OptUint{e.MaxModelLen != 0, uint64(e.MaxModelLen)})
	w.optWhole("max_num_seqs", OptUint{e.MaxNumSeqs != config.Unbounded, uint64(e.MaxNumSeqs)})
	w.optWhole("max_num_batched_tokens", OptUint{e.MaxNumBatchedTokens != config.Unbounded, uint64(e.MaxNumBatchedTokens)})
	w.whole("prefill_schedule_interval", a.PrefillScheduleInterval)
	w.whole("prefill_decode_interval", a.PrefillDecodeInterval)
	w.boolean("enable_prefix_caching", e.EnablePrefixCaching)
	w.boolean("enable_chunked_prefill", e.EnableChunkedPrefill)
	w.real("speedup_ratio", e.SpeedupRatio)
	w.real("decode_speedup_ratio", e.DecodeSpeedupRatio)
	drafts := uint64(e.MTP.Drafts)
	w.optWhole("aic_nextn", OptUint{drafts > 0, drafts})
	w.optText("aic_nextn_accept_rates", OptString{drafts > 0, spellRates(e.MTP)})
	w.whole("aic_mtp_seed", a.MTPSeed)
	w.text("worker_type", roleWords[e.Role])
	w.text("preemption_mode", preemptionWords[e.Preemption])
	w.boolean("emit_kv_events", e.EmitKVEvents)
	w.boolean("emit_kv_token_ids", e.EmitKVTokenIDs)
	w.optWhole("kv_transfer_bytes_per_token", a.KVTransferBytesPerToken)
	if a.KVCacheBytesPerToken.Set {
		w.optWhole("kv_cache_bytes_per_token", a.KVCacheBytesPerToken)
	}
	a.marshalHostOffload(w)
	a.marshalDiskOffload(w)
	w.optReal("kv_transfer_bandwidth", a.KVTransferBandwidthGBs)
	w.text("kv_transfer_timing_mode", transferWords[index(a.DestinationMissing)])
	a.marshalTiming(w)
	w.open("sglang")
	w.text("schedule_policy", policyWords[index(a.SGLang.LongestPrefixFirst)])
	w.whole("max_prefill_tokens", a.SGLang.MaxPrefillTokens)
	w.whole("chunked_prefill_size", a.SGLang.ChunkedPrefillSize)
	w.whole("clip_max_new_tokens", a.SGLang.ClipMaxNewTokens)
	w.real("schedule_conservativeness", a.SGLang.Conservativeness)
	w.shut()
	w.open("trtllm")
	w.text("capacity_scheduler_policy", "guaranteed_no_evict")
	w.shut()
}

// marshalHostOffload leaves out what is as by default, as the reference does,
// but for the bandwidths of a rank.
func (a Args) marshalHostOffload(w *writer) {
	h, usual := a.Engine.HostOffload, config.DefaultHostOffload(0)
	if h.Blocks == 0 {
		return
	}
	w.open("native_host_offload")
	if h.Scope != usual.Scope {
		w.text("scope", hostScopeWords[h.Scope])
	}
	w.whole("num_host_blocks", uint64(h.Blocks))
	w.real("d2h_bandwidth_gbps", h.D2HGBs)
	w.real("h2d_bandwidth_gbps", h.H2DGBs)
	if h.SharedD2HGBs != usual.SharedD2HGBs {
		w.real("shared_d2h_bandwidth_gbps", h.SharedD2HGBs)
	}
	if h.SharedH2DGBs != usual.SharedH2DGBs {
		w.real("shared_h2d_bandwidth_gbps", h.SharedH2DGBs)
	}
	if h.FirstByteLatencyMs != usual.FirstByteLatencyMs {
		w.real("latency_to_first_byte_ms", h.FirstByteLatencyMs)
	}
	if a.KVLayoutID.Set {
		w.optText("kv_layout_id", a.KVLayoutID)
	}
	w.shut()
}

// marshalDiskOffload leaves out what is as by default.
func (a Args) marshalDiskOffload(w *writer) {
	g, usual := a.Engine.DiskOffload, config.DefaultDiskOffload(0)
	if g.Blocks == 0 {
		return
	}
	w.open("g3_offload")
	w.text("scope", diskScopeWords[g.Scope])
	w.whole("num_g3_blocks", uint64(g.Blocks))
	for _, f := range []struct {
		name     string
		is, wont float64
	}{
		{"latency_to_first_byte_ms", g.FirstByteLatencyMs, usual.FirstByteLatencyMs},
		{"read_bandwidth_gbps", g.ReadGBs, usual.ReadGBs},
		{"write_bandwidth_gbps", g.WriteGBs, usual.WriteGBs},
		{"shared_read_bandwidth_gbps", g.SharedReadGBs, usual.SharedReadGBs},
		{"shared_write_bandwidth_gbps", g.SharedWriteGBs, usual.SharedWriteGBs},
	} {
		if f.is != f.wont {
			w.real(f.name, f.is)
		}
	}
	w.shut()
}

func (a Args) marshalTiming(w *writer) {
	w.open("timing_model")
	switch t := a.Engine.Timing; {
	case a.Timing.Provider != "":
		w.text("type", "external")
		w.text("provider", a.Timing.Provider)
		w.open("config")
		w.text("path", a.Timing.Path)
		w.shut()
	case t.Kind == config.Fixed:
		w.text("type", "fixed")
		w.real("prefill_ms", t.PrefillMs)
		w.real("decode_ms", t.DecodeMs)
	default:
		w.text("type", "polynomial")
	}
	w.shut()
}

func (y Dynamo) marshal(w *writer) {
	w.boolean("enable_local_indexer", y.EnableLocalIndexer)
	w.optWhole("bootstrap_port", y.BootstrapPort)
	w.whole("handoff_session_timeout_ms", y.HandoffSessionTimeoutMs)
	if y.HasReasoning {
		w.open("reasoning")
		w.whole("start_thinking_token_id", y.Reasoning.StartTokenID)
		w.whole("end_thinking_token_id", y.Reasoning.EndTokenID)
		w.real("thinking_ratio", y.Reasoning.ThinkingRatio)
		w.shut()
	} else {
		w.null("reasoning")
	}
	w.optText("response_replay_trace_path", y.ResponseReplayTracePath)
	w.optWhole("zmq_kv_events_port", y.ZMQKVEventsPort)
	w.optWhole("zmq_replay_port", y.ZMQReplayPort)
	w.optText("router_queue_policy", y.RouterQueuePolicy)
}

func index(second bool) int {
	if second {
		return 1
	}
	return 0
}

// writer appends members of the innermost open object.
type writer struct {
	buf   []byte
	fresh bool // nothing stands in the open object yet
}

func (w *writer) key(name string) {
	if len(w.buf) > 0 && !w.fresh {
		w.buf = append(w.buf, ',')
	}
	w.fresh = false
	w.buf = append(cliutil.AppendJSONString(w.buf, name), ':')
}

func (w *writer) open(name string) {
	w.key(name)
	w.buf, w.fresh = append(w.buf, '{'), true
}

func (w *writer) shut() { w.buf, w.fresh = append(w.buf, '}'), false }

func (w *writer) null(name string) {
	w.key(name)
	w.buf = append(w.buf, "null"...)
}

func (w *writer) boolean(name string, yes bool) {
	w.key(name)
	w.buf = strconv.AppendBool(w.buf, yes)
}

func (w *writer) whole(name string, n uint64) {
	w.key(name)
	w.buf = strconv.AppendUint(w.buf, n, 10)
}

func (w *writer) real(name string, x float64) {
	w.key(name)
	w.buf = cliutil.AppendPythonFloat(w.buf, x)
}

func (w *writer) text(name, s string) {
	w.key(name)
	w.buf = cliutil.AppendJSONString(w.buf, s)
}

func (w *writer) optWhole(name string, n OptUint) {
	if n.Set {
		w.whole(name, n.V)
	} else {
		w.null(name)
	}
}

func (w *writer) optReal(name string, x OptFloat) {
	if x.Set {
		w.real(name, x.V)
	} else {
		w.null(name)
	}
}

func (w *writer) optText(name string, s OptString) {
	if s.Set {
		w.text(name, s.V)
	} else {
		w.null(name)
	}
}

// spellRates writes the accept rates of the drafts as the reference does.
func spellRates(m config.MTP) string {
	var words []string
	for _, p := range m.AcceptRates[:m.Drafts] {
		words = append(words, strconv.FormatFloat(p, 'f', -1, 64))
	}
	return strings.Join(words, ",")
}
