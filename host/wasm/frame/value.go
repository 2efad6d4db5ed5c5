package frame

import (
	"encoding/binary"
	"math"
)

// kind is the family of a msgpack value.
type kind uint8

const (
	bad kind = iota
	null
	boolean
	integer // whole is the number
	natural // above the largest int64; whole holds its bits
	float
	text
	bytes
	mapping // whole is the number of pairs
)

// value is one msgpack value, or the head of a map.
type value struct {
	kind  kind
	whole int64
	real  float64
	bytes []byte // of text and bytes, within the frame
}

// reader goes through a frame.
type reader struct {
	b  []byte
	at int
}

// take returns the next n bytes; false: the frame is too short.
func (r *reader) take(n uint64) ([]byte, bool) {
	if n > uint64(len(r.b)-r.at) {
		return nil, false
	}
	b := r.b[r.at : r.at+int(n) : r.at+int(n)]
	r.at += int(n)
	return b, true
}

// number reads a big-endian number of 1, 2, 4 or 8 bytes.
func (r *reader) number(width int) (uint64, bool) {
	b, ok := r.take(uint64(width))
	if !ok {
		return 0, false
	}
	n := uint64(0)
	for _, c := range b {
		n = n<<8 | uint64(c)
	}
	return n, true
}

// next reads one value. Arrays, extensions and the byte that msgpack leaves
// unused are bad, as is a value that the frame ends in; then at stays.
func (r *reader) next() value {
	start := r.at
	v := r.read()
	if v.kind == bad {
		r.at = start
	}
	return v
}

func (r *reader) read() value {
	head, ok := r.number(1)
	if !ok {
		return value{}
	}
	switch {
	case head < 0x80:
		return value{kind: integer, whole: int64(head)}
	case head < 0x90:
		return value{kind: mapping, whole: int64(head & 15)}
	case head >= 0xE0:
		return value{kind: integer, whole: int64(int8(head))}
	case head >= 0xA0 && head < 0xC0:
		return r.long(text, head&31, true)
	}
	switch head {
	case 0xC0:
		return value{kind: null}
	case 0xC2, 0xC3:
		return value{kind: boolean, whole: int64(head & 1)}
	case 0xC4, 0xC5, 0xC6:
		n, ok := r.number(1 << (head - 0xC4))
		return r.long(bytes, n, ok)
	case 0xCA, 0xCB:
		return r.float(head)
	case 0xCC, 0xCD, 0xCE, 0xCF:
		n, ok := r.number(1 << (head - 0xCC))
		return unsigned(n, ok)
	case 0xD0, 0xD1, 0xD2, 0xD3:
		width := 1 << (head - 0xD0)
		n, ok := r.number(width)
		return only(ok, value{kind: integer, whole: int64(n<<(64-8*width)) >> (64 - 8*width)})
	case 0xD9, 0xDA, 0xDB:
		n, ok := r.number(1 << (head - 0xD9))
		return r.long(text, n, ok)
	case 0xDE, 0xDF:
		n, ok := r.number(2 << (head - 0xDE))
		return only(ok, value{kind: mapping, whole: int64(n)})
	}
	return value{}
}

func only(ok bool, v value) value {
	if !ok {
		return value{}
	}
	return v
}

func unsigned(n uint64, ok bool) value {
	v := value{kind: integer, whole: int64(n)}
	if n > math.MaxInt64 {
		v.kind = natural
	}
	return only(ok, v)
}

func (r *reader) long(k kind, n uint64, ok bool) value {
	if !ok {
		return value{}
	}
	b, ok := r.take(n)
	return only(ok, value{kind: k, bytes: b})
}

func (r *reader) float(head uint64) value {
	if head == 0xCA {
		n, ok := r.number(4)
		return only(ok, value{kind: float, real: float64(math.Float32frombits(uint32(n)))})
	}
	n, ok := r.number(8)
	return only(ok, value{kind: float, real: math.Float64frombits(n)})
}

// appendHead writes the head of text, bytes or a map of n bytes or pairs: its
// short form below short, else the first code of those for 8, 16 and 32 bits.
func appendHead(b []byte, n int, fix byte, short int, codes [3]byte) []byte {
	switch {
	case n < short:
		return append(b, fix|byte(n))
	case n < 1<<8 && codes[0] != 0:
		return append(b, codes[0], byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, codes[1]), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(b, codes[2]), uint32(n))
}

func appendMap(b []byte, pairs int) []byte {
	return appendHead(b, pairs, 0x80, 16, [3]byte{0, 0xDE, 0xDF})
}

func appendText(b []byte, s string) []byte {
	return append(appendHead(b, len(s), 0xA0, 32, [3]byte{0xD9, 0xDA, 0xDB}), s...)
}

func appendBytesHead(b []byte, n int) []byte {
	return appendHead(b, n, 0, 0, [3]byte{0xC4, 0xC5, 0xC6})
}

func appendNatural(b []byte, n uint64) []byte {
	switch {
	case n < 1<<7:
		return append(b, byte(n))
	case n < 1<<8:
		return append(b, 0xCC, byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, 0xCD), uint16(n))
	case n < 1<<32:
		return binary.BigEndian.AppendUint32(append(b, 0xCE), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(b, 0xCF), n)
}

func appendWhole(b []byte, n int64) []byte {
	switch {
	case n >= 0:
		return appendNatural(b, uint64(n))
	case n >= -1<<5:
		return append(b, byte(n))
	case n >= math.MinInt8:
		return append(b, 0xD0, byte(n))
	case n >= math.MinInt16:
		return binary.BigEndian.AppendUint16(append(b, 0xD1), uint16(n))
	case n >= math.MinInt32:
		return binary.BigEndian.AppendUint32(append(b, 0xD2), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(b, 0xD3), uint64(n))
}

func appendReal(b []byte, x float64) []byte {
	return binary.BigEndian.AppendUint64(append(b, 0xCB), math.Float64bits(x))
}

func appendBool(b []byte, x bool) []byte {
	if x {
		return append(b, 0xC3)
	}
	return append(b, 0xC2)
}
