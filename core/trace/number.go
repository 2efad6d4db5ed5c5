package trace

import (
	"math"
	"strconv"
)

// scan walks over a JSON number that begins at i. It returns its end, -1 on a
// fault.
func (p *Parser) scan(line []byte, i int, f Field) int {
	start := i
	if line[i] == '-' {
		i++
	}
	if i < len(line) && line[i] == '0' {
		i++
	} else if n := digits(line, i); n > i {
		i = n
	} else {
		return p.short(line, i, start, f)
	}
	if i < len(line) && isDigit(line[i]) { // a leading zero
		return p.stop(BadNumber, f, start, digits(line, i))
	}
	if i < len(line) && line[i] == '.' {
		n := digits(line, i+1)
		if n == i+1 {
			return p.short(line, n, start, f)
		}
		i = n
	}
	if i < len(line) && line[i]|0x20 == 'e' {
		i++
		if i < len(line) && (line[i] == '+' || line[i] == '-') {
			i++
		}
		n := digits(line, i)
		if n == i {
			return p.short(line, n, start, f)
		}
		i = n
	}
	return i
}

// short is the fault of a number that lacks a digit at i.
func (p *Parser) short(line []byte, i, start int, f Field) int {
	if i == len(line) {
		return p.stop(CutOff, f, i, i)
	}
	return p.stop(BadNumber, f, start, i+1)
}

// digits returns where the digits that begin at i end.
func digits(line []byte, i int) int {
	for i < len(line) && isDigit(line[i]) {
		i++
	}
	return i
}

func isDigit(c byte) bool { return c-'0' < 10 }

// number is true if a number may begin at i; if not the value is walked over,
// and it is either of the wrong type or no JSON.
func (p *Parser) number(line []byte, i int, f Field) bool {
	if c := line[i]; isDigit(c) || c == '-' {
		return true
	}
	p.wrong(line, i, f)
	return false
}

// wrong is the fault of a value of another type: its own if it is no JSON.
func (p *Parser) wrong(line []byte, i int, f Field) int {
	end := p.skip(line, i)
	if end < 0 {
		p.fault.Field = f
		return -1
	}
	return p.stop(WrongType, f, i, end)
}

// whole reads an integer from 0 to most, which must fit an int64.
func (p *Parser) whole(line []byte, i int, f Field, most uint64, v *int64) int {
	n, end := p.integer(line, i, f, most)
	if end >= 0 {
		*v = int64(n)
	}
	return end
}

// signed reads an integer from -most-1 to most. "-0" is no integer to the
// reference.
func (p *Parser) signed(line []byte, i int, f Field, most uint64, v *int64) int {
	if line[i] != '-' {
		return p.whole(line, i, f, most, v)
	}
	end := p.scan(line, i, f)
	if end < 0 {
		return -1
	}
	n, last, fits := decimal(line, i+1)
	if last != end || line[i+1] == '0' {
		return p.stop(WrongType, f, i, end)
	}
	if !fits || n > most+1 {
		return p.stop(OutOfRange, f, i, end)
	}
	*v = -int64(n)
	return end
}

// float reads a finite number.
//
// The reference's floats are not correctly rounded and its results depend on
// them, so this follows its rule, found by asking it for thousands of
// literals: the digits go into an integer while that fits 64 bits, with the
// power of ten kept apart; the result is the integer as a float64 multiplied
// (or divided) once by the power of ten. Up to 2^53 and 10^22 that is the
// correctly rounded value, else it may be a few units in the last place off.
func (p *Parser) float(line []byte, i int, f Field, v *float64) int {
	if n, end, fits := decimal(line, i); fits && end < len(line) && (line[end] == ',' || line[end] == '}') &&
		end > i && (line[i] != '0' || end == i+1) {
		*v = float64(n) // most timestamps
		return end
	}
	if !p.number(line, i, f) {
		return -1
	}
	end := p.scan(line, i, f)
	if end < 0 {
		return -1
	}
	text := line[i:end]
	if text[0] == '-' {
		text = text[1:]
	}
	sig, exp, at := significand(text)
	exp, ok := exponent(text[at:], sig, exp)
	if ok {
		*v, ok = scale(float64(sig), exp)
	}
	if !ok {
		return p.stop(OutOfRange, f, i, end)
	}
	if line[i] == '-' {
		*v = -*v
	}
	return end
}

// significand reads the digits before the exponent. The first digit of the
// integer part that does not fit drops the rest of that part (each raises the
// power of ten); the fraction stops at its first digit that does not fit.
func significand(text []byte) (sig uint64, exp int64, at int) {
	for at < len(text) && isDigit(text[at]) {
		d := uint64(text[at] - '0')
		if exp > 0 || sig > (math.MaxUint64-d)/10 {
			exp++
		} else {
			sig = sig*10 + d
		}
		at++
	}
	if at == len(text) || text[at] != '.' {
		return sig, exp, at
	}
	for at++; at < len(text) && isDigit(text[at]); at++ {
		d := uint64(text[at] - '0')
		if sig > (math.MaxUint64-d)/10 {
			break
		}
		sig = sig*10 + d
		exp--
	}
	return sig, exp, digits(text, at)
}

// exponent adds the written exponent, if there is one. One that does not fit
// an int32 makes 0 or an overflow whatever the digits.
func exponent(text []byte, sig uint64, exp int64) (int64, bool) {
	if len(text) == 0 {
		return exp, true
	}
	text = text[1:]
	negative := text[0] == '-'
	if negative || text[0] == '+' {
		text = text[1:]
	}
	e := int64(0)
	for _, c := range text {
		if e = e*10 + int64(c-'0'); e > math.MaxInt32 {
			return math.MinInt32, negative || sig == 0
		}
	}
	if negative {
		e = -e
	}
	return exp + e, true
}

// scale multiplies a significand by a power of ten; false: it overflows.
func scale(v float64, exp int64) (float64, bool) {
	const top = 308 // the greatest power of ten that is a float64
	for exp < -top && v != 0 {
		v /= 1e308
		exp += top
	}
	if v == 0 || exp == 0 {
		return v, true
	}
	if exp < 0 {
		return v / power(-exp), true
	}
	if exp > top {
		return 0, false
	}
	v *= power(exp)
	return v, !math.IsInf(v, 0)
}

// power is 10^n correctly rounded, for n from 1 to 308.
func power(n int64) float64 {
	if n > 22 {
		var text [8]byte
		v, _ := strconv.ParseFloat(string(strconv.AppendInt(append(text[:0], '1', 'e'), n, 10)), 64)
		return v
	}
	v := 10.0
	for ; n > 1; n-- {
		v *= 10 // exact up to 10^22
	}
	return v
}
