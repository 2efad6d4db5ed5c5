package report

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/dryserve/dryserve/host/native/cliutil"
)

// Files writes a set of output files that appear together or not at all.
// Each file is written beside its target and renamed by Commit; Abort, also
// from another goroutine, removes what is not committed. Targets that are no
// regular files (a pipe, a terminal, /dev/null) are written directly.
type Files struct {
	mu   sync.Mutex
	open []*File
	done bool
}

// File is one output under way. Errors name the target, never the temporary.
type File struct {
	f      *os.File
	target string // as the user wrote it
	final  string // where symlinks lead
	temp   string // "" for a direct target
}

// ErrAborted is what creating or committing after Abort gives.
var ErrAborted = errors.New("interrupted")

// Create begins a file; missing parent directories are made. Opening a target
// that is no regular file may block, as for a pipe without a reader.
func (s *Files) Create(target string) (*File, error) {
	file, err := s.create(target)
	switch {
	case errors.Is(err, ErrAborted):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("cannot write %s: %w", target, cliutil.Reason(err))
	}
	return file, nil
}

func (s *Files) create(target string) (*File, error) {
	info, err := os.Stat(target)
	switch {
	case err == nil && info.IsDir():
		return nil, errors.New("is a directory")
	case err == nil && !info.Mode().IsRegular():
		f, err := os.OpenFile(target, os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		return s.keep(&File{f: f, target: target, final: target})
	case err == nil:
		return s.createOver(target, info.Mode().Perm())
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o777); err != nil {
		return nil, err
	}
	return s.createTemp(target, target, 0o666)
}

// createOver begins a file that will replace one that exists.
func (s *Files) createOver(target string, mode fs.FileMode) (*File, error) {
	// A rename must not replace what the user may not write to.
	probe, err := os.OpenFile(target, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	probe.Close()
	final, err := filepath.EvalSymlinks(target)
	if err != nil {
		return nil, err
	}
	return s.createTemp(target, final, mode)
}

// createTemp makes the temporary under the lock, so that an Abort cannot miss it.
func (s *Files) createTemp(target, final string, mode fs.FileMode) (*File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return nil, ErrAborted
	}
	f, err := createBeside(final, mode)
	if err != nil {
		return nil, err
	}
	file := &File{f: f, target: target, final: final, temp: f.Name()}
	s.open = append(s.open, file)
	return file, nil
}

func (s *Files) keep(file *File) (*File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		file.f.Close()
		return nil, ErrAborted
	}
	s.open = append(s.open, file)
	return file, nil
}

// createBeside makes a hidden file in the directory of path.
func createBeside(path string, mode fs.FileMode) (*os.File, error) {
	dir, name := filepath.Split(path)
	for try := 0; ; try++ {
		temp := filepath.Join(dir, "."+name+"."+strconv.Itoa(os.Getpid())+"-"+strconv.Itoa(try)+".part")
		f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if !errors.Is(err, fs.ErrExist) || try == 1000 {
			return f, err
		}
	}
}

// Write implements io.Writer.
func (f *File) Write(p []byte) (int, error) {
	n, err := f.f.Write(p)
	if err != nil {
		err = fmt.Errorf("cannot write %s: %w", f.target, cliutil.Reason(err))
	}
	return n, err
}

// Commit closes every file and puts it in place. On an error nothing that
// was not yet in place stays.
func (s *Files) Commit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return ErrAborted
	}
	s.done = true
	for _, f := range s.open {
		if err := f.f.Close(); err != nil {
			s.remove()
			return fmt.Errorf("cannot write %s: %w", f.target, cliutil.Reason(err))
		}
	}
	for _, f := range s.open {
		if f.temp == "" {
			continue
		}
		if err := os.Rename(f.temp, f.final); err != nil {
			s.remove()
			return fmt.Errorf("cannot write %s: %w", f.target, cliutil.Reason(err))
		}
		f.temp = ""
	}
	return nil
}

// Abort drops what is not committed. It may be called at any time, again and
// after Commit.
func (s *Files) Abort() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.done {
		s.done = true
		s.remove()
	}
}

func (s *Files) remove() {
	for _, f := range s.open {
		f.f.Close()
		if f.temp != "" {
			os.Remove(f.temp)
		}
	}
}

// ResolveJSONPath turns the argument for the JSON report into a file path: a
// directory, existing or written with a final slash, gets a file named after
// the local time.
func ResolveJSONPath(argument string, now time.Time) string {
	info, err := os.Stat(argument)
	if err == nil && info.IsDir() || argument != "" && os.IsPathSeparator(argument[len(argument)-1]) {
		return filepath.Join(argument, "dynamo_replay_report_"+now.Format("20060102_150405")+".json")
	}
	return argument
}
