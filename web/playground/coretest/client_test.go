package coretest

import (
	"encoding/json"
	"testing"
)

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
