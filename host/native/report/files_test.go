package report

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func listing(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestFilesCommit(t *testing.T) {
	dir := t.TempDir()
	deep := filepath.Join(dir, "a", "b", "new.json")
	old := filepath.Join(dir, "old.json")
	link := filepath.Join(dir, "link.json")
	os.WriteFile(old, []byte("before"), 0o640)
	if err := os.Symlink("old.json", link); err != nil {
		t.Fatal(err)
	}
	var s Files
	for _, path := range []string{deep, link} {
		f, err := s.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		f.Write([]byte("after"))
	}
	if got := content(t, old); got != "before" {
		t.Errorf("%q before the commit", got)
	}
	if err := s.Commit(); err != nil {
		t.Fatal(err)
	}
	s.Abort() // does nothing now
	if content(t, deep) != "after" || content(t, old) != "after" {
		t.Error("not written")
	}
	if info, _ := os.Lstat(link); info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link was replaced")
	}
	if info, _ := os.Stat(old); info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v", info.Mode())
	}
	if got := listing(t, dir); got != "a link.json old.json" {
		t.Errorf("left over: %s", got)
	}
	if got := listing(t, filepath.Dir(deep)); got != "new.json" {
		t.Errorf("left over: %s", got)
	}
}

func TestFilesAbort(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "old.json")
	os.WriteFile(old, []byte("before"), 0o600)
	var s Files
	f, err := s.Create(old)
	if err != nil {
		t.Fatal(err)
	}
	f.Write([]byte("half"))
	s.Abort()
	s.Abort()
	if _, err := f.Write([]byte("x")); err == nil {
		t.Error("write after abort")
	}
	if content(t, old) != "before" || listing(t, dir) != "old.json" {
		t.Errorf("%q, %s", content(t, old), listing(t, dir))
	}
	if err := s.Commit(); !errors.Is(err, ErrAborted) {
		t.Error(err)
	}
	if _, err := s.Create(old); !errors.Is(err, ErrAborted) {
		t.Error(err)
	}
}

func TestFilesErrors(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	os.WriteFile(file, nil, 0o600)
	var s Files
	for target, want := range map[string]string{
		dir:                         "cannot write " + dir + ": is a directory",
		filepath.Join(file, "x"):    "cannot write " + file + "/x: not a directory",
		filepath.Join(file, "y/x"):  "cannot write " + file + "/y/x: not a directory",
		"/proc/no/such/report.json": "cannot write /proc/no/such/report.json: no such file or directory",
	} {
		if _, err := s.Create(target); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", target, err, want)
		}
	}
	if got := listing(t, dir); got != "file" {
		t.Errorf("left over: %s", got)
	}
}

// A device that is full fails the write, not only the commit.
func TestFilesFullDevice(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full")
	}
	var s Files
	f, err := s.Create("/dev/full")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("x")); err == nil || err.Error() != "cannot write /dev/full: no space left on device" {
		t.Error(err)
	}
	s.Abort()
	if info, err := os.Stat("/dev/full"); err != nil || info.Mode().IsRegular() {
		t.Error("the device is gone")
	}
}

func TestResolveJSONPath(t *testing.T) {
	dir := t.TempDir()
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	name := "dynamo_replay_report_20260304_050607.json"
	for in, want := range map[string]string{
		dir:                              filepath.Join(dir, name),
		filepath.Join(dir, "none") + "/": filepath.Join(dir, "none", name),
		filepath.Join(dir, "x.json"):     filepath.Join(dir, "x.json"),
	} {
		if got := ResolveJSONPath(in, now); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}
