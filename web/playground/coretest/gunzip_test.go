package coretest

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Data of any kind, level and number of members come out as Go's reader has
// them; what is cut or damaged is noticed.
func TestGunzip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	dir := t.TempDir()
	var args, want []string
	add := func(data []byte, answer string) {
		path := filepath.Join(dir, fmt.Sprintf("%d.gz", len(args)))
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		args, want = append(args, path), append(want, answer)
	}
	for _, level := range []int{gzip.NoCompression, gzip.HuffmanOnly, 1, 6, 9} {
		for _, size := range []int{0, 1, 1000, 300_000, 1_500_000} {
			var stored, text bytes.Buffer
			for members := 1 + r.IntN(3); members > 0; members-- {
				part := randomText(r, size)
				text.Write(part)
				w, _ := gzip.NewWriterLevel(&stored, level)
				w.Name, w.Comment, w.Extra = "trace", strings.Repeat("c", r.IntN(9)), part[:min(len(part), 300)]
				if _, err := w.Write(part); err != nil {
					t.Fatal(err)
				}
				w.Close()
			}
			sum := sha256.Sum256(text.Bytes())
			add(stored.Bytes(), hex.EncodeToString(sum[:]))
			add(stored.Bytes()[:stored.Len()-1-r.IntN(8)], "CutOff")
			wrong := bytes.Clone(stored.Bytes())
			wrong[len(wrong)-8+r.IntN(4)] ^= 1 // the checksum
			add(wrong, "Damaged")
		}
	}
	got := strings.Fields(string(node(t, append([]string{"gunzip.mjs"}, args...)...)))
	if len(got) != len(want) {
		t.Fatalf("%d answers, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%s: %s, want %s", args[i], got[i], want[i])
		}
	}
}

// randomText repeats itself now and then, near and far.
func randomText(r *rand.Rand, size int) []byte {
	b := make([]byte, 0, size)
	for len(b) < size {
		if n := len(b); n > 0 && r.IntN(4) > 0 {
			from := n - 1 - r.IntN(min(n, 40_000))
			b = append(b, b[from:min(from+3+r.IntN(400), n)]...)
			continue
		}
		for range r.IntN(200) {
			b = append(b, byte(r.IntN(60)+' '))
		}
	}
	return b[:size]
}
