package gen

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"strings"
)

// npyArray is an array as a NumPy archive holds it.
type npyArray struct {
	name    string
	descr   string // of NumPy, for example <f8
	shape   []int
	data    []byte
	fortran bool
}

// floats is an array of float64 in either byte order.
func floats(name string, shape []int, v []float64, big bool) npyArray {
	a := npyArray{name: name, descr: "<f8", shape: shape}
	var order binary.AppendByteOrder = binary.LittleEndian
	if big {
		a.descr, order = ">f8", binary.BigEndian
	}
	for _, x := range v {
		a.data = order.AppendUint64(a.data, math.Float64bits(x))
	}
	return a
}

// npyLayout is how an archive is written; all are the same to a reader.
type npyLayout struct {
	version byte // of the header, 1 to 3
	suffix  bool // names end in .npy
	deflate bool // in blocks that are not made smaller
	padded  bool // headers are filled up as NumPy does
}

// npzArchive writes arrays as a NumPy archive. The bytes depend on nothing
// but the arguments.
func npzArchive(arrays []npyArray, l npyLayout) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, a := range arrays {
		name := a.name
		if l.suffix {
			name += ".npy"
		}
		data := npyFile(a, l)
		h := &zip.FileHeader{Name: name, Method: zip.Store, CRC32: crc32.ChecksumIEEE(data), UncompressedSize64: uint64(len(data))}
		if l.deflate {
			h.Method, data = zip.Deflate, storedBlocks(data)
		}
		h.CompressedSize64 = uint64(len(data))
		w, err := z.CreateRaw(h)
		if err == nil {
			_, err = w.Write(data)
		}
		if err != nil {
			panic(fmt.Sprintf("gen: a buffer does not take %s: %v", name, err))
		}
	}
	if err := z.Close(); err != nil {
		panic(fmt.Sprintf("gen: a buffer does not take a directory: %v", err))
	}
	return b.Bytes()
}

// npyFile is an array with its header.
func npyFile(a npyArray, l npyLayout) []byte {
	dims := make([]string, len(a.shape))
	for i, n := range a.shape {
		dims[i] = fmt.Sprint(n)
	}
	tuple := strings.Join(dims, ", ")
	if len(dims) == 1 {
		tuple += ","
	}
	order := "False"
	if a.fortran {
		order = "True"
	}
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }", a.descr, order, tuple)
	start := 10 // magic, version, length
	if l.version > 1 {
		start = 12
	}
	if l.padded {
		header += strings.Repeat(" ", (64-(start+len(header)+1)%64)%64)
	}
	header += "\n"
	out := append([]byte("\x93NUMPY"), l.version, 0)
	if l.version > 1 {
		out = binary.LittleEndian.AppendUint32(out, uint32(len(header)))
	} else {
		out = binary.LittleEndian.AppendUint16(out, uint16(len(header)))
	}
	return append(append(out, header...), a.data...)
}

// storedBlocks is data as a deflate stream that does not compress: the bytes
// of a compressor could change with its release.
func storedBlocks(data []byte) []byte {
	var out []byte
	for {
		n := min(len(data), math.MaxUint16)
		last := byte(0)
		if n == len(data) {
			last = 1
		}
		out = append(out, last)
		out = binary.LittleEndian.AppendUint16(out, uint16(n))
		out = binary.LittleEndian.AppendUint16(out, ^uint16(n))
		out = append(out, data[:n]...)
		if data = data[n:]; last == 1 {
			return out
		}
	}
}
