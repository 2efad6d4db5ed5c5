// Package npz reads arrays of numbers out of NumPy's .npz archives.
//
// It owns the ZIP and NPY formats: versions 1 to 3 of the header, both byte
// orders, C and Fortran order. It does not own what arrays mean, and it never
// unpickles: arrays of objects, texts and records can be listed, not read.
//
// Invariants: nothing an archive claims is believed before it is checked, so
// that memory grows with the bytes really there and stays below the limits;
// every error is one sentence that names the file, the array, what was found
// and what is accepted.
package npz

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/dryserve/dryserve/host/native/cliutil"
)

// Limits of what is read. Profiles have a few thousand values.
const (
	MaxFileBytes = 1 << 30 // of the archive
	MaxValues    = 1 << 22 // of one array
	MaxEntries   = 1 << 12 // of the archive
)

// Archive is an opened archive. It serves one caller at a time.
type Archive struct {
	path    string
	file    *os.File               // nil: nothing to close
	entries map[string][]*zip.File // by name without .npy
	names   []string               // as they stand in the archive
}

// Open opens the archive at path and reads its list of arrays.
func Open(path string) (*Archive, error) {
	f, err := os.Open(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: no such file; a .npz file is accepted", path)
		}
		return nil, fmt.Errorf("%s: cannot be opened: %w", path, cliutil.Reason(err))
	}
	a, err := openFile(path, f)
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	a.file = f
	return a, nil
}

func openFile(path string, f *os.File) (*Archive, error) {
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: cannot be read: %w", path, cliutil.Reason(err))
	case info.IsDir():
		return nil, fmt.Errorf("%s: is a directory; a .npz file is accepted", path)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: is no regular file; a .npz file is accepted", path)
	case info.Size() > MaxFileBytes:
		return nil, fmt.Errorf("%s: has %d bytes; a .npz file of at most %d is accepted", path, info.Size(), MaxFileBytes)
	}
	return list(path, f, info.Size())
}

// Parse is Open for an archive in memory, which path names in sentences.
func Parse(path string, data []byte) (*Archive, error) {
	return list(path, bytes.NewReader(data), int64(len(data)))
}

// Close closes the file.
func (a *Archive) Close() error {
	if a.file == nil {
		return nil
	}
	return a.file.Close()
}

// list reads the directory of an archive.
func list(path string, r io.ReaderAt, size int64) (*Archive, error) {
	if size == 0 {
		return nil, fmt.Errorf("%s: is empty; a .npz file is accepted", path)
	}
	z, err := zip.NewReader(r, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // names are never used as paths
		var magic [2]byte
		if _, e := r.ReadAt(magic[:], 0); e == nil && string(magic[:]) == "PK" {
			return nil, fmt.Errorf("%s: is a damaged or truncated ZIP archive; a whole .npz file is accepted", path)
		}
		return nil, fmt.Errorf("%s: is no ZIP archive; a .npz file is accepted", path)
	}
	if len(z.File) > MaxEntries {
		return nil, fmt.Errorf("%s: has %d entries; a .npz file of at most %d arrays is accepted", path, len(z.File), MaxEntries)
	}
	a := &Archive{path: path, entries: map[string][]*zip.File{}}
	for _, e := range z.File {
		name := strings.TrimSuffix(e.Name, ".npy")
		if len(a.entries[name]) == 0 {
			a.names = append(a.names, name)
		}
		a.entries[name] = append(a.entries[name], e)
	}
	return a, nil
}

// Path is what the archive was opened as.
func (a *Archive) Path() string { return a.path }

// Names lists the arrays in the order of the archive.
func (a *Archive) Names() []string { return slices.Clone(a.names) }

// Has reports whether there is an array of that name.
func (a *Archive) Has(name string) bool { return len(a.entries[name]) > 0 }

// Array is an array of numbers.
type Array struct {
	Shape []int     // lengths of the dimensions; none for a single number
	Data  []float64 // in C order: the last index runs fastest
}

// Floats reads an array of 64-bit floats, of either byte order, with one of
// the given numbers of dimensions.
func (a *Archive) Floats(name string, dims ...int) (Array, error) {
	return a.read(name, dims, "dtype <f8 (float64)", func(t dtype) bool { return t.kind == 'f' && t.size == 8 })
}

// Numbers reads an array of integers or floats with one of the given numbers
// of dimensions. Integers that float64 does not hold exactly are refused.
func (a *Archive) Numbers(name string, dims ...int) (Array, error) {
	return a.read(name, dims, "an integer dtype, <f4 or <f8", dtype.numeric)
}

func (a *Archive) read(name string, dims []int, want string, accepts func(dtype) bool) (Array, error) {
	entry, err := a.entry(name)
	if err != nil {
		return Array{}, err
	}
	if entry.Flags&1 != 0 {
		return Array{}, a.fault(name, "is encrypted; a plain array is accepted")
	}
	r, err := entry.Open()
	if errors.Is(err, zip.ErrAlgorithm) {
		return Array{}, a.fault(name, "is stored by ZIP method %d; methods 0 (stored) and 8 (deflated) are accepted", entry.Method)
	}
	if err != nil {
		return Array{}, a.damaged(name, err)
	}
	defer r.Close()
	h, err := readHeader(r)
	if err != nil {
		return Array{}, a.damaged(name, err)
	}
	t, known := parseDType(h.descr)
	if !known || !accepts(t) {
		return Array{}, a.fault(name, "has dtype %s; %s is accepted", plainType(h.descr), want)
	}
	if !slices.Contains(dims, len(h.shape)) {
		return Array{}, a.fault(name, "has shape %s; %s is accepted", ShapeText(h.shape), dimensions(dims))
	}
	n, fits := count(h.shape, MaxValues)
	if !fits {
		return Array{}, a.fault(name, "has shape %s; at most %d values are accepted", ShapeText(h.shape), MaxValues)
	}
	data, err := readValues(r, t, n)
	if err != nil {
		return Array{}, a.damaged(name, err)
	}
	if h.fortran {
		data = transpose(data, h.shape)
	}
	return Array{h.shape, data}, nil
}

func (a *Archive) entry(name string) (*zip.File, error) {
	switch e := a.entries[name]; len(e) {
	case 1:
		return e[0], nil
	case 0:
		return nil, fmt.Errorf("%s: has no array %s; found %s", a.path, plain(name), a.found())
	default:
		return nil, a.fault(name, "stands %d times in the archive; one array of that name is accepted", len(e))
	}
}

// found lists the arrays for a sentence.
func (a *Archive) found() string {
	const most = 12
	var out []string
	for i, n := range a.names {
		if i == most {
			out = append(out, fmt.Sprintf("and %d more", len(a.names)-most))
			break
		}
		out = append(out, plain(n))
	}
	if len(out) == 0 {
		return "no arrays"
	}
	return strings.Join(out, ", ")
}

// plain is a name as it is if it is an identifier, else quoted.
func plain(name string) string {
	for _, c := range name {
		if c != '_' && c != '-' && c != '.' && !('0' <= c && c <= '9') && !('a' <= c && c <= 'z') && !('A' <= c && c <= 'Z') {
			return cliutil.Quote(name)
		}
	}
	if name == "" || len(name) > 60 {
		return cliutil.Quote(name)
	}
	return name
}

// plainType is a type's name as it is if it looks like one, else quoted.
func plainType(descr string) string {
	if len(descr) > 1 && (descr[0] == '<' || descr[0] == '>' || descr[0] == '|' || descr[0] == '=') {
		return descr[:1] + plain(descr[1:])
	}
	return plain(descr)
}

func (a *Archive) fault(name, format string, args ...any) error {
	return fmt.Errorf("%s: array %s %s", a.path, plain(name), fmt.Sprintf(format, args...))
}

// damaged words what a reader of an entry met.
func (a *Archive) damaged(name string, err error) error {
	var bad flaw
	var corrupt flate.CorruptInputError
	switch {
	case errors.As(err, &bad):
		return a.fault(name, "%s", string(bad))
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return a.fault(name, "ends before all its values are there; a whole array is accepted")
	case errors.Is(err, zip.ErrChecksum):
		return a.fault(name, "does not match its checksum; an undamaged file is accepted")
	case errors.As(err, &corrupt), errors.Is(err, zip.ErrFormat):
		return a.fault(name, "cannot be decompressed; an undamaged file is accepted")
	}
	return fmt.Errorf("%s: array %s cannot be read: %w", a.path, plain(name), cliutil.Reason(err))
}

// ShapeText is a shape as NumPy prints it.
func ShapeText(shape []int) string {
	var b strings.Builder
	b.WriteByte('(')
	for i, n := range shape {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, n)
	}
	if len(shape) == 1 {
		b.WriteByte(',')
	}
	b.WriteByte(')')
	return b.String()
}

func dimensions(dims []int) string {
	words := make([]string, len(dims))
	for i, d := range dims {
		switch d {
		case 0:
			words[i] = "a single number"
		case 1:
			words[i] = "a one-dimensional array"
		case 2:
			words[i] = "a two-dimensional array"
		default:
			words[i] = fmt.Sprintf("an array of %d dimensions", d)
		}
	}
	return strings.Join(words, " or ")
}

// count is the number of values of a shape, if it is at most limit.
func count(shape []int, limit int) (int, bool) {
	n := 1
	for _, d := range shape {
		if d == 0 {
			return 0, true
		}
	}
	for _, d := range shape {
		if d > limit/n {
			return 0, false
		}
		n *= d
	}
	return n, true
}

// transpose turns Fortran order, where the first index runs fastest, into C
// order.
func transpose(data []float64, shape []int) []float64 {
	out := make([]float64, len(data))
	stride := make([]int, len(shape)) // of Fortran order
	step := 1
	for i, d := range shape {
		stride[i] = step
		step *= d
	}
	index := make([]int, len(shape))
	at := 0
	for i := range out {
		out[i] = data[at]
		for d := len(shape) - 1; d >= 0; d-- {
			index[d]++
			at += stride[d]
			if index[d] < shape[d] {
				break
			}
			at -= stride[d] * shape[d]
			index[d] = 0
		}
	}
	return out
}
