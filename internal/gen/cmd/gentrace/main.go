// Command gentrace writes a conversation trace in Mooncake's format, the same
// bytes for the same arguments.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
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
	if err := write(*out, c); err != nil {
		fmt.Fprintln(os.Stderr, "gentrace:", err)
		os.Exit(1)
	}
}

// write makes the file beside its final name and renames it, so a failed run
// leaves nothing half-written.
func write(path string, c gen.ConversationConfig) error {
	f, err := os.Create(path + ".part")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := emit(f, c); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func emit(w io.Writer, c gen.ConversationConfig) error {
	b := bufio.NewWriter(w)
	enc := json.NewEncoder(b)
	err := gen.Conversation(c, func(row gen.Row) error { return enc.Encode(&row) })
	if err != nil {
		return err
	}
	return b.Flush()
}
