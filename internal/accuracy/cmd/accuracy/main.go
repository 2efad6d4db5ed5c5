// Command accuracy prints replays beside runs on real GPUs as a Markdown
// table: vLLM runs recorded by LLMServingSim and the table of benchmarks that
// aiconfigurator ships, predicted with the nearest of the given grids.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/dryserve/dryserve/host/native/profile"
	"github.com/dryserve/dryserve/internal/accuracy"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

type paths []string

func (p *paths) String() string     { return fmt.Sprint(*p) }
func (p *paths) Set(s string) error { *p = append(*p, s); return nil }

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("accuracy", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var grids, runs paths
	flags.Var(&grids, "grid", "grid file; repeat it, of equally near ones the first is taken")
	flags.Var(&runs, "run", "directory of a recorded vLLM run (meta.json, requests.jsonl); repeat it")
	silicon := flags.String("silicon", "", "table of benchmarks (CSV)")
	var filter accuracy.Filter
	flags.StringVar(&filter.Model, "model", "", "benchmarks of this model only")
	flags.StringVar(&filter.Backend, "backend", "", "benchmarks of this backend only")
	flags.StringVar(&filter.System, "system", "", "benchmarks of this system only")
	flags.IntVar(&filter.TP, "tp", 0, "benchmarks of this many GPUs only")
	var clients accuracy.Clients
	flags.IntVar(&clients.Waves, "waves", 10, "requests of each client of a benchmark")
	flags.Float64Var(&clients.Spread, "spread", 0, "vary a benchmark's output lengths by up to this share (0 to 0.9)")
	var engine accuracy.Engine
	flags.IntVar(&engine.BlockSize, "block-size", 0, "tokens per KV block (default: the backend's)")
	flags.IntVar(&engine.NumGPUBlocks, "num-gpu-blocks", 0, "KV blocks (default: the grid's capacity)")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	if len(grids) == 0 || len(runs) == 0 && *silicon == "" || clients.Waves < 1 || !(clients.Spread >= 0 && clients.Spread <= 0.9) || flags.NArg() > 0 {
		fmt.Fprintln(stderr, "accuracy: want one -grid or more, a -run or -silicon, positive -waves, a -spread from 0 to 0.9 and no other arguments")
		return 2
	}
	lines, err := compare(grids, runs, *silicon, filter, clients, engine, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "accuracy:", err)
		return 1
	}
	if len(lines) == 0 {
		fmt.Fprintln(stderr, "accuracy: no measurement fits the filter and a grid")
		return 1
	}
	fmt.Fprint(stdout, accuracy.Markdown(lines))
	return 0
}

func compare(gridPaths, runs []string, silicon string, filter accuracy.Filter, clients accuracy.Clients, engine accuracy.Engine, notes io.Writer) ([]accuracy.Line, error) {
	var grids []*profile.Grid
	for _, path := range gridPaths {
		g, err := profile.LoadGrid(path)
		if err != nil {
			return nil, err
		}
		grids = append(grids, g)
	}
	var cases []accuracy.Case
	for _, dir := range runs {
		c, err := accuracy.ReadRun(dir)
		if err != nil {
			return nil, err
		}
		cases = append(cases, c)
	}
	if silicon != "" {
		more, err := accuracy.ReadSilicon(silicon, filter, clients)
		if err != nil {
			return nil, err
		}
		cases = append(cases, more...)
	}
	var lines []accuracy.Line
	for _, c := range cases {
		g, ok := accuracy.Nearest(c, grids)
		if !ok {
			fmt.Fprintf(notes, "accuracy: no grid of %s for %s: %s left out\n", c.Model, c.Backend, c.Name)
			continue
		}
		more, err := accuracy.Compare(c, g, engine)
		if err != nil {
			fmt.Fprintf(notes, "accuracy: %v: left out\n", err)
			continue
		}
		lines = append(lines, more...)
	}
	return lines, nil
}
