package main

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/gridfind"
	"github.com/dryserve/dryserve/host/native/scenario"
	"github.com/dryserve/dryserve/host/native/tracefile"
	"github.com/spf13/pflag"
)

// options is the command line, parsed but not yet judged.
type options struct {
	traces []string
	synth  synthetic

	traceFormat    tracefile.Format
	detected       tracefile.Format // of the trace, once it is read
	failed, rows   int64            // of the trace: requests that are left out, of how many
	traceBlockSize int
	concurrency    int
	lanes          int
	executionModel string
	nestedBasis    string

	traceSharedRatio float64
	traceGroups      int

	arrivalSpeedup float64
	maxSimTimeS    float64
	maxSimTimeMs   float64

	engineArgs string
	numWorkers int

	prefillArgs, decodeArgs string // of workers in two pools
	numPrefill, numDecode   int
	linkSharing             string
	prefillPerNode          int

	modelName  string
	nextN      int
	nextNRates string
	route      routing
	replayMode string

	profileData string
	perfGrid    string
	grids       gridfind.Finder
	predict     estimator

	modelPath    string
	kvCacheDType string
	useHeadDim   bool
	kvBytes      int

	slaTTFTMs float64
	slaITLMs  float64
	slaE2EMs  float64

	reportJSON  string
	reportJSONL string
	reportHTML  string
	timeline    string
	noTable     bool
	quiet       bool

	parity     bool
	engineKind string
	engineImpl string
	wasmCache  string
	cpuProfile string
	memProfile string

	help    bool
	version bool

	warnings []string // that reading the flags gave

	watching  watching
	perWorker bool

	capture bool    // keep what is known of every request, also without a file for it
	asks    bool    // somebody else says how long passes take
	ticks   bool    // and how many workers there are to be
	firstMs float64 // when he is asked for that first

	config      string
	printConfig bool
	origin      map[string]scenario.Setting // flags that config has set
	groups      []group

	given func(name string) bool // whether the flag stood on the command line, or in config
	flags *pflag.FlagSet         // all of them, parsed
}

// group is a topic of the help.
type group struct {
	title string
	flags *pflag.FlagSet
}

func newFlagSet() *pflag.FlagSet {
	f := pflag.NewFlagSet("replay", pflag.ContinueOnError)
	f.SortFlags = false
	f.Usage = func() {}
	return f
}

// flagGroups declares every flag that does something, by topic.
func flagGroups(o *options) []group {
	workload := newFlagSet()
	workload.Var(formatValue{&o.traceFormat}, "trace-format", "`format` of TRACE: "+strings.Join(tracefile.Formats(), ", ")+" (default: what its beginning looks like)")
	whole(workload, &o.traceBlockSize, "trace-block-size", config.DefaultTraceBlockSize, "prompt `tokens` behind each hash id, for formats that do not say it themselves")
	whole(workload, &o.concurrency, "replay-concurrency", 0, "ignore the times of the trace and keep at most `n` sessions active (default: arrivals as in the trace)")
	real(workload, &o.arrivalSpeedup, "arrival-speedup-ratio", 1, "divide session starts and turn delays by `ratio`")
	whole(workload, &o.lanes, "agentic-lanes", 0, "of a trace of agents: run `n` plays at a time, each when a lane is free (default: all, at their own times)")
	workload.Lookup("agentic-lanes").DefValue = ""
	workload.StringVar(&o.executionModel, "execution-model", "", "of a trace of agents: `name` of the model that serves all requests; a label")
	choice(workload, &o.nestedBasis, "weka-nested-timestamp-basis", "auto", []string{"auto", "absolute", "relative"}, "of weka: what times in a subagent count from: the beginning (absolute) or the subagent (relative); auto: the latter if one would else come before its subagent")
	real(workload, &o.traceSharedRatio, "trace-shared-prefix-ratio", 0, "of traces without hash ids: `share` of a first prompt's blocks that a group has in common, 0 to 1")
	whole(workload, &o.traceGroups, "trace-num-prefix-groups", 0, "of traces without hash ids: `n` groups, to which conversations belong in turn")
	for _, name := range []string{"trace-shared-prefix-ratio", "trace-num-prefix-groups"} {
		workload.Lookup(name).DefValue = "0"
	}
	real(workload, &o.maxSimTimeS, "max-sim-time-seconds", -1, "stop the simulated clock after `s` seconds (default: run to the end)")
	real(workload, &o.maxSimTimeMs, "max-sim-time-ms", -1, "the same in `ms`")

	fleet := fleetFlags(o)

	durations := newFlagSet()
	durations.StringVar(&o.profileData, "planner-profile-data", "", "a profile: the `path` of a NumPy archive (.npz) or of a directory with a profiler's results")
	durations.StringVar(&o.perfGrid, "perf-grid", "", "a grid: the path of a JSON `file` with predicted durations and the KV capacity of one model on one GPU (docs/timing.md)")
	durations.StringVar(&o.grids.Dir, "grid-dir", "", "where grids are found that the engine arguments or --aic-backend ask for by model and GPU: the `path` of a directory, before those that the program carries")

	kv := newFlagSet()
	kv.StringVar(&o.modelPath, "model-path", "", "count them from the model whose directory or config.json is at `path`")
	choice(kv, &o.kvCacheDType, "kv-cache-dtype", "auto", kvCacheDTypes, "type of the cache's numbers, as of vLLM: auto (the model's), bfloat16, fp8, fp8_ds_mla, fp8_e4m3, fp8_e5m2 or fp8_inc")
	toggle(kv, &o.useHeadDim, "use-head-dim", "take the size of a head from head_dim where config.json has it; the reference divides hidden_size by num_attention_heads")
	whole(kv, &o.kvBytes, "kv-bytes-per-token", 0, "say `n` instead of counting (default: what the engine arguments say)")

	goals := newFlagSet()
	real(goals, &o.slaTTFTMs, "sla-ttft-ms", -1, "count requests whose time to first token is at most `ms` (default: no bound)")
	real(goals, &o.slaITLMs, "sla-itl-ms", -1, "and whose mean inter-token latency is at most `ms` (default: no bound)")
	real(goals, &o.slaE2EMs, "sla-e2e-ms", -1, "count requests whose latency is at most `ms`; not with the other two (default: no bound)")

	output := newFlagSet()
	output.StringVar(&o.reportJSON, "report-json", "", "write the full report to `path`; a directory gets dynamo_replay_report_<time>.json (default: no file)")
	output.StringVar(&o.reportJSONL, "report-jsonl", "", "write one line per request to `path` (default: no file)")
	output.StringVar(&o.reportHTML, "report-html", "", "write a page with pictures of the run to `path`: latencies, throughput, queue, KV usage and load by worker (default: no file)")
	output.StringVar(&o.timeline, "timeline", "", "write every pass and request as a Perfetto trace to `path`, compressed if it ends in .gz; it opens in ui.perfetto.dev (default: no file)")
	o.watching.declare(output)
	toggle(output, &o.perWorker, "per-worker", "tell of every worker: its requests and tokens, how long they waited, how busy it was; below the table, and in the full report under per_worker")
	toggle(output, &o.noTable, "no-table", "do not print the table of results")
	toggle(output, &o.quiet, "quiet", "no progress bar on a terminal")

	run := newFlagSet()
	toggle(run, &o.parity, "parity", "end as the reference does when a request can never be served, instead of failing that request alone")
	choice(run, &o.engineKind, "engine", "native", []string{"native", "wasm", "auto"}, "where the simulation runs: native code, or sandboxed in WebAssembly (wasm), which is slower; auto: sandboxed; all give the same results")
	run.StringVar(&o.wasmCache, "wasm-cache", "", "keep compiled WebAssembly in the directory `path` (default: in the user's cache directory)")
	choice(run, &o.engineImpl, "engine-impl", "fast", []string{"fast", "plain"}, "fast, or the readable plain engine; both give the same results")
	run.StringVar(&o.cpuProfile, "cpu-profile", "", "write a CPU profile of the run to `path`")
	run.StringVar(&o.memProfile, "mem-profile", "", "write a heap profile after the run to `path`")
	run.StringVar(&o.config, "config", "", "read flags, and the trace, from the YAML `file` (docs/tools.md); those of the command line go before")
	toggle(run, &o.printConfig, "print-config", "print the flags in effect as such a file, and do not replay")
	toggle(run, &o.help, "help", "print this text")
	run.Lookup("help").Shorthand = "h"
	toggle(run, &o.version, "version", "print the version")

	return []group{
		{"Workload", workload}, {"Synthetic workload, instead of a trace", o.synth.flags()}, {"Engines and routing", fleet},
		{"Pass durations (default: the engine's timing_model)", durations},
		{"Predictions for the KV router (router_prefill_load_model), from a grid for", o.predict.flags()}, {"Bytes of KV cache per token (transfers and host offload)", kv},
		{"Goals (goodput)", goals}, {"Output", output}, {"This program", run},
	}
}

// fleetFlags say what the workers are and how requests are spread over them.
func fleetFlags(o *options) *pflag.FlagSet {
	fleet := newFlagSet()
	fleet.StringVar(&o.engineArgs, "extra-engine-args", "", "the simulated engine as `json` text or the path of a JSON file: {\"engine\": {...}, ...}, or the older flat form")
	whole(fleet, &o.numWorkers, "num-workers", 1, "simulated workers, `n` copies of the engine")
	fleet.StringVar(&o.prefillArgs, "prefill-engine-args", "", "disaggregated serving: the engine of workers that compute prompts and hand them over, as `json` text or a file; its worker_type is prefill")
	fleet.StringVar(&o.decodeArgs, "decode-engine-args", "", "and the engine of those that decode, as `json` text or a file; its worker_type is decode")
	whole(fleet, &o.numPrefill, "num-prefill-workers", 1, "`n` workers that compute prompts")
	whole(fleet, &o.numDecode, "num-decode-workers", 1, "`n` workers that decode")
	choice(fleet, &o.linkSharing, "transfer-sharing", "none", linkSharings, "which transfers share kv_transfer_bandwidth in equal parts: none, those between the same pair of workers (pair), or those out of the same node (node)")
	whole(fleet, &o.prefillPerNode, "prefill-workers-per-node", 1, "for node: `n` workers that compute prompts stand on one")
	whole(fleet, &o.nextN, "aic-nextn", 0, "speculative decoding: draft `n` tokens per step, from 1 to 5; engine arguments go before it (default: none)")
	fleet.StringVar(&o.nextNRates, "aic-nextn-accept-rates", "", "chances that the drafts are accepted, each after the one before it: a `list` separated by commas (default: 0.85,0.3)")
	fleet.StringVar(&o.watching.script, "scaling-script", "", "let workers come and go as the JSON or YAML `file` says: a list of targets, each with at_ms and workers (docs/scaling.md)")
	o.route.declare(fleet)
	choice(fleet, &o.replayMode, "replay-mode", "offline", replayModes, "offline simulates on a virtual clock; online sends the requests in real time to live engines, and measures")
	fleet.StringVar(&o.modelName, "model-name", "", "`name` of the served model: it chooses the classes of --router-policy-config, and is a label otherwise")
	return fleet
}

// kvCacheDTypes are the types the reference knows, in its order.
var kvCacheDTypes = []string{"auto", "bfloat16", "fp8", "fp8_ds_mla", "fp8_e4m3", "fp8_e5m2", "fp8_inc"}

// wholeValue is a number in plain decimal digits. Digits beyond 64 bits are
// kept as the largest int, which every check refuses as too large.
type wholeValue struct{ n *int }

func whole(f *pflag.FlagSet, p *int, name string, def int, usage string) {
	*p = def
	f.Var(wholeValue{p}, name, usage)
}

func (v wholeValue) Set(s string) error {
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange) && s[0] == '-':
		n = math.MinInt64
	case errors.Is(err, strconv.ErrRange):
		n = math.MaxInt64
	case err != nil:
		return errors.New("a whole number")
	}
	*v.n = int(n)
	return nil
}

func (v wholeValue) String() string { return strconv.Itoa(*v.n) }
func (v wholeValue) Type() string   { return "n" }

// seedValue is a number of 64 bits without a sign.
type seedValue struct{ n *uint64 }

func seed(f *pflag.FlagSet, p *uint64, name string, def uint64, usage string) {
	*p = def
	f.Var(seedValue{p}, name, usage)
}

func (v seedValue) Set(s string) error {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return errors.New("a whole number")
	}
	*v.n = n
	return nil
}

func (v seedValue) String() string { return strconv.FormatUint(*v.n, 10) }
func (v seedValue) Type() string   { return "seed" }

// realValue is a decimal number; nan and inf are numbers here, too, so that
// the checks can name what is accepted.
type realValue struct{ x *float64 }

// real declares a number; a negative default stands for "not set".
func real(f *pflag.FlagSet, p *float64, name string, def float64, usage string) {
	*p = def
	f.Var(realValue{p}, name, usage)
	if def < 0 {
		f.Lookup(name).DefValue = ""
	}
}

func (v realValue) Set(s string) error {
	x, err := strconv.ParseFloat(s, 64)
	if strings.ContainsAny(s, "xXpP_") || err != nil && !errors.Is(err, strconv.ErrRange) {
		return errors.New("a number")
	}
	*v.x = x // ErrRange comes with the nearest value: an infinity or 0
	return nil
}

func (v realValue) String() string { return strconv.FormatFloat(*v.x, 'g', -1, 64) }
func (v realValue) Type() string   { return "number" }

// toggleValue is a switch, off until its flag stands on the command line.
type toggleValue struct{ on *bool }

func toggle(f *pflag.FlagSet, p *bool, name, usage string) {
	f.VarPF(toggleValue{p}, name, "", usage).NoOptDefVal = "true"
}

func (v toggleValue) Set(s string) error {
	on, err := strconv.ParseBool(s)
	if err == nil {
		*v.on = on
	}
	return err
}

func (v toggleValue) String() string { return strconv.FormatBool(*v.on) }

// Type is a name that pflag's help shows nothing for.
func (v toggleValue) Type() string { return "boolfunc" }

// formatValue is the name of a trace format.
type formatValue struct{ f *tracefile.Format }

func (v formatValue) Set(s string) error {
	f, ok := tracefile.ParseFormat(s)
	if !ok {
		return errors.New("a format")
	}
	*v.f = f
	return nil
}

func (v formatValue) String() string {
	if v.f == nil || *v.f == tracefile.Auto {
		return ""
	}
	return v.f.String()
}
func (v formatValue) Type() string { return "format" }

// choiceValue is one of a few words.
type choiceValue struct {
	word   *string
	name   string
	choice []string
}

func choice(f *pflag.FlagSet, p *string, name, def string, choices []string, usage string) {
	*p = def
	f.Var(choiceValue{p, name, choices}, name, usage)
}

func (v choiceValue) Set(s string) error {
	if !slices.Contains(v.choice, s) {
		return errors.New(strings.Join(v.choice, " or "))
	}
	*v.word = s
	return nil
}

func (v choiceValue) String() string { return *v.word }
func (v choiceValue) Type() string   { return "word" }
