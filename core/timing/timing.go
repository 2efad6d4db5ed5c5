// Package timing turns what a pass computes into how long it takes.
//
// It owns the timing models (the built-in formulas, interpolation in decoded
// tables, the answers of an outside provider), the speed-up ratios and the
// rounding to whole nanoseconds. It does not own the clock, nor what a pass
// contains: schedulers ask with counts and add the answers. It reads no files
// and calls no provider: tables and answers are given to it.
//
// Invariants: an answer is finite, not negative, and a function of its
// arguments, the configuration and the outside provider's answers only; asking
// allocates nothing. The one negative answer is Unknown.
//
// Source of behaviour: engine notes §8.1 to §8.6; grids are our own.
package timing

import (
	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/fmath"
)

// Coefficients of the reference's uncalibrated polynomials, in ms. Prefill is
// over computed tokens, decode over the used share of the KV pool.
const (
	prefillQuadratic = 4.209989e-07
	prefillLinear    = 1.518344e-02
	prefillBase      = 1.650142e+01
	decodeQuadratic  = -25.74
	decodeLinear     = 54.01
	decodeBase       = 5.74
	decodeFloor      = 1
)

// Model gives pass durations in milliseconds, already quantised to whole
// nanoseconds and scaled by the speed-up ratios, ready to be added to a clock:
// decoding starts at now + Prefill(...) and the pass ends at that plus
// Decode(...), added in this order.
//
// Raw durations are not checked: the fixed ones and the tables must have
// passed config's check. The reference aborts on a duration of 2^64 s or more,
// before or after scaling; the model gives fmath.MaxModeledMs then.
//
// With an outside provider Prefill, Decode and End may be Unknown; Cache says
// how a scheduler goes on. Otherwise they never are.
type Model struct {
	fixed        bool
	prefills     bool    // false: a decode worker, which charges no prefill
	prefillMs    float64 // of the fixed model
	prefillRatio float64
	source       *source // nil: a formula
	step         DecodeStep
}

// New builds the model of one rank. Its KV pool holds NumGPUBlocks*BlockSize
// tokens. A ratio of 0 leaves durations as they are; decoding is divided by
// the product of both ratios. A model with an outside provider has a cache of
// its own until it shares another.
func New(e config.Engine) Model {
	src := newSource(e.Timing)
	return Model{
		fixed:        e.Timing.Kind == config.Fixed,
		prefills:     e.Role != config.Decode,
		prefillMs:    e.Timing.PrefillMs,
		prefillRatio: e.SpeedupRatio,
		source:       src,
		step:         newDecodeStep(e, src),
	}
}

// Prefill is the duration of a batch of count prompts whose context after the
// pass sums to totalISL tokens, totalPrefix of which were there before. The
// means of both are floored before they are subtracted (engine notes §8.2), so
// a batch with little work per prompt may cost nothing. It is 0 when count is.
func (m *Model) Prefill(count, totalISL, totalPrefix int) float64 {
	if count <= 0 || !m.prefills {
		return 0
	}
	computed := totalISL/count - totalPrefix/count
	if computed <= 0 {
		return 0
	}
	raw := m.prefillMs
	if m.source != nil {
		if raw = m.source.prefill(count, computed, totalPrefix/count); raw == Unknown {
			return Unknown
		}
	} else if !m.fixed {
		t := float64(count * computed)
		raw = float64(prefillQuadratic*float64(t*t)) + float64(prefillLinear*t) + prefillBase
	}
	return fmath.ModeledMs(raw, m.prefillRatio)
}

// Decode is the duration of decoding one token for each of batch sequences
// whose lengths sum to sumLen tokens. It is 0 when batch is.
func (m *Model) Decode(batch, sumLen int) float64 {
	if batch <= 0 {
		return 0
	}
	var h hint
	return m.step.ms(batch, sumLen, &h)
}

// Pass is what a pass computes, as a model sees it: prompts as in Prefill,
// sequences as in Decode.
type Pass struct {
	StartMs float64 // of its computation

	Prompts, ISL, Prefix int // totals, tokens
	Decodes, SumLen      int // total, tokens
}

// End is when a pass ends in ms: its start, its prefill and its decode step,
// added in this order. It is Unknown while an outside provider has not said
// how long it takes: Ask has the question.
func (m *Model) End(p Pass) float64 {
	prefillMs := m.Prefill(p.Prompts, p.ISL, p.Prefix)
	decodeMs := m.Decode(p.Decodes, p.SumLen)
	if prefillMs == Unknown || decodeMs == Unknown {
		return Unknown
	}
	return p.StartMs + prefillMs + decodeMs
}

// DecodeStep returns Decode in the form for hot loops; DecodeStep.SetBatch says
// for how many sequences.
func (m *Model) DecodeStep() DecodeStep { return m.step }

// CanBeZero reports whether a pass that produces tokens may take no time: one
// that decodes a sequence, or prefills at least one token per prompt, and
// whose duration rounds to 0 ns with these ratios. Passes whose means in
// Prefill floor to the same value are a scheduler's own business. With tables
// and outside providers it may be true although no pass takes no time.
func (m *Model) CanBeZero() bool {
	if m.source != nil {
		return m.source.canBeZero(m)
	}
	// Both polynomials have their minimum at the start of the range.
	if m.prefills && m.Prefill(1, 1, 0) == 0 {
		return true
	}
	return m.step.decodes && m.step.Ms(0) == 0
}
