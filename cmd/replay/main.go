// Command replay simulates how a fleet of inference engines serves a request
// trace and prints the latencies it would have had.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/dryserve/dryserve/host/native/cliutil"
	"github.com/dryserve/dryserve/host/native/report"
	"github.com/dryserve/dryserve/host/wasm/runner"
)

// Exit statuses; an interrupt gives 128 plus the signal's number.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2

	exitUnheard = 128 + int(syscall.SIGPIPE) // as a shell has it of programs that this signal ends
)

func main() {
	// A reader that has gone is not to be the end of the process while files are half
	// written; what cannot be printed ends it (unheard).
	signal.Ignore(syscall.SIGPIPE)
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run does everything but exiting.
func run(args []string, stdout, stderr *os.File) int {
	if len(args) > 0 {
		for _, c := range commands() {
			if c.name == args[0] {
				return c.run(args[1:], results{stdout}, stderr)
			}
		}
	}
	o, err := parse(args)
	switch {
	case err != nil:
	case o.help:
		err = printHelp(results{stdout})
	case o.version:
		err = printVersion(results{stdout})
	case o.printConfig:
		err = o.writeConfig(results{stdout})
	default:
		err = replayTrace(o, results{stdout}, stderr)
	}
	return conclude(err, stderr)
}

// conclude says what went wrong, if anything did, and gives the exit status.
func conclude(err error, stderr io.Writer) int {
	if err == nil {
		return exitOK
	}
	if unheard(err) {
		return exitUnheard
	}
	say(stderr, "%v", err)
	var usage usageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailed
}

// replayTrace runs one replay with its output files, interrupts included.
func replayTrace(o *options, stdout results, stderr *os.File) error {
	outputs := &report.Files{}
	meter := newMeter(stderr, o.quiet)
	stop := onInterrupt(func() {
		outputs.Abort()
		if meter.on {
			fmt.Fprintln(stderr) // past the bar or the echo of the key
		}
		say(stderr, "interrupted")
	})
	defer stop()
	defer outputs.Abort() // does nothing after a commit
	defer meter.stop()
	return replayTo(o, &surroundings{
		outputs:  outputs,
		warnings: func(text string) { say(stderr, "%s", text) },
		progress: meter.progress(),
		runner:   newRunner,
		release:  func(r *runner.Runner) { _ = r.Close(context.Background()) },
	}, stdout)
}

// results is standard output; its errors are sentences.
type results struct{ w io.Writer }

func (r results) Write(p []byte) (int, error) {
	n, err := r.w.Write(p)
	if err != nil {
		err = unprinted{cliutil.Reason(err)}
	}
	return n, err
}

// unprinted is why standard output cannot be written.
type unprinted struct{ why error }

func (u unprinted) Error() string { return fmt.Sprintf("cannot write standard output: %v", u.why) }

// unheard reports whether whoever reads standard output has enough. There is
// nothing to say then.
func unheard(err error) bool {
	var u unprinted
	return errors.As(err, &u) && errors.Is(u.why, syscall.EPIPE)
}

// say writes one line of our own to standard error.
func say(w io.Writer, format string, args ...any) {
	fmt.Fprintf(w, "replay: "+format+"\n", args...)
}
