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
	d := s.Draw(n, seed)
	for range n {
		dst = append(dst, d.Next())
	}
	return dst
}

// Draw makes an answer token by token.
type Draw struct {
	style *Style
	lots  rng.Wyrand
	think int
	at    int
}

// Draw begins an answer of n tokens: those that Append gives.
func (s *Style) Draw(n int, seed uint64) Draw {
	return Draw{style: s, lots: rng.Wyrand(seed), think: s.Thinking(n)}
}

// Next is the next token.
func (d *Draw) Next() (id uint32) {
	if s := d.style; s.IDs != nil {
		id = s.IDs[d.lots.Below(uint64(len(s.IDs)))]
	} else {
		id = FirstID + uint32(d.lots.Below(EndID-FirstID))
	}
	if d.think > 0 && d.at == 0 {
		id = d.style.Reasoning.Start
	} else if d.think > 0 && d.at == d.think-1 {
		id = d.style.Reasoning.End
	}
	d.at++
	return id
}

// Thinking is how many tokens of an answer of n are thoughts.
func (s *Style) Thinking(n int) int {
	if s.Reasoning == nil {
		return 0
	}
	return s.Reasoning.Thinking(n)
}
