package engineargs

import (
	"fmt"
	"strconv"

	"github.com/dryserve/dryserve/core/config"
)

// check applies the rules between fields: core/config's first, then those of
// fields that core/config does not know.
//
// Source: reference behaviour notes, engine §2.2.
func (d *decoder) check() error {
	if err := d.speculation(); err != nil {
		return err
	}
	if err := d.checkOffload(); err != nil {
		return err
	}
	d.args.Engine.PrefillScheduleInterval = int(min(d.args.PrefillScheduleInterval, uint64(config.Unbounded)))
	d.args.Engine.SGLang = d.args.sglang()
	d.args.Engine.Transfer = d.args.transfer()
	if fault := d.args.Engine.Check(); !fault.OK() {
		return d.fault(fault)
	}
	return d.checkChunk()
}

// checkChunk: pages of SGLang that do not divide the chunk, as read, cannot be
// computed chunk by chunk, nor can a chunk that leaves a rank nothing.
func (d *decoder) checkChunk() error {
	const key = "engine.sglang.chunked_prefill_size"
	e := d.args.Engine
	if e.Backend != config.SGLang {
		return nil
	}
	size, chunk := uint64(e.BlockSize), d.args.SGLang.ChunkedPrefillSize
	_, said := d.at[key]
	switch {
	case chunk%size != 0 && said:
		return d.only(key, fmt.Sprintf("a multiple of the block size %d is accepted", size))
	case chunk%size != 0:
		return d.only("engine.block_size", fmt.Sprintf("a divisor of chunked_prefill_size %d is accepted", chunk))
	case e.CheckChunk().OK():
		return nil
	case said:
		return d.only(key, fmt.Sprintf("at least 1 for each of %d ranks is accepted", e.DPSize))
	}
	return d.only("dp_size", fmt.Sprintf("at most chunked_prefill_size %d is accepted", chunk))
}

// only words a refusal of the field read under key.
func (d *decoder) only(key, accepted string) error {
	v, ok := d.at[key]
	if !ok {
		return fmt.Errorf("%s: %s has an unusable default; %s", d.source, key, accepted)
	}
	return d.errorf(v, "%s is %s; %s", v.path, v.found(), accepted)
}

// faultKeys are the canonical names of the fields that core/config checks.
func faultKey(f config.Field) string {
	switch f {
	case config.FieldBackend:
		return "engine.backend"
	case config.FieldRole:
		return "engine.worker_type"
	case config.FieldNumGPUBlocks, config.FieldTotalSlots:
		return "engine.num_gpu_blocks"
	case config.FieldBlockSize:
		return "engine.block_size"
	case config.FieldMaxModelLen:
		return "engine.max_model_len"
	case config.FieldMaxNumSeqs:
		return "engine.max_num_seqs"
	case config.FieldMaxNumBatchedTokens:
		return "engine.max_num_batched_tokens"
	case config.FieldEnableChunkedPrefill:
		return "engine.enable_chunked_prefill"
	case config.FieldPreemption:
		return "engine.preemption_mode"
	case config.FieldSpeedupRatio:
		return "engine.speedup_ratio"
	case config.FieldDecodeSpeedupRatio:
		return "engine.decode_speedup_ratio"
	case config.FieldEmitKVTokenIDs:
		return "engine.emit_kv_token_ids"
	case config.FieldTimingPrefillMs:
		return "engine.timing_model.prefill_ms"
	case config.FieldTimingDecodeMs:
		return "engine.timing_model.decode_ms"
	case config.FieldPrefillScheduleInterval:
		return "engine.prefill_schedule_interval"
	case config.FieldMTPDrafts:
		return "engine.aic_nextn"
	case config.FieldPrefillDecodeInterval:
		return "engine.prefill_decode_interval"
	case config.FieldMaxPrefillTokens:
		return "engine.sglang.max_prefill_tokens"
	case config.FieldChunkedPrefillSize:
		return "engine.sglang.chunked_prefill_size"
	case config.FieldConservativeness:
		return "engine.sglang.schedule_conservativeness"
	case config.FieldDPSize:
		return "dp_size"
	case config.FieldTensorParallelSize:
		return "tensor_parallel_size"
	}
	return "engine"
}

// fault words a fault of core/config.
func (d *decoder) fault(f config.Fault) error {
	if f.Field == config.FieldHostOffload || f.Field == config.FieldKVCacheBytes {
		return d.offloadFault(f)
	}
	if f.Field == config.FieldDiskOffload {
		return d.diskFault(f)
	}
	key := faultKey(f.Field)
	if f.Field == config.FieldTotalSlots {
		if _, said := d.at[key]; !said {
			key = "engine.block_size"
		}
		return d.only(key, fmt.Sprintf("num_gpu_blocks times block_size of at most %d is accepted", int64(config.MaxTotalSlots)))
	}
	switch f.Code {
	case config.BelowTwo:
		return d.only(key, "a whole number of at least 2 is accepted for backend "+backendWords[d.args.Engine.Backend])
	case config.TooLarge:
		return d.only(key, fmt.Sprintf("at most %d is accepted", limit(f.Field)))
	case config.NeedsChunking:
		return d.only(key, "true is accepted for backend sglang")
	case config.NeedsVLLM:
		return d.only(key, "1 is accepted for backend "+backendWords[d.args.Engine.Backend])
	case config.NeedsSGLang:
		return d.only(key, "0 is accepted for backend "+backendWords[d.args.Engine.Backend])
	case config.Exclusive:
		return d.only(key, "null is accepted with a decode_speedup_ratio other than 1")
	case config.NeedsEvents:
		return d.only(key, "true is accepted only together with emit_kv_events")
	}
	// Fields of SGLang may hold anything under another backend.
	switch f.Field {
	case config.FieldMaxPrefillTokens, config.FieldChunkedPrefillSize:
		return d.only(key, wantPositive+" is accepted for backend sglang")
	case config.FieldConservativeness:
		return d.only(key, wantNumber+" is accepted for backend sglang")
	}
	return d.only(key, d.accepts[key]+" is accepted")
}

func limit(f config.Field) int64 {
	switch f {
	case config.FieldNumGPUBlocks:
		return config.MaxGPUBlocks
	case config.FieldBlockSize:
		return config.MaxBlockSize
	case config.FieldDPSize:
		return config.MaxRanks
	case config.FieldTensorParallelSize:
		return config.MaxTensorSize
	}
	return int64(config.Unbounded)
}

// checkBuilt refuses what is valid and not built yet.
func (d *decoder) checkBuilt() error {
	n := d.feature
	if n.feature == "" {
		return nil
	}
	return d.errorf(n.at, "%s is %s, but %s is not built yet; %s is accepted", n.at.path, n.at.found(), n.feature, n.accepted)
}

// checkRole: the workers of a pool say so.
func (d *decoder) checkRole() error {
	want, flag := d.options.Role, d.options.flag()
	if d.args.Engine.Role == want {
		return nil
	}
	v, said := d.at["engine.worker_type"]
	accepted := strconv.Quote(roleWords[want])
	switch {
	case !said:
		return fmt.Errorf("%s: worker_type is not given; %s is accepted", d.source, accepted)
	case v.kind == boolean && want == config.Aggregated:
		accepted = "false"
	case v.kind == boolean:
		accepted = "worker_type " + accepted
	}
	return d.errorf(v, "%s is %s; %s is accepted in %s", v.path, v.found(), accepted, flag)
}
