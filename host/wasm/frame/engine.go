package frame

import "github.com/dryserve/dryserve/core/config"

// engineFields lists the fields of an engine below a prefix. Tables that e does
// not have are left out.
func engineFields(prefix string, e *config.Engine) []Field {
	fields := []Field{
		{Name: "backend", Var: (*uint8)(&e.Backend)},
		{Name: "role", Var: (*uint8)(&e.Role)},
		{Name: "num_gpu_blocks", Var: &e.NumGPUBlocks},
		{Name: "block_size", Var: &e.BlockSize},
		{Name: "max_model_len", Var: &e.MaxModelLen},
		{Name: "max_num_seqs", Var: &e.MaxNumSeqs},
		{Name: "max_num_batched_tokens", Var: &e.MaxNumBatchedTokens},
		{Name: "enable_prefix_caching", Var: &e.EnablePrefixCaching},
		{Name: "enable_chunked_prefill", Var: &e.EnableChunkedPrefill},
		{Name: "preemption", Var: (*uint8)(&e.Preemption)},
		{Name: "speedup_ratio", Var: &e.SpeedupRatio},
		{Name: "decode_speedup_ratio", Var: &e.DecodeSpeedupRatio},
		{Name: "emit_kv_events", Var: &e.EmitKVEvents},
		{Name: "emit_kv_token_ids", Var: &e.EmitKVTokenIDs},
		{Name: "dp_size", Var: &e.DPSize},
		{Name: "tensor_parallel_size", Var: &e.TensorParallelSize},
		{Name: "prefill_schedule_interval", Var: &e.PrefillScheduleInterval},
		{Name: "kv_cache_bytes_per_token", Var: &e.KVCacheBytesPerToken},
	}
	fields = append(fields, featureFields(e)...)
	fields = append(fields, timingFields(&e.Timing)...)
	return below(prefix, fields)
}

// below puts a prefix before the names of fields.
func below(prefix string, fields []Field) []Field {
	for i := range fields {
		fields[i].Name = prefix + fields[i].Name
	}
	return fields
}

// featureFields are those of the structs in config.Engine but timing.
func featureFields(e *config.Engine) []Field {
	return []Field{
		{Name: "mtp.drafts", Var: &e.MTP.Drafts},
		{Name: "mtp.accept_rates", Var: &e.MTP.AcceptRates},
		{Name: "mtp.seed", Var: &e.MTP.Seed},
		{Name: "transfer.bytes_per_token", Var: &e.Transfer.BytesPerToken},
		{Name: "transfer.bandwidth_gbs", Var: &e.Transfer.BandwidthGBs},
		{Name: "transfer.timing", Var: (*uint8)(&e.Transfer.Timing)},
		{Name: "host_offload.blocks", Var: &e.HostOffload.Blocks},
		{Name: "host_offload.d2h_gbs", Var: &e.HostOffload.D2HGBs},
		{Name: "host_offload.h2d_gbs", Var: &e.HostOffload.H2DGBs},
		{Name: "host_offload.scope", Var: (*uint8)(&e.HostOffload.Scope)},
		{Name: "host_offload.shared_d2h_gbs", Var: &e.HostOffload.SharedD2HGBs},
		{Name: "host_offload.shared_h2d_gbs", Var: &e.HostOffload.SharedH2DGBs},
		{Name: "host_offload.first_byte_latency_ms", Var: &e.HostOffload.FirstByteLatencyMs},
		{Name: "disk_offload.blocks", Var: &e.DiskOffload.Blocks},
		{Name: "disk_offload.first_byte_latency_ms", Var: &e.DiskOffload.FirstByteLatencyMs},
		{Name: "disk_offload.read_gbs", Var: &e.DiskOffload.ReadGBs},
		{Name: "disk_offload.scope", Var: (*uint8)(&e.DiskOffload.Scope)},
		{Name: "disk_offload.shared_read_gbs", Var: &e.DiskOffload.SharedReadGBs},
		{Name: "disk_offload.shared_write_gbs", Var: &e.DiskOffload.SharedWriteGBs},
		{Name: "disk_offload.write_gbs", Var: &e.DiskOffload.WriteGBs},
		{Name: "sglang.policy", Var: (*uint8)(&e.SGLang.Policy)},
		{Name: "sglang.max_prefill_tokens", Var: &e.SGLang.MaxPrefillTokens},
		{Name: "sglang.chunked_prefill_size", Var: &e.SGLang.ChunkedPrefillSize},
		{Name: "sglang.clip_max_new_tokens", Var: &e.SGLang.ClipMaxNewTokens},
		{Name: "sglang.conservativeness", Var: &e.SGLang.Conservativeness},
		{Name: "sglang.prefill_decode_interval", Var: &e.SGLang.PrefillDecodeInterval},
	}
}

// timingFields are those of the source of pass durations. Tables are left out
// where t has none.
func timingFields(t *config.Timing) []Field {
	fields := []Field{
		{Name: "timing.kind", Var: (*uint8)(&t.Kind)},
		{Name: "timing.prefill_ms", Var: &t.PrefillMs},
		{Name: "timing.decode_ms", Var: &t.DecodeMs},
	}
	if p := t.Profile; p != nil {
		fields = append(fields,
			Field{Name: "timing.profile.prefill_isl", Var: &p.PrefillISL},
			Field{Name: "timing.profile.prefill_ttft_ms", Var: &p.PrefillTTFTMs},
			Field{Name: "timing.profile.decode_active_kv_tokens", Var: &p.DecodeActiveKVTokens},
			Field{Name: "timing.profile.decode_context_length", Var: &p.DecodeContextLength},
			Field{Name: "timing.profile.decode_itl_ms", Var: &p.DecodeITLMs})
	}
	if t.Grid != nil {
		fields = append(fields, below("timing.grid.", gridFields(t.Grid))...)
	}
	return fields
}

// gridFields are the axes and values of a grid.
func gridFields(g *config.GridTable) []Field {
	return []Field{
		{Name: "prefill_batch", Var: &g.PrefillBatch}, {Name: "prefill_isl", Var: &g.PrefillISL}, {Name: "prefill_prefix", Var: &g.PrefillPrefix},
		{Name: "prefill_ms", Var: &g.PrefillMs},
		{Name: "decode_batch", Var: &g.DecodeBatch}, {Name: "decode_context", Var: &g.DecodeContext}, {Name: "decode_ms", Var: &g.DecodeMs},
	}
}

// emptyTables gives a source of durations tables to read into, and trimTables
// takes those away into which nothing was read.
func emptyTables(t *config.Timing) { t.Profile, t.Grid = &config.ProfileTable{}, &config.GridTable{} }

func trimTables(t *config.Timing) {
	if p := t.Profile; p.PrefillISL == nil && p.PrefillTTFTMs == nil && p.DecodeActiveKVTokens == nil && p.DecodeContextLength == nil && p.DecodeITLMs == nil {
		t.Profile = nil
	}
	t.Grid = trimGrid(t.Grid)
}

func trimGrid(g *config.GridTable) *config.GridTable {
	if g.PrefillBatch == nil && g.PrefillISL == nil && g.PrefillPrefix == nil && g.PrefillMs == nil && g.DecodeBatch == nil && g.DecodeContext == nil && g.DecodeMs == nil {
		return nil
	}
	return g
}
