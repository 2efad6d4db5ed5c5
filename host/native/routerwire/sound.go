package routerwire

import (
	"encoding/binary"
	"errors"
)

// maxNesting bounds how deep a message may be nested.
const maxNesting = 32

// errUnsound says that a message ends before what it announces.
var errUnsound = errors.New("the message is cut off, nested too deep, or no MessagePack")

// sound checks that a message is one value whose lengths its bytes bear out, so
// that reading it asks for no more memory than it is worth.
func sound(data []byte) error {
	rest, ok := skip(data, 0)
	if !ok || len(rest) > 0 {
		return errUnsound
	}
	return nil
}

// skip returns what follows the first value of data.
func skip(data []byte, depth int) (rest []byte, ok bool) {
	if len(data) == 0 || depth > maxNesting {
		return nil, false
	}
	code, data := data[0], data[1:]
	switch {
	case code <= 0x7f, code >= 0xe0, code == 0xc0, code == 0xc2, code == 0xc3:
		return data, true
	case code <= 0x8f:
		return skipMany(data, 2*uint64(code&0x0f), depth)
	case code <= 0x9f:
		return skipMany(data, uint64(code&0x0f), depth)
	case code <= 0xbf:
		return skipBytes(data, uint64(code&0x1f))
	case code >= 0xd4 && code <= 0xd8: // ext of 1 to 16 bytes
		return skipBytes(data, 1+1<<(code-0xd4))
	}
	width, after := uint64(0), uint64(0) // of a length, and bytes behind it
	switch code {
	case 0xcc, 0xd0:
		return skipBytes(data, 1)
	case 0xcd, 0xd1:
		return skipBytes(data, 2)
	case 0xca, 0xce, 0xd2:
		return skipBytes(data, 4)
	case 0xcb, 0xcf, 0xd3:
		return skipBytes(data, 8)
	case 0xc4, 0xd9:
		width = 1
	case 0xc5, 0xda, 0xdc, 0xde:
		width = 2
	case 0xc6, 0xdb, 0xdd, 0xdf:
		width = 4
	case 0xc7, 0xc8, 0xc9: // ext: a type as well
		width, after = 1<<(code-0xc7), 1
	default:
		return nil, false
	}
	if uint64(len(data)) < width {
		return nil, false
	}
	var word [8]byte
	copy(word[8-width:], data)
	n := binary.BigEndian.Uint64(word[:])
	data = data[width:]
	switch code {
	case 0xdc, 0xdd:
		return skipMany(data, n, depth)
	case 0xde, 0xdf:
		return skipMany(data, 2*n, depth)
	}
	return skipBytes(data, n+after)
}

func skipBytes(data []byte, n uint64) (rest []byte, ok bool) {
	if uint64(len(data)) < n {
		return nil, false
	}
	return data[n:], true
}

func skipMany(data []byte, n uint64, depth int) (rest []byte, ok bool) {
	if uint64(len(data)) < n { // each takes a byte
		return nil, false
	}
	for ; n > 0; n-- {
		if data, ok = skip(data, depth+1); !ok {
			return nil, false
		}
	}
	return data, true
}
