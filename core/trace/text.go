package trace

import (
	"encoding/binary"
	"unicode/utf8"
)

// str reads a string that is kept. It returns the text and where the string
// ends, -1 on a fault. Text without escapes lies in the line itself.
func (p *Parser) str(line []byte, i int, f Field) ([]byte, int) {
	if line[i] != '"' {
		return nil, p.wrong(line, i, f)
	}
	end, escapes := p.quoted(line, i, f)
	if end < 0 {
		return nil, -1
	}
	if !escapes {
		return line[i+1 : end-1], end
	}
	return p.unescape(line, i+1, end-1, f), p.after(end)
}

// after is end unless unescape found a fault.
func (p *Parser) after(end int) int {
	if p.fault.Code != OK {
		return -1
	}
	return end
}

// quoted walks over the string that begins at i and checks it. It returns its
// end, -1 on a fault, and whether it has escapes.
func (p *Parser) quoted(line []byte, i int, f Field) (end int, escapes bool) {
	for i = plain(line, i+1); i < len(line); {
		switch c := line[i]; {
		case c == '"':
			return i + 1, escapes
		case c == '\\':
			escapes = true
			if i = p.escape(line, i, f); i < 0 {
				return -1, false
			}
		case c < 0x20:
			return p.stop(ControlByte, f, i, i+1), false
		case c < utf8.RuneSelf:
			i++
		default:
			r, n := utf8.DecodeRune(line[i:])
			if r == utf8.RuneError && n == 1 {
				return p.stop(BadUTF8, f, i, i+1), false
			}
			i += n
		}
	}
	return p.stop(CutOff, f, len(line), len(line)), false
}

// plain returns where the text that needs no look, eight bytes at a time, ends:
// ASCII without quote, backslash and control bytes.
func plain(line []byte, i int) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(line); i += 8 {
		w := binary.LittleEndian.Uint64(line[i : i+8 : i+8])
		quote, slash := w^'"'*ones, w^'\\'*ones
		// Below 0x80 a byte has its high bit set by the subtraction only if it
		// is too small; a borrow reaches only bytes above one that is.
		if (w|(w-' '*ones)|(quote-ones)|(slash-ones))&highs != 0 {
			break
		}
	}
	return i
}

// escape walks over one escape.
func (p *Parser) escape(line []byte, i int, f Field) int {
	if i+1 == len(line) {
		return p.stop(CutOff, f, len(line), len(line))
	}
	switch line[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2
	case 'u':
		for n := i + 2; n < i+6; n++ {
			if n == len(line) {
				return p.stop(CutOff, f, n, n)
			}
			if hex(line[n]) < 0 {
				return p.stop(BadEscape, f, i, n+1)
			}
		}
		return i + 6
	}
	return p.stop(BadEscape, f, i, i+2)
}

// unescape resolves the escapes of line[i:end], which quoted has checked. Half
// a surrogate pair is a fault.
func (p *Parser) unescape(line []byte, i, end int, f Field) []byte {
	start := len(p.text)
	for i < end {
		c := line[i]
		if c != '\\' {
			p.text = append(p.text, c)
			i++
			continue
		}
		c = line[i+1]
		if c != 'u' {
			p.text = append(p.text, plainEscape(c))
			i += 2
			continue
		}
		r, n := unit(line, i), 6
		if 0xD800 <= r && r < 0xE000 {
			low := rune(0)
			if i+12 <= end && line[i+6] == '\\' && line[i+7] == 'u' {
				low = unit(line, i+6)
			}
			if r >= 0xDC00 || low < 0xDC00 || low >= 0xE000 {
				p.stop(LoneSurrogate, f, i, i+6)
				return nil
			}
			r, n = 0x10000+(r-0xD800)<<10+(low-0xDC00), 12
		}
		p.text = utf8.AppendRune(p.text, r)
		i += n
	}
	return p.text[start:]
}

// plainEscape is the byte that a backslash and c stand for.
func plainEscape(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

// unit is the UTF-16 unit of the \u escape at i.
func unit(line []byte, i int) rune {
	r := int32(0)
	for _, c := range line[i+2 : i+6] {
		r = r<<4 | hex(c)
	}
	return r
}

// hex is the value of a hexadecimal digit, -1 if c is none.
func hex(c byte) int32 {
	switch {
	case isDigit(c):
		return int32(c - '0')
	case c|0x20-'a' < 6:
		return int32(c|0x20-'a') + 10
	}
	return -1
}
