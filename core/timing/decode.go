package timing

import (
	"math"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/fmath"
)

const (
	nanosPerMs  = 1e6
	nanosPerSec = 1e9

	// roundMagic added to and subtracted from a float64 below 2^51 rounds it
	// to an integer, ties to even.
	roundMagic = 0x1.8p52

	// nearTie is how far (in ns) the fast paths may round: closer to a tie,
	// the exact path decides. For spans under a second a fast path's value is
	// within 2^-21 ns of the one to be rounded.
	nearTie = 0.5 - 0x1p-18
)

// DecodeStep is Model.Decode for loops over decode passes. Copy it to a local
// variable before the loop and write
//
//	ms := step.Fast(sumLen)
//	if ms < 0 {
//		ms = step.Ms(sumLen)
//	}
//
// where Fast is inlined and Ms is a call. Its zero value is not usable; take
// it from Model.DecodeStep, and call SetBatch once before a loop over passes
// of the same sequences.
//
// The fast paths compute the duration in ns in as few operations as possible,
// not in the order of the reference. Both results are then rounded to whole
// ns, and only within 2^-18 ns of a rounding tie can they differ; there the
// reference's own steps are taken.
type DecodeStep struct {
	square, slope, base float64 // duration in ns before scaling, over the used share
	perToken            float64 // 1/total
	total               int     // KV pool in tokens
	near                float64 // square of nearTie; -1 if Fast must not decide
	scale               float64 // 1/ratio
	scaledNear          float64 // the same for the path with scaling
	decodes             bool    // false: a prefill worker, which charges no decoding
	fixed               bool
	fixedMs             float64
	ratio               float64

	source *source // nil: a formula
	batch  int     // sequences, for sources; 0: nobody said
	hint   hint
}

func newDecodeStep(e config.Engine, src *source) DecodeStep {
	s := DecodeStep{
		total:   e.NumGPUBlocks * e.BlockSize,
		scale:   1,
		near:    nearTie * nearTie,
		decodes: e.Role != config.Prefill,
		fixed:   e.Timing.Kind == config.Fixed,
		fixedMs: e.Timing.DecodeMs,
		ratio:   float64(e.SpeedupRatio * e.DecodeSpeedupRatio),
		source:  src,
	}
	if s.ratio > 0 {
		s.scale = 1 / s.ratio
	}
	longest := 0.0 // ns before scaling
	switch {
	case !s.decodes:
	case src != nil:
		longest = math.Inf(1) // the fast paths know formulas only
	case s.fixed:
		s.base = float64(s.fixedMs * nanosPerMs)
		longest = s.base
	case s.total <= 0:
		s.base = float64(s.rawMs(0) * nanosPerMs)
		longest = s.base
	default:
		s.square = decodeQuadratic * nanosPerMs
		s.slope = decodeLinear * nanosPerMs
		s.base = decodeBase * nanosPerMs
		s.perToken = 1 / float64(s.total)
		longest = (decodeQuadratic + decodeLinear + decodeBase) * nanosPerMs
	}
	s.scaledNear = s.near
	// The fast paths are proved for spans under a second, before and after
	// scaling; !(a < b) also catches NaN.
	if !(longest < 0.99*nanosPerSec) || !(float64(longest*s.scale) < 0.99*nanosPerSec) {
		s.near, s.scaledNear = -1, -1
	}
	if s.scale != 1 {
		s.near = -1
	}
	return s
}

// SetBatch says how many sequences the following calls are about. Formulas
// look at the sum of lengths only, tables and outside providers at both: until
// it is called, Ms is Unknown for them.
func (s *DecodeStep) SetBatch(sequences int) { s.batch = sequences }

// Fast is the duration in ms of decoding one token for each of one or more
// sequences whose lengths sum to sumLen tokens, or -1 if only Ms can tell:
// with tables and speed-up ratios always, else about twice in 10^5 calls.
func (s *DecodeStep) Fast(sumLen int) float64 {
	p := float64(min(sumLen, s.total)) * s.perToken
	y := float64((float64(s.square*p)+s.slope)*p) + s.base
	n := (y + roundMagic) - roundMagic
	if y -= n; float64(y*y) < s.near {
		return n / nanosPerSec * 1000
	}
	return -1
}

// Ms is the same duration in every case; equal to Model.Decode, which may be
// Unknown with an outside provider.
func (s *DecodeStep) Ms(sumLen int) float64 { return s.ms(s.batch, sumLen, &s.hint) }

// ms is Ms for a number of sequences; formulas do not look at it, nor at h.
func (s *DecodeStep) ms(batch, sumLen int, h *hint) float64 {
	p := float64(min(sumLen, s.total)) * s.perToken
	y := float64((float64(s.square*p)+s.slope)*p) + s.base
	n := (y + roundMagic) - roundMagic
	z := float64(n * s.scale)
	k := (z + roundMagic) - roundMagic
	y -= n
	z -= k
	if float64(y*y) < s.scaledNear {
		if float64(z*z) < nearTie*nearTie {
			return k / nanosPerSec * 1000
		}
		// Only the second rounding is in doubt, as for every other duration
		// with a ratio of 2.
		k = float64(fmath.RoundSeconds(n / nanosPerSec / s.ratio).Nanos)
		return k / nanosPerSec * 1000
	}
	return s.exactMs(batch, sumLen, h)
}

// exactMs is ms by the reference's own steps.
func (s *DecodeStep) exactMs(batch, sumLen int, h *hint) float64 {
	if !s.decodes {
		return 0
	}
	if s.source == nil {
		return fmath.ModeledMs(s.rawMs(sumLen), s.ratio)
	}
	raw := s.source.decode(batch, sumLen, h)
	if raw == Unknown {
		return Unknown
	}
	return fmath.ModeledMs(raw, s.ratio)
}

// rawMs is the model's duration before rounding and scaling. An empty pool
// counts as full (engine notes §8.3).
func (s *DecodeStep) rawMs(sumLen int) float64 {
	if s.fixed {
		return s.fixedMs
	}
	p := 1.0
	if s.total > 0 {
		p = min(float64(sumLen)/float64(s.total), 1)
	}
	raw := float64(decodeQuadratic*float64(p*p)) + float64(decodeLinear*p) + decodeBase
	return max(decodeFloor, raw)
}
