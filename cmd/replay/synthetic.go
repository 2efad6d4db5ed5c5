package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/synth"
	"github.com/dryserve/dryserve/core/workload"
	"github.com/dryserve/dryserve/host/native/tracefile"
	"github.com/spf13/pflag"
)

// synthetic are the flags of workloads that come from no trace.
type synthetic struct {
	inputTokens, outputTokens, requests int

	rate        float64
	intervalMs  float64
	seed        uint64
	turns       int
	prefixRatio float64
	groups      int
	turnDelayMs float64
}

func (s *synthetic) flags() *pflag.FlagSet {
	f := newFlagSet()
	whole(f, &s.inputTokens, "input-tokens", 0, "prompt `tokens` of each request")
	whole(f, &s.outputTokens, "output-tokens", 0, "`tokens` each request asks for")
	whole(f, &s.requests, "request-count", 0, "`n` requests, or sessions if they have more than one turn")
	real(f, &s.rate, "request-rate", -1, "`n` arrivals per second on average, at exponentially distributed intervals")
	real(f, &s.intervalMs, "arrival-interval-ms", -1, "arrivals `ms` apart; 0: all at once")
	seed(f, &s.seed, "arrival-seed", synth.DefaultArrivalSeed, "`seed` of the intervals of --request-rate")
	whole(f, &s.turns, "turns-per-session", 1, "`n` requests one after the other in each session")
	real(f, &s.turnDelayMs, "inter-turn-delay-ms", 0, "`ms` from the end of a turn to the next turn")
	real(f, &s.prefixRatio, "shared-prefix-ratio", 0, "`share` of a prompt's blocks that all sessions of a group have in common, 0 to 1")
	whole(f, &s.groups, "num-prefix-groups", 0, "`n` groups of sessions with a common prefix each; 0: nothing is shared")
	for name, off := range map[string]string{"input-tokens": "", "output-tokens": "", "request-count": "", "inter-turn-delay-ms": "0", "shared-prefix-ratio": "0", "num-prefix-groups": "0"} {
		f.Lookup(name).DefValue = off
	}
	return f
}

// synthetic reports whether the command line is about a synthetic workload. A
// value that is the default asks for nothing.
func (o *options) synthetic() bool {
	s := &o.synth
	return o.given("input-tokens") || o.given("output-tokens") || o.given("request-count") ||
		s.turns != 1 || s.prefixRatio != 0 || s.groups != 0 || s.turnDelayMs != 0
}

// checkSource decides between a trace and a synthetic workload, in the
// reference's order of complaints (replay notes §1.2).
func (o *options) checkSource() error {
	synthetic := o.synthetic()
	switch n := len(o.traces); {
	case n > 1 && o.traceFormat != tracefile.Auto && !o.traceFormat.Shards():
		return usagef("%d trace files are given (%s); --trace-format %s takes exactly one", n, quoteAll(o.traces), o.traceFormat)
	case n > 0 && synthetic:
		return usagef("a trace file (%s) and --%s are given; a trace, or --input-tokens, --output-tokens and --request-count, are accepted", quoteAll(o.traces), o.firstSynthetic())
	case n == 0 && o.traceFormat != tracefile.Auto && !synthetic:
		return usagef("--trace-format %s is given, but no trace file; one is accepted, or several where the format has shards", o.traceFormat)
	case n == 0 && !synthetic:
		return usagef("no workload is given; a trace file, or --input-tokens, --output-tokens and --request-count, are accepted")
	case n > 0:
		for _, flag := range []string{"request-rate", "arrival-interval-ms"} {
			if o.given(flag) {
				return usagef("--%s is for synthetic workloads, and %s is a trace, which has times of its own; --arrival-speedup-ratio or --replay-concurrency is accepted", flag, quoteAll(o.traces))
			}
		}
		return nil
	}
	var missing []string
	for _, flag := range []string{"input-tokens", "output-tokens", "request-count"} {
		if !o.given(flag) {
			missing = append(missing, "--"+flag)
		}
	}
	if missing != nil {
		return usagef("a synthetic workload needs %s as well", strings.Join(missing, " and "))
	}
	return o.checkController()
}

// firstSynthetic is the flag that makes the workload a synthetic one.
func (o *options) firstSynthetic() string {
	for _, flag := range []string{
		"input-tokens", "output-tokens", "request-count", "turns-per-session", "shared-prefix-ratio", "num-prefix-groups",
	} {
		if o.given(flag) {
			return flag
		}
	}
	return "inter-turn-delay-ms"
}

// checkController wants exactly one flag that says when sessions begin, and
// none that only traces have.
func (o *options) checkController() error {
	var given []string
	for _, flag := range []string{"replay-concurrency", "request-rate", "arrival-interval-ms"} {
		if o.given(flag) {
			given = append(given, "--"+flag)
		}
	}
	const accepted = "exactly one of --replay-concurrency, --request-rate and --arrival-interval-ms is accepted"
	switch len(given) {
	case 0:
		return usagef("nothing says when the requests of the synthetic workload arrive; %s", accepted)
	case 1:
	default:
		return usagef("%s are given; %s", strings.Join(given, " and "), accepted)
	}
	for _, flag := range []string{"report-jsonl", "max-sim-time-seconds", "max-sim-time-ms"} {
		if o.given(flag) {
			return usagef("--%s is given with a synthetic workload; it is accepted with a trace", flag)
		}
	}
	return nil
}

// spec describes the synthetic workload.
func (o *options) spec(cfg config.Replay) (synth.Spec, error) {
	s := &o.synth
	spec := synth.Spec{
		InputTokens: s.inputTokens, OutputTokens: s.outputTokens, Sessions: s.requests, Turns: s.turns,
		RatePerS: s.rate, IntervalMs: s.intervalMs, ArrivalSeed: s.seed,
		PrefixRatio: s.prefixRatio, TurnDelayMs: s.turnDelayMs, BlockSize: cfg.Engine.BlockSize,
	}
	switch {
	case o.given("request-rate"):
		spec.Arrival = synth.Poisson
	case o.given("arrival-interval-ms"):
		spec.Arrival = synth.Constant
	}
	if s.groups < 0 || s.groups > math.MaxUint32 {
		return spec, valueError("num-prefix-groups", strconv.Itoa(s.groups), "a whole number from 0 to 4294967295")
	}
	spec.PrefixGroups = uint32(s.groups)
	if field := spec.Check(); field != synth.None {
		return spec, o.specError(field)
	}
	return spec, nil
}

// synthError words why a workload cannot be made; nil if it can.
func synthError(f workload.Fault) error {
	switch f.Code {
	case workload.OK:
		return nil
	case workload.TooManyIDs:
		return fmt.Errorf("the prompts of the synthetic workload have more than %d different blocks, which is the most; fewer or shorter requests are accepted", f.Limit)
	case workload.StartTooLate, workload.DelayTooLong:
		return fmt.Errorf("the synthetic workload has times that are no numbers any more; a shorter interval or delay, a higher rate or a greater --arrival-speedup-ratio is accepted")
	}
	return fmt.Errorf("the synthetic workload has more than %d requests, which is the most", f.Limit)
}

// specError words a value outside its range.
func (o *options) specError(field synth.Field) error {
	s := &o.synth
	const count = "a whole number from 1 to 2147483647"
	switch field {
	case synth.InputTokens:
		return valueError("input-tokens", strconv.Itoa(s.inputTokens), count)
	case synth.OutputTokens:
		return valueError("output-tokens", strconv.Itoa(s.outputTokens), count)
	case synth.Sessions:
		return valueError("request-count", strconv.Itoa(s.requests), count)
	case synth.Turns:
		return valueError("turns-per-session", strconv.Itoa(s.turns), count)
	case synth.RatePerS:
		return realError("request-rate", s.rate, "a finite number above 0")
	case synth.IntervalMs:
		return realError("arrival-interval-ms", s.intervalMs, "0 or a finite number of at least 1e-305")
	case synth.PrefixRatio:
		return realError("shared-prefix-ratio", s.prefixRatio, "a number from 0 to 1")
	}
	return realError("inter-turn-delay-ms", s.turnDelayMs, "a finite number of at least 0")
}
