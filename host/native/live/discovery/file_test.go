package discovery_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dryserve/dryserve/host/native/live/discovery"
)

// Names as the reference spells them.
func TestFileName(t *testing.T) {
	for key, want := range map[string]string{
		"dynamo/backend/generate/71aa0e6cc1640d2c": "dynamo%2Fbackend%2Fgenerate%2F71aa0e6cc1640d2c",
		"topic/active_sequences_events/9":          "topic%2Factive%5Fsequences%5Fevents%2F9",
		"forward-pass-metrics":                     "forward%2Dpass%2Dmetrics",
		"ä%":                                       "%C3%A4%25",
	} {
		if got := discovery.FileName(key); got != want {
			t.Errorf("%q is %s, want %s", key, got, want)
		}
	}
}

func TestStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := filepath.Join(t.TempDir(), "new")
		s, err := discovery.Open(root, func(text string, args ...any) { t.Error(text, args) })
		if err != nil {
			t.Fatal(err)
		}
		join := func() discovery.Records {
			r, err := s.Join(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		r, other := join(), join()
		put := func(r discovery.Records, bucket, key string) string {
			t.Helper()
			if err := r.Put(bucket, key, []byte("{}")); err != nil {
				t.Fatal(err)
			}
			return filepath.Join(root, bucket, discovery.FileName(key))
		}
		ours, gone := put(r, discovery.Instances, "a/b"), put(other, discovery.Cards, "c")
		if text, err := os.ReadFile(ours); err != nil || string(text) != "{}" {
			t.Errorf("%v: %s", err, text)
		}
		// Time in here is not that of the file system: files of others get times
		// of in here.
		theirs, fresh := filepath.Join(root, discovery.Cards, "theirs"), filepath.Join(root, discovery.Cards, "fresh")
		for path, age := range map[string]time.Duration{theirs: 11 * time.Second, fresh: 0} {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(path, time.Now(), time.Now().Add(-age)); err != nil {
				t.Fatal(err)
			}
		}
		other.Leave()
		lost := put(r, discovery.Cards, "lost")
		if err := os.Remove(lost); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Second)
		info, err := os.Stat(ours)
		if err != nil || time.Since(info.ModTime()) > time.Second {
			t.Errorf("%v: touched %v ago", err, time.Since(info.ModTime()))
		}
		for path, there := range map[string]bool{gone: false, theirs: false, fresh: true, lost: true} {
			if _, err := os.Stat(path); (err == nil) != there {
				t.Errorf("%s: %v", path, err)
			}
		}
		if err := other.Put(discovery.Cards, "late", nil); err == nil {
			t.Error("a record is put by one who has left")
		}
		s.Close()
		s.Close()
		if _, err := os.Stat(ours); err == nil {
			t.Error("a record is left")
		}
		if err := r.Put(discovery.Cards, "late", nil); err == nil {
			t.Error("a record is put after the end")
		}
		if _, err := s.Join(t.Context()); err == nil {
			t.Error("a worker joins after the end")
		}
		if list, _ := os.ReadDir(filepath.Join(root, discovery.Cards)); len(list) != 1 {
			t.Errorf("left: %v", list)
		}
	})
}

func TestMemory(t *testing.T) {
	var m discovery.Memory
	a, _ := m.Join(t.Context())
	b, _ := m.Join(t.Context())
	for _, err := range []error{a.Put(discovery.Cards, "x", nil), b.Put(discovery.Cards, "y", nil), a.Put(discovery.Instances, "x", nil)} {
		if err != nil {
			t.Error(err)
		}
	}
	if got := m.Keys(); !slices.Equal(got, []string{"v1/instances/x", "v1/mdc/x", "v1/mdc/y"}) {
		t.Errorf("%q", got)
	}
	a.Leave()
	if got := m.Keys(); !slices.Equal(got, []string{"v1/mdc/y"}) || a.Put(discovery.Cards, "x", nil) == nil {
		t.Errorf("%q", got)
	}
	m.Close()
	if _, err := m.Join(t.Context()); err == nil || len(m.Keys()) > 0 || b.Put(discovery.Cards, "y", nil) == nil {
		t.Error("it is not closed")
	}
}
