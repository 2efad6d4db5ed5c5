package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/host/native/cliutil"
	"github.com/dryserve/dryserve/host/native/drive"
	"github.com/dryserve/dryserve/host/native/engineargs"
	"github.com/dryserve/dryserve/host/native/report"
	"github.com/dryserve/dryserve/host/native/scalescript"
	"github.com/spf13/pflag"
)

// watching is how the number of workers changes, and what is written of that and
// of the state of the run.
type watching struct {
	script     string
	lifecycle  string
	ticks      string
	samples    string
	intervalMs float64
	capture    bool
	tell       io.Writer // lines of samples as they are taken; nil: nobody listens
}

// declare adds the flags of outputs; the script is one of the fleet.
func (w *watching) declare(output *pflag.FlagSet) {
	output.StringVar(&w.samples, "telemetry-jsonl-path", "", "write a line with the state of the run to `path` at regular times (docs/scaling.md; default: no file)")
	real(output, &w.intervalMs, "telemetry-sample-interval-ms", 1000, "how far apart these are, in simulated `ms`")
	toggle(output, &w.capture, "capture-telemetry", "put them into the full report, under telemetry")
	output.StringVar(&w.lifecycle, "lifecycle-json", "", "of workers that come and go: write what happened to them to `path` (default: no file)")
	output.StringVar(&w.ticks, "ticks-json", "", "and write to `path` what a policy would be told each time (default: no file)")
}

// maxScript bounds the script of a run.
const maxScript = 16 << 20

// watch brings what the flags ask for into the run.
func (o *options) watch(r *config.Replay) error {
	w := &o.watching
	if o.given("telemetry-sample-interval-ms") || o.sampled() {
		if !(w.intervalMs > 0) || math.IsInf(w.intervalMs, 0) {
			return realError("telemetry-sample-interval-ms", w.intervalMs, "a finite number above 0")
		}
		if !o.sampled() {
			o.warnings = append(o.warnings, "--telemetry-sample-interval-ms has no effect without --telemetry-jsonl-path or --capture-telemetry")
		} else {
			r.Samples.EveryMs = w.intervalMs
		}
	}
	if o.ticks {
		if o.given("scaling-script") {
			return errors.New("--scaling-script says how many workers there are to be, and so does whoever started the run (ask_scaling); one of them is accepted")
		}
		if !math.IsNaN(o.firstMs) && !math.IsInf(o.firstMs, 0) { // as in the reference, which else never asks
			r.Scaling.Policy, r.Scaling.FirstMs = config.Asked, o.firstMs
		}
	}
	if !o.given("scaling-script") {
		for _, flag := range []string{"lifecycle-json", "ticks-json"} {
			if o.given(flag) {
				return fmt.Errorf("--%s tells of workers that come and go, which --scaling-script asks for; both or neither are accepted", flag)
			}
		}
		if !o.ticks {
			return nil
		}
	}
	for _, flag := range []string{"report-html", "timeline"} {
		if o.given(flag) {
			return fmt.Errorf("--%s is not built yet for workers that come and go (--scaling-script); one of them is accepted", flag)
		}
	}
	if o.ticks {
		return nil
	}
	if w.script == "" {
		return errors.New("--scaling-script is empty; a path is accepted")
	}
	f, err := os.Open(w.script)
	if err != nil {
		return fmt.Errorf("--scaling-script: cannot read %s: %w", w.script, cliutil.Reason(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxScript+1))
	switch {
	case err != nil:
		return fmt.Errorf("--scaling-script: cannot read %s: %w", w.script, cliutil.Reason(err))
	case len(data) > maxScript:
		return fmt.Errorf("--scaling-script: %s is larger than %d MiB; a list of targets is accepted", w.script, maxScript>>20)
	}
	r.Scaling.Policy = config.Scripted
	r.Scaling.Script, err = scalescript.Parse(w.script, data, o.disaggregated())
	if err == nil && o.given("ticks-json") { // ask, to be told
		r.Scaling.Policy, r.Scaling.FirstMs = config.Asked, r.Scaling.Script[0].AtMs
	}
	return err
}

func (o *options) sampled() bool {
	return o.given("telemetry-jsonl-path") || o.watching.capture || o.watching.tell != nil
}

// startup takes how long workers start from the engine arguments.
func startup(a *engineargs.Args) float64 {
	if !a.StartupTimeS.Set {
		return 0
	}
	return a.StartupTimeS.V * 1000
}

// attend makes the driver of a run see to what is asked for.
func (o *options) attend(cfg config.Replay, f *files, host *drive.Options) {
	if cfg.Scaling.Policy == config.Asked {
		step := 0
		host.Policy = func(t *replay.Tick) (replay.Decision, error) {
			d := replay.Decision{Prefill: cfg.Scaling.Script[step].Prefill, Decode: cfg.Scaling.Script[step].Decode, NextMs: math.NaN()}
			if step++; step < len(cfg.Scaling.Script) {
				d.NextMs = cfg.Scaling.Script[step].AtMs
			}
			f.anyTick = true
			line := report.AppendTick([]byte(separator(step == 1)), t)
			_, err := f.ticks.Write(line)
			return d, err
		}
	}
	if cfg.Samples.EveryMs == 0 {
		return
	}
	var buf []byte
	var listeners []io.Writer
	if f.samples != nil {
		listeners = append(listeners, f.samples)
	}
	if o.watching.tell != nil {
		listeners = append(listeners, o.watching.tell)
	}
	host.Samples = func(list []replay.Sample) error {
		if o.watching.capture {
			for i := range list {
				f.captured = append(f.captured, string(report.AppendSample(nil, &list[i])))
			}
		}
		for _, to := range listeners {
			if err := report.WriteSamples(to, list, &buf); err != nil {
				return err
			}
		}
		return nil
	}
}

// separator goes before an item of a list that is written line by line.
func separator(first bool) string {
	if first {
		return "[\n"
	}
	return ",\n"
}

// watched writes what is left at the end.
func (f *files) watched(out *finished) error {
	if f.ticks != nil {
		end := "\n]\n"
		if !f.anyTick {
			end = "[\n]\n"
		}
		if _, err := io.WriteString(f.ticks, end); err != nil {
			return err
		}
	}
	if f.lifecycle == nil {
		return nil
	}
	return report.WriteLifecycle(f.lifecycle, out.lifecycle, out.load)
}

// scalingEvents are the lines that tell of decisions, as release 1.4.2 prints
// them.
func scalingEvents(out *finished) string {
	var b strings.Builder
	have := map[replay.PoolID]int{replay.ServingPool: out.cfg.NumWorkers, replay.PrefillPool: out.cfg.Prefill.Workers}
	for i := range out.lifecycle {
		op := &out.lifecycle[i]
		now, before := len(op.Active)+len(op.Starting), have[op.Pool]
		have[op.Pool] = now
		if op.Cause != replay.ScaleCause || now == before {
			continue
		}
		reason := "scale_up"
		if now < before {
			reason = "scale_down"
		}
		if b.Len() == 0 {
			b.WriteString("\nScaling events:\n")
		}
		fmt.Fprintf(&b, "  t=%.1fs [%s]: %d -> %d workers (%s)\n", op.AtMs/1000, report.PoolName(op), before, now, reason)
	}
	return b.String()
}
