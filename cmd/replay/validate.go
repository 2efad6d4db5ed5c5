package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/tracefile"
	"github.com/dryserve/dryserve/host/native/tracestat"
)

const validateAbout = `Checks a trace of any format and describes it, without simulating: requests,
sessions, lengths, how much of the prompts came before, how requests arrive.
Every bad row is named in a sentence on standard error. Mooncake rows stream
through in bounded memory; other formats are held as for a replay.

Exit status: 0 the trace can be replayed, 1 it cannot, 2 the command line is
wrong.
`

func validateFlags(s *settings) []group {
	output := newFlagSet()
	toggle(output, &s.json, "json", "print the description as JSON")
	whole(output, &s.maxErrors, "max-errors", 0, "name the first `n` bad rows only and count the others; 0: name all")
	output.Lookup("max-errors").DefValue = "0"
	output.AddFlagSet(pick(&s.options, "quiet"))
	return []group{{"Reading", readingFlags(s)}, {"Output", output}, {"This program", pick(&s.options, "help")}}
}

func runValidate(args []string, stdout results, stderr *os.File) int {
	s, done, err := commandNamed("validate").parse(args, stdout)
	if done {
		return conclude(err, stderr)
	}
	meter := newMeter(stderr, s.quiet)
	defer meter.stop()
	return conclude(s.validate(meter, stdout, stderr), stderr)
}

// validate looks at the trace and prints what it is like.
func (s *settings) validate(meter *meter, stdout io.Writer, stderr io.Writer) error {
	cfg, err := s.reading()
	if err != nil {
		return err
	}
	if s.maxErrors < 0 {
		return valueError("max-errors", fmt.Sprint(s.maxErrors), "a whole number of at least 0")
	}
	var first error
	told := 0
	c := tracestat.New(s.traceFormat, cfg.TraceBlockSize, func(e *tracefile.Error) bool {
		if told == 0 {
			first = e
		}
		if told++; s.maxErrors == 0 || told <= s.maxErrors {
			meter.stop()
			say(stderr, "%v", e)
		}
		return true
	})
	o := s.traceOptions(cfg, &surroundings{progress: meter.progress()}, nil)
	o.Survey = c
	t, err := tracefile.Load(context.Background(), s.traces, o)
	meter.stop()
	if err != nil && err != first { // not a row's, or one that nothing can be read after
		return asUsage(err)
	}
	return s.describe(c.Finish(t), err, told, stdout, stderr)
}

// describe prints the description; wrong is what ended the reading, or the
// first bad row, told is how many of them there were.
func (s *settings) describe(d *tracestat.Stats, wrong error, told int, stdout, stderr io.Writer) error {
	if s.maxErrors > 0 && told > s.maxErrors {
		say(stderr, "%d more bad rows are not named; --max-errors 0 names all", d.BadRows-int64(s.maxErrors))
	} else if more := d.BadRows - int64(told); more > 0 {
		say(stderr, "%d more rows begin a session and have no timestamp", more)
	}
	if d.Misfits > 0 {
		text := fmt.Sprintf("warning: %d of %d rows have more hash_ids than their input_length needs with --trace-block-size %d, first on line %d",
			d.Misfits, d.Requests, d.BlockSize, d.FirstMiss)
		if d.Fits > 0 {
			text += fmt.Sprintf("; %d fits every row", d.Fits)
		}
		say(stderr, "%s", text)
	}
	if d.Unsure > 0 {
		say(stderr, "warning: line %d has a session_id that a row without one above may have, too; the two are counted as sessions of their own", d.Unsure)
	}
	var err error
	switch {
	case s.json:
		err = d.WriteJSON(stdout, s.traces)
	case wrong == nil || d.Requests > 0:
		err = d.WriteText(stdout)
	}
	if err == nil && wrong != nil {
		return fmt.Errorf("%s: %d bad rows; the trace cannot be replayed", quoteAll(s.traces), d.BadRows)
	}
	return err
}

// reading checks the flags that say how a trace is read.
func (s *settings) reading() (config.Replay, error) {
	if len(s.traces) == 0 {
		return config.Replay{}, usagef("no trace is given; a trace file is accepted")
	}
	if n := len(s.traces); n > 1 && s.traceFormat != tracefile.Auto && !s.traceFormat.Shards() {
		return config.Replay{}, usagef("%d trace files are given (%s); --trace-format %s takes exactly one", n, quoteAll(s.traces), s.traceFormat)
	}
	return s.run(config.DefaultReplay(config.VLLM))
}
