package corewasm

import (
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The budget of core.wasm in bytes. About 1.82 MB, 0.54 MB compressed, is the
// Go runtime, which is the least a Go module can have.
const (
	maxBytes   = 4_500_000
	maxGzipped = 1_245_000
)

func TestSize(t *testing.T) {
	path, err := Build("../..")
	if err != nil {
		t.Fatal(err)
	}
	core, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var zipped bytes.Buffer
	w, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(core); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes, %d gzipped", len(core), zipped.Len())
	if len(core) > maxBytes || zipped.Len() > maxGzipped {
		t.Errorf("core.wasm has %d bytes, %d gzipped; at most %d and %d are allowed", len(core), zipped.Len(), maxBytes, maxGzipped)
	}
	if bytes.Contains(core, []byte(os.Getenv("HOME")+"/")) && len(os.Getenv("HOME")) > 3 {
		t.Error("core.wasm names a path of this machine")
	}
}

// Packages that make core.wasm large, or have no place in a guest.
var banned = []string{
	"bufio", "bytes", "context", "encoding/base64", "encoding/json", "fmt", "io/fs", "log", "net", "os", "regexp", "runtime/debug",
	"sort", "strings", "syscall/js", "time",
}

func TestImports(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "./host/wasm/guest/reactor")
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(string(out))
	if !slices.Contains(packages, "github.com/dryserve/dryserve/host/wasm/guest") {
		t.Fatalf("the list has no guest: %v", packages)
	}
	for _, p := range packages {
		host, _, _ := strings.Cut(strings.TrimPrefix(p, "github.com/dryserve/dryserve/"), "/")
		if slices.Contains(banned, p) || strings.Contains(p, ".") && host != "core" && !strings.HasPrefix(p, "github.com/dryserve/dryserve/host/wasm/") && p != "github.com/zeebo/xxh3" {
			t.Errorf("core.wasm contains package %s", p)
		}
	}
}

// An up-to-date file stays, a stale one is replaced.
func TestReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "core.wasm")
	for _, content := range []string{"one", "two"} {
		if err := replace(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
		before, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := replace(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
		after, err := os.Stat(path)
		if got, _ := os.ReadFile(path); err != nil || string(got) != content || !os.SameFile(before, after) {
			t.Errorf("%q, %v", got, err)
		}
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("files left over: %v", left)
	}
}
