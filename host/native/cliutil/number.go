package cliutil

import (
	"math"
	"strconv"
)

// AppendPythonFloat appends x as Python's repr and json.dumps spell it:
// shortest digits that round-trip, always with a point or an exponent, and an
// exponent of at least two digits outside 1e-4 <= |x| < 1e16. Numbers that
// JSON lacks become null.
func AppendPythonFloat(dst []byte, x float64) []byte {
	return appendFloat(dst, x, -4, 2)
}

// AppendSerdeFloat appends x as the reference writes its JSON lines:
// like AppendPythonFloat, but plain digits from 1e-5 and exponents without
// padding or plus sign.
func AppendSerdeFloat(dst []byte, x float64) []byte {
	return appendFloat(dst, x, -5, 0)
}

// appendFloat writes plain digits while the decimal exponent is in
// [lowest, 15]; minDigits 2 also asks for the sign of a positive exponent.
func appendFloat(dst []byte, x float64, lowest, minDigits int) []byte {
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
	exponent, _ := strconv.Atoi(string(dst[e+1:]))
	if exponent >= lowest && exponent <= 15 {
		dst = strconv.AppendFloat(dst[:start], x, 'f', -1, 64)
		if exponent >= 0 && math.Trunc(x) == x {
			dst = append(dst, ".0"...)
		}
		return dst
	}
	dst = dst[:e+1]
	if minDigits == 2 {
		return appendPadded(dst, exponent)
	}
	return strconv.AppendInt(dst, int64(exponent), 10)
}

func appendPadded(dst []byte, exponent int) []byte {
	sign := byte('+')
	if exponent < 0 {
		sign, exponent = '-', -exponent
	}
	dst = append(dst, sign)
	if exponent < 10 {
		dst = append(dst, '0')
	}
	return strconv.AppendInt(dst, int64(exponent), 10)
}

// AppendJSONString appends s quoted as serde_json and json.dumps
// (ensure_ascii off) quote it. Bytes that are not UTF-8 become U+FFFD.
func AppendJSONString[T string | []byte](dst []byte, s T) []byte {
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
