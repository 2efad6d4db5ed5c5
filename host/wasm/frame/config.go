package frame

import "github.com/dryserve/dryserve/core/config"

// Run is what Configure describes: a run, and which of the core's twins is to
// simulate it.
type Run struct {
	config.Replay
	Plain    bool // see replay.Options
	Eventful bool
	Delta    bool // the trace says in each turn only what is new
}

// BackendKey is the key that decides what absent ones of Configure mean.
const BackendKey = "engine.backend"

// Fields lists a run's fields with the names that frames have for them: those
// of core/config in snake case, with the names of the structs before them. A
// new field of core/config gets a line here and one in docs/frames.md; a test
// tells. Tables that r does not have are left out.
func (r *Run) Fields() []Field {
	e := &r.Engine
	fields := []Field{
		{Name: BackendKey, Var: (*uint8)(&e.Backend)},
		{Name: "engine.role", Var: (*uint8)(&e.Role)},
		{Name: "engine.num_gpu_blocks", Var: &e.NumGPUBlocks},
		{Name: "engine.block_size", Var: &e.BlockSize},
		{Name: "engine.max_model_len", Var: &e.MaxModelLen},
		{Name: "engine.max_num_seqs", Var: &e.MaxNumSeqs},
		{Name: "engine.max_num_batched_tokens", Var: &e.MaxNumBatchedTokens},
		{Name: "engine.enable_prefix_caching", Var: &e.EnablePrefixCaching},
		{Name: "engine.enable_chunked_prefill", Var: &e.EnableChunkedPrefill},
		{Name: "engine.preemption", Var: (*uint8)(&e.Preemption)},
		{Name: "engine.speedup_ratio", Var: &e.SpeedupRatio},
		{Name: "engine.decode_speedup_ratio", Var: &e.DecodeSpeedupRatio},
		{Name: "engine.emit_kv_events", Var: &e.EmitKVEvents},
		{Name: "engine.emit_kv_token_ids", Var: &e.EmitKVTokenIDs},
		{Name: "engine.dp_size", Var: &e.DPSize},
		{Name: "engine.tensor_parallel_size", Var: &e.TensorParallelSize},
		{Name: "engine.prefill_schedule_interval", Var: &e.PrefillScheduleInterval},
		{Name: "engine.kv_cache_bytes_per_token", Var: &e.KVCacheBytesPerToken},
		{Name: "num_workers", Var: &r.NumWorkers},
		{Name: "trace_block_size", Var: &r.TraceBlockSize},
		{Name: "concurrency", Var: &r.Concurrency},
		{Name: "lanes", Var: &r.Lanes},
		{Name: "arrival_speedup", Var: &r.ArrivalSpeedup},
		{Name: "max_sim_time_ms", Var: &r.MaxSimTimeMs},
		{Name: "sla.ttft_ms", Var: &r.SLA.TTFTMs},
		{Name: "sla.itl_ms", Var: &r.SLA.ITLMs},
		{Name: "sla.e2e_ms", Var: &r.SLA.E2EMs},
		{Name: "parity", Var: &r.Parity},
		{Name: "capture_requests", Var: &r.CaptureRequests},
		{Name: "routing.mode", Var: (*uint8)(&r.Routing.Mode)},
		{Name: "routing.seed", Var: &r.Routing.Seed},
		{Name: "routing.event_lag_ms", Var: &r.Routing.EventLagMs},
		{Name: "routing.tracking.block", Var: &r.Routing.Tracking.Block},
		{Name: "routing.tracking.chain", Var: &r.Routing.Tracking.Chain},
		{Name: "routing.ask_load", Var: &r.Routing.AskLoad},
		{Name: "plain", Var: &r.Plain},
		{Name: "eventful", Var: &r.Eventful},
		{Name: "delta", Var: &r.Delta},
	}
	fields = append(fields, featureFields(e)...)
	return append(fields, timingFields(&e.Timing)...)
}

// featureFields are those of the structs in config.Engine but timing.
func featureFields(e *config.Engine) []Field {
	return []Field{
		{Name: "engine.mtp.drafts", Var: &e.MTP.Drafts},
		{Name: "engine.mtp.accept_rates", Var: &e.MTP.AcceptRates},
		{Name: "engine.mtp.seed", Var: &e.MTP.Seed},
		{Name: "engine.transfer.bytes_per_token", Var: &e.Transfer.BytesPerToken},
		{Name: "engine.transfer.bandwidth_gbs", Var: &e.Transfer.BandwidthGBs},
		{Name: "engine.transfer.timing", Var: (*uint8)(&e.Transfer.Timing)},
		{Name: "engine.host_offload.blocks", Var: &e.HostOffload.Blocks},
		{Name: "engine.host_offload.d2h_gbs", Var: &e.HostOffload.D2HGBs},
		{Name: "engine.host_offload.h2d_gbs", Var: &e.HostOffload.H2DGBs},
		{Name: "engine.host_offload.scope", Var: (*uint8)(&e.HostOffload.Scope)},
		{Name: "engine.host_offload.shared_d2h_gbs", Var: &e.HostOffload.SharedD2HGBs},
		{Name: "engine.host_offload.shared_h2d_gbs", Var: &e.HostOffload.SharedH2DGBs},
		{Name: "engine.host_offload.first_byte_latency_ms", Var: &e.HostOffload.FirstByteLatencyMs},
		{Name: "engine.disk_offload.blocks", Var: &e.DiskOffload.Blocks},
		{Name: "engine.disk_offload.first_byte_latency_ms", Var: &e.DiskOffload.FirstByteLatencyMs},
		{Name: "engine.disk_offload.read_gbs", Var: &e.DiskOffload.ReadGBs},
		{Name: "engine.disk_offload.scope", Var: (*uint8)(&e.DiskOffload.Scope)},
		{Name: "engine.disk_offload.shared_read_gbs", Var: &e.DiskOffload.SharedReadGBs},
		{Name: "engine.disk_offload.shared_write_gbs", Var: &e.DiskOffload.SharedWriteGBs},
		{Name: "engine.disk_offload.write_gbs", Var: &e.DiskOffload.WriteGBs},
		{Name: "engine.sglang.policy", Var: (*uint8)(&e.SGLang.Policy)},
		{Name: "engine.sglang.max_prefill_tokens", Var: &e.SGLang.MaxPrefillTokens},
		{Name: "engine.sglang.chunked_prefill_size", Var: &e.SGLang.ChunkedPrefillSize},
		{Name: "engine.sglang.clip_max_new_tokens", Var: &e.SGLang.ClipMaxNewTokens},
		{Name: "engine.sglang.conservativeness", Var: &e.SGLang.Conservativeness},
		{Name: "engine.sglang.prefill_decode_interval", Var: &e.SGLang.PrefillDecodeInterval},
	}
}

// timingFields are those of the source of pass durations. Tables are left out
// where t has none.
func timingFields(t *config.Timing) []Field {
	fields := []Field{
		{Name: "engine.timing.kind", Var: (*uint8)(&t.Kind)},
		{Name: "engine.timing.prefill_ms", Var: &t.PrefillMs},
		{Name: "engine.timing.decode_ms", Var: &t.DecodeMs},
	}
	if p := t.Profile; p != nil {
		fields = append(fields,
			Field{Name: "engine.timing.profile.prefill_isl", Var: &p.PrefillISL},
			Field{Name: "engine.timing.profile.prefill_ttft_ms", Var: &p.PrefillTTFTMs},
			Field{Name: "engine.timing.profile.decode_active_kv_tokens", Var: &p.DecodeActiveKVTokens},
			Field{Name: "engine.timing.profile.decode_context_length", Var: &p.DecodeContextLength},
			Field{Name: "engine.timing.profile.decode_itl_ms", Var: &p.DecodeITLMs})
	}
	if g := t.Grid; g != nil {
		fields = append(fields,
			Field{Name: "engine.timing.grid.prefill_batch", Var: &g.PrefillBatch},
			Field{Name: "engine.timing.grid.prefill_isl", Var: &g.PrefillISL},
			Field{Name: "engine.timing.grid.prefill_prefix", Var: &g.PrefillPrefix},
			Field{Name: "engine.timing.grid.prefill_ms", Var: &g.PrefillMs},
			Field{Name: "engine.timing.grid.decode_batch", Var: &g.DecodeBatch},
			Field{Name: "engine.timing.grid.decode_context", Var: &g.DecodeContext},
			Field{Name: "engine.timing.grid.decode_ms", Var: &g.DecodeMs})
	}
	return fields
}

// DecodeRun reads a frame of Configure. What it leaves out is as in
// config.DefaultReplay of its backend. The run is not checked.
func DecodeRun(b []byte) (*Run, Fault) {
	backend, f := peekBackend(b)
	if f.Code != OK {
		return nil, f
	}
	var r Run
	r.Replay = config.DefaultReplay(backend)
	t := &r.Engine.Timing
	t.Profile, t.Grid = &config.ProfileTable{}, &config.GridTable{}
	if f := Decode(b, r.Fields()); f.Code != OK {
		return nil, f
	}
	if p := t.Profile; p.PrefillISL == nil && p.PrefillTTFTMs == nil && p.DecodeActiveKVTokens == nil && p.DecodeContextLength == nil && p.DecodeITLMs == nil {
		t.Profile = nil
	}
	if g := t.Grid; g.PrefillBatch == nil && g.PrefillISL == nil && g.PrefillPrefix == nil && g.PrefillMs == nil && g.DecodeBatch == nil && g.DecodeContext == nil && g.DecodeMs == nil {
		t.Grid = nil
	}
	return &r, Fault{}
}

// peekBackend finds the backend before anything else is read.
func peekBackend(b []byte) (config.Backend, Fault) {
	if f := Check(b); f.Code != OK {
		return 0, f
	}
	r := reader{b: b}
	backend := uint8(config.VLLM)
	for range r.next().whole {
		key := r.next().bytes
		v := r.next()
		if string(key) != BackendKey {
			continue
		}
		if code := set(&backend, v); code != OK {
			return 0, Fault{Code: code, Name: BackendKey}
		}
	}
	return config.Backend(backend), Fault{}
}
