package trace

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// MaxLine is the default limit on the length of a line, in bytes.
const MaxLine = 64 << 20

// Splitter cuts a stream of chunks into lines. Lines end in LF or CR LF, the
// last one may end with the stream. Blank lines (white space only, Unicode's
// as in the reference) are counted and skipped.
//
// Feed a chunk, call Next until it says false, feed the next; after the last
// chunk call Close, then Next once more. A line is handed out where it lies in
// its chunk; only a line that spans chunks is copied.
type Splitter struct {
	max   int
	line  int64  // number of lines handed out or skipped
	chunk []byte // what of the current chunk is not consumed yet
	tail  []byte // beginning of a line whose end has not been seen
	spent bool   // tail was handed out by the last Next
	ended bool
	fault Fault
}

// NewSplitter makes a splitter whose lines have at most maxLine bytes.
func NewSplitter(maxLine int) *Splitter { return &Splitter{max: maxLine} }

// Feed hands over the next chunk, which must stay unchanged until Next says
// false. All lines of the chunk before must have been taken.
func (s *Splitter) Feed(chunk []byte) { s.chunk = chunk }

// Close says that the stream has ended.
func (s *Splitter) Close() { s.ended = true }

// Line is the number, from 1, of the line that Next returned last or that
// Fault is about.
func (s *Splitter) Line() int64 { return s.line }

// Fault is LineTooLong once a line was too long, for ever.
func (s *Splitter) Fault() Fault { return s.fault }

// Next returns the next line that is not blank, without its end; it is valid
// until the next call. False means that another chunk is needed, that the
// stream has ended, or that there is a Fault.
func (s *Splitter) Next() ([]byte, bool) {
	for {
		line, ok := s.next()
		if !ok {
			return nil, false
		}
		s.line++
		if n := len(line); n > 0 && line[n-1] == '\r' {
			line = line[:n-1]
		}
		if !Blank(line) {
			return line, true
		}
	}
}

// next returns the next line, blank or not, with a CR but without its LF.
func (s *Splitter) next() ([]byte, bool) {
	if s.spent {
		s.tail, s.spent = s.tail[:0], false
	}
	if s.fault.Code != OK {
		return nil, false
	}
	n := newline(s.chunk)
	if len(s.tail)+n > s.max {
		s.line++
		s.fault = Fault{Code: LineTooLong}
		return nil, false
	}
	if n == len(s.chunk) { // no end in sight
		s.tail = append(s.tail, s.chunk...)
		s.chunk = nil
		if !s.ended || len(s.tail) == 0 {
			return nil, false
		}
		s.spent = true
		return s.tail, true
	}
	line := s.chunk[:n]
	s.chunk = s.chunk[n+1:]
	if len(s.tail) > 0 {
		s.tail = append(s.tail, line...)
		line, s.spent = s.tail, true
	}
	return line, true
}

// newline is the offset of the first LF in b, len(b) if there is none.
func newline(b []byte) int {
	i := 0
	for ; i+32 <= len(b); i += 32 {
		w := b[i : i+32 : i+32]
		if lf(w[:8])|lf(w[8:16])|lf(w[16:24])|lf(w[24:]) != 0 {
			break
		}
	}
	for ; i+8 <= len(b); i += 8 {
		if z := lf(b[i : i+8 : i+8]); z != 0 {
			return i + bits.TrailingZeros64(z)>>3
		}
	}
	for ; i < len(b); i++ {
		if b[i] == '\n' {
			return i
		}
	}
	return len(b)
}

// lf marks the LFs among eight bytes in their high bits; marks above the
// lowest may be wrong, because a LF's borrow reaches the bytes above.
func lf(b []byte) uint64 {
	const ones = 0x0101010101010101
	w := binary.LittleEndian.Uint64(b) ^ '\n'*ones
	return (w - ones) &^ w & 0x8080808080808080
}

// Blank reports whether a line holds nothing but white space.
func Blank(line []byte) bool {
	for i := 0; i < len(line); {
		c := line[i]
		if c == ' ' || c-'\t' < 5 {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			return false
		}
		r, n := utf8.DecodeRune(line[i:])
		if !wideSpace(r) {
			return false
		}
		i += n
	}
	return true
}

// wideSpace reports whether r, not ASCII, is white space to Unicode.
func wideSpace(r rune) bool {
	switch r {
	case 0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000:
		return true
	}
	return 0x2000 <= r && r <= 0x200A
}
