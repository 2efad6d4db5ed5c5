// Command oracle compares this project's replay with the reference on random
// cases, or records the reference's answers to them.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/dryserve/dryserve/internal/gen"
	"github.com/dryserve/dryserve/internal/oracle"
)

func main() {
	os.Exit(run())
}

func run() int {
	c := oracle.Campaign{Log: os.Stdout, Ours: oracle.Ours}
	venv := flag.String("venv", ".oracle", "virtual environment of the reference, unless ORACLE_PYTHON names an interpreter")
	corpus := flag.String("corpus", "", "record the reference's answers in this file instead of comparing")
	flag.StringVar(&c.Family, "family", "vllm", "kind of engine: "+strings.Join(gen.Families(), ", "))
	flag.Uint64Var(&c.Seed, "seed", uint64(time.Now().Unix()), "first seed")
	flag.IntVar(&c.Cases, "n", 1000, "number of cases")
	flag.IntVar(&c.Jobs, "jobs", 2, "processes of the reference")
	flag.DurationVar(&c.Timeout, "timeout", 2*time.Second, "time the reference has for a case")
	flag.StringVar(&c.Regressions, "regressions", "testdata/oracle/regressions", "folder for the cases that differ")
	flag.IntVar(&c.MaxFailures, "max-failures", 5, "stop after so many differences")
	flag.IntVar(&c.ShrinkSteps, "shrink", 600, "candidates tried to make a differing case small")
	flag.Parse()
	if flag.NArg() > 0 || c.Cases < 1 || c.Jobs < 1 || c.MaxFailures < 1 || c.Timeout <= 0 {
		fmt.Fprintln(os.Stderr, "oracle: want positive -n, -jobs, -timeout and -max-failures, and no other arguments")
		return 2
	}
	c.Python = oracle.PythonFromEnv(*venv)
	if c.Python == "" {
		fmt.Fprintf(os.Stderr, "oracle: there is no reference in %s; `make oracle` sets it up, or set ORACLE_PYTHON\n", *venv)
		return 1
	}
	fmt.Printf("seeds %d to %d\n", c.Seed, c.Seed+uint64(c.Cases)-1)
	tally, err := campaign(&c, *corpus)
	fmt.Println(tally)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "oracle:", err)
		return 1
	case tally.Failures > 0:
		return 1
	}
	return 0
}

func campaign(c *oracle.Campaign, corpus string) (oracle.Tally, error) {
	if corpus == "" {
		return c.Run()
	}
	f, err := os.Create(corpus + ".part")
	if err != nil {
		return oracle.Tally{}, err
	}
	defer os.Remove(f.Name())
	tally, err := c.WriteCorpus(f)
	if err != nil {
		f.Close()
		return tally, err
	}
	if err := f.Close(); err != nil {
		return tally, err
	}
	return tally, os.Rename(f.Name(), corpus)
}
