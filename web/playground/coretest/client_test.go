package coretest

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"
)

// The types of the sources are right, as strictly as they can be.
func TestTypes(t *testing.T) {
	tools, err := filepath.Abs(root + "/.tools/coretest")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("bash", "setup.sh", tools).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := exec.Command(filepath.Join(tools, "node_modules", ".bin", "tsc"), "-p", ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// A pool of workers: runs at the same time, cancelled ones, progress, a worker
// that stops, and one that never comes.
func TestClient(t *testing.T) {
	var told struct{ Checks int }
	if err := json.Unmarshal(node(t, "client.mjs", core, root+"/examples/conversation-2k.jsonl"), &told); err != nil {
		t.Fatal(err)
	}
	if told.Checks < 20 {
		t.Errorf("only %d checks", told.Checks)
	}
}
