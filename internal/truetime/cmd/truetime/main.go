// Command truetime plays the beginning of a trace in real time against the live
// mocker, over HTTP, and compares the medians with those of a replay.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/dryserve/dryserve/internal/freeport"
	"github.com/dryserve/dryserve/internal/truetime"
)

func main() {
	os.Exit(run())
}

func run() int {
	bin := flag.String("bin", "bin", "directory of the programs replay and mocker")
	requests := flag.Int("requests", 60, "how many rows of the trace are played")
	workers := flag.String("workers", "1", "workers behind a round robin")
	limit := flag.Float64("limit", 2, "per cent by which the medians of TTFT and ITL may differ")
	flag.Parse()
	if flag.NArg() != 1 || *requests < 1 {
		fmt.Fprintln(os.Stderr, "truetime: want one trace and a positive -requests")
		return 2
	}
	list, err := measure(*bin, flag.Arg(0), *requests, *workers)
	if err != nil {
		fmt.Fprintln(os.Stderr, "truetime:", err)
		return 1
	}
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "median\treplay ms\tlive, by the client ms\tdifference %\tlive, by the mocker ms\t")
	for _, m := range list {
		fmt.Fprintf(t, "%s\t%.3f\t%.3f\t%+.2f\t%.3f\t\n", m.Name, m.Replay, m.Live, m.PerCent(), m.Served)
	}
	_ = t.Flush() // to standard output
	if !truetime.Within(list, *limit) {
		fmt.Fprintf(os.Stderr, "truetime: the medians of TTFT and ITL are to be within %v per cent\n", *limit)
		return 1
	}
	return 0
}

// measure runs both programs over the beginning of a trace.
func measure(bin, trace string, requests int, workers string) ([]truetime.Median, error) {
	rows, text, err := truetime.ReadRows(trace, requests)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "truetime")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	part, offline, live := filepath.Join(dir, "trace.jsonl"), filepath.Join(dir, "replay.json"), filepath.Join(dir, "live.json")
	if err := os.WriteFile(part, text, 0o600); err != nil {
		return nil, err
	}
	out, err := exec.Command(filepath.Join(bin, "replay"), part, "--num-workers", workers, "--report-json", offline).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("replay: %w: %s", err, out)
	}
	address, stop, err := serve(filepath.Join(bin, "mocker"), "--num-workers", workers, "--report-json", live, "--log-level", "warn")
	if err != nil {
		return nil, err
	}
	seen, lateMs, err := truetime.Play("http://"+address, "dynamo", rows)
	if stopped := stop(); err == nil {
		err = stopped
	}
	if err != nil {
		return nil, err
	}
	fmt.Printf("%d requests over %.1f s, sent at most %.2f ms late\n", len(rows), (rows[len(rows)-1].AtMs-rows[0].AtMs)/1000, lateMs)
	reports := [2][]byte{}
	for i, path := range []string{offline, live} {
		if reports[i], err = os.ReadFile(path); err != nil {
			return nil, err
		}
	}
	return truetime.Medians(seen, reports[0], reports[1])
}

// serve starts the mocker on a free port; stop ends it and waits.
func serve(program string, args ...string) (address string, stop func() error, err error) {
	port, err := freeport.Find()
	if err != nil {
		return "", nil, err
	}
	address = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	cmd := exec.Command(program, append([]string{"--http", address}, args...)...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	over := make(chan error, 1)
	go func() { over <- cmd.Wait() }()
	stop = func() error {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := <-over; err != nil {
			return fmt.Errorf("mocker: %w: %s", err, said.String())
		}
		return nil
	}
	for range 200 {
		resp, err := http.Get("http://" + address + "/health")
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			return address, stop, nil
		}
		time.Sleep(25 * time.Millisecond)
	}
	_ = stop()
	return "", nil, fmt.Errorf("mocker does not answer within five seconds: %s", said.String())
}
