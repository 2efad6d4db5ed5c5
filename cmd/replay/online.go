package main

import (
	"context"
	"errors"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/workload"
	"github.com/dryserve/dryserve/host/native/drive"
	"github.com/dryserve/dryserve/host/native/online"
	"github.com/dryserve/dryserve/host/native/report"
)

// replayModes are the words of --replay-mode.
var replayModes = []string{"offline", "online"}

// online reports whether the run is to be in real time.
func (o *options) online() bool { return o.replayMode == replayModes[1] }

// offlineOnly are flags of which only simulations know.
var offlineOnly = []string{
	"max-sim-time-seconds", "max-sim-time-ms", "scaling-script", "lifecycle-json", "ticks-json",
	"telemetry-jsonl-path", "telemetry-sample-interval-ms", "report-html", "timeline",
}

// checkOnline refuses what a run in real time does not do. As in the reference
// most of it is of the command line, two pools are of the run (replay notes §2).
func (o *options) checkOnline() error {
	if !o.online() {
		return nil
	}
	refuse := func(what string) error {
		return usagef("%s is given with --replay-mode online; it is accepted with offline", what)
	}
	for _, flag := range offlineOnly {
		if o.given(flag) {
			return refuse("--" + flag)
		}
	}
	switch {
	case o.watching.capture:
		return refuse("--capture-telemetry")
	case o.watching.tell != nil:
		return refuse("tell_samples")
	case o.asks:
		return refuse("ask_timing")
	case o.ticks:
		return refuse("ask_scaling")
	case o.route.lagMs > 0:
		return refuse("--kv-event-lag-ms")
	case o.perWorker:
		return refuse("--per-worker")
	case o.parity:
		return refuse("--parity")
	case o.engineKind == "wasm":
		return usagef("--engine wasm is sandboxed, where no time passes, and --replay-mode online is in real time; native is accepted")
	case o.route.mode == routerModes[config.Direct]:
		return usagef("--router-mode direct is given with --replay-mode online; another one is accepted, or --replay-mode offline")
	case o.disaggregated():
		return errors.New("workers in two pools (--prefill-engine-args) are given with --replay-mode online; workers that serve whole requests (--extra-engine-args) are accepted, or --replay-mode offline")
	}
	if o.given("engine-impl") {
		o.warnings = append(o.warnings, "--engine-impl has no effect with --replay-mode online")
	}
	return nil
}

// checkLive refuses engines that do not run in real time.
func (o *options) checkLive(e *config.Engine) error {
	switch {
	case !o.online():
	case e.HostOffload.Blocks > 0 && e.HostOffload.Scope == config.ClusterShared:
		return errors.New("host memory that all workers share (\"scope\": \"cluster_shared\" in native_host_offload) is given with --replay-mode online; \"dp_rank_local\" is accepted, or --replay-mode offline")
	case e.DiskOffload.Blocks > 0:
		return errors.New("g3_offload in the engine arguments is given with --replay-mode online; it is accepted with offline")
	}
	return nil
}

// realtime is a run in real time, with live engines.
type realtime struct {
	cfg  config.Replay
	load *workload.Workload
}

func (r *realtime) close() {}

// picture draws nothing: checkOnline has refused what would be drawn.
func (r *realtime) picture(*pictures) error { return nil }

// simulate runs it. The wall time that it reports is that of the run, which is
// about its duration.
func (r *realtime) simulate(ctx context.Context, host drive.Options) (*finished, error) {
	run, err := online.Run(ctx, r.cfg, r.load, online.Options{Progress: host.Progress})
	if err != nil {
		return nil, err
	}
	return &finished{
		Report:  report.Report{Summary: run.Summary, WallMs: run.WallMs, Graph: r.load.Graph},
		records: run.Records, admissions: run.Admissions, unservable: run.Unservable, load: r.load,
		named: r.load.NamesSessions(r.cfg.Concurrency > 0), lane: run.Lane, route: run.Route, engine: "native", lateMs: run.LateMs,
	}, nil
}
