// Package jsontext spells numbers and strings as the reference's serializer
// (Rust's serde_json) does, where their text is hashed or compared.
//
// It owns the spelling only. Invariant: appending within the capacity
// allocates nothing.
package jsontext

import (
	"math"
	"strconv"
)

// AppendFloat appends x with the fewest digits that round-trip, always with a
// point or an exponent; plain digits from 1e-5 up to below 1e16, exponents
// without padding or plus sign. What is no number becomes null.
func AppendFloat(dst []byte, x float64) []byte {
	return AppendFloatAs(dst, x, -5, false)
}

// AppendFloatAs is AppendFloat with plain digits from 10^lowest, and, if
// padded, with a sign and at least two digits in exponents.
func AppendFloatAs(dst []byte, x float64, lowest int, padded bool) []byte {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return append(dst, "null"...)
	}
	// Whole numbers of moderate size are the most frequent case and need no
	// shortest-digits search.
	if a := math.Abs(x); a < 1e15 && a == math.Trunc(a) {
		if math.Signbit(x) {
			dst = append(dst, '-')
		}
		return append(strconv.AppendUint(dst, uint64(a), 10), ".0"...)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, x, 'e', -1, 64)
	e := len(dst) - 1
	for dst[e] != 'e' {
		e--
	}
	exponent := int(dst[len(dst)-1]-'0') + 10*int(dst[len(dst)-2]-'0') // at least two digits
	if e+4 < len(dst) {
		exponent += 100 * int(dst[e+2]-'0')
	}
	if dst[e+1] == '-' {
		exponent = -exponent
	}
	if exponent >= lowest && exponent <= 15 {
		dst = strconv.AppendFloat(dst[:start], x, 'f', -1, 64)
		if exponent >= 0 && math.Trunc(x) == x {
			dst = append(dst, ".0"...)
		}
		return dst
	}
	if padded {
		return dst
	}
	return strconv.AppendInt(dst[:e+1], int64(exponent), 10)
}

// AppendString appends s quoted. Bytes that are not UTF-8 become U+FFFD.
func AppendString[T string | []byte](dst []byte, s T) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for _, r := range string(s) {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, '\\', 'n')
		case r == '\r':
			dst = append(dst, '\\', 'r')
		case r == '\t':
			dst = append(dst, '\\', 't')
		case r == '\b':
			dst = append(dst, '\\', 'b')
		case r == '\f':
			dst = append(dst, '\\', 'f')
		case r < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			dst = append(dst, string(r)...)
		}
	}
	return append(dst, '"')
}
