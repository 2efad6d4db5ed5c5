package trace

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// list appends the integers of a JSON list, each from 0 to most (at least
// 10^6), to dst. It returns where the list ends, -1 on a fault.
func (p *Parser) list(line []byte, i int, f Field, most uint64, dst []uint64) ([]uint64, int) {
	if line[i] != '[' {
		return dst, p.wrong(line, i, f)
	}
	i = space(line, i+1)
	if i < len(line) && line[i] == ']' {
		return dst, i + 1
	}
	for {
		var v uint64
		n := 0
		n, i = run(line, i, dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		if v, i = p.element(line, i, f, most); i < 0 {
			return dst, -1
		}
		dst = append(dst, v)
		if i = space(line, i); i == len(line) {
			return dst, p.stop(CutOff, f, i, i)
		}
		switch line[i] {
		case ',':
			i++
		case ']':
			return dst, i + 1
		default:
			return dst, p.stop(WantCommaOrClose, f, i, i)
		}
	}
}

// zeros XORed to eight bytes of text makes every digit its value.
const zeros = 0x3030303030303030

// run stores as many elements as it can take with their comma and as room has
// place for. It returns their number and where it stopped, which may be before
// any element: what it takes is right, the rest is for element.
//
// Nearly all bytes of a trace pass here: an element of up to seven digits and
// its comma are one load. Neighbours mostly have equally many digits, so it
// asks for that first: then the place of the next load does not wait for the
// count of this one.
func run(line []byte, i int, room []uint64) (taken, at int) {
	n := 0            // bits of the digits of the element before
	stop := uint64(1) // the mark of their end
	for taken < len(room) && i+9 <= len(line) {
		if line[i] == ' ' {
			i++
		}
		w := binary.LittleEndian.Uint64(line[i:i+8:i+8]) ^ zeros
		ends := nonDigits(w)
		if ends&(stop<<1-1) != stop {
			if n = bits.TrailingZeros64(ends) &^ 7; uint(n-1) > 55 {
				break
			}
			stop = ends & -ends
		}
		if w>>(n&63)&0xFF != ','^'0' || w&0xFF == 0 && n != 8 {
			break
		}
		room[taken] = eight(w << (-n & 63))
		taken++
		i += n>>3 + 1
	}
	return taken, i
}

// nonDigits marks in their high bits the bytes that are no digits. Marks above
// the lowest one may be wrong: the carry of a byte reaches the bytes above.
func nonDigits(w uint64) uint64 {
	return (w + 0x7676767676767676 | w) & 0x8080808080808080
}

// eight is the value of eight decimal digits, each a byte from 0 to 9, the
// first in the lowest byte. Each step adds ten (hundred, ten thousand) times
// the lower half of every pair to the upper half, and moves the sums down.
func eight(w uint64) uint64 {
	w = w * (10<<8 + 1) >> 8 & 0x00FF00FF00FF00FF
	w = w * (100<<16 + 1) >> 16 & 0x0000FFFF0000FFFF
	return w * (10000<<32 + 1) >> 32
}

// element reads one integer of any length, with the space before it.
func (p *Parser) element(line []byte, i int, f Field, most uint64) (uint64, int) {
	if i = space(line, i); i == len(line) {
		return 0, p.stop(CutOff, f, i, i)
	}
	return p.integer(line, i, f, most)
}

// integer reads an integer from 0 to most.
func (p *Parser) integer(line []byte, i int, f Field, most uint64) (uint64, int) {
	v, end, fits := decimal(line, i)
	if end > i && (end == len(line) || line[end] != '.' && line[end]|0x20 != 'e') &&
		(line[i] != '0' || end == i+1) {
		if !fits || v > most {
			return 0, p.stop(OutOfRange, f, i, end)
		}
		return v, end
	}
	if !p.number(line, i, f) {
		return 0, -1
	}
	if end = p.scan(line, i, f); end < 0 {
		return 0, -1
	}
	return 0, p.stop(WrongType, f, i, end)
}

// decimal is the value of the digits that begin at i, their end, and whether
// the value fits.
func decimal(line []byte, i int) (v uint64, end int, fits bool) {
	start := i
	for i+8 <= len(line) && i-start < 16 {
		w := binary.LittleEndian.Uint64(line[i:i+8:i+8]) ^ zeros
		n := bits.TrailingZeros64(nonDigits(w)) &^ 7
		if n == 0 {
			return v, i, true
		}
		if v != 0 {
			v *= power10(n >> 3)
		}
		v += eight(w << (-n & 63))
		i += n >> 3
		if n < 64 {
			return v, i, true
		}
	}
	for fits = true; i < len(line) && isDigit(line[i]); i++ {
		d := uint64(line[i] - '0')
		if v > (math.MaxUint64-d)/10 {
			fits = false
		}
		v = v*10 + d
	}
	return v, i, fits
}

// power10 is 10^n, for n up to 8.
func power10(n int) uint64 {
	v := uint64(1)
	for ; n > 0; n-- {
		v *= 10
	}
	return v
}
