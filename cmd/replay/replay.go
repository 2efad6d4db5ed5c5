package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"time"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/workload"
	"github.com/dryserve/dryserve/host/native/cliutil"
	"github.com/dryserve/dryserve/host/native/drive"
	"github.com/dryserve/dryserve/host/native/report"
	"github.com/dryserve/dryserve/host/native/tracefile"
)

// replayTo reads, simulates and reports. Output files are begun before the
// work, so that a path that cannot be written is known at once, and appear
// only when everything has succeeded.
func replayTo(o *options, outputs *report.Files, m *meter, stdout, stderr io.Writer) error {
	cfg, engine, err := o.configure()
	if err != nil {
		return err
	}
	load, err := o.load(cfg, m)
	if err != nil {
		o.sayFormat(stderr)
		return err
	}
	files, err := o.create(outputs)
	if err != nil {
		return err
	}
	if files.cpu != nil {
		if err := pprof.StartCPUProfile(files.cpu); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	sim, wallMs, err := simulate(o, cfg, load, m)
	m.stop()
	if err != nil {
		return err
	}
	r := &report.Report{Summary: sim.Summary(), WallMs: wallMs, Graph: load.Graph, Target: o.executionModel}
	warnEngine(engine, stderr)
	warn(o, load, sim.Unservable(), r.RejectedRequests, stderr)
	if err := files.write(r, sim, load, cfg); err != nil {
		return err
	}
	if err := outputs.Commit(); err != nil {
		return err
	}
	return o.print(r, files.jsonPath, stdout)
}

// load makes or reads the workload.
func (o *options) load(cfg config.Replay, m *meter) (*workload.Workload, error) {
	if len(o.traces) == 0 {
		return o.synthesize(cfg)
	}
	return readTrace(o, cfg, m)
}

func readTrace(o *options, cfg config.Replay, m *meter) (*workload.Workload, error) {
	want := 0
	if o.given("trace-block-size") {
		want = cfg.TraceBlockSize
	}
	t, err := tracefile.Load(context.Background(), o.traces, tracefile.Options{
		Format:         o.traceFormat,
		TraceBlockSize: cfg.TraceBlockSize,
		WantBlockSize:  want,
		Concurrency:    cfg.Concurrency > 0,
		ArrivalSpeedup: cfg.ArrivalSpeedup,

		SharedPrefixRatio: o.traceSharedRatio,
		PrefixGroups:      uint32(o.traceGroups),
		Lanes:             o.lanes,
		ExecutionModel:    o.executionModel,

		Progress: func(read, total int64) { m.update("Reading", read, total) },
	})
	o.detected = t.Format
	var wrong *tracefile.Error
	if errors.As(err, &wrong) && wrong.Usage {
		return nil, usageError{err.Error()}
	}
	return t.Workload, err
}

// simulate runs to the end. wallMs is the time from the loaded trace to the
// last event, as the reference measures it.
func simulate(o *options, cfg config.Replay, load *workload.Workload, m *meter) (sim *replay.Sim, wallMs float64, err error) {
	start := time.Now()
	sim = replay.New(cfg, load, replay.Options{Plain: o.engineImpl == "plain"})
	var beside drive.Options
	if m.on {
		beside.Progress = func(done, total int64) { m.update("Simulating", done, total) }
	}
	status, err := drive.Run(context.Background(), sim, beside)
	if err != nil {
		return nil, 0, err
	}
	wallMs = float64(time.Since(start).Nanoseconds()) / 1e6
	switch status {
	case replay.Done:
		return sim, wallMs, nil
	case replay.Stuck:
		f := sim.Fault()
		if f.Endless {
			return nil, 0, fmt.Errorf("--parity: the reference repeats a pass at %g ms for ever: a request of a worker with %d in flight has outgrown the KV pool; without --parity it fails alone", f.NowMs, f.InFlight)
		}
		return nil, 0, fmt.Errorf("replay invariant violated: offline replay detected an effect-free zero-duration pass with %d in-flight requests remaining", f.InFlight)
	}
	return nil, 0, fmt.Errorf("the simulation stopped in an unknown state (%d)", status)
}

// files are the outputs under way; nil ones are not asked for.
type files struct {
	jsonPath                 string
	json, jsonl, cpu, memory *report.File
}

// create begins every output file.
func (o *options) create(outputs *report.Files) (files, error) {
	var f files
	var paths []string
	for _, out := range []struct {
		flag, path string
		file       **report.File
	}{
		{"report-json", o.reportJSON, &f.json}, {"report-jsonl", o.reportJSONL, &f.jsonl},
		{"cpu-profile", o.cpuProfile, &f.cpu}, {"mem-profile", o.memProfile, &f.memory},
	} {
		if !o.given(out.flag) {
			continue
		}
		path := out.path
		if out.flag == "report-json" {
			path = report.ResolveJSONPath(path, time.Now())
			f.jsonPath = path
		}
		for _, trace := range o.traces {
			if sameFile(path, trace) {
				return f, usagef("--%s %s is the trace itself; another path is accepted", out.flag, cliutil.Quote(path))
			}
		}
		for _, other := range paths {
			if other == filepath.Clean(path) {
				return f, usagef("--%s %s is the path of another output, too; different paths are accepted", out.flag, cliutil.Quote(path))
			}
		}
		paths = append(paths, filepath.Clean(path))
		file, err := outputs.Create(path)
		if err != nil {
			return f, fmt.Errorf("--%s: %w", out.flag, err)
		}
		*out.file = file
	}
	return f, nil
}

// sameFile reports whether two paths lead to one regular file.
func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && x.Mode().IsRegular() && os.SameFile(x, y)
}

func (f *files) write(r *report.Report, sim *replay.Sim, load *workload.Workload, cfg config.Replay) error {
	if f.jsonl != nil {
		requests := report.Requests{
			Records: sim.Records(), Admissions: sim.Admissions(), Workload: load, Lane: sim.Lane,
			Ranks: int32(cfg.Engine.DPSize), Tiers: cfg.Engine.HostOffload.Blocks > 0,
		}
		if load.NamesSessions(cfg.Concurrency > 0) {
			requests.SessionID = load.SessionID
		}
		if err := requests.WriteJSONL(f.jsonl); err != nil {
			return err
		}
	}
	if f.json != nil {
		if err := r.WriteJSON(f.json); err != nil {
			return err
		}
	}
	if f.cpu != nil {
		pprof.StopCPUProfile()
	}
	if f.memory != nil {
		runtime.GC() // up-to-date statistics
		return pprof.WriteHeapProfile(f.memory)
	}
	return nil
}

// print writes the results to standard output.
func (o *options) print(r *report.Report, jsonPath string, stdout io.Writer) error {
	if !o.noTable {
		if err := r.WriteTable(stdout); err != nil {
			return err
		}
	}
	if jsonPath != "" {
		return report.WriteSaved(stdout, jsonPath)
	}
	return nil
}
