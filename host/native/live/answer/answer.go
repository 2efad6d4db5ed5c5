// Package answer is what a live worker answers: token ids.
//
// It owns which ids an answer has: random ones, those of a reasoning model, or
// those that a trace has recorded. It does not own when they come (live/worker)
// or how they read (live/tokenizer). The scheduler's own ids are another matter:
// they name blocks.
//
// Invariants: an answer has exactly the length that is asked for, unless a trace
// has recorded it; equal seeds give equal answers.
//
// Source: live notes §3.6.
package answer

import (
	"math"

	"github.com/dryserve/dryserve/core/rng"
)

// Ids of random tokens are FirstID to EndID-1, where nothing else is said.
const (
	FirstID = 1000
	EndID   = 2000
)

// Reasoning shapes answers like those of a reasoning model: they begin with
// Start, and End closes the thoughts.
type Reasoning struct {
	Start, End uint32
	Ratio      float64 // of the answer that is thoughts, 0 to 1
}

// Thinking is how many tokens of an answer of n are thoughts, Start and End
// included; 0 or from 2 on.
func (r Reasoning) Thinking(n int) int {
	think := int(math.Floor(float64(n) * r.Ratio))
	if n < 2 || think == 0 {
		return 0
	}
	return min(max(think, 2), n)
}

// Style is how answers are made. The zero value makes random ones.
type Style struct {
	Reasoning *Reasoning
	// IDs are those that random tokens are drawn from; nil: FirstID to EndID-1.
	IDs []uint32
}

// Append appends an answer of n tokens.
func (s *Style) Append(dst []uint32, n int, seed uint64) []uint32 {
	lots := rng.Wyrand(seed)
	first := len(dst)
	for range n {
		if s.IDs != nil {
			dst = append(dst, s.IDs[lots.Below(uint64(len(s.IDs)))])
			continue
		}
		dst = append(dst, FirstID+uint32(lots.Below(EndID-FirstID)))
	}
	if think := s.Thinking(n); think > 0 {
		dst[first], dst[first+think-1] = s.Reasoning.Start, s.Reasoning.End
	}
	return dst
}

// Thinking is how many tokens of an answer of n are thoughts.
func (s *Style) Thinking(n int) int {
	if s.Reasoning == nil {
		return 0
	}
	return s.Reasoning.Thinking(n)
}
