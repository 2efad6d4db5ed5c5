package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/synth"
	"github.com/dryserve/dryserve/core/weka"
	"github.com/dryserve/dryserve/host/native/cliutil"
	"github.com/dryserve/dryserve/host/native/scenario"
	"github.com/dryserve/dryserve/host/native/sweep"
	"github.com/dryserve/dryserve/host/native/tracefile"
)

// splitAxis is the axis of pools: workers that compute prompts + those that decode.
const splitAxis = "prefill-decode"

var splitForm = regexp.MustCompile(`^([0-9]{1,9})\+([0-9]{1,9})$`)

// singleRun are flags that a sweep has no use for, and why.
var singleRun = map[string]string{
	"report-json":  "a sweep keeps the reports of its points in " + sweep.ResultsFile,
	"report-jsonl": "a sweep keeps no requests",
	"report-html":  "--report-html of the command line draws the points",
	"timeline":     "a sweep draws no single run",
	"per-worker":   "a sweep tells of fleets",

	"lifecycle-json": "a sweep tells of fleets", "ticks-json": "a sweep tells of fleets",
	"telemetry-jsonl-path": "a sweep keeps no samples", "telemetry-sample-interval-ms": "a sweep keeps no samples", "capture-telemetry": "a sweep keeps no samples",

	"no-table":    "the command line says what is printed",
	"quiet":       "it is accepted on the command line",
	"cpu-profile": "it is accepted with one run",
	"mem-profile": "it is accepted with one run",
	"engine":      "a sweep runs native code",
	"wasm-cache":  "a sweep runs native code",
}

// plan is a file of a sweep with its points.
type plan struct {
	file    *scenario.File
	content string // digest of the traces
	direct  map[string]string
	choices [][]sweep.Choice
	points  []point
}

// point is what is kept of a point; its options are made again when it runs.
type point struct {
	digest  string
	source  source
	refused error // why it cannot run
}

// source is what a workload is made of: points with equal ones share it.
type source struct {
	format         tracefile.Format
	traceBlockSize int
	wantBlockSize  int
	capped         bool
	speedup        float64
	sharedRatio    float64
	groups         uint32
	lanes          int
	executionModel string
	basis          weka.Basis
	spec           synth.Spec // without a trace
	direct         string     // file of workers
	workers        int        // that it may name
}

// readPlan reads the file and every point.
func readPlan(ctx context.Context, path string) (*plan, error) {
	_, all := newOptions()
	known := knownKeys(all)
	known.Sweep, known.Axes, known.Bounds = true, []string{splitAxis}, sweep.Bounded()
	file, err := scenario.Read(path, known)
	if err != nil {
		return nil, err
	}
	if file.Grids == nil {
		return nil, usagef("%s: has no %s; values by flag below that key are accepted (docs/sweep.md)", path, scenario.SweepKey)
	}
	p := &plan{file: file, direct: map[string]string{}}
	if err := p.checkKeys(); err != nil {
		return nil, err
	}
	if slices.Contains(file.Traces, tracefile.Stdin) {
		return nil, usagef("%s: the trace is standard input, which can be read once; a file is accepted", path)
	}
	if p.choices, err = sweep.Points(file.Grids); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if p.content, err = sweep.Content(file.Traces...); err != nil {
		return nil, err
	}
	for _, c := range p.choices {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		p.points = append(p.points, p.point(c))
	}
	return p, p.hopeless()
}

// checkKeys refuses what only single runs have.
func (p *plan) checkKeys() error {
	refuse := func(name string, line int) error {
		if why, ok := singleRun[name]; ok {
			return usagef("%s:%d: %s is for a single run; %s", p.file.Path, line, name, why)
		}
		return nil
	}
	for _, s := range p.file.Settings {
		if err := refuse(s.Name, s.Line); err != nil {
			return err
		}
	}
	for _, axes := range p.file.Grids {
		for _, a := range axes {
			if err := refuse(a.Key, a.Line); err != nil {
				return err
			}
			for _, v := range a.Values {
				if a.Key == splitAxis && !v.Null && !splitForm.MatchString(v.Text) {
					return usagef("%s:%d: %s is %s; workers as in \"1+3\", those that compute prompts first, are accepted", p.file.Path, v.Line, splitAxis, cliutil.Quote(v.Text))
				}
			}
		}
	}
	return nil
}

// hopeless is the sentence that is said of every point, if there is one.
func (p *plan) hopeless() error {
	for _, x := range p.points {
		if x.refused == nil || x.refused.Error() != p.points[0].refused.Error() {
			return nil
		}
	}
	return p.points[0].refused
}

// options are those of a point, checked.
func (p *plan) options(choices []sweep.Choice) (*options, config.Replay, error) {
	o, all := newOptions()
	o.config, o.traces = p.file.Path, p.file.Traces
	settings, files, err := p.settings(choices)
	if err != nil {
		return nil, config.Replay{}, err
	}
	for _, s := range settings {
		if err := o.take(s); err != nil {
			return nil, config.Replay{}, err
		}
	}
	if err := o.locate(o.check(all)); err != nil {
		return nil, config.Replay{}, err
	}
	if o.online() {
		return nil, config.Replay{}, o.locate(usagef("--replay-mode is online, but a sweep runs many points at once, which would keep each other waiting; offline is accepted"))
	}
	cfg, engines, err := o.configure()
	for _, e := range engines {
		warnEngine(e, func(text string) { o.warnings = append(o.warnings, strings.TrimPrefix(text, "warning: ")) })
	}
	if err != nil {
		err = o.locate(p.place(err, choices, files))
	}
	return o, cfg, err
}

// inJSON is a sentence about a flag's JSON, with a place in it.
var inJSON = regexp.MustCompile(`^--([a-z-]+):((?: line )?[0-9]+(?::[0-9]+)?): (.*)`)

// place lets a sentence about a field that the point has chosen name the value
// in the scenario, and one about another field of that text the file with it.
func (p *plan) place(err error, choices []sweep.Choice, files map[string]string) error {
	m := inJSON.FindStringSubmatch(err.Error())
	if m == nil {
		return err
	}
	for _, c := range choices {
		if len(c.Path) > 0 && c.Key == m[1] && tells(m[3], strings.Join(c.Path, ".")) {
			return fmt.Errorf("%s:%d: %s: %s", p.file.Path, c.Value.Line, c.Key, m[3])
		}
	}
	if path := files[m[1]]; path != "" {
		return fmt.Errorf("%s:%s: %s", path, m[2], m[3])
	}
	return err
}

// tells reports whether a sentence names a field, and not only one with a
// longer name.
func tells(sentence, field string) bool {
	part := func(c byte) bool {
		return c == '_' || c == '.' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
	}
	for from := 0; ; {
		at := strings.Index(sentence[from:], field)
		if at < 0 {
			return false
		}
		at += from
		end := at + len(field)
		if (at == 0 || !part(sentence[at-1])) && (end == len(sentence) || !part(sentence[end])) {
			return true
		}
		from = at + 1
	}
}

// settings are those of the file with what a point chooses in their place:
// flags first, then fields of them. files are the paths of those flags whose text
// is that of a file with fields changed.
func (p *plan) settings(choices []sweep.Choice) (all []scenario.Setting, files map[string]string, err error) {
	var fields []sweep.Choice
	settings := slices.Clone(p.file.Settings)
	set := func(s scenario.Setting, null bool) {
		settings = slices.DeleteFunc(settings, func(old scenario.Setting) bool { return old.Name == s.Name })
		if !null {
			settings = append(settings, s)
		}
	}
	for _, c := range choices {
		line := c.Value.Line
		switch {
		case len(c.Path) > 0:
			fields = append(fields, c)
		case c.Key == splitAxis:
			n := append(splitForm.FindStringSubmatch(c.Text), "", "", "")
			set(scenario.Setting{Name: "num-prefill-workers", Line: line, Text: n[1]}, c.Null)
			set(scenario.Setting{Name: "num-decode-workers", Line: line, Text: n[2]}, c.Null)
		default:
			set(scenario.Setting{Name: c.Key, Line: line, Text: c.Text, JSON: c.JSON}, c.Null)
		}
	}
	files = map[string]string{}
	for _, c := range fields {
		i := slices.IndexFunc(settings, func(s scenario.Setting) bool { return s.Name == c.Key })
		if i < 0 {
			i = len(settings)
			settings = append(settings, scenario.Setting{Name: c.Key, Line: c.Value.Line, Text: "{}", JSON: true})
		}
		s := &settings[i]
		text := s.Text
		if !scenario.IsJSON(text) {
			files[s.Name] = text
			if text, err = readText(text); err != nil {
				return nil, nil, fmt.Errorf("%s:%d: %s: %w", p.file.Path, s.Line, s.Name, err)
			}
		}
		if s.Text, err = sweep.Splice(text, c.Path, c.Text); err != nil {
			return nil, nil, fmt.Errorf("%s:%d: %s: %w", p.file.Path, c.Value.Line, c.Key, err)
		}
	}
	return settings, files, nil
}

// readText reads a file that a flag names.
func readText(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("cannot read %s: %w", path, cliutil.Reason(err))
	}
	return string(text), nil
}

// point finds out what a point is.
func (p *plan) point(choices []sweep.Choice) point {
	var x point
	o, cfg, err := p.options(choices)
	if err == nil {
		x.source, err = o.source(cfg)
	}
	direct := ""
	if err == nil && x.source.direct != "" {
		direct, err = p.contentOf(x.source.direct)
	}
	if err != nil {
		x.refused = err
		x.digest = sweep.Digest(version, sweep.SettingsOf(choices), err.Error())
		return x
	}
	contents := x.source
	contents.direct = direct
	x.digest = sweep.Digest(version, cfg, contents, p.content)
	return x
}

// contentOf is the digest of a file that points may share.
func (p *plan) contentOf(path string) (string, error) {
	if p.direct[path] == "" {
		content, err := sweep.Content(path)
		if err != nil {
			return "", fmt.Errorf("--direct-workers: %w", err)
		}
		p.direct[path] = content
	}
	return p.direct[path], nil
}

// source is what the workload of a run is made of.
func (o *options) source(cfg config.Replay) (source, error) {
	if len(o.traces) == 0 {
		spec, err := o.spec(cfg)
		return source{spec: spec, capped: cfg.Concurrency > 0, speedup: cfg.ArrivalSpeedup}, err
	}
	t := o.traceOptions(cfg, &surroundings{}, nil)
	s := source{
		format: t.Format, traceBlockSize: t.TraceBlockSize, wantBlockSize: t.WantBlockSize, capped: t.Concurrency, speedup: t.ArrivalSpeedup,
		sharedRatio: t.SharedPrefixRatio, groups: t.PrefixGroups, lanes: t.Lanes, executionModel: t.ExecutionModel, basis: t.NestedBasis,
	}
	if o.given("direct-workers") {
		s.direct, s.workers = o.route.direct, cfg.NumWorkers
	}
	return s, nil
}

// passing reports whether an error is none of the point's: reading has failed,
// and may not the next time.
func passing(err error) bool {
	var wrong *tracefile.Error
	return errors.As(err, &wrong) && wrong.Err != nil
}
