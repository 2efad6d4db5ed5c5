package npz

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// grown is testdata's 2 by 3 array: -2, -0.5, 1, 2.5, 4, 5.5.
var grown = []float64{-2, -0.5, 1, 2.5, 4, 5.5}

// TestNumPyFiles reads archives that NumPy 2.4 wrote.
func TestNumPyFiles(t *testing.T) {
	from := func(first, step float64) []float64 {
		out := make([]float64, 6)
		for i := range out {
			out[i] = first + float64(i)*step
		}
		return out
	}
	cube := make([]float64, 24)
	for i := range cube {
		cube[i] = float64(i)
	}
	for _, c := range []struct {
		file, array string
		shape       []int
		want        []float64
	}{
		{"numpy", "f8", []int{2, 3}, grown},
		{"numpy", "f8_fortran", []int{2, 3}, grown},
		{"numpy", "f8_big", []int{2, 3}, grown},
		{"numpy", "f4", []int{2, 3}, grown},
		{"numpy", "f4_big", []int{2, 3}, grown},
		{"numpy", "i1", []int{6}, from(-3, 1)},
		{"numpy", "i2", []int{6}, from(-3, 1)},
		{"numpy", "i4_big", []int{6}, from(-3, 1)},
		{"numpy", "i8", []int{6}, from(-3e12, 1e12)},
		{"numpy", "u1", []int{6}, from(250, 1)},
		{"numpy", "u2", []int{6}, from(65000, 1)},
		{"numpy", "u4", []int{6}, from(4e9, 1)},
		{"numpy", "u8", []int{6}, from(1<<53-5, 1)},
		{"numpy", "scalar", []int{}, []float64{2.5}},
		{"numpy", "empty", []int{0, 4}, []float64{}},
		{"numpy", "cube", []int{2, 3, 4}, cube},
		{"versions", "v1", []int{2, 3}, grown},
		{"versions", "v2", []int{2, 3}, grown},
		{"versions", "v3", []int{2, 3}, grown},
	} {
		a, err := Open("testdata/" + c.file + ".npz")
		if err != nil {
			t.Fatal(err)
		}
		got, err := a.Numbers(c.array, 0, 1, 2, 3)
		if err != nil || !slices.Equal(got.Shape, c.shape) || !slices.Equal(got.Data, c.want) {
			t.Errorf("%s: %v, %v, want %v %v", c.array, got, err, c.shape, c.want)
		}
		_, err = a.Floats(c.array, 0, 1, 2, 3)
		isFloat := strings.HasPrefix(c.array, "f8") || c.file == "versions" || c.array == "scalar" || c.array == "empty" || c.array == "cube"
		if (err == nil) != isFloat {
			t.Errorf("%s as floats: %v", c.array, err)
		}
		if !a.Has(c.array) || !slices.Contains(a.Names(), c.array) {
			t.Errorf("%s is not listed in %v", c.array, a.Names())
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestNumPyTypesRefused(t *testing.T) {
	for array, want := range map[string]string{
		"text":    "testdata/numpy.npz: array text has dtype <U8; an integer dtype, <f4 or <f8 is accepted",
		"flag":    "testdata/numpy.npz: array flag has dtype |b1; an integer dtype, <f4 or <f8 is accepted",
		"half":    "testdata/numpy.npz: array half has dtype <f2; an integer dtype, <f4 or <f8 is accepted",
		"complex": "testdata/numpy.npz: array complex has dtype <c16; an integer dtype, <f4 or <f8 is accepted",
		"object":  "testdata/numpy.npz: array object has dtype |O; an integer dtype, <f4 or <f8 is accepted",
		"record":  "testdata/numpy.npz: array record has dtype record; an integer dtype, <f4 or <f8 is accepted",
		"when":    `testdata/numpy.npz: array when has dtype <"M8[D]"; an integer dtype, <f4 or <f8 is accepted`,
	} {
		a, err := Open("testdata/numpy.npz")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Numbers(array, 1); err == nil || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
		a.Close()
	}
	a, err := Open("testdata/versions.npz")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if _, err := a.Floats("unicode", 1); err == nil || !strings.Contains(err.Error(), "has dtype record") {
		t.Error(err)
	}
}

// npy is a version 1 file with any header.
func npy(header string, body []byte) []byte {
	b := []byte("\x93NUMPY\x01\x00")
	b = binary.LittleEndian.AppendUint16(b, uint16(len(header)))
	return append(append(b, header...), body...)
}

func floats(v ...float64) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return b
}

// dict is the header of an array of float64.
func dict(shape string) string {
	return "{'descr': '<f8', 'fortran_order': False, 'shape': " + shape + ", }\n"
}

// archive packs entries; edit may change what the archive says of them.
func archive(t *testing.T, edit func(*zip.FileHeader), entries ...any) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(entries); i += 2 {
		h := &zip.FileHeader{Name: entries[i].(string), Method: zip.Deflate}
		w, err := z.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(entries[i+1].([]byte)); err != nil {
			t.Fatal(err)
		}
		if edit != nil {
			edit(h)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func good(t *testing.T) []byte {
	return archive(t, nil, "x.npy", npy(dict("(2,)"), floats(1, 2)))
}

func TestBadFiles(t *testing.T) {
	one := func(header string, body []byte) []byte { return archive(t, nil, "x.npy", npy(header, body)) }
	stored := func() []byte {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		w, _ := z.CreateHeader(&zip.FileHeader{Name: "x.npy", Method: zip.Store})
		w.Write(npy(dict("(2,)"), floats(1, 2)))
		z.Close()
		return b.Bytes()
	}
	flip := func(b []byte, pattern string, delta int) []byte {
		at := bytes.Index(b, []byte(pattern))
		if at < 0 {
			t.Fatalf("no %q to damage", pattern)
		}
		b[at+delta] ^= 0x40
		return b
	}
	many := make([]any, 0, 2*(MaxEntries+1))
	for i := range MaxEntries + 1 {
		many = append(many, fmt.Sprint(i), []byte{})
	}
	version := func(v byte, length uint32) []byte {
		b := binary.LittleEndian.AppendUint32([]byte{0x93, 'N', 'U', 'M', 'P', 'Y', v, 0}, length)
		return archive(t, nil, "x.npy", b)
	}
	cases := []struct {
		name string
		data []byte
		want string // after the path
	}{
		{"empty", nil, ": is empty; a .npz file is accepted"},
		{"text", []byte("prefill_isl 1 2 3\n"), ": is no ZIP archive; a .npz file is accepted"},
		{"an npy alone", npy(dict("(2,)"), floats(1, 2)), ": is no ZIP archive; a .npz file is accepted"},
		{"truncated", good(t)[:60], ": is a damaged or truncated ZIP archive; a whole .npz file is accepted"},
		{"tail cut off", good(t)[:len(good(t))-30], ": is a damaged or truncated ZIP archive; a whole .npz file is accepted"},
		{"no arrays", archive(t, nil), ": has no array x; found no arrays"},
		{"another array", archive(t, nil, "y.npy", npy(dict("(2,)"), floats(1, 2)), "a b.npy", []byte{}), `: has no array x; found y, "a b"`},
		{"twice", archive(t, nil, "x.npy", npy(dict("(2,)"), floats(1, 2)), "x.npy", npy(dict("(2,)"), floats(3, 4))), ": array x stands 2 times in the archive; one array of that name is accepted"},
		{"too many entries", archive(t, nil, many...), ": has 4097 entries; a .npz file of at most 4096 arrays is accepted"},
		{"empty array file", archive(t, nil, "x.npy", []byte{}), ": array x ends before all its values are there; a whole array is accepted"},
		{"no magic", archive(t, nil, "x.npy", []byte("0.5\n0.75\n")), `: array x is no NPY file: it starts with "0.5\n0."; an array saved by NumPy is accepted`},
		{"version 4", version(4, 10), ": array x has NPY version 4; versions 1, 2 and 3 are accepted"},
		{"huge header", version(2, math.MaxUint32), ": array x has a header of 4294967295 bytes; at most 65536 are accepted"},
		{"header cut off", version(3, 500), ": array x ends before all its values are there; a whole array is accepted"},
		{"no dictionary", one("<f8 (2,)", nil), `: array x has a damaged NPY header "<f8 (2,)"; descr, fortran_order and shape are accepted`},
		{"no shape", one("{'descr': '<f8', 'fortran_order': False}", nil), `: array x has a damaged NPY header "{'descr': '<f8', 'fortran_order': False}"; descr, fortran_order and shape are accepted`},
		{"code in the header", one("{'descr': __import__('os'), 'fortran_order': False, 'shape': (2,)}", nil), `: array x has a damaged NPY header "{'descr': __import__('os'), 'fortran_order': False, 'shape':"...; descr, fortran_order and shape are accepted`},
		{"negative length", one(dict("(-2,)"), floats(1, 2)), `: array x has a damaged NPY header "{'descr': '<f8', 'fortran_order': False, 'shape': (-2,), }\n"; descr, fortran_order and shape are accepted`},
		{"int64", one("{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }", floats(1, 2)), ": array x has dtype <i8; dtype <f8 (float64) is accepted"},
		{"float32", one("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", floats(1)), ": array x has dtype <f4; dtype <f8 (float64) is accepted"},
		{"texts", one("{'descr': '<U5', 'fortran_order': False, 'shape': (2,), }", nil), ": array x has dtype <U5; dtype <f8 (float64) is accepted"},
		{"objects", one("{'descr': '|O', 'fortran_order': False, 'shape': (2,), }", nil), ": array x has dtype |O; dtype <f8 (float64) is accepted"},
		{"strange type", one("{'descr': '\x1b[31m', 'fortran_order': False, 'shape': (2,), }", nil), `: array x has dtype "\x1b[31m"; dtype <f8 (float64) is accepted`},
		{"a matrix", one(dict("(2, 1)"), floats(1, 2)), ": array x has shape (2, 1); a one-dimensional array is accepted"},
		{"a scalar", one(dict("()"), floats(1)), ": array x has shape (); a one-dimensional array is accepted"},
		{"10 GB claimed", one(dict("(1250000000,)"), floats(1, 2)), ": array x has shape (1250000000,); at most 4194304 values are accepted"},
		{"32 MB claimed", one(dict("(4194304,)"), floats(1, 2)), ": array x ends before all its values are there; a whole array is accepted"},
		{"2^64 claimed", one(dict("(18446744073709551615,)"), floats(1, 2)), ": array x has shape (9223372036854775807,); at most 4194304 values are accepted"},
		{"values cut off", one(dict("(3,)"), floats(1, 2)), ": array x ends before all its values are there; a whole array is accepted"},
		{"values too many", one(dict("(1,)"), floats(1, 2)), ": array x holds more bytes than its shape and dtype say; exactly that many are accepted"},
		{"a bomb", one(dict("(1,)"), make([]byte, 40<<20)), ": array x holds more bytes than its shape and dtype say; exactly that many are accepted"},
		{"a value damaged", flip(stored(), "\xf0\x3f", 0), ": array x does not match its checksum; an undamaged file is accepted"},
		{"encrypted", archive(t, func(h *zip.FileHeader) { h.Flags |= 1 }, "x.npy", npy(dict("(2,)"), floats(1, 2))), ": array x is encrypted; a plain array is accepted"},
		{"another method", archive(t, func(h *zip.FileHeader) { h.Method = 14 }, "x.npy", npy(dict("(2,)"), floats(1, 2))), ": array x is stored by ZIP method 14; methods 0 (stored) and 8 (deflated) are accepted"},
	}
	dir := t.TempDir()
	for _, c := range cases {
		path := filepath.Join(dir, "p.npz")
		if err := os.WriteFile(path, c.data, 0o600); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		a, err := Open(path)
		if err == nil {
			_, err = a.Floats("x", 1)
			a.Close()
		}
		runtime.ReadMemStats(&after)
		if err == nil || err.Error() != path+c.want {
			t.Errorf("%s: %v\nwant %s", c.name, err, path+c.want)
		}
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 8<<20 {
			t.Errorf("%s: allocated %d bytes", c.name, grown)
		}
	}
}

func TestBadPaths(t *testing.T) {
	dir := t.TempDir()
	big := filepath.Join(dir, "big.npz")
	f, err := os.Create(big)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(10 << 30); err != nil { // sparse: takes no room
		t.Skip(err)
	}
	f.Close()
	for path, want := range map[string]string{
		filepath.Join(dir, "absent.npz"): ": no such file; a .npz file is accepted",
		dir:                              ": is a directory; a .npz file is accepted",
		os.DevNull:                       ": is no regular file; a .npz file is accepted",
		big:                              ": has 10737418240 bytes; a .npz file of at most 1073741824 is accepted",
	} {
		if _, err := Open(path); err == nil || err.Error() != path+want {
			t.Errorf("%v\nwant %s", err, path+want)
		}
	}
}

func TestLargeIntegers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.npz")
	for n, exact := range map[uint64]bool{1 << 53: true, 1<<53 + 1: false, 1 << 63: false} {
		for _, kind := range []string{"i8", "u8"} {
			body := binary.LittleEndian.AppendUint64(floats(0), n)
			data := archive(t, nil, "x.npy", npy("{'shape': (2,), 'fortran_order': False, 'descr': '<"+kind+"'}", body))
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			a, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			_, err = a.Numbers("x", 1)
			if want := path + ": array x holds an integer beyond 2^53 at index 1; smaller ones are accepted"; exact != (err == nil) || !exact && err.Error() != want {
				t.Errorf("%s %d: %v", kind, n, err)
			}
			a.Close()
		}
	}
}

// TestHeaderSpellings: the order of keys and the spacing are free.
func TestHeaderSpellings(t *testing.T) {
	for text, want := range map[string]bool{
		`{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3)}`:                              true,
		`{"shape":(2,3,),"descr":"<f8","fortran_order":True,}` + "    \n":                       true,
		`{'descr': '<f8', 'fortran_order': True, 'shape': (2L, 3L), }`:                          true,
		`{'descr': [('a', '<f8'), ('b', '<i4', (2,))], 'fortran_order': True, 'shape': (2, 3)}`: true,
		`{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3)} x`:                            false,
		`{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3), 'shape': (2, 3)}`:             false,
		`{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3), 'more': 1}`:                   false,
		`{'descr': '<f8', 'fortran_order': 1, 'shape': (2, 3)}`:                                 false,
		`{'descr': '<f8', 'fortran_order': True, 'shape': [2, 3]}`:                              false,
		`{'descr': '<f8', 'fortran_order': True, 'shape': (2 3)}`:                               false,
		`{'descr': '<f8', 'fortran_order': True, 'shape': (,)}`:                                 false,
		`{'descr': '<f8 'fortran_order': True, 'shape': (2, 3)}`:                                false,
		`{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3)`:                               false,
		`{'descr': [('a', '<f8'], 'fortran_order': True, 'shape': (2, 3)}`:                      false,
		`{`: false,
		``:  false,
	} {
		h, err := readHeader(bytes.NewReader(npy(text, nil)))
		if (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
		if err == nil && (!h.fortran || !slices.Equal(h.shape, []int{2, 3})) {
			t.Errorf("%s: %+v", text, h)
		}
	}
}

// FuzzRead: no file makes the reader panic, and what it accepts is as large
// as its shape says.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"numpy", "versions"} {
		b, err := os.ReadFile("testdata/" + name + ".npz")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := Parse("f.npz", data)
		if err != nil {
			return
		}
		for _, name := range a.Names() {
			got, err := a.Numbers(name, 0, 1, 2)
			n, fits := count(got.Shape, MaxValues)
			if err == nil && (!fits || n != len(got.Data)) {
				t.Fatalf("%s: shape %v, %d values", name, got.Shape, len(got.Data))
			}
			if err != nil && strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Fatalf("no sentence: %q", err)
			}
		}
	})
}

// FuzzHeader goes past the archive's checksums.
func FuzzHeader(f *testing.F) {
	f.Add([]byte(dict("(2, 3)")))
	f.Add([]byte(`{'descr': [('a', '<f8'), ('b', '<i4', (2,))], 'fortran_order': True, 'shape': (2L,)}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > math.MaxUint16 {
			return
		}
		h, err := readHeader(bytes.NewReader(npy(string(text), nil)))
		if err == nil && (h.descr == "" && !bytes.Contains(text, []byte("descr")) || h.shape == nil) {
			t.Fatalf("%q: %+v", text, h)
		}
	})
}
