package oracle

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/dryserve/dryserve/internal/gen"
)

//go:embed worker.py
var workerSource string

// Reference is a running Python process that answers cases. It serves one
// caller at a time.
type Reference struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	log tail
}

// StartReference starts the reference under the given Python interpreter and
// waits until it has loaded.
func StartReference(python string) (*Reference, error) {
	return startWorker(exec.Command(python, "-u", "-c", workerSource))
}

func startWorker(cmd *exec.Cmd) (*Reference, error) {
	r := &Reference{cmd: cmd}
	cmd.Stderr = &r.log
	var err error
	if r.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	r.out = bufio.NewReaderSize(out, 1<<16)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start the reference: %w", err)
	}
	var hello struct{ Ready bool }
	if err := r.read(&hello); err != nil || !hello.Ready {
		r.Close()
		return nil, fmt.Errorf("the reference does not load under %s: %s", cmd.Path, r.log.last())
	}
	return r, nil
}

// Close ends the process.
func (r *Reference) Close() {
	r.in.Close()
	r.cmd.Process.Kill()
	r.cmd.Wait()
}

// question is one line to the worker.
type question struct {
	Dir       string         `json:"dir"`
	Files     []string       `json:"files"`
	Synthetic map[string]any `json:"synthetic,omitempty"`
	Kwargs    map[string]any `json:"kwargs"`
	Scaling   *gen.Scaling   `json:"scaling,omitempty"`
	TimeoutS  float64        `json:"timeout_s"`
}

// reply is one line from the worker.
type reply struct {
	Report   map[string]any   `json:"report"`
	Requests []map[string]any `json:"requests"`
	Watched
	Error   string `json:"error"`
	Timeout bool   `json:"timeout"`
	Died    string `json:"died"`
}

// Ask runs a case whose trace stands in dir. The error means the worker
// itself is unusable, not that the reference refused the case.
func (r *Reference) Ask(dir string, c *gen.ReplayCase, timeout time.Duration) (Answer, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Answer{}, err
	}
	line, err := json.Marshal(question{dir, c.Files, c.Synthetic, c.Kwargs, c.Scaling, timeout.Seconds()})
	if err != nil {
		return Answer{}, err
	}
	if _, err := r.in.Write(append(line, '\n')); err != nil {
		return Answer{}, fmt.Errorf("the reference's process ended: %w (%s)", err, r.log.last())
	}
	var got reply
	if err := r.read(&got); err != nil {
		return Answer{}, err
	}
	// Messages name the trace by its full path, which differs from run to run.
	got.Error = strings.ReplaceAll(got.Error, dir+string(filepath.Separator), "")
	switch {
	case got.Timeout:
		return Answer{Outcome: NoEnd}, nil
	case got.Died != "":
		return Answer{Outcome: Crash, Error: got.Died}, nil
	case got.Error != "":
		return Answer{Outcome: classify(got.Error), Error: got.Error}, nil
	case got.Report == nil:
		return Answer{}, fmt.Errorf("the reference's worker answered neither a report nor an error")
	}
	return Answer{Report: got.Report, Requests: got.Requests, Watched: got.Watched}, nil
}

func (r *Reference) read(into any) error {
	line, err := r.out.ReadBytes('\n')
	if err != nil {
		r.Close() // its error stream is whole only then
		return fmt.Errorf("the reference's process ended: %w (%s)", err, r.log.last())
	}
	if err := json.Unmarshal(line, into); err != nil {
		return fmt.Errorf("the reference's worker answered %.80q: %w", line, err)
	}
	return nil
}

// tail keeps the end of a process's error stream.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailBytes = 4096

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if extra := len(t.text) - tailBytes; extra > 0 {
		t.text = append(t.text[:0], t.text[extra:]...)
	}
	return len(p), nil
}

// last is the last line that is not empty.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(t.text)), "\n")
	return lines[len(lines)-1]
}

// PythonFromEnv is the interpreter that has the reference: ORACLE_PYTHON, or
// the one setup.sh makes in the given directory. It is "" if there is none.
func PythonFromEnv(dir string) string {
	if p := os.Getenv("ORACLE_PYTHON"); p != "" {
		return p
	}
	p := filepath.Join(dir, "bin", "python")
	if _, err := os.Stat(p); err != nil {
		return ""
	}
	return p
}
