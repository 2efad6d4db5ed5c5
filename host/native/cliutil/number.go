package cliutil

import "github.com/dryserve/dryserve/core/jsontext"

// AppendPythonFloat appends x as Python's repr and json.dumps spell it:
// shortest digits that round-trip, always with a point or an exponent, and an
// exponent of at least two digits outside 1e-4 <= |x| < 1e16. Numbers that
// JSON lacks become null.
func AppendPythonFloat(dst []byte, x float64) []byte {
	return jsontext.AppendFloatAs(dst, x, -4, true)
}

// AppendSerdeFloat appends x as the reference writes its JSON lines:
// like AppendPythonFloat, but plain digits from 1e-5 and exponents without
// padding or plus sign.
func AppendSerdeFloat(dst []byte, x float64) []byte { return jsontext.AppendFloat(dst, x) }

// AppendJSONString appends s quoted as serde_json and json.dumps
// (ensure_ascii off) quote it. Bytes that are not UTF-8 become U+FFFD.
func AppendJSONString[T string | []byte](dst []byte, s T) []byte {
	return jsontext.AppendString(dst, s)
}
