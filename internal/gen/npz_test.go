package gen

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"testing"
)

// Recorded cases hold their profiles, but a seed names a case in reports, so
// the bytes must not change.
func TestProfileBytesAreFixed(t *testing.T) {
	sum := sha256.New()
	for seed := range uint64(50) {
		c, err := FamilyCase(seed, "npz")
		if err != nil {
			t.Fatal(err)
		}
		sum.Write(c.Profile)
	}
	if got, want := hex.EncodeToString(sum.Sum(nil)[:8]), "c2cb8753241ae285"; got != want {
		t.Errorf("the digest of 50 profiles is %s, want %s", got, want)
	}
}

// Both ways to store an entry hold the same array.
func TestNPZArchive(t *testing.T) {
	a := floats("a", []int{2, 20000}, make([]float64, 40000), false)
	want := npyFile(a, npyLayout{version: 2, padded: true})
	if start := bytes.IndexByte(want, '\n') + 1; start%64 != 0 || len(want) != start+320000 {
		t.Errorf("the data begin at %d of %d", start, len(want))
	}
	for _, deflate := range []bool{false, true} {
		data := npzArchive([]npyArray{a}, npyLayout{version: 2, suffix: true, padded: true, deflate: deflate})
		z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil || len(z.File) != 1 || z.File[0].Name != "a.npy" {
			t.Fatalf("%+v, %v", z, err)
		}
		f, err := z.File[0].Open()
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(f) // checks the checksum
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("deflate %v: %d bytes, %v", deflate, len(got), err)
		}
	}
}

func TestTransposed(t *testing.T) {
	got := transposed([]float64{1, 2, 3, 4, 5, 6}, 2)
	for i, want := range []float64{1, 4, 2, 5, 3, 6} {
		if got[i] != want {
			t.Fatalf("%v", got)
		}
	}
}
