// Package parity gives tests the project's answer to a replay case written the
// reference's way: keyword arguments of its run_trace_replay and a trace, or of
// its run_synthetic_trace_replay.
//
// It owns the translation of those arguments; running and reporting are
// core/replay's and host/native/report's.
package parity

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/workload"
	"github.com/dryserve/dryserve/host/native/engineargs"
)

// Config reads keyword arguments as decoded from JSON. The run keeps per-request
// records and ends as the reference does.
func Config(kwargs map[string]any) (config.Replay, error) { return ConfigWith(kwargs, nil) }

// ConfigWith is Config with a way to load profiles of pass durations; nil
// reads files.
func ConfigWith(kwargs map[string]any, load func(path string) (*config.ProfileTable, error)) (config.Replay, error) {
	c := config.DefaultReplay(config.VLLM)
	c.Parity, c.CaptureRequests = true, true
	prefillers, decoders := 1, 1
	numbers := map[string]*float64{
		"arrival_speedup_ratio": &c.ArrivalSpeedup, "max_sim_time_ms": &c.MaxSimTimeMs,
		"telemetry":   &c.Samples.EveryMs,
		"sla_ttft_ms": &c.SLA.TTFTMs, "sla_itl_ms": &c.SLA.ITLMs, "sla_e2e_ms": &c.SLA.E2EMs,
	}
	counts := map[string]*int{
		"num_workers": &c.NumWorkers, "trace_block_size": &c.TraceBlockSize, "replay_concurrency": &c.Concurrency, "agentic_lanes": &c.Lanes,
		"num_prefill_workers": &prefillers, "num_decode_workers": &decoders,
	}
	split, err := pools(kwargs)
	if err != nil {
		return c, err
	}
	for key, value := range kwargs {
		if value == nil {
			continue
		}
		if role, ok := engineKeys[key]; ok {
			text, err := json.Marshal(value)
			if err != nil {
				return c, err
			}
			args, err := engineargs.Options{LoadProfile: load, Flag: key, Role: role}.Parse(key, text)
			if err != nil {
				return c, err
			}
			if role == config.Prefill {
				c.Prefill.Engine, c.Scaling.PrefillStartupMs = args.Engine, args.StartupTimeS.V*1000
			} else {
				c.Engine, c.Scaling.StartupMs = args.Engine, args.StartupTimeS.V*1000
			}
			continue
		}
		if syntheticKeys[key] || traceKeys[key] || routerKeys[key] {
			continue
		}
		number, err := toFloat(value)
		if err != nil {
			return c, fmt.Errorf("%s: %w", key, err)
		}
		switch {
		case numbers[key] != nil:
			*numbers[key] = number
		case counts[key] != nil:
			if *counts[key] = int(number); number < 1 {
				return c, fmt.Errorf("%s: %v is below 1", key, number)
			}
		default:
			return c, fmt.Errorf("%s is not translated", key)
		}
	}
	if split {
		c.Prefill.Workers, c.NumWorkers = prefillers, decoders
	}
	if err := routing(kwargs, &c); err != nil {
		return c, err
	}
	if !(c.ArrivalSpeedup > 0) || math.IsInf(c.ArrivalSpeedup, 0) {
		return c, fmt.Errorf("arrival_speedup_ratio: %v is not a positive number", c.ArrivalSpeedup)
	}
	if f := c.Check(); !f.OK() {
		return c, fmt.Errorf("fault %d in field %d", f.Code, f.Field)
	}
	return c, nil
}

// engineKeys are the arguments that describe engines.
var engineKeys = map[string]config.Role{
	"extra_engine_args": config.Aggregated, "prefill_engine_args": config.Prefill, "decode_engine_args": config.Decode,
}

// pools reports whether the arguments are for two pools, and checks which stand
// together.
func pools(kwargs map[string]any) (split bool, err error) {
	given := func(key string) bool { return kwargs[key] != nil }
	whole := func(key string) bool { n, err := toFloat(kwargs[key]); return !given(key) || err == nil && n == 1 }
	split = given("prefill_engine_args") || given("decode_engine_args")
	switch {
	case split && given("extra_engine_args"), given("prefill_engine_args") != given("decode_engine_args"):
		return split, errors.New("want extra_engine_args, or prefill_engine_args and decode_engine_args")
	case split && !whole("num_workers"), !split && !(whole("num_prefill_workers") && whole("num_decode_workers")):
		return split, errors.New("want num_workers, or num_prefill_workers and num_decode_workers")
	}
	return split, nil
}

func toFloat(v any) (float64, error) {
	switch v := v.(type) {
	case float64:
		return v, nil
	case int:
		return float64(v), nil
	case json.Number:
		return v.Float64()
	}
	return 0, fmt.Errorf("%v is not a number", v)
}

// Rows parses a trace. The rows are the caller's.
func Rows(text []byte) ([]trace.Row, error) {
	var rows []trace.Row
	var p trace.Parser
	s := trace.NewSplitter(trace.MaxLine)
	s.Feed(text)
	for closed := false; ; {
		line, ok := s.Next()
		if !ok {
			if closed {
				return rows, nil
			}
			s.Close()
			closed = true
			continue
		}
		var row trace.Row
		if f := p.Line(line, &row); f.Code != trace.OK {
			return nil, fmt.Errorf("line %d: fault %d", s.Line(), f.Code)
		}
		row.HashIDs, row.OutputIDs = slices.Clone(row.HashIDs), slices.Clone(row.OutputIDs)
		row.SessionID, row.PolicyClass = slices.Clone(row.SessionID), slices.Clone(row.PolicyClass)
		rows = append(rows, row)
	}
}

// Build makes the workload of rows, one a line.
func Build(rows []trace.Row, c config.Replay) (*workload.Workload, error) {
	b := workload.NewBuilder(c.TraceBlockSize)
	for i := range rows {
		if f := b.Add(&rows[i], int64(i)+1); f.Code != workload.OK {
			return nil, fmt.Errorf("line %d: fault %d", i+1, f.Code)
		}
	}
	w, f := b.Finish(workload.Options{Concurrency: c.Concurrency > 0, ArrivalSpeedup: c.ArrivalSpeedup})
	if f.Code != workload.OK {
		return nil, fmt.Errorf("line %d: fault %d", f.Line, f.Code)
	}
	return w, nil
}
