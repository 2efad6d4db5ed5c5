package npz

import (
	"encoding/binary"
	"io"
	"math"
	"strconv"
)

// dtype is the type of an array's values.
type dtype struct {
	order binary.ByteOrder
	kind  byte // f, i, u, or another letter of NumPy's
	size  int  // bytes
}

// parseDType reads a name such as <f8. It reports false for what is no simple
// type at all.
func parseDType(name string) (dtype, bool) {
	if len(name) < 3 {
		return dtype{}, false
	}
	t := dtype{order: binary.LittleEndian, kind: name[1]}
	switch name[0] {
	case '>':
		t.order = binary.BigEndian
	case '<', '|', '=':
	default:
		return dtype{}, false
	}
	size, err := strconv.ParseUint(name[2:], 10, 16)
	t.size = int(size)
	return t, err == nil
}

// numeric reports whether values are integers or floats that can be read.
func (t dtype) numeric() bool {
	switch t.kind {
	case 'f':
		return t.size == 4 || t.size == 8
	case 'i', 'u':
		return t.size == 1 || t.size == 2 || t.size == 4 || t.size == 8
	}
	return false
}

// value is the number in b, which has size bytes. It reports false for an
// integer that a float64 does not hold.
func (t dtype) value(b []byte) (float64, bool) {
	var bits uint64
	switch t.size {
	case 1:
		bits = uint64(b[0])
	case 2:
		bits = uint64(t.order.Uint16(b))
	case 4:
		bits = uint64(t.order.Uint32(b))
	case 8:
		bits = t.order.Uint64(b)
	}
	switch t.kind {
	case 'f':
		if t.size == 4 {
			return float64(math.Float32frombits(uint32(bits))), true
		}
		return math.Float64frombits(bits), true
	case 'u':
		return float64(bits), bits <= 1<<53
	}
	unused := 64 - 8*t.size
	n := int64(bits<<unused) >> unused
	return float64(n), -(1<<53) <= n && n <= 1<<53
}

// readValues reads n values and expects the end after them. Memory grows with
// what is read.
func readValues(r io.Reader, t dtype, n int) ([]float64, error) {
	const chunk = 1 << 13 // values
	buf := make([]byte, min(n, chunk)*t.size)
	data := make([]float64, 0, min(n, chunk))
	for len(data) < n {
		b := buf[:min(n-len(data), chunk)*t.size]
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, err
		}
		for ; len(b) > 0; b = b[t.size:] {
			x, exact := t.value(b)
			if !exact {
				return nil, flawf("holds an integer beyond 2^53 at index %d; smaller ones are accepted", len(data))
			}
			data = append(data, x)
		}
	}
	// The checksum is compared at the end only.
	var extra [1]byte
	switch _, err := io.ReadFull(r, extra[:]); err {
	case io.EOF:
		return data, nil
	case nil:
		return nil, flawf("holds more bytes than its shape and dtype say; exactly that many are accepted")
	default:
		return nil, err
	}
}
