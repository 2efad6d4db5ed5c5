package tracefile

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// source is an opened trace.
type source struct {
	name   string    // for sentences
	text   io.Reader // the rows
	stored *counter  // what is stored, maybe compressed
	total  int64     // bytes stored, -1: unknown
	coding string    // "gzip", "zstd", "" for plain text
	file   *os.File  // nil: nothing to close
	zstd   *zstd.Decoder
}

// counter counts what is read through it and keeps the last error.
type counter struct {
	r   io.Reader
	n   int64
	err error
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	c.err = err
	return n, err
}

// codings are told by the first bytes, which no JSON text begins with. A file
// whose name promises one must have it.
var codings = []struct{ name, suffix, magic string }{
	{"gzip", ".gz", "\x1f\x8b"},
	{"zstd", ".zst", "\x28\xb5\x2f\xfd"},
}

// open opens the file at path, or standard input.
func open(path string, stdin io.Reader) (*source, error) {
	s := &source{name: path, total: -1}
	if path == Stdin {
		s.name = "standard input"
		if stdin == nil {
			stdin = os.Stdin
		}
		s.stored = &counter{r: stdin}
	} else {
		f, size, err := openFile(path)
		if err != nil {
			return nil, err
		}
		s.file, s.total, s.stored = f, size, &counter{r: f}
	}
	if err := s.decode(path); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// openFile opens anything that can be read but a directory. Its size is -1
// for what is no regular file.
func openFile(path string) (*os.File, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		text := "cannot be opened: " + reason(err)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			text = "no such file"
		case errors.Is(err, fs.ErrPermission):
			text = "may not be read: permission denied"
		}
		return nil, 0, &Error{File: path, Text: text, Err: err}
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		err = &Error{File: path, Text: "cannot be opened: " + reason(err), Err: err}
	case info.IsDir():
		err = &Error{File: path, Text: "is a directory, want a trace file"}
	case info.Mode().IsRegular():
		return f, info.Size(), nil
	default:
		return f, -1, nil
	}
	_ = f.Close()
	return nil, 0, err
}

// decode finds out how the source is stored.
func (s *source) decode(path string) error {
	head := bufio.NewReaderSize(s.stored, 32<<10)
	for _, c := range codings {
		first, err := head.Peek(len(c.magic))
		if string(first) == c.magic {
			s.coding = c.name
			return s.decompress(head)
		}
		if err != nil && err != io.EOF {
			return &Error{File: s.name, Text: "cannot be read: " + reason(err), Err: err}
		}
		if len(first) > 0 && path != Stdin && strings.HasSuffix(strings.ToLower(path), c.suffix) {
			return &Error{File: s.name, Text: "the name ends in " + c.suffix + ", but found " + found(first) +
				" at the start of the file; want " + c.name + " data"}
		}
	}
	s.text = head
	return nil
}

// decompress puts the decoder for the coding between.
func (s *source) decompress(head *bufio.Reader) error {
	var err error
	if s.coding == "gzip" {
		s.text, err = gzip.NewReader(head)
	} else {
		s.zstd, err = zstd.NewReader(head, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
		s.text = s.zstd
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return (&loader{src: s}).readError(err)
	}
	return nil
}

func (s *source) close() {
	if s.zstd != nil {
		s.zstd.Close()
	}
	if s.file != nil {
		_ = s.file.Close() // nothing was written
	}
}
