package golden

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dryserve/dryserve/core/config"
)

// engineJSON are the fields of an engine's configuration that scenarios use,
// in the reference's spelling (engine notes §2.2).
type engineJSON struct {
	Backend                 string  `json:"backend"`
	WorkerType              string  `json:"worker_type"`
	NumGPUBlocks            int     `json:"num_gpu_blocks"`
	BlockSize               *int    `json:"block_size"`
	MaxModelLen             int     `json:"max_model_len"`
	MaxNumSeqs              int     `json:"max_num_seqs"`
	MaxNumBatchedTokens     int     `json:"max_num_batched_tokens"`
	PrefillScheduleInterval int     `json:"prefill_schedule_interval"`
	EnablePrefixCaching     bool    `json:"enable_prefix_caching"`
	EnableChunkedPrefill    bool    `json:"enable_chunked_prefill"`
	PreemptionMode          string  `json:"preemption_mode"`
	SpeedupRatio            float64 `json:"speedup_ratio"`
	DecodeSpeedupRatio      float64 `json:"decode_speedup_ratio"`
	EmitKVEvents            bool    `json:"emit_kv_events"`
	EmitKVTokenIDs          bool    `json:"emit_kv_token_ids"`
	TimingModel             struct {
		Type      string  `json:"type"`
		PrefillMs float64 `json:"prefill_ms"`
		DecodeMs  float64 `json:"decode_ms"`
	} `json:"timing_model"`

	Nextn       int    `json:"aic_nextn"`
	AcceptRates string `json:"aic_nextn_accept_rates"`
	MTPSeed     uint64 `json:"aic_mtp_seed"`

	TransferBytes     int     `json:"kv_transfer_bytes_per_token"`
	TransferBandwidth float64 `json:"kv_transfer_bandwidth"`
	TransferTiming    string  `json:"kv_transfer_timing_mode"`

	KVCacheBytes int       `json:"kv_cache_bytes_per_token"`
	HostOffload  *hostJSON `json:"native_host_offload"`

	PrefillDecodeInterval int         `json:"prefill_decode_interval"`
	SGLang                *sglangJSON `json:"sglang"`
}

type sglangJSON struct {
	Policy             string   `json:"schedule_policy"`
	MaxPrefillTokens   *int     `json:"max_prefill_tokens"`
	ChunkedPrefillSize *int     `json:"chunked_prefill_size"`
	ClipMaxNewTokens   *int     `json:"clip_max_new_tokens"`
	Conservativeness   *float64 `json:"schedule_conservativeness"`
}

type hostJSON struct {
	Scope     string   `json:"scope"`
	Blocks    int      `json:"num_host_blocks"`
	D2H       *float64 `json:"d2h_bandwidth_gbps"`
	H2D       *float64 `json:"h2d_bandwidth_gbps"`
	LatencyMs float64  `json:"latency_to_first_byte_ms"`
}

// Names of enumerators in the reference's spelling, in the order of their
// values.
var (
	backends    = []string{"vllm", "sglang", "trtllm"}
	roles       = []string{"aggregated", "prefill", "decode"}
	preemptions = []string{"lifo", "fifo"}
	timings     = []string{"polynomial", "fixed"}
	transfers   = []string{"full_prompt", "destination_missing"}
	policies    = []string{"fifo", "lpm"}
)

// enum finds a name among those of an enumeration; an empty one is its first.
func enum[T ~uint8](into *T, field, name string, names []string) error {
	for i, n := range names {
		if n == name || i == 0 && name == "" {
			*into = T(i)
			return nil
		}
	}
	return fmt.Errorf("%s is %q", field, name)
}

// ParseEngine reads the engine part of a configuration in the reference's
// spelling, for an engine of dp ranks.
func ParseEngine(data []byte, dp int) (config.Engine, error) {
	cfg := config.Defaults(config.VLLM)
	j := engineJSON{
		NumGPUBlocks:            cfg.NumGPUBlocks,
		MaxNumSeqs:              cfg.MaxNumSeqs,
		MaxNumBatchedTokens:     cfg.MaxNumBatchedTokens,
		PrefillScheduleInterval: 1,
		EnablePrefixCaching:     cfg.EnablePrefixCaching,
		EnableChunkedPrefill:    cfg.EnableChunkedPrefill,
		SpeedupRatio:            cfg.SpeedupRatio,
		DecodeSpeedupRatio:      cfg.DecodeSpeedupRatio,
		MTPSeed:                 cfg.MTP.Seed,
	}
	if err := strict(data, &j); err != nil {
		return cfg, err
	}
	for _, err := range []error{
		enum(&cfg.Backend, "backend", j.Backend, backends),
		enum(&cfg.Role, "worker_type", j.WorkerType, roles),
		enum(&cfg.Preemption, "preemption_mode", j.PreemptionMode, preemptions),
		enum(&cfg.Timing.Kind, "timing_model", j.TimingModel.Type, timings),
		enum(&cfg.Transfer.Timing, "kv_transfer_timing_mode", j.TransferTiming, transfers),
	} {
		if err != nil {
			return cfg, err
		}
	}
	cfg.DPSize = dp
	cfg.NumGPUBlocks, cfg.BlockSize = j.NumGPUBlocks, config.DefaultBlockSize(cfg.Backend)
	if j.BlockSize != nil {
		cfg.BlockSize = *j.BlockSize
	}
	cfg.MaxModelLen, cfg.MaxNumSeqs, cfg.MaxNumBatchedTokens = j.MaxModelLen, j.MaxNumSeqs, j.MaxNumBatchedTokens
	cfg.PrefillScheduleInterval = j.PrefillScheduleInterval
	cfg.EnablePrefixCaching, cfg.EnableChunkedPrefill = j.EnablePrefixCaching, j.EnableChunkedPrefill
	cfg.SpeedupRatio, cfg.DecodeSpeedupRatio = j.SpeedupRatio, j.DecodeSpeedupRatio
	cfg.EmitKVEvents, cfg.EmitKVTokenIDs = j.EmitKVEvents, j.EmitKVTokenIDs
	cfg.Timing.PrefillMs, cfg.Timing.DecodeMs = j.TimingModel.PrefillMs, j.TimingModel.DecodeMs
	cfg.Transfer.BytesPerToken, cfg.Transfer.BandwidthGBs = j.TransferBytes, j.TransferBandwidth
	cfg.KVCacheBytesPerToken = j.KVCacheBytes
	for _, err := range []error{j.speculation(&cfg), j.HostOffload.into(&cfg), j.SGLang.into(&cfg)} {
		if err != nil {
			return cfg, err
		}
	}
	cfg.SGLang.PrefillDecodeInterval = j.PrefillDecodeInterval
	fault := cfg.Check()
	if fault.OK() {
		fault = cfg.CheckChunk()
	}
	if !fault.OK() {
		return cfg, fmt.Errorf("field %d breaks rule %d of core/config", fault.Field, fault.Code)
	}
	return cfg, nil
}

func (j *engineJSON) speculation(cfg *config.Engine) error {
	cfg.MTP = config.MTP{Drafts: j.Nextn, Seed: j.MTPSeed}
	if j.AcceptRates == "" {
		cfg.MTP.AcceptRates = config.DefaultAcceptRates()
		return nil
	}
	for i, text := range strings.Split(j.AcceptRates, ",") {
		if i == config.MaxDrafts {
			break
		}
		p, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil {
			return fmt.Errorf("aic_nextn_accept_rates: %w", err)
		}
		cfg.MTP.AcceptRates[i] = p
	}
	return nil
}

func (h *hostJSON) into(cfg *config.Engine) error {
	if h == nil {
		return nil
	}
	to := config.DefaultHostOffload(h.Blocks)
	for _, f := range []struct {
		to   *float64
		from *float64
	}{{&to.D2HGBs, h.D2H}, {&to.H2DGBs, h.H2D}} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	to.FirstByteLatencyMs = h.LatencyMs
	cfg.HostOffload = to
	if h.Scope != "" && h.Scope != "dp_rank_local" {
		return fmt.Errorf("scope is %q", h.Scope)
	}
	return nil
}

func (s *sglangJSON) into(cfg *config.Engine) error {
	if s == nil {
		return nil
	}
	to := &cfg.SGLang
	for _, f := range []struct{ to, from *int }{
		{&to.MaxPrefillTokens, s.MaxPrefillTokens}, {&to.ChunkedPrefillSize, s.ChunkedPrefillSize}, {&to.ClipMaxNewTokens, s.ClipMaxNewTokens},
	} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	if s.Conservativeness != nil {
		to.Conservativeness = *s.Conservativeness
	}
	return enum(&to.Policy, "schedule_policy", s.Policy, policies)
}
