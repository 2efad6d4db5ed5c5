package corewasm

import (
	"bytes"
	"encoding/binary"
	"os"
	"slices"
	"testing"
)

// moduleOf is a module with a data section of the given segments.
func moduleOf(segments ...[]byte) []byte {
	content := binary.AppendUvarint(nil, uint64(len(segments)))
	for _, s := range segments {
		content = append(content, s...)
	}
	return append(append([]byte("\x00asm\x01\x00\x00\x00"), dataSection, byte(len(content))), content...)
}

func TestMemory(t *testing.T) {
	content := []byte{2, 0, 0x41, 3, 0x0B, 2, 7, 8, 0, 0x41, 0xC0, 0, 0x0B, 1, 9} // at 3 and at 64
	m, err := memoryOf(content)
	if err != nil || len(m) != 65 || m[3] != 7 || m[4] != 8 || m[64] != 9 {
		t.Fatalf("%v, %v", m, err)
	}
	if got := m.section(); !bytes.Equal(got, content) {
		t.Errorf("%v", got)
	}
	m[4], m[9] = 0, 1 // few zeroes stay
	if got := m.section(); !bytes.Equal(got, []byte{2, 0, 0x41, 3, 0x0B, 7, 7, 0, 0, 0, 0, 0, 1, 0, 0x41, 0xC0, 0, 0x0B, 1, 9}) {
		t.Errorf("%v", got)
	}
	for n := range int64(300000) {
		for _, x := range []int64{n, -n, n << 31, -n << 31} {
			if got, k := signed(appendSigned(nil, x)); got != x || k == 0 {
				t.Fatalf("%d: %d", x, got)
			}
		}
	}
}

// What is no module of the Go linker is refused.
func TestSlimRefuses(t *testing.T) {
	good := []byte{0, 0x41, 3, 0x0B, 1, 7}
	for name, module := range map[string][]byte{
		"nothing": nil, "no module": []byte("hello, world"), "cut": moduleOf(good)[:12],
		"no table": moduleOf(good), "passive": moduleOf([]byte{1, 1, 7}), "cut segment": moduleOf(good[:5]),
		"head only": moduleOf(append([]byte{0, 0x41, 3, 0x0B, 80}, append([]byte{0xF1, 0xFF, 0xFF, 0xFF, 0, 0, 1, 8}, make([]byte, 72)...)...)),
	} {
		if _, err := Slim(module); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// A slim module has no names any more, is smaller, and cannot be made slimmer.
func TestSlim(t *testing.T) {
	fat, err := compile("../..", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	slim, err := Slim(fat)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Slim(slim)
	if err != nil || !bytes.Equal(slim, again) {
		t.Errorf("slimming again changes it: %d bytes, %d bytes, %v", len(slim), len(again), err)
	}
	if len(slim) > len(fat)*9/10 {
		t.Errorf("%d bytes of %d are left", len(slim), len(fat))
	}
	for _, name := range []string{"runtime.gcStart", "core/replay.newSim", "core/replay/replay.go"} {
		if !bytes.Contains(fat, []byte(name)) || bytes.Contains(slim, []byte(name)) {
			t.Errorf("%s: before %v, after %v", name, bytes.Contains(fat, []byte(name)), bytes.Contains(slim, []byte(name)))
		}
	}
	a, err := sectionsOf(fat)
	if err != nil {
		t.Fatal(err)
	}
	b, err := sectionsOf(slim)
	if err != nil || !slices.EqualFunc(a, b, func(x, y section) bool {
		return x.id == y.id && (x.id == dataSection || bytes.Equal(x.content, y.content))
	}) {
		t.Error("other sections have changed, or", err)
	}
	if built, err := Build("../.."); err != nil {
		t.Error(err)
	} else if core, err := os.ReadFile(built); err != nil || !bytes.Equal(core, slim) {
		t.Error("core.wasm is another module, or", err)
	}
}

// Only what is tested is slimmed, and that is the Go that tests run with.
func TestSlimmable(t *testing.T) {
	for version, want := range map[string]bool{linker(): true, "go1.26": true, "go1.26.8": true, "go1.260": false, "go1.27.0": false, "": false} {
		if slimmable(version) != want {
			t.Errorf("%q: %v", version, !want)
		}
	}
}
