// Command tally reads the output of go test -json, prints a line per package
// and what failing tests said, and ends with the line "N passed, N failed",
// after "N skipped" if there were any. It exits with 1 if anything failed or
// no test passed at all.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

func main() {
	t := newTally(os.Stdout)
	if err := t.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "tally:", err)
		os.Exit(1)
	}
	if !t.close() {
		os.Exit(1)
	}
}

// event is one line of go test -json.
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
	Elapsed    float64
}

type tally struct {
	out                     io.Writer
	passed, failed, skipped int

	output map[string][]string // of each test or package still running
	broken map[string]bool     // packages with a failed test
	began  map[string]bool     // packages seen but not ended
	build  []string            // what the compiler said
}

func newTally(out io.Writer) *tally {
	return &tally{out: out, output: map[string][]string{}, broken: map[string]bool{}, began: map[string]bool{}}
}

func (t *tally) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) == nil && e.Action != "" {
				t.add(e)
			} else {
				fmt.Fprintf(t.out, "%s", line) // not go test's: pass it on
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (t *tally) add(e event) {
	key := e.Package + "\x00" + e.Test
	switch e.Action {
	case "start":
		t.began[e.Package] = true
	case "output":
		t.output[key] = append(t.output[key], e.Output)
	case "build-output":
		t.build = append(t.build, e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			t.endPackage(e)
		} else {
			t.endTest(e)
		}
		delete(t.output, key)
	}
}

func (t *tally) endTest(e event) {
	switch e.Action {
	case "pass":
		t.passed++
	case "skip":
		t.skipped++
	case "fail":
		t.failed++
		t.broken[e.Package] = true
		for _, line := range t.output[e.Package+"\x00"+e.Test] {
			fmt.Fprint(t.out, line)
		}
	}
}

func (t *tally) endPackage(e event) {
	delete(t.began, e.Package)
	switch e.Action {
	case "pass":
		fmt.Fprintf(t.out, "ok   %s  %.2fs\n", e.Package, e.Elapsed)
	case "skip":
		// A package without tests.
	case "fail":
		if !t.broken[e.Package] { // it did not build, or died outside a test
			t.failed++
			for _, line := range append(t.build, t.output[e.Package+"\x00"]...) {
				fmt.Fprint(t.out, line)
			}
			t.build = nil
			t.unfinished(e.Package)
		}
		fmt.Fprintf(t.out, "FAIL %s  %.2fs\n", e.Package, e.Elapsed)
	}
}

// unfinished prints what the tests said that a package's death cut off: a
// panic or a time-out stands there.
func (t *tally) unfinished(name string) {
	for _, key := range slices.Sorted(maps.Keys(t.output)) {
		if test, ok := strings.CutPrefix(key, name+"\x00"); ok && test != "" {
			fmt.Fprintf(t.out, "%s did not end:\n%s", test, strings.Join(t.output[key], ""))
			delete(t.output, key)
		}
	}
}

// close prints the last line and reports whether all is well. A package that
// began and never ended has failed.
func (t *tally) close() bool {
	for name := range t.began {
		t.failed++
		fmt.Fprintf(t.out, "FAIL %s  did not end\n", name)
	}
	if t.skipped > 0 {
		fmt.Fprintf(t.out, "%d skipped\n", t.skipped)
	}
	fmt.Fprintf(t.out, "%d passed, %d failed\n", t.passed, t.failed)
	return t.failed == 0 && t.passed > 0
}
