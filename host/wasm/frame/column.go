package frame

import (
	"encoding/binary"
	"math"
)

// Floats appends a column of numbers to b.
func Floats(b []byte, column []float64) []byte {
	for _, x := range column {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return b
}

// AppendFloats appends the numbers of a column to dst; bytes left over are no
// number.
func AppendFloats(dst []float64, column []byte) []float64 {
	for ; len(column) >= 8; column = column[8:] {
		dst = append(dst, math.Float64frombits(binary.LittleEndian.Uint64(column)))
	}
	return dst
}

// Ints appends a column of numbers to b.
func Ints(b []byte, column []int32) []byte {
	for _, n := range column {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	return b
}

// AppendInts appends the numbers of a column to dst; bytes left over are no
// number.
func AppendInts(dst []int32, column []byte) []int32 {
	for ; len(column) >= 4; column = column[4:] {
		dst = append(dst, int32(binary.LittleEndian.Uint32(column)))
	}
	return dst
}

// Longs appends a column of numbers to b.
func Longs(b []byte, column []int64) []byte {
	for _, n := range column {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	return b
}

// AppendLongs appends the numbers of a column to dst; bytes left over are no
// number.
func AppendLongs(dst []int64, column []byte) []int64 {
	for ; len(column) >= 8; column = column[8:] {
		dst = append(dst, int64(binary.LittleEndian.Uint64(column)))
	}
	return dst
}
