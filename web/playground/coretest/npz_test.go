package coretest

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"testing"
)

// gzipped is text in two members of gzip.
func gzipped(t *testing.T, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, part := range [][]byte{text[:len(text)/2], text[len(text)/2:]} {
		w := gzip.NewWriter(&b)
		if _, err := w.Write(part); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// array is an array of a NumPy archive.
type array struct {
	name    string
	descr   string
	fortran bool
	shape   string // as Python has it
	data    []float64
	method  uint16
}

// profileArrays are those of docs/timing.md, each stored in another way.
func profileArrays() []array {
	return []array{
		{"prefill_isl", "<f8", false, "(3,)", []float64{4, 8, 16}, zip.Deflate},
		{"prefill_ttft_ms", ">f8", false, "(3,)", []float64{10, 14, 30}, zip.Store},
		{"decode_active_kv_tokens", "<f8", true, "(3,)", []float64{8, 16, 32}, zip.Store},
		{"decode_context_length", "<f8", false, "(3,)", []float64{4, 8, 16}, zip.Deflate},
		{"decode_itl", "<f8", true, "(3, 3)", []float64{1, 3, 8, 2, 5, 12, 4, 9, 20}, zip.Deflate},
	}
}

func npz(t *testing.T) []byte { return archive(t, profileArrays()) }

// archive is a NumPy archive.
func archive(t *testing.T, arrays []array) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, a := range arrays {
		w, err := z.CreateHeader(&zip.FileHeader{Name: a.name + ".npy", Method: a.method})
		if err == nil {
			err = a.write(w)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func (a array) write(w io.Writer) error {
	order, fortran := binary.ByteOrder(binary.LittleEndian), "False"
	if a.descr[0] == '>' {
		order = binary.BigEndian
	}
	if a.fortran {
		fortran = "True"
	}
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }", a.descr, fortran, a.shape)
	if _, err := fmt.Fprintf(w, "\x93NUMPY\x01\x00%c%c%s", len(header)&255, len(header)>>8, header); err != nil {
		return err
	}
	return binary.Write(w, order, a.data)
}
