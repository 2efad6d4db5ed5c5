//go:build unix

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// BenchmarkCompletions is the throughput of the whole server at infinite speed:
// 256 clients at once on the loopback interface, 8 tokens each, the clients on
// the same processors.
func BenchmarkCompletions(b *testing.B) {
	for _, c := range []struct {
		name string
		args []string
		body string
	}{
		{"whole", nil, `{"model":"dynamo","prompt":"%06d Some sixty-four bytes of prompt, as text, to be tokens..","max_tokens":8}`},
		{"stream", nil, `{"model":"dynamo","prompt":"%06d Some sixty-four bytes of prompt, as text, to be tokens..","max_tokens":8,"stream":true}`},
		{"kv-4-workers", []string{"--num-workers", "4", "--router-mode", "kv"}, `{"model":"dynamo","prompt":"%06d Some sixty-four bytes of prompt, as text, to be tokens..","max_tokens":8}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			address, stop := launch(b, append([]string{"--speedup-ratio", "1e9", "--log-level", "warn"}, c.args...)...)
			defer stop()
			const clients = 256
			var next atomic.Int64
			var all sync.WaitGroup
			b.ResetTimer()
			before := cpu()
			for range clients {
				all.Go(func() {
					conn, err := net.Dial("tcp", address)
					if err != nil {
						b.Error(err)
						return
					}
					defer conn.Close()
					r := bufio.NewReaderSize(conn, 8<<10)
					var buf []byte
					for {
						n := next.Add(1)
						if n > int64(b.N) {
							return
						}
						body := fmt.Sprintf(c.body, n)
						buf = append(buf[:0], "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: "...)
						buf = strconv.AppendInt(buf, int64(len(body)), 10)
						buf = append(append(buf, "\r\n\r\n"...), body...)
						if _, err := conn.Write(buf); err != nil {
							b.Error(err)
							return
						}
						if err := answered(r); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "completions/s")
			b.ReportMetric(float64((cpu()-before).Microseconds())/float64(b.N), "cpu-µs/completion")
		})
	}
}

// cpu is the processor time that this process has had, clients included. On a
// machine with other work it says more than the clock.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// answered reads one answer and looks at its usage or its end.
func answered(r *bufio.Reader) error {
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != 200 || !bytes.Contains(text, []byte(`"completion_tokens":8`)) && bytes.Count(text, []byte("data: ")) != 10 {
		return fmt.Errorf("status %d: %s", resp.StatusCode, text)
	}
	return nil
}

// BenchmarkStart is the time from nothing to a port that answers, without the
// process around it.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		began := time.Now()
		address, stop := launch(b, "--log-level", "warn")
		resp, err := http.Get("http://" + address + "/health")
		if err != nil || resp.StatusCode != 200 {
			b.Fatal(err)
		}
		_ = resp.Body.Close()
		b.ReportMetric(float64(time.Since(began).Microseconds())/1000, "ms")
		stop()
	}
}
