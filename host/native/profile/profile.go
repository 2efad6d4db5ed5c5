// Package profile loads where pass durations come from: profiles in NumPy
// archives, results of the reference's profiler, and grids in JSON.
//
// It owns those file formats and turns them into the tables of core/config.
// It does not own look-up (core/timing does) nor the flags and engine
// arguments that name the files.
//
// Invariants: a table that is returned has passed its check; nothing is
// guessed: what is missing, of another type or of another shape is refused.
// Every error is one sentence that names the file, the array or field, what
// was found and what is accepted.
//
// Source of behaviour: engine notes §8.5 for profiles; grids are our own.
package profile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/cliutil"
	"github.com/dryserve/dryserve/host/native/npz"
)

// accepted ends sentences about files that are nothing we know.
const accepted = "a .npz profile, a profiler's results directory or a grid in JSON is accepted"

// Source is what was loaded.
type Source struct {
	Timing config.Timing // of kind Profile or Grid, with its table
	Grid   *Grid         // what else a grid says; nil for profiles
}

// Load loads a profile, a profiler's results or a grid, told apart by what
// stands at path and not by its name.
func Load(path string) (Source, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Source{}, fmt.Errorf("%s: no such file or directory; %s", path, accepted)
	case err != nil:
		return Source{}, fmt.Errorf("%s: cannot be opened: %w", path, cliutil.Reason(err))
	case info.IsDir():
		p, err := LoadResults(path)
		return ofProfile(p, err)
	case !info.Mode().IsRegular():
		return Source{}, fmt.Errorf("%s: is no regular file; %s", path, accepted)
	}
	head, err := readHead(path)
	if err != nil {
		return Source{}, err
	}
	switch kind(head) {
	case archiveFile:
		p, err := LoadNPZ(path)
		return ofProfile(p, err)
	case jsonFile:
		g, err := LoadGrid(path)
		return ofGrid(g, err)
	}
	return Source{}, unknown(path, head)
}

// Parse is Load for a file in memory, which name names in sentences.
func Parse(name string, data []byte) (Source, error) {
	switch kind(data) {
	case archiveFile:
		a, err := npz.Parse(name, data)
		if err != nil {
			return Source{}, err
		}
		p, err := readProfile(a)
		return ofProfile(p, err)
	case jsonFile:
		g, err := ParseGrid(name, data)
		return ofGrid(g, err)
	}
	return Source{}, unknown(name, data)
}

func ofProfile(p *config.ProfileTable, err error) (Source, error) {
	if err != nil {
		return Source{}, err
	}
	return Source{Timing: config.Timing{Kind: config.Profile, Profile: p}}, nil
}

func ofGrid(g *Grid, err error) (Source, error) {
	if err != nil {
		return Source{}, err
	}
	return Source{Timing: config.Timing{Kind: config.Grid, Grid: g.Table}, Grid: g}, nil
}

// readHead reads the start of a file.
func readHead(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be opened: %w", path, cliutil.Reason(err))
	}
	defer f.Close()
	head := make([]byte, 512)
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, fmt.Errorf("%s: cannot be read: %w", path, cliutil.Reason(err))
	}
	return head[:n], nil
}

type fileKind int

const (
	otherFile fileKind = iota
	archiveFile
	jsonFile
)

// kind tells a file by its start.
func kind(head []byte) fileKind {
	if bytes.HasPrefix(head, []byte("PK")) {
		return archiveFile
	}
	if text := bytes.TrimLeft(head, " \t\r\n"); len(text) > 0 && text[0] == '{' {
		return jsonFile
	}
	return otherFile
}

func unknown(name string, head []byte) error {
	if len(head) == 0 {
		return fmt.Errorf("%s: is empty; %s", name, accepted)
	}
	return fmt.Errorf("%s: starts with %s; %s", name, cliutil.Quote(string(head[:min(len(head), 16)])), accepted)
}
