// Command bench measures replays of this project's program and, if it is
// installed, of the reference, and prints the table.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/dryserve/dryserve/internal/bench"
	"github.com/dryserve/dryserve/internal/gen"
	"github.com/dryserve/dryserve/internal/oracle"
)

func main() {
	os.Exit(run())
}

func run() int {
	program := flag.String("program", "bin/replay", "this project's replay program")
	venv := flag.String("venv", ".oracle", "virtual environment of the reference, unless ORACLE_PYTHON names an interpreter")
	repeat := flag.Int("repeat", 3, "runs of each program per row")
	only := flag.String("only", "", "regular expression; only rows whose TRACE/WORKERS match")
	pack := flag.String("package", "", "Python interpreter that has this project's package; without it calls from Python are left out")
	alone := flag.Bool("alone", false, "do not run the reference")
	requests := flag.Int("validate", 1_000_000, "requests of the trace that `replay validate` reads; 0: none")
	generate := flag.String("generate", "", "write a trace FILE,REQUESTS,SEED,RATE and do nothing else")
	flag.Parse()
	filter, err := regexp.Compile(*only)
	if err != nil || flag.NArg() > 0 || *repeat < 1 {
		fmt.Fprintln(os.Stderr, "bench: want a positive -repeat, a valid -only and no other arguments")
		return 2
	}
	if *generate != "" {
		if err := write(*generate); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			return 1
		}
		return 0
	}
	programs := bench.Programs{Ours: *program, Python: oracle.PythonFromEnv(*venv), Package: *pack}
	switch {
	case *alone:
		programs.Python = ""
	case programs.Python == "":
		fmt.Println("the reference is not installed (`make oracle` installs it): only our own figures")
	}
	err = measure(programs, *repeat, filter)
	if err == nil && programs.Package != "" && filter.MatchString("first call") {
		err = firstCall(programs, *repeat)
	}
	if err == nil && *requests > 0 {
		err = reading(programs, *repeat, *requests)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	return 0
}

// firstCall measures what a call costs at the least: that of a small case.
func firstCall(programs bench.Programs, repeat int) error {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	trace, err := generated("small", 100, 7, 3.4)(dir)
	if err != nil {
		return err
	}
	first, err := programs.FirstCall(trace, dir, repeat)
	if err != nil {
		return err
	}
	bench.WriteFirstCall(os.Stdout, "100 requests", first)
	return nil
}

// reading measures how fast traces are read: the real one and a long one.
func reading(programs bench.Programs, repeat, requests int) error {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, t := range []struct {
		name string
		make func(dir string) (string, error)
	}{{"conversation", realTrace}, {fmt.Sprintf("of %d generated requests", requests), generated("long", requests, 5, 100)}} {
		trace, err := t.make(dir)
		if err != nil {
			return err
		}
		if trace == "" {
			continue
		}
		r, err := programs.Reading(trace, repeat)
		if err != nil {
			return err
		}
		bench.WriteReading(os.Stdout, t.name, r)
	}
	return nil
}

// row is a line of the table to be made.
type row struct {
	name    string
	trace   func(dir string) (string, error) // "" if there is none
	workers int
	engine  string
	router  string
	wasm    bool
	from    string // a call from Python, natively or in wasm
}

// engines are the other kinds of engine that are measured, each rank with room
// for a million tokens.
var engines = []struct{ name, args string }{
	{"4 ranks", `{"dp_size": 4, "engine": {"backend": "vllm"}}`},
	{"trtllm", `{"engine": {"backend": "trtllm", "block_size": 64}}`},
	{"sglang", `{"engine": {"backend": "sglang", "block_size": 64}}`},
	{"vllm drafts", `{"engine": {"aic_nextn": 3, "aic_nextn_accept_rates": "0.8,0.6,0.4"}}`},
	{"sglang page 1", `{"engine": {"backend": "sglang", "num_gpu_blocks": 1048576}}`},
}

func rows() []row {
	var list []row
	for _, workers := range []int{1, 4, 16} {
		list = append(list, row{name: "conversation", trace: realTrace, workers: workers},
			row{name: "conversation in wasm", trace: realTrace, workers: workers, wasm: true})
	}
	for _, workers := range []int{4, 16} {
		list = append(list, row{name: "conversation from Python", trace: realTrace, workers: workers, from: "native"},
			row{name: "conversation from Python in wasm", trace: realTrace, workers: workers, from: "wasm"})
	}
	for _, e := range engines {
		for _, workers := range []int{1, 4} {
			list = append(list, row{name: "conversation " + e.name, trace: realTrace, workers: workers, engine: e.args})
		}
	}
	for _, workers := range []int{1, 4, 16} {
		list = append(list, row{name: "conv12k", trace: generated("conv12k", 12_000, 1, 3.4), workers: workers})
	}
	list = append(list, row{name: "conversation kv_router", trace: realTrace, workers: 16, router: "kv_router"})
	conv100k := row{name: "conv100k", trace: generated("conv100k", 100_000, 3, 20), workers: 64}
	list = append(list, conv100k)
	conv100k.name, conv100k.router = "conv100k kv_router", "kv_router"
	return append(list, conv100k)
}

func measure(programs bench.Programs, repeat int, filter *regexp.Regexp) error {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var results []bench.Result
	differ := 0
	for _, row := range rows() {
		if row.from != "" && programs.Package == "" || !filter.MatchString(fmt.Sprintf("%s/%d", row.name, row.workers)) {
			continue
		}
		trace, err := row.trace(dir)
		if err != nil {
			return err
		}
		if trace == "" {
			fmt.Printf("%s with %d workers is left out: BENCH_TRACE names no file\n", row.name, row.workers)
			continue
		}
		job := bench.Job{Name: row.name, Trace: trace, Workers: row.workers, Engine: row.engine, Router: row.router, From: row.from}
		if row.wasm {
			job.Cache = filepath.Join(dir, "wasm")
		}
		result, err := programs.Measure(job, repeat)
		if err != nil {
			return fmt.Errorf("%s with %d workers: %w", row.name, row.workers, err)
		}
		for _, d := range result.Differences {
			fmt.Printf("%s with %d workers: %s\n", row.name, row.workers, d)
		}
		differ += len(result.Differences)
		results = append(results, result)
	}
	if err := bench.WriteTable(os.Stdout, results); err != nil {
		return err
	}
	bench.WriteSandbox(os.Stdout, results)
	bench.WriteImports(os.Stdout, results)
	if small, large := find(results, "conv12k"), find(results, "conv100k"); small != nil && large != nil {
		bench.WriteGrowth(os.Stdout, *small, *large)
	}
	if differ > 0 {
		return fmt.Errorf("the answers differ in %d fields; the times above compare different work", differ)
	}
	return nil
}

func find(results []bench.Result, name string) *bench.Result {
	for i := range results {
		if results[i].Name == name {
			return &results[i]
		}
	}
	return nil
}

// realTrace is the trace BENCH_TRACE names, if it exists.
func realTrace(string) (string, error) {
	path := os.Getenv("BENCH_TRACE")
	if _, err := os.Stat(path); path == "" || err != nil {
		return "", nil
	}
	return path, nil
}

// generated makes a conversation trace once: by the program BENCH_GEN names,
// or by ours. Ours runs in another process, because the memory this one has
// used hides the peaks of those it measures.
func generated(name string, requests int, seed uint64, rate float64) func(string) (string, error) {
	return func(dir string) (string, error) {
		path := filepath.Join(dir, name+".jsonl")
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
		self, err := os.Executable()
		if err != nil {
			return "", err
		}
		cmd := exec.Command(self, "-generate", fmt.Sprintf("%s,%d,%d,%g", path, requests, seed, rate))
		if program := os.Getenv("BENCH_GEN"); program != "" {
			cmd = exec.Command("python3", program, path, "--requests", strconv.Itoa(requests),
				"--seed", strconv.FormatUint(seed, 10), "--rate", strconv.FormatFloat(rate, 'g', -1, 64))
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, out)
		}
		return path, nil
	}
}

// write makes the trace of a -generate argument.
func write(argument string) error {
	fields := strings.Split(argument, ",")
	if len(fields) != 4 {
		return fmt.Errorf("-generate is %q; it must be FILE,REQUESTS,SEED,RATE", argument)
	}
	c := gen.ConversationConfig{Groups: 50}
	if _, err := fmt.Sscan(strings.Join(fields[1:], " "), &c.Requests, &c.Seed, &c.Rate); err != nil {
		return fmt.Errorf("-generate is %q: %w", argument, err)
	}
	return gen.WriteConversation(fields[0], c)
}
