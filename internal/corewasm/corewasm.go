// Package corewasm builds core.wasm where the rest of the repository expects
// it, for make and for tests.
//
// It owns the build's flags and the file's place. It does not own what is in
// it (host/wasm/guest) nor how it is carried (host/wasm).
//
// Invariants: a file that is up to date stays untouched; a new one appears
// whole, so that several builds at the same time do no harm.
package corewasm

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Path is where core.wasm belongs, from the repository's root.
const Path = "host/wasm/binary/core.wasm"

// Build brings core.wasm below root up to date and returns its path.
func Build(root string) (string, error) {
	target := filepath.Join(root, filepath.FromSlash(Path))
	dir, err := os.MkdirTemp("", "corewasm")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	core, err := compile(root, dir)
	if err != nil {
		return "", err
	}
	if slimmable(linker()) {
		if core, err = Slim(core); err != nil {
			return "", err
		}
	}
	return target, replace(target, core)
}

// linker is the version of Go that builds, such as go1.26.8; "" if it does not
// say.
func linker() string {
	out, err := exec.Command("go", "env", "GOVERSION").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// slimmable reports whether Slim is tested with a version of Go. Others may lay
// out their tables in another way; what they link stays as it is, and larger.
func slimmable(version string) bool {
	return version == "go1.26" || strings.HasPrefix(version, "go1.26.")
}

// compile is the module as the linker makes it, by way of a file in dir.
func compile(root, dir string) ([]byte, error) {
	fresh := filepath.Join(dir, "core.wasm")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-buildmode=c-shared", "-ldflags=-s -w", "-o", fresh, "./host/wasm/guest/reactor")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=", "GOWASM=", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building core.wasm: %w\n%s", err, out)
	}
	return os.ReadFile(fresh)
}

// replace writes a file unless it already has this content.
func replace(path string, content []byte) error {
	old, err := os.ReadFile(path)
	if err == nil && bytes.Equal(old, content) {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	part, err := os.CreateTemp(filepath.Dir(path), ".core-*.part")
	if err != nil {
		return err
	}
	_, err = part.Write(content)
	err = errors.Join(err, part.Chmod(0o644), part.Close())
	if err == nil {
		err = os.Rename(part.Name(), path)
	}
	if err != nil {
		os.Remove(part.Name())
	}
	return err
}
