// Package stand runs what live workers are tested with: Dynamo's own frontend, etcd
// and nats-server.
//
// It owns how these programs are found, started, stopped and asked. It does not own
// what is right; the tests that use it say.
//
// Invariants: nothing outlives its test; where `make test` has installed the
// programs, one that is missing fails a test. Only go test by itself, on a machine
// without them, leaves such tests out.
package stand

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dryserve/dryserve/internal/freeport"
)

// Required is the variable by which `make test` says that nothing may be missing.
const Required = "LIVE_PROGRAMS"

// Long is how long anything may take on a machine that does much else.
const Long = 90 * time.Second

// root is the repository.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
	}
	t.Fatal("the tests do not run in the repository")
	return ""
}

// missing ends a test that lacks a program.
func missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv(Required) == "required" {
		t.Fatalf("%s is not there: internal/stand/setup.sh .oracle, which make test has run, could not install it and has said why", what)
	}
	t.Skipf("%s is not there: internal/stand/setup.sh .oracle installs it; it is not tested with", what)
}

// Python is one that has ai-dynamo.
func Python(t testing.TB) string {
	t.Helper()
	path := os.Getenv("ORACLE_PYTHON")
	if path == "" {
		path = filepath.Join(root(t), ".oracle/bin/python")
	}
	if _, err := exec.LookPath(path); err != nil {
		missing(t, "the reference (a Python with ai-dynamo 1.6.1)")
	}
	return path
}

// server is the path of a program.
func server(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(root(t), ".oracle/bin", name)
	if _, err := exec.LookPath(path); err == nil {
		return path
	}
	missing(t, name)
	return ""
}

// Port is one that nobody uses.
func Port(t testing.TB) int {
	t.Helper()
	port, err := freeport.Find()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// Program is a process that a test can end and start again.
type Program struct {
	t    testing.TB
	Name string
	args []string
	env  []string
	said *said

	mu  sync.Mutex
	cmd *exec.Cmd
}

// said keeps what processes say.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	const most = 20_000
	b := s.text.Bytes()
	return string(b[max(0, len(b)-most):])
}

// Run starts a program with variables besides those of the test. It is killed at
// the end of the test at the latest; what it said is told if the test has failed.
func Run(t testing.TB, env []string, path string, args ...string) *Program {
	t.Helper()
	p := &Program{t: t, Name: filepath.Base(path), args: append([]string{path}, args...), env: env, said: &said{}}
	p.Start()
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("%s said:\n%s", p.Name, p.said)
		}
	})
	return p
}

// Start starts it, again.
func (p *Program) Start() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cmd = exec.Command(p.args[0], p.args[1:]...)
	p.cmd.Env = append(os.Environ(), p.env...)
	p.cmd.Stdout, p.cmd.Stderr = p.said, p.said
	own(p.cmd)
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
}

// Kill ends it at once, as a machine that fails does.
func (p *Program) Kill() { p.end(syscall.SIGKILL) }

// Stop lets it end by itself.
func (p *Program) Stop() { p.end(syscall.SIGTERM) }

func (p *Program) end(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return
	}
	_ = signalGroup(p.cmd, s)
	done := make(chan struct{})
	go func() {
		select {
		case <-done:
		case <-time.After(Long):
			_ = signalGroup(p.cmd, syscall.SIGKILL)
		}
	}()
	_ = p.cmd.Wait()
	close(done)
	p.cmd = nil
}

// Signal sends a signal to it alone.
func (p *Program) Signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		_ = p.cmd.Process.Signal(s)
	}
}

// Said is what it has said so far.
func (p *Program) Said() string { return p.said.String() }

// Pid is its process.
func (p *Program) Pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

// Until waits for something, and fails the test if it does not come.
func Until(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(Long); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Fatalf("this does not come: %s", what)
}

// Server is etcd or nats-server on a port of its own.
type Server struct {
	*Program
	Address string // host:port
	data    string
	health  string // a page that is there once etcd serves; one that is killed before does not start again
}

// answers reports whether it serves.
func (s *Server) answers() bool {
	if s.health != "" {
		resp, err := client.Get(s.health)
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}
	conn, err := net.DialTimeout("tcp", s.Address, time.Second)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// Start starts it, again, and waits until it serves.
func (s *Server) Start() {
	s.t.Helper()
	s.Program.Start()
	Until(s.t, s.Name+" serves", s.answers)
}

// Forget removes what it has kept, while it is stopped.
func (s *Server) Forget() {
	s.t.Helper()
	if err := os.RemoveAll(s.data); err != nil {
		s.t.Fatal(err)
	}
}

// Etcd starts a cluster of one.
func Etcd(t testing.TB) *Server { return etcd(t, "http") }

// EtcdTLS starts one that clients must show a certificate.
func EtcdTLS(t testing.TB, certificate, key string) *Server {
	return etcd(t, "https", "--cert-file", certificate, "--key-file", key, "--trusted-ca-file", certificate, "--client-cert-auth")
}

func etcd(t testing.TB, scheme string, args ...string) *Server {
	t.Helper()
	path, client, peer := server(t, "etcd"), Port(t), Port(t)
	s := &Server{Address: "127.0.0.1:" + strconv.Itoa(client), data: filepath.Join(t.TempDir(), "data")}
	metrics := fmt.Sprint("http://127.0.0.1:", Port(t))
	s.health = metrics + "/health"
	own, other := scheme+"://"+s.Address, fmt.Sprint("http://127.0.0.1:", peer)
	if strings.HasPrefix(path, root(t)) {
		args = append(args, "--unsafe-no-fsync") // releases before 3.5 have not got it
	}
	s.Program = Run(t, nil, path, append([]string{"--name", "x", "--data-dir", s.data, "--listen-client-urls", own, "--advertise-client-urls", own,
		"--listen-peer-urls", other, "--initial-advertise-peer-urls", other, "--initial-cluster", "x=" + other, "--listen-metrics-urls", metrics, "--log-level", "error"}, args...)...)
	Until(t, "etcd serves", s.answers)
	return s
}

// NATS starts a server.
func NATS(t testing.TB, args ...string) *Server {
	t.Helper()
	path, port := server(t, "nats-server"), Port(t)
	s := &Server{Address: "127.0.0.1:" + strconv.Itoa(port)}
	s.Program = Run(t, nil, path, append([]string{"-a", "127.0.0.1", "-p", strconv.Itoa(port)}, args...)...)
	Until(t, "nats-server serves", s.answers)
	return s
}
