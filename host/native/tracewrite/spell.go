package tracewrite

import (
	"math"
	"strconv"

	"github.com/dryserve/dryserve/core/trace"
)

// speller spells times so that a trace's reader gets them back to the last
// bit. Readers follow the reference, which takes the digits as an integer and
// divides once by a power of ten: the shortest digits of a float are not always
// read as that float then, but others nearby mostly are. About one in a hundred
// floats of 17 digits has no digits at all; times out of a trace have some, and
// only differences of them may have none.
type speller struct {
	parse trace.Parser
	row   trace.Row
	line  []byte
	try   []byte
}

// append appends ms; exact: it is read back as it is.
func (s *speller) append(dst []byte, ms float64) (out []byte, exact bool) {
	if ms == math.Trunc(ms) && math.Abs(ms) < 1<<63 {
		return strconv.AppendInt(dst, int64(ms), 10), true
	}
	if s.try = strconv.AppendFloat(s.try[:0], ms, 'g', -1, 64); s.reads(ms) {
		return append(dst, s.try...), true
	}
	_, exp := math.Frexp(ms)
	most := 18 - int(math.Floor(float64(exp)*math.Log10(2))) // digits behind the point, as long as all fit 64 bits
	for _, far := range []uint64{0, 1000} {
		for digits := min(most, 300); digits > max(most-5, 0); digits-- {
			if s.near(ms, digits, far) {
				return append(dst, s.try...), true
			}
		}
	}
	return strconv.AppendFloat(dst, ms, 'g', -1, 64), false
}

// near tries so many digits behind the point, and numbers up to far beside.
func (s *speller) near(ms float64, digits int, far uint64) bool {
	text := strconv.AppendFloat(nil, math.Abs(ms), 'f', digits, 64)
	point := len(text) - digits - 1
	sig, err := strconv.ParseUint(string(text[:point])+string(text[point+1:]), 10, 64)
	if err != nil {
		return false
	}
	for off := uint64(0); off <= far; off++ {
		for _, v := range []uint64{sig + off, sig - off} {
			whole := strconv.FormatUint(v, 10)
			for len(whole) <= digits {
				whole = "0" + whole
			}
			s.try = s.try[:0]
			if ms < 0 {
				s.try = append(s.try, '-')
			}
			s.try = append(append(append(s.try, whole[:len(whole)-digits]...), '.'), whole[len(whole)-digits:]...)
			if s.reads(ms) {
				return true
			}
		}
	}
	return false
}

// reads reports whether try is read as ms.
func (s *speller) reads(ms float64) bool {
	s.line = append(append(append(s.line[:0], `{"output_length":1,"hash_ids":[],"timestamp":`...), s.try...), '}')
	f := s.parse.Line(s.line, &s.row)
	return f.Code == trace.OK && s.row.TimestampMs == ms
}
