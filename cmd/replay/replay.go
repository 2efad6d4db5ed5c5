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

	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/timing"
	"github.com/dryserve/dryserve/host/native/cliutil"
	"github.com/dryserve/dryserve/host/native/drive"
	"github.com/dryserve/dryserve/host/native/report"
	"github.com/dryserve/dryserve/host/wasm/runner"
)

// surroundings are what a run has beside its options.
type surroundings struct {
	outputs  *report.Files
	warnings func(text string)
	stdin    io.Reader                              // nil: that of the program
	progress func(stage string, done, total int64)  // nil: nobody looks
	runner   func(*options) (*runner.Runner, error) // compiles core.wasm; nil: see warming
	release  func(*runner.Runner)                   // and frees it
	// warming is core.wasm for many runs, of which one may not wait until it is compiled
	warming func(o *options, waits bool) (*runner.Warming, error)
	timing  func(timing.Query) (ms float64, err error)  // answers what the engine asks; nil: it knows
	policy  func(*replay.Tick) (replay.Decision, error) // says how many workers there are to be; nil: the command line does
}

// replayTo replays and prints.
func replayTo(o *options, around *surroundings, stdout io.Writer) error {
	out, err := replayAll(context.Background(), o, around)
	if err != nil {
		return err
	}
	if !o.noTable {
		if _, err := io.WriteString(stdout, scalingEvents(out)); err != nil {
			return err
		}
	}
	return o.print(&out.Report, out.jsonPath, stdout)
}

// replayAll reads, simulates and reports. Output files are begun before the
// work, so that a path that cannot be written is known at once, and appear
// only when everything has succeeded.
func replayAll(ctx context.Context, o *options, around *surroundings) (*finished, error) {
	cfg, engines, err := o.configure()
	if err != nil {
		return nil, o.locate(err)
	}
	run, err := o.prepare(ctx, cfg, around)
	if err != nil {
		o.sayFormat(around.warnings)
		return nil, o.locate(err)
	}
	defer run.close()
	files, err := o.create(around.outputs)
	if err != nil {
		return nil, o.locate(err)
	}
	if files.cpu != nil {
		if err := pprof.StartCPUProfile(files.cpu); err != nil {
			return nil, err
		}
		defer pprof.StopCPUProfile()
	}
	pics, err := o.pictures(cfg, run, &files)
	if err != nil {
		return nil, err
	}
	stage := "Simulating"
	if o.online() {
		stage = "Replaying"
	}
	host := drive.Options{Progress: around.stage(stage), Provider: around.timing}
	o.attend(cfg, &files, &host)
	if around.policy != nil {
		host.Policy = around.policy
	}
	out, err := run.simulate(ctx, host)
	if err != nil {
		return nil, err
	}
	out.cfg, out.jsonPath, out.Target = cfg, files.jsonPath, o.executionModel
	if o.watching.capture {
		out.Telemetry = &report.Telemetry{IntervalMs: cfg.Samples.EveryMs, Samples: files.captured}
	}
	pics.tell(out)
	if around.progress != nil {
		around.progress("", 0, 0)
	}
	for _, e := range engines {
		warnEngine(e, around.warnings)
	}
	warn(o, out, around.warnings)
	if err := errors.Join(files.write(out), files.watched(out), pics.write(out)); err != nil {
		return nil, err
	}
	return out, around.outputs.Commit()
}

// stage is told how far a stage of the work is; nil if nobody looks.
func (a *surroundings) stage(name string) func(done, total int64) {
	if a.progress == nil {
		return nil
	}
	return func(done, total int64) { a.progress(name, done, total) }
}

// files are the outputs under way; nil ones are not asked for.
type files struct {
	jsonPath                 string
	json, jsonl, cpu, memory *report.File
	html, timeline           *report.File

	samples, lifecycle, ticks *report.File
	anyTick                   bool
	captured                  []string // samples for the full report
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
		{"report-html", o.reportHTML, &f.html}, {"timeline", o.timeline, &f.timeline},
		{"telemetry-jsonl-path", o.watching.samples, &f.samples}, {"lifecycle-json", o.watching.lifecycle, &f.lifecycle}, {"ticks-json", o.watching.ticks, &f.ticks},
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

// requests is what the lines of the requests are written from.
func (out *finished) requests() *report.Requests {
	r := &report.Requests{
		Records: out.records, Admissions: out.admissions, Workload: out.load, Lane: out.lane,
		Ranks: int32(out.cfg.Engine.DPSize), Tiers: out.cfg.Engine.HostOffload.Blocks > 0,
		Route: out.route, BlockSize: int32(out.cfg.Engine.BlockSize),
		Handoffs: out.handoffs, PrefillRanks: int32(out.cfg.Prefill.Engine.DPSize),
	}
	if out.named {
		r.SessionID = out.load.SessionID
	}
	return r
}

func (f *files) write(out *finished) error {
	if f.jsonl != nil {
		if err := out.requests().WriteJSONL(f.jsonl); err != nil {
			return err
		}
	}
	if f.json != nil {
		if err := out.WriteJSON(f.json); err != nil {
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
		if r.Workers != nil {
			if err := report.WriteWorkers(stdout, r.Workers); err != nil {
				return err
			}
		}
	}
	if jsonPath != "" {
		return report.WriteSaved(stdout, jsonPath)
	}
	return nil
}
