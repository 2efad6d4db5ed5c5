package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/engineargs"
	"github.com/dryserve/dryserve/host/native/modelconfig"
)

// configure turns the command line into a run, engine arguments first, as the
// reference does. Its errors are one sentence each.
func (o *options) configure() (config.Replay, []engineargs.Args, error) {
	r := config.DefaultReplay(config.VLLM)
	if err := o.checkOnline(); err != nil {
		return r, nil, err
	}
	engines, err := o.engines(&r)
	if err != nil {
		return r, nil, err
	}
	if err := o.checkLive(&r.Engine); err != nil {
		return r, engines, err
	}
	r, err = o.run(r)
	return r, engines, err
}

// limit bounds the simulated time.
func (o *options) limit(r *config.Replay) error {
	const accepted = "a finite number of at least 0"
	seconds, ms := o.given("max-sim-time-seconds"), o.given("max-sim-time-ms")
	switch {
	case seconds && ms:
		return errors.New("--max-sim-time-seconds and --max-sim-time-ms are given; one is accepted")
	case seconds:
		r.MaxSimTimeMs = o.maxSimTimeS * 1000
		if !(r.MaxSimTimeMs >= 0) || math.IsInf(r.MaxSimTimeMs, 0) {
			return realError("max-sim-time-seconds", o.maxSimTimeS, accepted)
		}
	case ms:
		r.MaxSimTimeMs = o.maxSimTimeMs
		if !(r.MaxSimTimeMs >= 0) || math.IsInf(r.MaxSimTimeMs, 0) {
			return realError("max-sim-time-ms", o.maxSimTimeMs, accepted)
		}
	}
	return nil
}

// run is the run around its engines.
func (o *options) run(r config.Replay) (config.Replay, error) {
	r.TraceBlockSize, r.ArrivalSpeedup = o.traceBlockSize, o.arrivalSpeedup
	r.Parity, r.CaptureRequests = o.parity, o.given("report-jsonl") || o.capture || o.perWorker
	if o.given("replay-concurrency") {
		if o.concurrency < 1 {
			return r, valueError("replay-concurrency", strconv.Itoa(o.concurrency), "a whole number of at least 1")
		}
		r.Concurrency = o.concurrency
	}
	if o.given("agentic-lanes") {
		if o.lanes < 1 {
			return r, valueError("agentic-lanes", strconv.Itoa(o.lanes), "a whole number of at least 1")
		}
		if r.Concurrency > 0 {
			return r, errors.New("--agentic-lanes is given with --replay-concurrency; one of them is accepted")
		}
		r.Lanes = o.lanes
	}
	if !(o.traceSharedRatio >= 0 && o.traceSharedRatio <= 1) {
		return r, realError("trace-shared-prefix-ratio", o.traceSharedRatio, "a number from 0 to 1")
	}
	if o.traceGroups < 0 || o.traceGroups > math.MaxUint32 {
		return r, valueError("trace-num-prefix-groups", strconv.Itoa(o.traceGroups), "a whole number from 0 to 4294967295")
	}
	if o.given("execution-model") && strings.TrimSpace(o.executionModel) == "" {
		return r, errors.New("--execution-model is blank; a name is accepted")
	}
	if err := o.limit(&r); err != nil {
		return r, err
	}
	goals, err := o.goals(r.SLA)
	if err != nil {
		return r, err
	}
	if !o.online() {
		r.SLA = goals
	}
	if err := o.checkTexts(); err != nil {
		return r, err
	}
	if err := o.watch(&r); err != nil {
		return r, err
	}
	if f := r.Check(); !f.OK() {
		return r, o.fault(f)
	}
	r.SLA = goals
	return r, nil
}

// goals are the bounds of the SLA. In real time the reference takes a bound of 0,
// and both kinds together, which core/config does not judge then.
func (o *options) goals(s config.SLA) (config.SLA, error) {
	for _, bound := range []struct {
		flag string
		ms   float64
		to   *float64
	}{{"sla-ttft-ms", o.slaTTFTMs, &s.TTFTMs}, {"sla-itl-ms", o.slaITLMs, &s.ITLMs}, {"sla-e2e-ms", o.slaE2EMs, &s.E2EMs}} {
		if !o.given(bound.flag) {
			continue
		}
		if accepted := "a finite number above 0"; !o.online() && !(bound.ms > 0) || !(bound.ms >= 0) || math.IsInf(bound.ms, 0) {
			if o.online() {
				accepted = "a finite number of at least 0"
			}
			return s, realError(bound.flag, bound.ms, accepted)
		}
		*bound.to = bound.ms
	}
	return s, nil
}

// beside reads what other flags say of all engines.
func (o *options) beside() (engineargs.Options, error) {
	beside := engineargs.Options{FindGrid: o.grids.Find}
	if o.given("grid-dir") && o.grids.Dir == "" {
		return beside, errors.New("--grid-dir is empty; a path is accepted")
	}
	for _, file := range []struct{ flag, provider, path string }{
		{"planner-profile-data", engineargs.ProfileProvider, o.profileData}, {"perf-grid", engineargs.GridProvider, o.perfGrid},
	} {
		if !o.given(file.flag) {
			continue
		}
		if beside.TimingFlag != "" {
			return beside, fmt.Errorf("--%s says how long passes take, and so does %s; one is accepted", file.flag, beside.TimingFlag)
		}
		if file.path == "" {
			return beside, fmt.Errorf("--%s is empty; a path is accepted", file.flag)
		}
		beside.Timing = engineargs.TimingFile{Provider: file.provider, Path: file.path}
		beside.TimingFlag = "--" + file.flag
	}
	return beside, o.kvPerToken(&beside)
}

// kvPerToken reads or counts the bytes of KV cache per token, if a flag asks.
func (o *options) kvPerToken(beside *engineargs.Options) error {
	if o.given("kv-bytes-per-token") {
		if o.kvBytes < 1 {
			return valueError("kv-bytes-per-token", strconv.Itoa(o.kvBytes), "a whole number of at least 1")
		}
		beside.KVBytes, beside.KVFlag = uint64(o.kvBytes), "--kv-bytes-per-token"
	}
	for _, flag := range []string{"kv-cache-dtype", "use-head-dim"} {
		if o.given(flag) && !o.given("model-path") {
			return fmt.Errorf("--%s says how to count for --model-path, which is not given; both or neither are accepted", flag)
		}
	}
	switch {
	case !o.given("model-path"):
		return nil
	case o.modelPath == "":
		return errors.New("--model-path is empty; a model's directory or its config.json is accepted")
	case beside.KVFlag != "":
		return errors.New("--kv-bytes-per-token and --model-path both give the bytes of KV cache per token; one is accepted")
	}
	n, err := modelconfig.Options{UseHeadDim: o.useHeadDim, CacheDType: o.kvCacheDType}.KVBytesPerToken(o.modelPath)
	if err != nil {
		return fmt.Errorf("--model-path: %w", err)
	}
	beside.KVBytes, beside.KVFlag = uint64(n), "--model-path"
	return nil
}

// checkTexts refuses names and paths that are given and empty.
func (o *options) checkTexts() error {
	for _, text := range []struct{ flag, value, accepted string }{
		{"model-name", o.modelName, "a name"}, {"report-json", o.reportJSON, "a path"}, {"report-jsonl", o.reportJSONL, "a path"},
		{"report-html", o.reportHTML, "a path"}, {"timeline", o.timeline, "a path"},
		{"wasm-cache", o.wasmCache, "a path"}, {"telemetry-jsonl-path", o.watching.samples, "a path"},
		{"lifecycle-json", o.watching.lifecycle, "a path"}, {"ticks-json", o.watching.ticks, "a path"},
		{"cpu-profile", o.cpuProfile, "a path"}, {"mem-profile", o.memProfile, "a path"},
	} {
		if o.given(text.flag) && text.value == "" {
			return fmt.Errorf("--%s is empty; %s is accepted", text.flag, text.accepted)
		}
	}
	return nil
}

func valueError(flag, found, accepted string) error {
	return fmt.Errorf("--%s is %s; %s is accepted", flag, found, accepted)
}

func realError(flag string, x float64, accepted string) error {
	return valueError(flag, strconv.FormatFloat(x, 'g', -1, 64), accepted)
}

// fault words what core/config refuses of a run. Engine fields do not come
// here: engineargs has checked them.
func (o *options) fault(f config.Fault) error {
	const most = "a whole number from 1 to "
	switch f.Field {
	case config.FieldNumWorkers:
		flag, n := "num-workers", o.numWorkers
		if o.disaggregated() {
			flag, n = "num-decode-workers", o.numDecode
		}
		return valueError(flag, strconv.Itoa(n), most+strconv.Itoa(config.MaxWorkers))
	case config.FieldNumPrefillWorkers:
		return valueError("num-prefill-workers", strconv.Itoa(o.numPrefill), most+strconv.Itoa(config.MaxWorkers))
	case config.FieldPrefillPerNode:
		return valueError("prefill-workers-per-node", strconv.Itoa(o.prefillPerNode), most+strconv.Itoa(config.MaxWorkers))
	case config.FieldHostOffload:
		return errors.New("the engine arguments of a pool have native_host_offload; it is accepted with workers that serve whole requests (--extra-engine-args)")
	case config.FieldTraceBlockSize:
		return valueError("trace-block-size", strconv.Itoa(o.traceBlockSize), most+strconv.Itoa(config.MaxBlockSize))
	case config.FieldArrivalSpeedup:
		return realError("arrival-speedup-ratio", o.arrivalSpeedup, "a finite number above 0")
	case config.FieldKVEventLag:
		return realError("kv-event-lag-ms", o.route.lagMs, "a finite number of at least 0")
	case config.FieldRouterMode:
		return errors.New("--router-mode kv_router is not built yet for host memory that all workers share; \"scope\": \"dp_rank_local\" in native_host_offload is accepted")
	case config.FieldDiskOffload:
		return errors.New("g3_offload in the engine arguments is not built yet for --router-mode kv_router, workers that come and go, or telemetry; it is accepted without them")
	case config.FieldScaling:
		return errors.New("--scaling-script is given with --router-mode direct, whose workers are named ahead; one of them is accepted")
	case config.FieldSLAE2EMs:
		return errors.New("--sla-e2e-ms is given with --sla-ttft-ms or --sla-itl-ms; either kind is accepted alone")
	}
	return fmt.Errorf("the run is not valid (code %d, field %d)", f.Code, f.Field)
}
