package main

import (
	"os"
	"strconv"

	"github.com/dryserve/dryserve/host/native/compare"
)

const diffAbout = `Compares two reports that --report-json has written: what differs, with the
change from the first to the second in per cent of the first. Values that come
from the clock of the machine (wall_time_ms, processed_tokens_per_s,
processed_output_tokens_per_s) are shown and not compared.

Exit status, as of diff: 0 the reports say the same, 1 they differ, 2 a file is
no report or the command line is wrong.
`

func diffFlags(s *settings) []group {
	output := newFlagSet()
	toggle(output, &s.all, "all", "show the values that are equal, too")
	toggle(output, &s.json, "json", "print JSON")
	return []group{{"Output", output}, {"This program", pick(&s.options, "help")}}
}

// The exit statuses of diff.
const (
	diffSame    = 0
	diffDiffers = 1
	diffTrouble = 2
)

func runDiff(args []string, stdout results, stderr *os.File) int {
	s, done, err := commandNamed("diff").parse(args, stdout)
	if done {
		return conclude(err, stderr)
	}
	differ, err := s.diff(stdout, func(text string) { say(stderr, "%s", text) })
	switch {
	case unheard(err):
		return exitUnheard
	case err != nil:
		say(stderr, "%v", err)
		return diffTrouble
	case differ:
		return diffDiffers
	}
	return diffSame
}

// diff compares and prints.
func (s *settings) diff(stdout results, warn func(text string)) (differ bool, err error) {
	switch len(s.traces) {
	case 2:
	case 0:
		return false, usagef("no reports are given; two are accepted")
	case 1:
		return false, usagef("one report is given (%s); two are accepted", quoteAll(s.traces))
	default:
		return false, usagef("%d reports are given (%s); two are accepted", len(s.traces), quoteAll(s.traces))
	}
	var reports [2]*compare.Report
	for i, path := range s.traces {
		if reports[i], err = compare.Read(path); err != nil {
			return false, err
		}
	}
	c := compare.Compare(reports[0], reports[1])
	onlyA, onlyB := c.Only()
	for _, only := range []struct {
		path string
		keys []string
	}{{s.traces[0], onlyA}, {s.traces[1], onlyB}} {
		if len(only.keys) > 0 {
			warn("only " + only.path + " has " + quoteAll(only.keys) + more(len(only.keys)))
		}
	}
	if s.json {
		return !c.Equal(), c.WriteJSON(stdout, s.all)
	}
	return !c.Equal(), c.WriteTable(stdout, s.all)
}

// more tells how many words a list that quoteAll cuts has.
func more(n int) string {
	if n <= 4 {
		return ""
	}
	return " (" + strconv.Itoa(n) + " values)"
}
