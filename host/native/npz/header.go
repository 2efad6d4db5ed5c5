package npz

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/dryserve/dryserve/host/native/cliutil"
)

// maxHeaderBytes bounds the text of an NPY header; NumPy writes under 200.
const maxHeaderBytes = 1 << 16

// maxDims is NumPy's own limit.
const maxDims = 64

// flaw is the rest of a sentence that begins with the array's name.
type flaw string

func (e flaw) Error() string { return string(e) }

func flawf(format string, args ...any) error {
	return flaw(fmt.Sprintf(format, args...))
}

// header is what an NPY file says of its array.
type header struct {
	descr   string // as it stands there, such as <f8, or "record"
	fortran bool
	shape   []int
}

// readHeader reads an NPY file up to the first value.
func readHeader(r io.Reader) (header, error) {
	var start [8]byte
	if _, err := io.ReadFull(r, start[:]); err != nil {
		return header{}, err
	}
	if string(start[:6]) != "\x93NUMPY" {
		return header{}, flawf("is no NPY file: it starts with %s; an array saved by NumPy is accepted", cliutil.Quote(string(start[:6])))
	}
	var length int
	switch major := start[6]; major {
	case 1:
		var b [2]byte
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return header{}, err
		}
		length = int(binary.LittleEndian.Uint16(b[:]))
	case 2, 3:
		var b [4]byte
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return header{}, err
		}
		n := binary.LittleEndian.Uint32(b[:])
		if n > maxHeaderBytes {
			return header{}, flawf("has a header of %d bytes; at most %d are accepted", n, maxHeaderBytes)
		}
		length = int(n)
	default:
		return header{}, flawf("has NPY version %d; versions 1, 2 and 3 are accepted", major)
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(r, text); err != nil {
		return header{}, err
	}
	p := literal{text: string(text)}
	h, ok := p.header()
	if !ok {
		return header{}, flawf("has a damaged NPY header %s; descr, fortran_order and shape are accepted", cliutil.Quote(string(text)))
	}
	return h, nil
}

// literal reads the Python dictionary of an NPY header, and no other Python.
type literal struct {
	text string
	at   int
}

func (p *literal) header() (header, bool) {
	var h header
	seen := map[string]bool{}
	if !p.take('{') {
		return h, false
	}
	for !p.take('}') {
		key, ok := p.quoted()
		if !ok || seen[key] || !p.take(':') {
			return h, false
		}
		seen[key] = true
		switch key {
		case "descr":
			h.descr, ok = p.descr()
		case "fortran_order":
			h.fortran, ok = p.boolean()
		case "shape":
			h.shape, ok = p.tuple()
		default:
			ok = false
		}
		if !ok {
			return h, false
		}
		if !p.take(',') {
			if !p.take('}') {
				return h, false
			}
			break
		}
	}
	p.space()
	return h, p.at == len(p.text) && len(seen) == 3
}

func (p *literal) space() {
	for p.at < len(p.text) && (p.text[p.at] == ' ' || p.text[p.at] == '\n' || p.text[p.at] == '\t' || p.text[p.at] == '\r') {
		p.at++
	}
}

func (p *literal) peek() byte {
	p.space()
	if p.at == len(p.text) {
		return 0
	}
	return p.text[p.at]
}

func (p *literal) take(c byte) bool {
	if p.peek() != c {
		return false
	}
	p.at++
	return true
}

// quoted reads a text in either kind of quotes, without escapes.
func (p *literal) quoted() (string, bool) {
	q := p.peek()
	if q != '\'' && q != '"' {
		return "", false
	}
	start := p.at + 1
	for end := start; end < len(p.text); end++ {
		switch p.text[end] {
		case q:
			p.at = end + 1
			return p.text[start:end], true
		case '\\':
			return "", false
		}
	}
	return "", false
}

// descr reads a type: its name, or the list of fields of a record, which is
// skipped.
func (p *literal) descr() (string, bool) {
	if p.peek() != '[' {
		return p.quoted()
	}
	depth := 0
	for p.at < len(p.text) {
		switch p.peek() {
		case '[', '(':
			depth++
		case ']', ')':
			if depth--; depth == 0 {
				p.at++
				return "record", true
			}
		case '\'', '"':
			if _, ok := p.quoted(); !ok {
				return "", false
			}
			continue
		}
		p.at++
	}
	return "", false
}

func (p *literal) boolean() (bool, bool) {
	p.space()
	for _, w := range []string{"True", "False"} {
		if len(p.text)-p.at >= len(w) && p.text[p.at:p.at+len(w)] == w {
			p.at += len(w)
			return w == "True", true
		}
	}
	return false, false
}

// tuple reads whole numbers in parentheses. Python 2 wrote an L behind them.
func (p *literal) tuple() ([]int, bool) {
	if !p.take('(') {
		return nil, false
	}
	shape := []int{}
	for !p.take(')') {
		p.space()
		start := p.at
		for p.at < len(p.text) && '0' <= p.text[p.at] && p.text[p.at] <= '9' {
			p.at++
		}
		n, err := strconv.ParseUint(p.text[start:p.at], 10, 64)
		if err != nil || len(shape) == maxDims {
			return nil, false
		}
		if p.at < len(p.text) && p.text[p.at] == 'L' {
			p.at++
		}
		shape = append(shape, int(min(n, math.MaxInt)))
		if !p.take(',') {
			return shape, p.take(')')
		}
	}
	return shape, true
}
