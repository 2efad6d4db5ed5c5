package gridfind

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/dryserve/dryserve/host/native/cliutil"
	"github.com/dryserve/dryserve/host/native/profile"
)

// Exporter makes a grid that is nowhere found, with Python's exporter
// (dryserve.export_grid, which asks an installed AIConfigurator), and keeps it.
type Exporter struct {
	Python string            // the interpreter
	Dir    string            // where grids are kept
	Say    func(text string) // hears that one is being made, which takes some seconds
}

// errNone is that the exporter is not installed, or does not make grids of that
// kind.
var errNone = errors.New("no exporter")

// Find returns the grid that was kept for an identity, or makes it.
func (e *Exporter) Find(id Identity) (File, error) {
	if len(id.sizes()) > 0 { // the exporter does not say these
		return File{}, errNone
	}
	at := filepath.Join(e.Dir, fileName(id))
	if g, err := profile.LoadGrid(at); err == nil && id.fits(g) {
		return File{at, g}, nil
	}
	if err := e.run("-c", "import dryserve.export_grid, aiconfigurator_core"); err != nil {
		return File{}, errNone
	}
	e.Say(fmt.Sprintf("no grid is for %s: %s -m dryserve.export_grid makes one, which is kept as %s", id, e.Python, at))
	if err := os.MkdirAll(e.Dir, 0o755); err != nil {
		return File{}, fmt.Errorf("%s cannot be made: %w", e.Dir, cliutil.Reason(err))
	}
	args := []string{"-m", "dryserve.export_grid", "--model", id.Model, "--system", id.System, "--backend", id.Backend, "--tp", fmt.Sprint(id.TP), "--out", at}
	if id.versioned() {
		args = append(args, "--backend-version", id.BackendVersion)
	}
	if err := e.run(args...); err != nil {
		return File{}, fmt.Errorf("no grid is for %s, and dryserve.export_grid makes none: %w", id, err)
	}
	g, err := profile.LoadGrid(at)
	switch {
	case err != nil:
		return File{}, err
	case !id.fits(g):
		return File{}, fmt.Errorf("dryserve.export_grid has made %s, which is not for %s", File{at, g}, id)
	}
	return File{at, g}, nil
}

// run runs Python; an error is the last line that it has said.
func (e *Exporter) run(args ...string) error {
	var said bytes.Buffer
	cmd := exec.CommandContext(context.Background(), e.Python, args...)
	cmd.Stderr = &said
	err := cmd.Run()
	if err == nil {
		return nil
	}
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	if last := strings.TrimPrefix(lines[len(lines)-1], "export_grid: "); last != "" {
		return errors.New(last)
	}
	return cliutil.Reason(err)
}

var odd = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// fileName is where the grid of an identity is kept.
func fileName(id Identity) string {
	version := ""
	if id.versioned() {
		version = "-" + id.BackendVersion
	}
	return odd.ReplaceAllString(fmt.Sprintf("%s-%s-%s%s-tp%d.json", path.Base(filepath.ToSlash(id.Model)), id.System, id.Backend, version, id.TP), "_")
}
