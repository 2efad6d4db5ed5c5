// Command gentrace writes a conversation trace in Mooncake's format, the same
// bytes for the same arguments.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/dryserve/dryserve/internal/gen"
)

func main() {
	c := gen.ConversationConfig{}
	flag.IntVar(&c.Requests, "requests", 0, "number of requests (required)")
	flag.Uint64Var(&c.Seed, "seed", 1, "seed of the random stream")
	flag.Float64Var(&c.Rate, "rate", 3.4, "mean arrivals per second")
	flag.IntVar(&c.Groups, "groups", 50, "number of distinct system prompts")
	out := flag.String("out", "", "file to write (required)")
	flag.Parse()
	if flag.NArg() > 0 || *out == "" || c.Requests < 1 {
		fmt.Fprintln(os.Stderr, "gentrace: want -requests N (1 or more) and -out FILE, and no other arguments")
		os.Exit(2)
	}
	if err := gen.WriteConversation(*out, c); err != nil {
		fmt.Fprintln(os.Stderr, "gentrace:", err)
		os.Exit(1)
	}
}
