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

// accepted ends sentences about files that are no profile.
const accepted = "a .npz profile or a profiler's results directory is accepted"

// LoadProfile loads a profile or a profiler's results, told apart by what
// stands at path and not by its name.
func LoadProfile(path string) (*config.ProfileTable, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: no such file or directory; %s", path, accepted)
	case err != nil:
		return nil, fmt.Errorf("%s: cannot be opened: %w", path, cliutil.Reason(err))
	case info.IsDir():
		return LoadResults(path)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: is no regular file; %s", path, accepted)
	}
	head, err := readHead(path)
	if err != nil {
		return nil, err
	}
	if !isArchive(head) {
		return nil, noProfile(path, head)
	}
	return LoadNPZ(path)
}

// ParseProfile is LoadProfile for an archive in memory, which name names in
// sentences.
func ParseProfile(name string, data []byte) (*config.ProfileTable, error) {
	if !isArchive(data) {
		return nil, noProfile(name, data)
	}
	a, err := npz.Parse(name, data)
	if err != nil {
		return nil, err
	}
	return readProfile(a)
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

// isArchive tells a ZIP archive by its start.
func isArchive(head []byte) bool { return bytes.HasPrefix(head, []byte("PK")) }

// isObject tells a JSON object by its start.
func isObject(head []byte) bool {
	text := bytes.TrimLeft(head, " \t\r\n")
	return len(text) > 0 && text[0] == '{'
}

func noProfile(name string, head []byte) error {
	switch {
	case len(head) == 0:
		return fmt.Errorf("%s: is empty; %s", name, accepted)
	case isObject(head):
		return fmt.Errorf("%s: is a JSON object, as grids are; %s", name, accepted)
	}
	return fmt.Errorf("%s: starts with %s; %s", name, cliutil.Quote(string(head[:min(len(head), 16)])), accepted)
}
