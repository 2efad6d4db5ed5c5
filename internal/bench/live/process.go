package live

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/dryserve/dryserve/host/native/live/discovery"
	"github.com/dryserve/dryserve/internal/freeport"
)

// modelName is what requests ask for.
const modelName = "m1"

// process is a program that runs in a group of its own.
type process struct {
	cmd  *exec.Cmd
	said bytes.Buffer
	over chan struct{}
}

// launch starts a program.
func launch(env []string, name string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(name, args...), over: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.said, &p.said
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait() // how it ends is no matter
		close(p.over)
	}()
	return p, nil
}

// kill ends the program and all that it started.
func (p *process) kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.over
}

// status reads a field of /proc, in kB.
func (p *process) status(field string) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, field+":"); ok {
			return strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
		}
	}
	return 0, fmt.Errorf("/proc has no %s", field)
}

// tick is the unit in which /proc counts processor time, on every Linux there
// is.
const tick = 10 * time.Millisecond

// cpu is the processor time that the program has had.
func (p *process) cpu() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	var sum time.Duration
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, err
		}
		sum += time.Duration(n) * tick
	}
	return sum, nil
}

// station is a worker behind a frontend of its own.
type station struct {
	name     string
	root     string // of the records
	address  string // of the frontend
	frontend *process
	worker   *process

	startMs        float64 // until all its records are there
	idleMB, usedMB float64
}

// environment keeps both programs on the loopback interface.
func environment(root, home string) []string {
	return []string{
		"DYN_FILE_KV=" + root, "DYN_DISCOVERY_BACKEND=file", "DYN_LOG=error", "DYN_TCP_RPC_HOST=127.0.0.1",
		"DYN_TCP_RESPONSE_STREAM_HOST=127.0.0.1", "DYN_EVENT_PLANE_HOST=127.0.0.1", "HOME=" + home, "HF_HUB_OFFLINE=1",
	}
}

// startFrontend starts the reference's frontend for a station.
func (s *station) startFrontend(python, mode, home string) error {
	port, err := freeport.Find()
	if err != nil {
		return err
	}
	s.address = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	s.frontend, err = launch(environment(s.root, home), python, "-m", "dynamo.frontend", "--http-host", "127.0.0.1", "--http-port", strconv.Itoa(port), "--router-mode", mode, "--discovery-backend", "file")
	return err
}

// startWorker starts the worker, waits for its records and for the frontend to
// serve its model.
func (s *station) startWorker(records int, home, command string, args ...string) (err error) {
	began := time.Now()
	if s.worker, err = launch(environment(s.root, home), command, args...); err != nil {
		return err
	}
	for s.records() < records {
		if err := s.patience(began); err != nil {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	s.startMs = ms(began)
	for !s.serves() {
		if err := s.patience(began); err != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}

// patience is an error once waiting has no sense any more.
func (s *station) patience(began time.Time) error {
	select {
	case <-s.worker.over:
		return fmt.Errorf("%s: the worker has ended: %s", s.name, s.worker.said.String())
	case <-s.frontend.over:
		return fmt.Errorf("%s: the frontend has ended: %s", s.name, s.frontend.said.String())
	default:
	}
	if time.Since(began) > time.Minute {
		return fmt.Errorf("%s: no model is served within a minute", s.name)
	}
	return nil
}

// records counts what is recorded, once a card is.
func (s *station) records() (n int) {
	for _, bucket := range []string{discovery.Instances, discovery.Cards, discovery.EventChannels, discovery.EventSources} {
		entries, err := os.ReadDir(filepath.Join(s.root, bucket))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return 0
		}
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), ".") {
				n++
			}
		}
	}
	return n
}

// serves reports whether the frontend has the model.
func (s *station) serves() bool {
	resp, err := http.Get("http://" + s.address + "/v1/models")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return err == nil && bytes.Contains(text, []byte(`"`+modelName+`"`))
}

// memory is the resident memory of the worker now, in MB.
func (s *station) memory() (float64, error) {
	kb, err := s.worker.status("VmRSS")
	return kb / 1024, err
}

func (s *station) close() {
	for _, p := range []*process{s.worker, s.frontend} {
		if p != nil {
			p.kill()
		}
	}
}

// writeModel writes the small model of a directory with words for the ids of
// answers, so that every token is visible.
func writeModel(from, to string) error {
	for _, name := range []string{"config.json", "tokenizer.json", "tokenizer_config.json"} {
		text, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return err
		}
		if name == "tokenizer.json" {
			if text, err = withWords(text); err != nil {
				return fmt.Errorf("%s: %w", filepath.Join(from, name), err)
			}
		}
		if err := os.WriteFile(filepath.Join(to, name), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func withWords(text []byte) ([]byte, error) {
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	model, ok := doc["model"].(map[string]any)
	if !ok {
		return nil, errors.New("no model")
	}
	vocab, ok := model["vocab"].(map[string]any)
	if !ok {
		return nil, errors.New("no vocabulary")
	}
	for i := 259; i < 2048; i++ {
		vocab[fmt.Sprint("Ġw", i)] = i
	}
	return json.Marshal(doc)
}
