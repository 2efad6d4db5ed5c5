package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/internal/corewasm"
)

// program is the built command, with core.wasm in it.
var program string

// sandbox are the arguments that move a run into WebAssembly.
var sandbox []string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "replay-test")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if _, err := corewasm.Build("../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	program = filepath.Join(dir, "replay")
	sandbox = []string{"--engine", "wasm", "--wasm-cache", filepath.Join(dir, "wasm")}
	build := exec.Command("go", "build", "-trimpath", "-o", program, ".")
	build.Stderr = os.Stderr
	status := 1
	if err := build.Run(); err == nil {
		status = m.Run()
	}
	os.RemoveAll(dir)
	os.Exit(status)
}

// outcome is what one run of the program left.
type outcome struct {
	status         int
	stdout, stderr string
}

// invoke runs the program in dir.
func invoke(t *testing.T, dir string, args ...string) outcome {
	t.Helper()
	return finish(t, command(dir, args...))
}

func command(dir string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	return cmd
}

func finish(t *testing.T, cmd *exec.Cmd) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &stdout
	}
	cmd.Stderr = &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// tree lists every file below dir with its size.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			fmt.Fprintf(&b, "%s %d\n", strings.TrimPrefix(path, dir), info.Size())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// one is a trace of one request.
const one = `{"timestamp":0,"input_length":10,"output_length":2,"hash_ids":[1]}` + "\n"
