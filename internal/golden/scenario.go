// Package golden replays recorded engine scenarios: it gives a core engine the
// commands of a scenario, lets it run its passes, and compares everything it
// says with what the reference said.
//
// It owns the form of the recorded files, the driver and the
// comparison; it knows no rule of the scheduler. A field that the file does
// not have is not compared, except that KV events which the file does not
// mention must not exist. Numbers are compared bit for bit; only the variances
// of a pass's scheduled work may differ by 1e-9 relative, since the reference
// sums them in the order of a hash map.
package golden

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/dryserve/dryserve/core/config"
)

// Scenario is one recorded run of an engine.
type Scenario struct {
	Name      string
	Engine    config.Engine
	WorkerID  uint64
	MaxPasses int // 0: it ends by itself
	Steps     []Step
	Expect    []any // JSON values, numbers as json.Number
}

// Step is a command that is given at a time.
type Step struct {
	AtMs      float64  `json:"at"`
	Rank      int      `json:"rank"`
	Op        string   `json:"op"`
	ID        uint64   `json:"id"` // the request's UUID as a number
	MaxOutput int      `json:"out"`
	OutputIDs []uint32 `json:"ids"`
	Tokens    []uint32 `json:"tokens"` // the prompt, or:
	Start     uint32   `json:"start"`  // Start, Start+1, …
	Len       uint32   `json:"len"`
}

// prompt is the step's prompt tokens.
func (s Step) prompt() []uint32 {
	if s.Tokens != nil {
		return s.Tokens
	}
	ids := make([]uint32, s.Len)
	for i := range ids {
		ids[i] = s.Start + uint32(i)
	}
	return ids
}

// engineJSON are the fields of an engine's configuration that scenarios use,
// in the reference's spelling (engine notes §2.2).
type engineJSON struct {
	Backend              string  `json:"backend"`
	NumGPUBlocks         int     `json:"num_gpu_blocks"`
	BlockSize            int     `json:"block_size"`
	MaxModelLen          int     `json:"max_model_len"`
	MaxNumSeqs           int     `json:"max_num_seqs"`
	MaxNumBatchedTokens  int     `json:"max_num_batched_tokens"`
	EnablePrefixCaching  bool    `json:"enable_prefix_caching"`
	EnableChunkedPrefill bool    `json:"enable_chunked_prefill"`
	PreemptionMode       string  `json:"preemption_mode"`
	SpeedupRatio         float64 `json:"speedup_ratio"`
	DecodeSpeedupRatio   float64 `json:"decode_speedup_ratio"`
	EmitKVEvents         bool    `json:"emit_kv_events"`
	EmitKVTokenIDs       bool    `json:"emit_kv_token_ids"`
	TimingModel          struct {
		Type      string  `json:"type"`
		PrefillMs float64 `json:"prefill_ms"`
		DecodeMs  float64 `json:"decode_ms"`
	} `json:"timing_model"`
}

// Load reads a scenario. A field it does not know is an error, so that no
// scenario is run with half of its configuration.
func Load(path string) (*Scenario, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

func parse(data []byte) (*Scenario, error) {
	var file struct {
		Name      string          `json:"name"`
		Config    json.RawMessage `json:"config"`
		DP        int             `json:"dp"`
		WorkerID  uint64          `json:"worker_id"`
		MaxPasses int             `json:"max_passes"`
		Steps     []Step          `json:"steps"`
		Expect    []any           `json:"expect"`
	}
	if err := strict(data, &file); err != nil {
		return nil, err
	}
	if file.DP > 1 {
		return nil, fmt.Errorf("dp is %d; only one rank can be driven", file.DP)
	}
	cfg, err := parseEngine(file.Config)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	return &Scenario{
		Name: file.Name, Engine: cfg, WorkerID: file.WorkerID, MaxPasses: file.MaxPasses,
		Steps: file.Steps, Expect: file.Expect,
	}, nil
}

func parseEngine(data []byte) (config.Engine, error) {
	cfg := config.Defaults(config.VLLM)
	j := engineJSON{
		Backend:              "vllm",
		NumGPUBlocks:         cfg.NumGPUBlocks,
		BlockSize:            cfg.BlockSize,
		MaxNumSeqs:           cfg.MaxNumSeqs,
		MaxNumBatchedTokens:  cfg.MaxNumBatchedTokens,
		EnablePrefixCaching:  cfg.EnablePrefixCaching,
		EnableChunkedPrefill: cfg.EnableChunkedPrefill,
		PreemptionMode:       "lifo",
		SpeedupRatio:         cfg.SpeedupRatio,
		DecodeSpeedupRatio:   cfg.DecodeSpeedupRatio,
	}
	j.TimingModel.Type = "polynomial"
	if err := strict(data, &j); err != nil {
		return cfg, err
	}
	if j.Backend != "vllm" {
		return cfg, fmt.Errorf("backend is %q; only vllm can be driven", j.Backend)
	}
	cfg.NumGPUBlocks, cfg.BlockSize = j.NumGPUBlocks, j.BlockSize
	cfg.MaxModelLen, cfg.MaxNumSeqs, cfg.MaxNumBatchedTokens = j.MaxModelLen, j.MaxNumSeqs, j.MaxNumBatchedTokens
	cfg.EnablePrefixCaching, cfg.EnableChunkedPrefill = j.EnablePrefixCaching, j.EnableChunkedPrefill
	cfg.SpeedupRatio, cfg.DecodeSpeedupRatio = j.SpeedupRatio, j.DecodeSpeedupRatio
	cfg.EmitKVEvents, cfg.EmitKVTokenIDs = j.EmitKVEvents, j.EmitKVTokenIDs
	switch j.PreemptionMode {
	case "lifo":
		cfg.Preemption = config.LIFO
	case "fifo":
		cfg.Preemption = config.FIFO
	default:
		return cfg, fmt.Errorf("preemption_mode is %q", j.PreemptionMode)
	}
	switch j.TimingModel.Type {
	case "polynomial":
		cfg.Timing = config.Timing{Kind: config.Polynomial}
	case "fixed":
		cfg.Timing = config.Timing{Kind: config.Fixed, PrefillMs: j.TimingModel.PrefillMs, DecodeMs: j.TimingModel.DecodeMs}
	default:
		return cfg, fmt.Errorf("timing_model is %q", j.TimingModel.Type)
	}
	if fault := cfg.Check(); !fault.OK() {
		return cfg, fmt.Errorf("field %d breaks rule %d of core/config", fault.Field, fault.Code)
	}
	return cfg, nil
}

// strict decodes one JSON value, refusing unknown fields and trailing data and
// keeping numbers of untyped values as text.
func strict(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return err
	}
	if d.More() {
		return errors.New("data after the end of the value")
	}
	return nil
}
