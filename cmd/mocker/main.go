// Command mocker serves simulated inference engines as time passes, without a
// model and without a GPU: answers come when those of a real fleet would. It
// serves OpenAI's API by itself, or as workers behind a Dynamo frontend.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

// Exit statuses.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// version is set when a release is built.
var version = "dev"

// reference is the release whose behaviour this one follows.
const reference = "ai-dynamo 1.6.1"

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run does everything but exiting.
func run(args []string, stdout, stderr io.Writer) int {
	o, err := parse(args)
	switch {
	case err != nil:
	case o.help:
		err = printHelp(stdout)
	case o.version:
		_, err = fmt.Fprintf(stdout, "mocker (Dryserve) %s, %s %s/%s, follows %s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH, reference)
	default:
		signal.Ignore(syscall.SIGPIPE) // a reader of the log that has gone is not the end of the workers
		o.say = func(text string) { fmt.Fprintf(stderr, "mocker: %s\n", text) }
		err = serve(o, stderr)
	}
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(stderr, "mocker: %v\n", err)
	var usage usageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailed
}
