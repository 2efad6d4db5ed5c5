package corewasm

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// Slim takes out of a module that the Go linker has made what only tracebacks
// read: names of functions and files, line numbers, which calls were inlined,
// how arguments print. The module runs as before; a goroutine's trace after a
// fault has no names. It refuses a module whose tables it does not find.
func Slim(module []byte) ([]byte, error) {
	sections, err := sectionsOf(module)
	if err != nil {
		return nil, err
	}
	out := append([]byte(nil), module[:headBytes]...)
	for _, s := range sections {
		content := s.content
		if s.id == dataSection {
			m, err := memoryOf(content)
			if err != nil {
				return nil, err
			}
			if err := m.slim(); err != nil {
				return nil, err
			}
			content = m.section()
		}
		out = append(out, s.id)
		out = binary.AppendUvarint(out, uint64(len(content)))
		out = append(out, content...)
	}
	return out, nil
}

const (
	headBytes   = 8 // of a module: magic and version
	dataSection = 11
)

var errModule = errors.New("it is no module that the Go linker has made")

type section struct {
	id      byte
	content []byte
}

func sectionsOf(module []byte) (all []section, err error) {
	if len(module) < headBytes || !bytes.Equal(module[:4], []byte("\x00asm")) {
		return nil, errModule
	}
	for rest := module[headBytes:]; len(rest) > 0; {
		n, k := binary.Uvarint(rest[1:])
		if k <= 0 || n > uint64(len(rest)-1-k) {
			return nil, errModule
		}
		all = append(all, section{rest[0], rest[1+k:][:n]})
		rest = rest[1+k+int(n):]
	}
	return all, nil
}

// memory is what a module's memory begins with. Bytes that no segment sets are
// 0.
type memory []byte

// memoryOf lays the segments of a data section into memory.
func memoryOf(content []byte) (m memory, err error) {
	count, k := binary.Uvarint(content)
	if k <= 0 {
		return nil, errModule
	}
	content = content[k:]
	for range count {
		if len(content) < 2 || content[0] != 0 || content[1] != 0x41 { // memory 0, i32.const
			return nil, errModule
		}
		at, k := signed(content[2:])
		if k == 0 || at < 0 || len(content) < 3+k || content[2+k] != 0x0B {
			return nil, errModule
		}
		content = content[3+k:]
		n, k := binary.Uvarint(content)
		if k <= 0 || n > uint64(len(content)-k) {
			return nil, errModule
		}
		if end := int(at) + int(n); end > len(m) {
			m = append(m, make([]byte, end-len(m))...)
		}
		copy(m[at:], content[k:][:n])
		content = content[k+int(n):]
	}
	return m, nil
}

// signed reads a signed LEB128 number of k bytes; 0: there is none.
func signed(b []byte) (n int64, k int) {
	for shift := 0; k < len(b) && shift < 64; {
		c := b[k]
		n |= int64(c&0x7F) << shift
		shift += 7
		k++
		if c < 0x80 {
			if c&0x40 != 0 && shift < 64 {
				n |= -1 << shift
			}
			return n, k
		}
	}
	return 0, 0
}

// appendSigned writes one.
func appendSigned(b []byte, n int64) []byte {
	for {
		c := byte(n & 0x7F)
		n >>= 7
		if n == 0 && c&0x40 == 0 || n == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

// section is memory as a data section: segments without the zeroes between
// them, where leaving them out saves bytes.
func (m memory) section() []byte {
	const worth = 8 // bytes of a segment's head, about
	var segments []byte
	count := uint64(0)
	for at := 0; at < len(m); {
		if m[at] == 0 {
			at++
			continue
		}
		end, zeroes := at, 0
		for i := at; i < len(m) && zeroes < worth; i++ {
			if zeroes++; m[i] != 0 {
				end, zeroes = i+1, 0
			}
		}
		segments = append(appendSigned(append(segments, 0, 0x41), int64(at)), 0x0B)
		segments = binary.AppendUvarint(segments, uint64(end-at))
		segments = append(segments, m[at:end]...)
		count++
		at = end
	}
	return append(binary.AppendUvarint(nil, count), segments...)
}
