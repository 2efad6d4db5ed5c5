package workload

import "math"

// BlockSizes compares the trace block size with what the rows say: a row of
// input_length I with n hash ids was written with a block size b for which
// ceil(I/b) is n. Rows without input_length say nothing.
type BlockSizes struct {
	Rows      int64 // rows for which the given block size is not such a b
	FirstLine int64 // the first of them
	Min, Max  int64 // the b's right for every row, Min > Max: there is none; Max math.MaxInt64: no bound
}

// note adds a row of n > 0 ids and length > 0 tokens, which need n blocks of
// the given block size.
func (s *BlockSizes) note(length, n, need, line int64) {
	if need != n {
		if s.Rows == 0 {
			s.FirstLine = line
		}
		s.Rows++
	}
	s.Min = max(s.Min, ceilDiv(length, n))
	if n > 1 {
		s.Max = min(s.Max, ceilDiv(length, n-1)-1)
	}
}

// Fit is the block size to propose: one right for every row, a power of two
// if possible. False: there is none.
func (s *BlockSizes) Fit() (int64, bool) {
	if s.Min > s.Max {
		return 0, false
	}
	for b := int64(1); b > 0 && b <= s.Max; b *= 2 {
		if b >= s.Min {
			return b, true
		}
	}
	return s.Min, true
}

// all is a BlockSizes before any row.
func all() BlockSizes { return BlockSizes{Min: 1, Max: math.MaxInt64} }

// ceilDiv is a/b rounded up, for a >= 0 and b > 0.
func ceilDiv(a, b int64) int64 {
	q := a / b
	if q*b < a {
		q++
	}
	return q
}
