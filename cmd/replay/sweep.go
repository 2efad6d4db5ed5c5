package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/workload"
	"github.com/dryserve/dryserve/host/native/cliutil"
	"github.com/dryserve/dryserve/host/native/drive"
	"github.com/dryserve/dryserve/host/native/fleet"
	"github.com/dryserve/dryserve/host/native/report"
	"github.com/dryserve/dryserve/host/native/sweep"
)

const sweepAbout = `Runs a scenario once for every combination of the values below its key sweep,
several at a time, and prints the points with their throughput per GPU and
latencies: which are on the Pareto front, and which is best under the bounds of
the key sla (docs/sweep.md).

Every finished point is kept in a file at once. The same command after an
interruption, or with more values in the scenario, runs only what is missing.

Exit status: 0 all points ran, 1 a file, a value or a point failed, 2 the command
line or the scenario is wrong, 130 interrupted.
`

func sweepFlags(s *settings) []group {
	run := newFlagSet()
	run.StringVar(&s.output, "output", "", "keep results in the directory `path` (default: the scenario's name with .sweep, in the working directory)")
	whole(run, &s.jobs, "jobs", 0, "run `n` points at a time (default: one per processor)")
	run.Lookup("jobs").DefValue = ""
	output := newFlagSet()
	choice(output, &s.view.Order, "sort", "point", sweep.Orders, "order of the points: point (as in the scenario), gpus, throughput (per GPU), ttft, itl or e2e")
	var words []string
	for _, x := range sweep.Statistics {
		words = append(words, x.Word)
	}
	choice(output, &s.view.Statistic, "statistic", "p50", words, "of the latencies that order and front go by: p50, mean, p75, p90, p95 or p99")
	toggle(output, &s.json, "json", "print JSON, with the report of every point")
	output.StringVar(&s.reportHTML, "report-html", "", "write a page with the Pareto fronts to `path` (default: no file)")
	return []group{{"Points", run}, {"Output", output}, {"This program", pick(&s.options, "quiet", "help")}}
}

func runSweep(args []string, stdout results, stderr *os.File) int {
	s, done, err := commandNamed("sweep").parse(args, stdout)
	if done {
		return conclude(err, stderr)
	}
	ctx, interrupted, stop := interruptible()
	defer stop()
	err = s.sweep(ctx, stdout, stderr)
	status := interrupted()
	switch {
	case err == nil || status == 0:
		return conclude(err, stderr)
	case err == context.Cause(ctx):
		say(stderr, "interrupted")
	default:
		say(stderr, "interrupted: %v", err)
	}
	return status
}

// sweep does what the command line says.
func (s *settings) sweep(ctx context.Context, stdout results, stderr *os.File) error {
	dir, err := s.checkSweep()
	if err != nil {
		return err
	}
	p, err := readPlan(ctx, s.traces[0])
	if err == nil {
		err = s.checkOutputs(p, dir)
	}
	if err != nil {
		return err
	}
	outputs := &report.Files{}
	defer outputs.Abort() // does nothing after a commit
	var page *report.File
	if s.given("report-html") {
		if page, err = outputs.Create(s.reportHTML); err != nil {
			return fmt.Errorf("--report-html: %w", err)
		}
	}
	store, err := sweep.Open(dir)
	if err != nil {
		return err
	}
	defer store.Close()
	if store.Torn > 0 {
		say(stderr, "%s ended in the middle of a line, which is taken away", store.Path)
	}
	r := &sweeping{plan: p, store: store, meter: newMeter(stderr, s.quiet), jobs: s.jobs, stderr: stderr, broken: map[string]error{}}
	if err = r.run(ctx); err != nil {
		return err
	}
	t := r.table()
	if page != nil {
		if err := p.page(t, s.view).WriteHTML(page); err != nil {
			return err
		}
		if err := outputs.Commit(); err != nil {
			return err
		}
	}
	if s.json {
		err = t.WriteJSON(stdout, s.view)
	} else {
		err = t.WriteTable(stdout, s.view)
	}
	return cmp.Or(err, r.failed(t))
}

// checkSweep checks the command line and gives the directory of results.
func (s *settings) checkSweep() (dir string, err error) {
	switch n := len(s.traces); {
	case n == 0:
		return "", usagef("no scenario is given; a YAML file with the key sweep is accepted")
	case n > 1:
		return "", usagef("%d scenarios are given (%s); one is accepted", n, quoteAll(s.traces))
	case s.given("jobs") && (s.jobs < 1 || s.jobs > 1024):
		return "", valueError("jobs", strconv.Itoa(s.jobs), "a whole number from 1 to 1024")
	case s.given("output") && s.output == "":
		return "", valueError("output", "empty", "a path")
	case s.given("report-html") && s.reportHTML == "":
		return "", valueError("report-html", "empty", "a path")
	}
	if !s.given("jobs") {
		s.jobs = runtime.GOMAXPROCS(0)
	}
	if s.given("output") {
		return s.output, nil
	}
	name := filepath.Base(s.traces[0])
	return strings.TrimSuffix(name, filepath.Ext(name)) + ".sweep", nil
}

// checkOutputs refuses to write over what is read, or into a directory that is
// the trace: results in it would be another trace.
func (s *settings) checkOutputs(p *plan, dir string) error {
	for _, path := range append([]string{p.file.Path}, p.file.Traces...) {
		if s.given("report-html") && sameFile(s.reportHTML, path) {
			return usagef("--report-html %s is what the sweep reads; another path is accepted", cliutil.Quote(s.reportHTML))
		}
		info, err := os.Stat(path)
		if err != nil || !info.IsDir() {
			continue
		}
		trace, err := filepath.Abs(path)
		if err != nil {
			return err
		}
		if dir, err = filepath.Abs(dir); err != nil {
			return err
		}
		if inner, err := filepath.Rel(trace, dir); err == nil && filepath.IsLocal(inner) {
			return usagef("the results would be in the directory %s, which is the trace; --output with another one is accepted", cliutil.Quote(path))
		}
	}
	return nil
}

// sweeping is a sweep under way.
type sweeping struct {
	*plan
	store  *sweep.Store
	meter  *meter
	jobs   int
	stderr io.Writer
	broken map[string]error // by digest: the point has failed, and may not the next time
	todo   []int            // points that are run
	loads  loads
}

// run runs the points that have no outcome yet; of equal ones the first.
func (r *sweeping) run(ctx context.Context) error {
	seen := map[string]bool{}
	first := map[source]int{}
	var refused []*sweep.Outcome
	for i, x := range r.points {
		switch {
		case seen[x.digest] || r.store.Outcome(x.digest) != nil:
			continue
		case x.refused != nil:
			refused = append(refused, &sweep.Outcome{Digest: x.digest, Settings: sweep.SettingsOf(r.choices[i]), Error: x.refused.Error()})
			continue
		}
		seen[x.digest] = true
		if _, ok := first[x.source]; !ok {
			first[x.source] = i
		}
		r.todo = append(r.todo, i)
	}
	if err := r.store.Add(refused...); err != nil {
		return err
	}
	// Points with one workload run one after the other, so that it can go then.
	slices.SortStableFunc(r.todo, func(a, b int) int { return cmp.Compare(first[r.points[a].source], first[r.points[b].source]) })
	r.loads.bySource = map[source]*loaded{}
	for _, i := range r.todo {
		r.loads.expect(r.points[i].source)
	}
	defer r.meter.stop()
	done, all := 0, len(r.todo)
	r.progress(done, all)
	err := sweep.Run(ctx, all, r.jobs, r.do, func(results []sweep.Result) error {
		done += len(results)
		r.progress(done, all)
		var outcomes []*sweep.Outcome
		for _, x := range results {
			if x.Err != nil {
				r.broken[r.points[r.todo[x.Task]].digest] = x.Err
				continue
			}
			outcomes = append(outcomes, x.Outcome)
		}
		return r.store.Add(outcomes...)
	})
	r.meter.stop()
	for _, text := range r.loads.warnings {
		say(r.stderr, "%s", text)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%d of %d points are in %s; the same command goes on with the others", r.finished(), len(r.points), r.store.Path)
	}
	return err
}

func (r *sweeping) progress(done, all int) {
	if p := r.meter.progress(); p != nil && all > 0 {
		p("Points", int64(done), int64(all))
	}
}

// finished counts the points that have an outcome.
func (r *sweeping) finished() (n int) {
	for _, x := range r.points {
		if r.store.Outcome(x.digest) != nil {
			n++
		}
	}
	return n
}

// do runs one point.
func (r *sweeping) do(ctx context.Context, task int) (*sweep.Outcome, error) {
	i := r.todo[task]
	out := &sweep.Outcome{Digest: r.points[i].digest, Settings: sweep.SettingsOf(r.choices[i])}
	defer r.loads.release(r.points[i].source)
	o, cfg, err := r.options(r.choices[i])
	if err != nil {
		return nil, err // it could be configured before
	}
	load, err := r.loads.get(r.points[i].source, func() (*workload.Workload, error) {
		load, err := o.load(ctx, cfg, &surroundings{})
		if err == nil {
			load.Targets, err = o.targets(len(load.Turns))
		}
		return load, o.locate(err)
	})
	if err == nil {
		r.loads.warn(o, load)
		var f *finished
		if f, err = o.native(cfg, load).simulate(ctx, drive.Options{Alone: r.jobs > 1}); err == nil {
			f.Target = o.executionModel
			out.GPUs, out.Report = gpus(cfg, f), f.Timeless()
			return out, nil
		}
	}
	if ctx.Err() != nil || passing(err) {
		return nil, err
	}
	out.Error = err.Error()
	return out, nil
}

// gpus is how many GPUs a run had; on average, where workers come and go.
func gpus(cfg config.Replay, f *finished) float64 {
	if cfg.Scaling.Policy != config.NoScaling && f.DurationMs > 0 && f.GPUHours > 0 {
		return f.GPUHours * 3_600_000 / f.DurationMs
	}
	return float64(fleet.Of(cfg).GPUs())
}

// table is all points with their outcomes.
func (r *sweeping) table() *sweep.Table {
	t := &sweep.Table{SLA: r.file.Bounds}
	for i, x := range r.points {
		t.Points = append(t.Points, sweep.SettingsOf(r.choices[i]))
		o := r.store.Outcome(x.digest)
		if err := r.broken[x.digest]; o == nil && err != nil {
			o = &sweep.Outcome{Digest: x.digest, Error: err.Error()}
		}
		t.Outcomes = append(t.Outcomes, o)
	}
	return t
}

// failed says how many points have no report.
func (r *sweeping) failed(t *sweep.Table) error {
	n := 0
	for _, o := range t.Outcomes {
		if o == nil || o.Report == nil {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d points failed", n, len(t.Points))
}

// loads are workloads that points share: one is read when the first of its
// points needs it, and forgotten after the last.
type loads struct {
	mu       sync.Mutex
	bySource map[source]*loaded
	warnings []string // each once
}

type loaded struct {
	points int // that are to come or under way
	once   sync.Once
	load   *workload.Workload
	err    error
}

func (l *loads) expect(s source) {
	if l.bySource[s] == nil {
		l.bySource[s] = &loaded{}
	}
	l.bySource[s].points++
}

// get is the workload, which nobody changes.
func (l *loads) get(s source, read func() (*workload.Workload, error)) (*workload.Workload, error) {
	l.mu.Lock()
	x := l.bySource[s]
	l.mu.Unlock()
	x.once.Do(func() { x.load, x.err = read() })
	return x.load, x.err
}

func (l *loads) release(s source) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bySource[s].points--; l.bySource[s].points == 0 {
		delete(l.bySource, s)
	}
}

// warn keeps what is to be told of a point.
func (l *loads) warn(o *options, load *workload.Workload) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o.warnBefore(load, func(text string) {
		if !slices.Contains(l.warnings, text) {
			l.warnings = append(l.warnings, text)
		}
	})
}
