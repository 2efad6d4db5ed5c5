//go:build unix

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dryserve/dryserve/internal/stand"
)

// crowd is how many connections are open at once.
const crowd = 10_000

// Ten thousand clients at once, each with a connection of its own and a stream that
// it reads only when all have asked: each gets its answer, whole, and the server
// still serves others.
func TestCrowd(t *testing.T) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if limit.Max < crowd+1000 {
		t.Skipf("the hard limit of open files is %d; %d are needed for %d connections (ulimit -Hn)", limit.Max, crowd+1000, crowd)
	}
	limit.Cur = limit.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	address, process := separate(t, "--speedup-ratio", "1e9", "--num-workers", "2", "--log-level", "warn")
	conns := make([]net.Conn, crowd)
	defer func() {
		for _, c := range conns {
			if c != nil {
				_ = c.Close()
			}
		}
	}()
	each(t, func(i int) error {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		conns[i] = conn
		body := fmt.Sprintf(`{"model":"dynamo","prompt":"%05d","max_tokens":4,"stream":true}`, i)
		_, err = fmt.Fprintf(conn, "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		return err
	})
	t.Logf("%d kB of memory with %d connections", resident(process), crowd)
	resp, err := http.Get("http://" + address + "/health")
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("beside the crowd: %v", err)
	}
	_ = resp.Body.Close()
	each(t, func(i int) error {
		_ = conns[i].SetReadDeadline(time.Now().Add(60 * time.Second))
		resp, err := http.ReadResponse(bufio.NewReader(conns[i]), nil)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != 200 || bytes.Count(text, []byte("data: ")) != 6 || !bytes.HasSuffix(text, []byte("data: [DONE]\n\n")) {
			return fmt.Errorf("status %d, %v: %s", resp.StatusCode, err, text)
		}
		return nil
	})
}

// each does something for each of the crowd, a few hundred at a time.
func each(t *testing.T, do func(i int) error) {
	t.Helper()
	var next atomic.Int64
	var all sync.WaitGroup
	failed := make(chan error, 256)
	for range cap(failed) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < crowd; i = int(next.Add(1)) - 1 {
				if err := do(i); err != nil {
					failed <- fmt.Errorf("client %d: %w", i, err)
					return
				}
			}
		})
	}
	all.Wait()
	select {
	case err := <-failed:
		t.Fatal(err)
	default:
	}
}

// separate runs the program by itself and waits for its port.
func separate(t *testing.T, args ...string) (address string, process *os.Process) {
	t.Helper()
	address = net.JoinHostPort("127.0.0.1", strconv.Itoa(stand.Port(t)))
	cmd := exec.Command(program(t), append([]string{"--http", address}, args...)...)
	var said log
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil || strings.Contains(said.String(), "panic") {
			t.Errorf("%v: %s", err, said.String())
		}
	})
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if resp, err := http.Get("http://" + address + "/health"); err == nil {
			_ = resp.Body.Close()
			return address, cmd.Process
		}
	}
	t.Fatalf("it does not answer: %s", said.String())
	return "", nil
}

// resident is the memory of a process in kB, 0 where the system does not say.
func resident(p *os.Process) (kb int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			_, _ = fmt.Sscanf(strings.TrimSpace(rest), "%d", &kb)
		}
	}
	return kb
}
