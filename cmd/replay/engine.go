package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/synth"
	"github.com/dryserve/dryserve/core/workload"
	"github.com/dryserve/dryserve/host/native/drive"
	"github.com/dryserve/dryserve/host/native/report"
	"github.com/dryserve/dryserve/host/native/tracefile"
	"github.com/dryserve/dryserve/host/wasm"
	"github.com/dryserve/dryserve/host/wasm/frame"
	"github.com/dryserve/dryserve/host/wasm/runner"
)

// prepared is a run whose trace is read, on either engine. Both give the same
// bytes.
type prepared interface {
	// simulate runs to the end. The wall time it reports is that from the
	// loaded trace to the last event, as the reference measures it.
	simulate(ctx context.Context, host drive.Options) (*finished, error)
	// picture makes simulate tell what happens in the run.
	picture(p *pictures) error
	close()
}

// finished is what a run leaves.
type finished struct {
	report.Report
	records    []replay.Record
	admissions []replay.Admission
	handoffs   []replay.Handoff // of workers in two pools
	unservable []int32
	load       *workload.Workload // of core.wasm: an outline of it
	named      bool               // sessions have names in the records
	lifecycle  []replay.Operation // of workers that come and go
	lane       func(play int32) int32
	route      func(turn int32) (replay.Route, bool) // nil: no KV router
	cfg        config.Replay
	jsonPath   string  // of the report, "": none
	engine     string  // that it ran on: native or wasm
	lateMs     float64 // in real time: the most that the machine was late by
}

// prepare makes the workload, or reads the trace, for the engine that is asked
// for.
func (o *options) prepare(ctx context.Context, cfg config.Replay, around *surroundings) (prepared, error) {
	if o.engineKind != "native" && !o.online() {
		return prepareSandboxed(ctx, o, around, cfg)
	}
	load, err := o.load(ctx, cfg, around)
	if err == nil {
		load.Targets, err = o.targets(len(load.Turns))
	}
	if err != nil {
		return nil, err
	}
	if o.online() {
		return &realtime{cfg, load}, nil
	}
	return o.native(cfg, load), nil
}

// native is a run on native code.
func (o *options) native(cfg config.Replay, load *workload.Workload) *native {
	return &native{cfg: cfg, load: load, options: replay.Options{Plain: o.engineImpl == "plain"}}
}

// load makes or reads the workload.
func (o *options) load(ctx context.Context, cfg config.Replay, around *surroundings) (*workload.Workload, error) {
	if len(o.traces) > 0 {
		return o.readTrace(ctx, cfg, around, nil)
	}
	spec, err := o.spec(cfg)
	if err != nil {
		return nil, err
	}
	w, f := synth.Build(spec, workload.Options{Concurrency: cfg.Concurrency > 0, ArrivalSpeedup: cfg.ArrivalSpeedup})
	return w, synthError(f)
}

// readTrace reads the trace, or hands it to another reader; then there is no
// workload.
func (o *options) readTrace(ctx context.Context, cfg config.Replay, around *surroundings, into tracefile.Into) (*workload.Workload, error) {
	t, err := tracefile.Load(ctx, o.traces, o.traceOptions(cfg, around, into))
	o.detected, o.failed, o.rows = t.Format, t.Info.Failed, t.Info.Rows
	return t.Workload, asUsage(err)
}

// asUsage is err, as an error of the command line if it is one.
func asUsage(err error) error {
	var wrong *tracefile.Error
	if errors.As(err, &wrong) && wrong.Usage {
		return usageError{err.Error()}
	}
	return err
}

// traceOptions say how the trace is read.
func (o *options) traceOptions(cfg config.Replay, around *surroundings, into tracefile.Into) tracefile.Options {
	want := 0
	if o.given("trace-block-size") {
		want = cfg.TraceBlockSize
	}
	basis, _ := tracefile.ParseBasis(o.nestedBasis)
	return tracefile.Options{
		Format:         o.traceFormat,
		TraceBlockSize: cfg.TraceBlockSize,
		WantBlockSize:  want,
		Concurrency:    cfg.Concurrency > 0,
		ArrivalSpeedup: cfg.ArrivalSpeedup,

		SharedPrefixRatio: o.traceSharedRatio,
		PrefixGroups:      uint32(o.traceGroups),
		Lanes:             o.lanes,
		ExecutionModel:    o.executionModel,
		NestedBasis:       basis,

		Into:     into,
		Stdin:    around.stdin,
		Progress: around.stage("Reading"),
	}
}

// native runs the core as it was compiled into this program.
type native struct {
	cfg     config.Replay
	load    *workload.Workload
	options replay.Options
	record  func(*replay.Recording) error // nil: nobody asks
}

func (n *native) close() {}

func (n *native) simulate(ctx context.Context, host drive.Options) (*finished, error) {
	start := time.Now()
	sim := replay.New(n.cfg, n.load, n.options)
	host.Record = n.record
	status, err := drive.Run(ctx, sim, host)
	if err != nil {
		return nil, err
	}
	wallMs := sinceMs(start)
	switch status {
	case replay.Done:
		out := &finished{
			Report:  report.Report{Summary: sim.Summary(), WallMs: wallMs, Graph: n.load.Graph},
			records: sim.Records(), admissions: sim.Admissions(), handoffs: sim.Handoffs(), unservable: sim.Unservable(), load: n.load, lifecycle: sim.Lifecycle(),
			named: n.load.NamesSessions(n.cfg.Concurrency > 0), lane: sim.Lane, engine: "native",
		}
		if n.cfg.Routing.Mode == config.KVRouter {
			out.route = sim.Route
		}
		return out, nil
	case replay.Stuck:
		f := sim.Fault()
		class := ""
		if !f.Router.OK() {
			class = sim.RouterClass(f.Router.Full.Class)
		}
		return nil, stuckError(f, class)
	}
	return nil, fmt.Errorf("the simulation stopped in an unknown state (%d)", status)
}

func sinceMs(start time.Time) float64 { return float64(time.Since(start).Nanoseconds()) / 1e6 }

// stuckError words why a run cannot go on, under parity or for its KV router. class
// is that of the router that is full, if one is.
func stuckError(f replay.Fault, class string) error {
	if !f.Router.OK() {
		return routerFault(f, class)
	}
	if f.Nobody {
		return fmt.Errorf("at %g ms a request arrives and no worker serves; a --scaling-script that keeps at least one worker active is accepted", f.NowMs)
	}
	if f.Endless {
		return fmt.Errorf("--parity: the reference repeats a pass at %g ms for ever: a request of a worker with %d in flight has outgrown the KV pool; without --parity it fails alone", f.NowMs, f.InFlight)
	}
	return fmt.Errorf("replay invariant violated: offline replay detected an effect-free zero-duration pass with %d in-flight requests remaining", f.InFlight)
}

// sandboxed runs the core inside core.wasm.
type sandboxed struct {
	runner  *runner.Runner
	release func(*runner.Runner)
	sim     *runner.Sim
	cfg     config.Replay
	load    *workload.Workload            // an outline, once asked for
	record  func(*replay.Recording) error // nil: nobody asks

	begin  func() error    // opens sim in runner
	better *runner.Warming // what will be ready soon; nil: runner is as good as any
}

func prepareSandboxed(ctx context.Context, o *options, around *surroundings, cfg config.Replay) (prepared, error) {
	s := &sandboxed{cfg: cfg, release: around.release}
	var spec synth.Spec
	var err error
	if len(o.traces) == 0 {
		if spec, err = o.spec(cfg); err != nil {
			return nil, err
		}
	}
	if err := s.choose(ctx, o, around); err != nil {
		return nil, err
	}
	run := o.describe(cfg, around)
	s.begin = func() (err error) {
		if s.sim, err = s.runner.Open(ctx, run); err != nil {
			return err
		}
		if from, ok := around.stdin.(io.Seeker); ok { // it may have been read
			if _, err = from.Seek(0, io.SeekStart); err != nil {
				return err
			}
		}
		if len(o.traces) > 0 {
			_, err = o.readTrace(ctx, cfg, around, s.sim)
		} else {
			var f workload.Fault
			if f, err = s.sim.Synthesize(spec); err == nil {
				err = synthError(f)
			}
		}
		if err != nil {
			return err
		}
		return s.direct(o)
	}
	if err := s.begin(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// describe is the run as core.wasm is told.
func (o *options) describe(cfg config.Replay, around *surroundings) frame.Run {
	t := o.traceOptions(cfg, around, nil)
	return frame.Run{
		Replay: cfg, Plain: o.engineImpl == "plain", Record: o.draws(),
		Format: t.Format, WantBlockSize: t.WantBlockSize, SharedPrefixRatio: t.SharedPrefixRatio, PrefixGroups: t.PrefixGroups,
		ExecutionModel: t.ExecutionModel, NestedBasis: t.NestedBasis,
	}
}

// direct says where requests go, if the command line does.
func (s *sandboxed) direct(o *options) error {
	targets, err := o.targets(s.sim.Turns())
	if err != nil || targets == nil {
		return err
	}
	return s.sim.Direct(targets)
}

// wasmOptions are core.wasm and where it is kept compiled.
func (o *options) wasmOptions() (runner.Options, error) {
	core, err := wasm.Core()
	if err != nil {
		return runner.Options{}, fmt.Errorf("--engine wasm: %w", err)
	}
	return runner.Options{Core: core, CacheDir: o.wasmDir()}, nil
}

// newRunner compiles core.wasm or finds it compiled.
func newRunner(o *options) (*runner.Runner, error) {
	w, err := o.wasmOptions()
	if err != nil {
		return nil, err
	}
	return o.compile(w)
}

// compile compiles core.wasm or finds it compiled. The usual place for that need
// not be there or writable; one that was asked for must be.
func (o *options) compile(w runner.Options) (*runner.Runner, error) {
	ctx := context.Background()
	r, err := runner.New(ctx, w)
	switch {
	case err == nil:
		return r, nil
	case o.given("wasm-cache"):
		return nil, fmt.Errorf("--wasm-cache: %w; a directory that can be written is accepted", err)
	case errors.Is(err, runner.ErrCache):
		w.CacheDir = ""
		return runner.New(ctx, w)
	}
	return nil, err
}

// wasmDir is where core.wasm is kept compiled; "": nowhere, as the usual place
// cannot be made.
func (o *options) wasmDir() string {
	if o.given("wasm-cache") {
		return o.wasmCache
	}
	dir, err := os.UserCacheDir()
	dir = filepath.Join(dir, "dryserve", "wasm")
	if err != nil || os.MkdirAll(dir, 0o700) != nil {
		return ""
	}
	return dir
}

// close frees what the guest has, at the end of the program at the latest.
func (s *sandboxed) close() {
	if s.sim != nil {
		_ = s.sim.Close()
	}
	if s.release != nil {
		s.release(s.runner)
	}
}

func (s *sandboxed) simulate(ctx context.Context, host drive.Options) (*finished, error) {
	start := time.Now()
	host.Record = s.record
	p, err := s.run(ctx, host)
	if err != nil {
		return nil, err
	}
	out := &finished{Report: report.Report{WallMs: sinceMs(start)}, engine: "wasm"}
	switch p.Status {
	case frame.Done:
	case frame.Failed:
		return nil, stuckError(p.Fault, p.Class)
	default:
		return nil, fmt.Errorf("the simulation stopped in an unknown state (%d)", p.Status)
	}
	if out.Summary, err = s.sim.Summary(); err != nil {
		return nil, err
	}
	if s.cfg.CaptureRequests {
		if err := s.requests(out); err != nil {
			return nil, err
		}
	}
	if out.unservable, err = s.sim.Unservable(); err != nil {
		return nil, err
	}
	out.named = s.sim.NamesSessions()
	if out.load, err = s.outline(); err != nil {
		return nil, err
	}
	if s.cfg.Scaling.Policy != config.NoScaling {
		if out.lifecycle, err = s.sim.Lifecycle(); err != nil {
			return nil, err
		}
	}
	out.Graph = out.load.Graph
	return out, s.plays(out)
}

// plays takes what became of the plays of a graph.
func (s *sandboxed) plays(out *finished) error {
	if out.Agents == nil {
		return nil
	}
	lanes, err := s.sim.Outcomes(out.Agents)
	out.lane = func(play int32) int32 { return lanes[play] }
	return err
}

// outline is the workload without prompts.
func (s *sandboxed) outline() (w *workload.Workload, err error) {
	if s.load == nil {
		s.load, err = s.sim.Outline()
	}
	return s.load, err
}

// requests takes what is known of each request.
func (s *sandboxed) requests(out *finished) (err error) {
	if out.records, out.admissions, err = s.sim.Records(); err != nil {
		return err
	}
	if s.cfg.Disaggregated() {
		if out.handoffs, err = s.sim.Handoffs(); err != nil {
			return err
		}
	}
	if s.cfg.Routing.Mode == config.KVRouter {
		out.route, err = s.sim.Routes()
	}
	return err
}
