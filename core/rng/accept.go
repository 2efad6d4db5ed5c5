package rng

// Chance is a probability in the form of a draw: an outcome of this chance
// happens when the next 64 bits are below it.
type Chance struct {
	below   uint64
	certain bool // probability 1; needs no draw
}

// NewChance turns a probability in [0,1] into a Chance: floor(p * 2^64).
func NewChance(p float64) Chance {
	if p >= 1 {
		return Chance{certain: true}
	}
	if !(p > 0) {
		return Chance{}
	}
	return Chance{below: uint64(p * 0x1p64)}
}

// Happens draws once and reports whether the outcome happened. A certain one
// draws nothing, an impossible one does draw.
func (s *Stream) Happens(c Chance) bool {
	return c.certain || s.Uint64() < c.below
}

// Bursts draws how many tokens the steps of speculative decoding yield.
type Bursts struct {
	stream Stream
	drafts []Chance
}

// NewBursts draws from the stream of a seed; rates are the chances in [0,1] of
// each drafted token after the one before it.
func NewBursts(seed uint64, rates []float64) Bursts {
	b := Bursts{stream: New(seed)}
	for _, p := range rates {
		b.drafts = append(b.drafts, NewChance(p))
	}
	return b
}

// Most is the largest number of tokens a step can yield.
func (b *Bursts) Most() int { return 1 + len(b.drafts) }

// Next is the number of tokens the next step yields, from 1 to Most.
func (b *Bursts) Next() int { return b.stream.Accept(b.drafts) }

// Accept is the number of tokens a step of speculative decoding yields: one,
// and one more for each of the drafted tokens that is accepted, until the
// first that is not (engine notes §9).
func (s *Stream) Accept(drafts []Chance) int {
	n := 1
	for _, c := range drafts {
		if !s.Happens(c) {
			break
		}
		n++
	}
	return n
}
