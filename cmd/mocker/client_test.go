package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// clientVersion is the release of OpenAI's Python client that is tested.
const clientVersion = "3.57.0"

// offline is the variable that leaves out what needs the package index.
const offline = "DRYSERVE_OFFLINE"

// The official client works: chats, streams, errors, faults and time-outs. It
// is installed from the package index once, below .oracle.
func TestOfficialClient(t *testing.T) {
	python := pinnedPython(t, "openai", clientVersion)
	served, stop := launch(t, "--speedup-ratio", "1e9", "--block-size", "4", "--num-gpu-blocks-override", "8192", "--num-workers", "2", "--router-mode", "kv", "--log-level", "warn")
	defer stop()
	faulty, stop := launch(t, "--speedup-ratio", "1e9", "--fault-error-rate", "0.3", "--fault-error-status", "503", "--fault-disconnect-rate", "0.3", "--fault-seed", "1", "--log-level", "warn")
	defer stop()
	slow, stop := launch(t, "--speedup-ratio", "1e9", "--fault-stall-rate", "1", "--fault-stall-ms", "60000", "--log-level", "warn")
	defer stop()
	cmd := exec.Command(python, "testdata/client.py", "http://"+served, "http://"+faulty, "http://"+slow)
	out, err := cmd.CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "ok "+clientVersion {
		t.Errorf("%v: %s", err, out)
	}
}

// pinnedPython is a Python that has a package of the index in one version, below
// .oracle, where it is installed once.
func pinnedPython(t *testing.T, name, version string) string {
	t.Helper()
	if os.Getenv(offline) != "" {
		t.Skipf("%s is set: %s is not installed, and nothing tested with it", offline, name)
	}
	dir, err := filepath.Abs("../../.oracle/" + name + "-" + version)
	if err != nil {
		t.Fatal(err)
	}
	python := filepath.Join(dir, "bin", "python")
	done := filepath.Join(dir, "installed")
	if _, err := os.Stat(done); err == nil {
		return python
	} else if !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"python3", "-m", "venv", dir},
		{python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", name + "==" + version},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s; set %s to leave this test out", strings.Join(args, " "), err, out, offline)
		}
	}
	if err := os.WriteFile(done, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return python
}
