package main

import (
	"fmt"
	"io"
	"runtime"
	"strings"
)

// version is set when a release is built.
var version = "dev"

// reference is the release whose behaviour this one follows.
const reference = "ai-dynamo 1.6.1"

const helpHead = `Usage: replay [flags] TRACE
       replay [flags] --input-tokens N --output-tokens N --request-count N
       replay COMMAND [flags]

Replays a request trace, or a synthetic workload, on simulated inference
engines, without a GPU, and prints the latencies and throughput that a fleet
of them would have.
TRACE is a file of requests: Mooncake JSON lines or another format, told by
its beginning (docs/traces.md).
Results match ` + reference + `.
`

const helpTail = `
Results go to standard output, everything else to standard error. Exit status:
0 the replay ran, 1 a file, a value or the run failed, 2 the command line is
wrong or asks for what is not built yet, 130 interrupted.

Examples:
  replay trace.jsonl
  replay trace.jsonl --num-workers 4 \
    --extra-engine-args '{"engine": {"block_size": 16, "num_gpu_blocks": 2048}}'
  replay trace.jsonl --replay-concurrency 32 --sla-ttft-ms 200 --sla-itl-ms 25 \
    --report-json reports/ --report-jsonl requests.jsonl
  replay trace.jsonl --extra-engine-args engine.json --arrival-speedup-ratio 2
  replay agents/ --execution-model m --agentic-lanes 4
  replay part-*.jsonl.gz --trace-format dynamo
  replay trace.jsonl --replay-mode online --arrival-speedup-ratio 10
  replay --input-tokens 2000 --output-tokens 200 --request-count 1000 --request-rate 4
  replay --input-tokens 4000 --output-tokens 100 --request-count 200 \
    --turns-per-session 3 --inter-turn-delay-ms 5000 --shared-prefix-ratio 0.5 \
    --num-prefix-groups 10 --replay-concurrency 16
`

const helpWidth = 100

// printHelp writes the flags by topic, then the names that are refused.
func printHelp(w io.Writer) error {
	var b strings.Builder
	b.WriteString(helpHead + "\nCommands (replay COMMAND --help tells more):\n")
	for _, c := range commands() {
		b.WriteString(fmt.Sprintf("  %-12s%s\n", c.name, c.summary))
	}
	for _, g := range flagGroups(&options{}) {
		b.WriteString("\n" + g.title + ":\n")
		b.WriteString(g.flags.FlagUsagesWrapped(helpWidth))
	}
	b.WriteString("\nNot built yet (accepted only with their defaults):\n")
	for _, l := range laterFlags {
		line := "  " + l.feature + ":"
		for _, n := range l.names {
			name, _, _ := strings.Cut(n, "=")
			if len(line)+len(name)+3 > helpWidth {
				b.WriteString(line + "\n")
				line = "   "
			}
			line += " --" + name
		}
		b.WriteString(line + "\n")
	}
	b.WriteString(helpTail)
	_, err := io.WriteString(w, b.String())
	return err
}

func printVersion(w io.Writer) error {
	_, err := io.WriteString(w, "replay (Dryserve) "+version+", "+runtime.Version()+" "+runtime.GOOS+"/"+runtime.GOARCH+", follows "+reference+"\n")
	return err
}
