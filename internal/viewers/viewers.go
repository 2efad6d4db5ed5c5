// Package viewers looks at pictures of runs with what people look at them with:
// pages with a browser, timelines with Perfetto's own message definitions.
//
// It owns how these tools are got (setup.sh, browser.sh, pinned where a registry pins) and
// asked (look.mjs, read_trace.py). It does not own what is right; its tests say.
//
// Invariant: where a tool cannot be had a test fails. It is left out by
// go test -short only, on machines without a package index.
package viewers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Tools are the installed viewers.
type Tools struct{ dir, source, browser string }

// Get installs what is missing in dir; source is the directory of this package.
func Get(source, dir string) (*Tools, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if _, err := output("bash", filepath.Join(source, "setup.sh"), dir); err != nil {
		return nil, err
	}
	browser, err := os.ReadFile(filepath.Join(dir, "browser"))
	return &Tools{dir, source, strings.TrimSpace(string(browser))}, err
}

// Firefox installs it if there is none, and returns its path; source and dir are as for Get.
func Firefox(source, dir string) (string, error) {
	out, err := output("bash", filepath.Join(source, "browser.sh"), dir, "firefox-esr", "FIREFOX", "firefox")
	return strings.TrimSpace(string(out)), err
}

// Browser is the path of the browser.
func (t *Tools) Browser() string { return t.browser }

// patience is how long a tool may take. Installing one may take a while.
const patience = 8 * time.Minute

// output runs a command; its error holds what the command said.
func output(name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil, fmt.Errorf("%s: %w: %s", name, err, exit.Stderr)
	}
	return out, err
}

// Look opens a page and puts screenshots into dir.
func (t *Tools) Look(page, dir string) (*Seen, error) {
	out, err := output("node", filepath.Join(t.source, "look.mjs"), t.browser, page, dir, t.dir)
	if err != nil {
		return nil, err
	}
	s := &Seen{}
	return s, json.Unmarshal(out, s)
}

// Seen is what a browser saw of a page.
type Seen struct {
	Version string
	Views   []View
	Keys    Keys
}

// View is a page at one width and in one scheme, light or dark.
type View struct {
	Width     int
	Scheme    string
	Shot      string   // path of the screenshot of the whole page
	Told      []string // console messages, errors, requests
	Title     string
	PageWidth int // px, more than Width if one has to scroll sideways
	Paper     string
	Ink       string
	Cards     [][2]string
	Figures   []SeenFigure
}

// SeenFigure is a figure of a page. Boxes are left, top, width, height in px.
type SeenFigure struct {
	ID, Title, Label string
	Box              [4]int
	Stage, Canvas    *[4]int
	Series           []struct {
		Length       float64
		Colour, Dash string
	}
	Rows     int
	Overflow []string // labels that are cut off
}

// Keys is what walking through a page by keys gave.
type Keys struct {
	Told     []string
	Stops    [][]any // tag, figure, role and, of a plot, what its cursor told
	Numbers  int     // rows of the table below a figure
	Down, Up []string
	Lines    [2]int // before and after one is hidden
	Choices  []Choice
}

// Choice is what a figure draws with one of its choices.
type Choice struct {
	Name                          string
	Line                          string // of the front: the path
	Front, Outside, Points, Marks int
}

// ReadTrace reads a timeline.
func (t *Tools) ReadTrace(path string) (*Trace, error) {
	python := filepath.Join(t.dir, "venv", "bin", "python")
	out, err := output(python, filepath.Join(t.source, "read_trace.py"), path)
	if err != nil {
		return nil, err
	}
	s := &Trace{}
	return s, json.Unmarshal(out, s)
}

// Trace is what a timeline says.
type Trace struct {
	Tracks   map[int64]Track
	Slices   []Slice
	Counters [][3]int64 // track, time in ns, value
}

// Track is a row of a timeline.
type Track struct {
	Name, Kind, Unit string
	Parent, PID      int64
}

// Slice is a stretch of time on a track, in ns.
type Slice struct {
	Track int64
	Name  string
	Depth int
	Begin int64
	End   *int64
	Args  map[string]any
}
