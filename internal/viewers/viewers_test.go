package viewers_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/dryserve/dryserve/internal/viewers"
)

var (
	program string // the built command
	tools   *viewers.Tools
)

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("left out: these tests install a browser and Perfetto's definitions")
		return
	}
	os.Exit(prepared(m))
}

func prepared(m *testing.M) int {
	dir, err := os.MkdirTemp("", "viewers-test")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "replay")
	build := exec.Command("go", "build", "-o", program, "../../cmd/replay")
	build.Stderr = os.Stderr
	if err = build.Run(); err == nil {
		tools, err = viewers.Get(".", "../../.tools")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// replay runs the program.
func replay(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
