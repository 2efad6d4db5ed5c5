package main

import (
	"fmt"
	"strings"

	"github.com/dryserve/dryserve/core/synth"
	"github.com/dryserve/dryserve/core/workload"
	"github.com/dryserve/dryserve/host/native/cliutil"
	"github.com/dryserve/dryserve/host/native/engineargs"
	"github.com/dryserve/dryserve/host/native/tracefile"
)

// tooLateMs is how late a machine is said to be: engines make up for less.
const tooLateMs = 100

// maxNamed bounds how many requests a warning names.
const maxNamed = 5

// warn tells of what the results do not show: one line per matter.
func warn(o *options, out *finished, say func(text string)) {
	load, unservable, rejected := out.load, out.unservable, out.RejectedRequests
	o.warnBefore(load, say)
	if rejected > 0 {
		say(fmt.Sprintf("warning: %d of %d requests were rejected: their prompts reach max_model_len or need more blocks than num_gpu_blocks", rejected, len(load.Turns)))
	}
	if out.lateMs > tooLateMs {
		say(fmt.Sprintf("warning: this machine kept engines waiting, once for %.0f ms, so some times are longer than theirs; a machine with less to do, or a slower replay, is more exact", out.lateMs))
	}
	if n := len(unservable); n > 0 {
		say(fmt.Sprintf("warning: %d of %d requests can never be served by this engine and failed: %s", n, len(load.Turns), requestNames(load, unservable)))
	}
}

// warnBefore tells what is known before the run.
func (o *options) warnBefore(load *workload.Workload, say func(text string)) {
	for _, w := range o.warnings {
		say("warning: " + w)
	}
	o.sayFormat(say)
	if o.failed > 0 {
		say(fmt.Sprintf("%d of %d requests are left out: they have no tokens, as those that failed", o.failed, o.rows))
	}
	if o.given("replay-concurrency") && o.given("arrival-speedup-ratio") {
		say("warning: --arrival-speedup-ratio has no effect with --replay-concurrency")
	}
	if len(o.traces) == 0 && o.given("trace-block-size") {
		say("warning: --trace-block-size has no effect without a trace")
	}
	if o.synth.seed != synth.DefaultArrivalSeed && !o.given("request-rate") {
		say("warning: --arrival-seed has no effect without --request-rate")
	}
	if o.synth.prefixRatio > 0 && o.synth.groups == 0 {
		say("warning: --shared-prefix-ratio has no effect without --num-prefix-groups")
	}
	if o.synth.prefixRatio == 0 && o.synth.groups > 0 {
		say("warning: --num-prefix-groups has no effect without --shared-prefix-ratio")
	}
	o.warnRouting(say)
	o.warnGrids(say)
	if b := &load.BlockSizes; b.Rows > 0 {
		text := fmt.Sprintf("warning: %d of %d rows have more hash_ids than their input_length needs with --trace-block-size %d, first on line %d",
			b.Rows, len(load.Turns), o.traceBlockSize, b.FirstLine)
		if size, ok := b.Fit(); ok {
			text += fmt.Sprintf("; %d fits every row", size)
		}
		say(text)
	}
}

// sayFormat tells what a trace was taken for, unless that is the default.
func (o *options) sayFormat(say func(text string)) {
	if o.detected > tracefile.Mooncake && o.traceFormat == tracefile.Auto {
		say(fmt.Sprintf("%s is read as %s by the looks of it; --trace-format chooses another format", quoteAll(o.traces), o.detected))
	}
}

// warnEngine tells of engine arguments that fit together badly.
func warnEngine(a engineargs.Args, say func(text string)) {
	if a.Engine.DiskOffload.Blocks > 0 {
		say("warning: with a disk (g3_offload) the reference gives another result in rare cases, about one random run of 800 (docs/deviations.md)")
	}
	if g := a.Grid; g != nil && g.Backend != "" && g.Backend != a.Backend() {
		say(fmt.Sprintf("warning: the durations in %s are those of backend %s, the simulated engine is %s", a.Timing.Path, g.Backend, a.Backend()))
	}
}

// requestNames names the first few turns, by line where a line is one
// session, else by turn and session.
func requestNames(load *workload.Workload, turns []int32) string {
	names := make([]string, 0, maxNamed+1)
	for i, t := range turns {
		if i == maxNamed {
			names = append(names, fmt.Sprintf("and %d more", len(turns)-maxNamed))
			break
		}
		turn := &load.Turns[t]
		session := &load.Sessions[turn.Session]
		if load.Drawn {
			names = append(names, fmt.Sprintf("request %d", turn.Session+1))
			continue
		}
		if turn.Index == 0 && turn.Next < 0 && session.Line > 0 && !load.Unlined {
			names = append(names, fmt.Sprintf("line %d", session.Line))
			continue
		}
		names = append(names, fmt.Sprintf("turn %d of session %s", turn.Index+1, cliutil.Quote(string(load.SessionID(turn.Session)))))
	}
	return strings.Join(names, ", ")
}
