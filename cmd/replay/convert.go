package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/cliutil"
	"github.com/dryserve/dryserve/host/native/report"
	"github.com/dryserve/dryserve/host/native/tracefile"
	"github.com/dryserve/dryserve/host/native/tracewrite"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

const convertAbout = `Writes a trace of any format as Mooncake JSON lines: a replay of them gives the
report of a replay of the trace, where rows can say what it says. What they
cannot carry is told on standard error. Fields that change no replay are left
out. The file is whole or absent; a name that ends in .gz or .zst compresses it,
- is standard output.

Exit status: 0 the file is written, 1 a trace or a file is wrong, 2 the command
line is wrong.
`

func convertFlags(s *settings) []group {
	output := newFlagSet()
	output.StringVar(&s.output, "output", "", "write the rows to the `file`; required")
	output.AddFlagSet(pick(&s.options, "quiet"))
	return []group{{"Output", output}, {"Reading", readingFlags(s)}, {"This program", pick(&s.options, "help")}}
}

func runConvert(args []string, stdout results, stderr *os.File) int {
	s, done, err := commandNamed("convert").parse(args, stdout)
	if done {
		return conclude(err, stderr)
	}
	outputs := &report.Files{}
	meter := newMeter(stderr, s.quiet)
	stop := onInterrupt(func() {
		outputs.Abort()
		say(stderr, "interrupted")
	})
	defer stop()
	defer outputs.Abort() // does nothing after a commit
	defer meter.stop()
	return conclude(s.convert(outputs, meter, stdout, stderr), stderr)
}

func (s *settings) convert(outputs *report.Files, meter *meter, stdout io.Writer, stderr io.Writer) error {
	cfg, err := s.reading()
	if err != nil {
		return err
	}
	if s.output == "" {
		return usagef("--output is not given; the path of a file, or - for standard output, is accepted")
	}
	for _, trace := range s.traces {
		if sameFile(s.output, trace) {
			return usagef("--output %s is the trace itself; another path is accepted", cliutil.Quote(s.output))
		}
	}
	t, err := s.loadAsWritten(cfg, meter)
	s.detected = t.Format
	s.sayFormat(func(text string) { say(stderr, "%s", text) })
	if err != nil {
		return err
	}
	out := stdout
	if s.output != tracefile.Stdin {
		file, err := outputs.Create(s.output)
		if err != nil {
			return fmt.Errorf("--output: %w", err)
		}
		out = file
	}
	losses, err := writeRows(out, s.output, t)
	if err != nil {
		return err
	}
	if err := outputs.Commit(); err != nil {
		return err
	}
	if t.Info.Failed > 0 {
		say(stderr, "%d of %d requests are left out: they have no tokens, as those that failed", t.Info.Failed, t.Info.Rows)
	}
	for _, line := range lossLines(losses) {
		say(stderr, "%s", line)
	}
	return nil
}

// loadAsWritten loads the trace with its times as they are.
func (s *settings) loadAsWritten(cfg config.Replay, meter *meter) (*tracefile.Trace, error) {
	o := s.traceOptions(cfg, &surroundings{progress: meter.progress()}, nil)
	o.AsWritten = true
	t, err := tracefile.Load(context.Background(), s.traces, o)
	meter.stop()
	return t, asUsage(err)
}

// writeRows writes the rows, compressed if the path says so.
func writeRows(w io.Writer, path string, t *tracefile.Trace) (tracewrite.Losses, error) {
	var packed io.WriteCloser
	switch lower := strings.ToLower(path); {
	case strings.HasSuffix(lower, ".gz"):
		packed = gzip.NewWriter(w)
	case strings.HasSuffix(lower, ".zst"):
		var err error
		if packed, err = zstd.NewWriter(w); err != nil {
			return tracewrite.Losses{}, err
		}
	default:
		return tracewrite.Write(w, t.Workload)
	}
	losses, err := tracewrite.Write(packed, t.Workload)
	if closing := packed.Close(); err == nil {
		err = closing
	}
	return losses, err
}

// lossLines say what the rows do not carry, and what a replay has to be told.
func lossLines(l tracewrite.Losses) []string {
	var lines []string
	if l.Plays > 0 {
		lines = append(lines, fmt.Sprintf("not carried over: which of the %d plays of agents a request belongs to, and its model", l.Plays))
	}
	if lost := l.Waits - l.Turns; lost > 0 {
		lines = append(lines, fmt.Sprintf("not carried over: what %d of the %d waiting requests wait for; they begin as early as they could if no answer took any time", lost, l.Waits))
	}
	if l.PartTurns > 0 {
		lines = append(lines, fmt.Sprintf("not carried over: what %d requests wait for besides the request before them in their session", l.PartTurns))
	}
	if l.Floors > 0 {
		lines = append(lines, fmt.Sprintf("not carried over: the time before which %d later turns may not begin; they follow the turn before", l.Floors))
	}
	if l.Inexact > 0 {
		lines = append(lines, fmt.Sprintf("not exact: %d times have no spelling that is read as they are", l.Inexact))
	}
	var flags []string
	if l.BlockSize != config.DefaultTraceBlockSize {
		flags = append(flags, fmt.Sprintf("--trace-block-size %d", l.BlockSize))
	}
	if l.Delta {
		flags = append(flags, "--trace-format "+tracefile.MooncakeDelta.String())
	}
	if l.NoStarts {
		flags = append(flags, "--replay-concurrency N")
	}
	if flags != nil {
		lines = append(lines, "replay the rows with "+strings.Join(flags, " ")+", which they do not say")
	}
	return lines
}
