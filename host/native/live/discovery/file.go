package discovery

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// TTL is how long a record in a directory lives that nobody touches.
const TTL = 10 * time.Second

// touchEvery is how often the owner touches its records.
const touchEvery = TTL / 3

// Dir is the directory that is used where nothing else is said.
func Dir() string {
	if dir := os.Getenv("DYN_FILE_KV"); dir != "" {
		return dir
	}
	return filepath.Join(os.TempDir(), "dynamo_store_kv")
}

// Files is a directory of records. Take it from Open.
type Files struct {
	root string
	warn func(text string, args ...any)
	stop chan struct{}
	done chan struct{}

	mu     sync.Mutex
	owned  []record // in the order they were put
	closed bool
}

// record is a file that is ours.
type record struct {
	of   *files
	path string
	text []byte
}

// files are those of one worker.
type files struct {
	store *Files
	gone  bool
}

// Open uses a directory, which is made if there is none. warn is told what goes
// wrong later.
func Open(root string, warn func(text string, args ...any)) (*Files, error) {
	for _, bucket := range []string{Instances, Cards, EventChannels, EventSources} {
		if err := os.MkdirAll(filepath.Join(root, bucket), 0o755); err != nil {
			return nil, err
		}
	}
	s := &Files{root: root, warn: warn, stop: make(chan struct{}), done: make(chan struct{})}
	go s.keep()
	return s, nil
}

// FileName is a key as the name of a file: what is no letter and no digit becomes
// %XX.
func FileName(key string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(key) {
		switch c := key[i]; {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	return b.String()
}

// Join begins the records of a worker.
func (s *Files) Join(context.Context) (Records, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, os.ErrClosed
	}
	return &files{store: s}, nil
}

func (f *files) Instance() uint64 { return 0 }

func (f *files) Put(bucket, key string, text []byte) error {
	s := f.store
	r := record{f, filepath.Join(s.root, bucket, FileName(key)), text}
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.gone || s.closed {
		return os.ErrClosed
	}
	if err := r.write(); err != nil {
		return err
	}
	s.owned = append(slices.DeleteFunc(s.owned, func(x record) bool { return x.path == r.path }), r)
	return nil
}

func (f *files) Leave() {
	s := f.store
	s.mu.Lock()
	defer s.mu.Unlock()
	f.gone = true
	s.owned = slices.DeleteFunc(s.owned, func(r record) bool {
		if r.of == f {
			s.remove(r.path)
		}
		return r.of == f
	})
}

// write puts the file in its place once it is complete.
func (r record) write() error {
	f, err := os.CreateTemp(filepath.Dir(r.path), ".tmp_*")
	if err != nil {
		return err
	}
	_, err = f.Write(r.text)
	if err2 := f.Close(); err == nil {
		err = err2
	}
	if err == nil {
		err = os.Chmod(f.Name(), 0o644)
	}
	if err == nil {
		err = os.Rename(f.Name(), r.path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

func (s *Files) remove(name string) {
	if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
		s.warn("a record cannot be removed", "path", name, "error", err)
	}
}

// Close removes all records of this process.
func (s *Files) Close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	for _, r := range s.owned {
		s.remove(r.path)
	}
	s.owned = nil
	s.mu.Unlock()
	close(s.stop)
	<-s.done
}

// keep touches what is ours and removes what has expired.
func (s *Files) keep() {
	defer close(s.done)
	t := time.NewTicker(touchEvery)
	defer t.Stop()
	for {
		select {
		case <-s.stop:
			return
		case now := <-t.C:
			s.touch(now)
			s.expire(now)
		}
	}
}

// touch keeps what is ours alive. What somebody has removed, because this
// process slept for too long, is written again.
func (s *Files) touch(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.owned {
		err := os.Chtimes(r.path, now, now)
		if errors.Is(err, os.ErrNotExist) {
			err = r.write()
		}
		if err != nil {
			s.warn("a record cannot be kept alive", "path", r.path, "error", err)
		}
	}
}

// expire removes records of others that nobody has touched for their time, and
// what was being written when its writer ended.
func (s *Files) expire(now time.Time) {
	for _, bucket := range []string{Instances, Cards, EventChannels, EventSources} {
		dir := filepath.Join(s.root, bucket)
		entries, err := os.ReadDir(dir)
		if err != nil {
			s.warn("records cannot be listed", "path", dir, "error", fmt.Sprint(err))
			continue
		}
		for _, e := range entries {
			if info, err := e.Info(); err == nil && info.Mode().IsRegular() && now.Sub(info.ModTime()) > TTL {
				s.remove(filepath.Join(dir, e.Name()))
			}
		}
	}
}
