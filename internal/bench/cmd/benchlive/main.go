// Command benchlive measures this project's mocker beside the reference's, each
// behind an unchanged Dynamo frontend, and prints the tables.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/dryserve/dryserve/internal/bench/live"
	"github.com/dryserve/dryserve/internal/oracle"
)

func main() {
	if len(os.Args) == 4 && os.Args[1] == "instant" {
		if err := live.Floor(context.Background(), os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, "benchlive:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(run())
}

func run() int {
	o := live.Options{Progress: os.Stderr}
	flag.StringVar(&o.Ours, "mocker", "bin/mocker", "this project's mocker")
	flag.StringVar(&o.Model, "model", "host/native/live/card/testdata/model", "directory of the small model")
	flag.StringVar(&o.Mode, "router-mode", "kv", "router mode of the frontends")
	flag.IntVar(&o.Rounds, "rounds", 5, "rounds of each worker under each load")
	flag.IntVar(&o.Requests, "requests", 1000, "requests of a round")
	venv := flag.String("venv", ".oracle", "virtual environment of the reference, unless ORACLE_PYTHON names an interpreter")
	loads := flag.String("loads", "1x8,32x8,256x8,32x64", "loads: clients x tokens, with commas between")
	flag.Parse()
	var err error
	if o.Loads, err = points(*loads); err != nil || flag.NArg() > 0 || o.Rounds < 1 || o.Requests < 1 {
		fmt.Fprintln(os.Stderr, "benchlive: want positive -rounds and -requests, -loads such as 1x8,32x64, and no other arguments")
		return 2
	}
	if o.Python = oracle.PythonFromEnv(*venv); o.Python == "" {
		fmt.Fprintln(os.Stderr, "benchlive: the reference is not installed; `internal/oracle/setup.sh .oracle` installs it, or ORACLE_PYTHON names an interpreter")
		return 1
	}
	program, err := os.Executable()
	if err == nil {
		o.Self = []string{program, "instant"}
		err = live.Run(o, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchlive:", err)
		return 1
	}
	return 0
}

// points reads loads.
func points(text string) (list []live.Point, err error) {
	for word := range strings.SplitSeq(text, ",") {
		a, b, ok := strings.Cut(word, "x")
		clients, err := strconv.Atoi(a)
		tokens, other := strconv.Atoi(b)
		if !ok || err != nil || other != nil || clients < 1 || tokens < 1 {
			return nil, fmt.Errorf("%q is no load", word)
		}
		list = append(list, live.Point{Concurrency: clients, Tokens: tokens})
	}
	return list, nil
}
