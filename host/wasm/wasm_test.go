package wasm_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/internal/corewasm"
)

// Node's answers are the recorded ones, byte for byte.
func TestNode(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("no node")
	}
	core, err := corewasm.Build("../..")
	if err != nil {
		t.Fatal(err)
	}
	var out, errs strings.Builder
	cmd := exec.Command(node, "--no-warnings", "testdata/dialogue.mjs", core, "../../testdata/frames/dialogue.txt")
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	var calls int
	if _, err := fmt.Sscanf(out.String(), "%d calls", &calls); err != nil || calls < 30 {
		t.Errorf("%s, %v", out.String(), err)
	}
}
