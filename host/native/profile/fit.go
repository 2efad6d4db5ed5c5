package profile

import (
	"fmt"
	"math"
	"math/big"

	"github.com/dryserve/dryserve/core/config"
)

// The reference's converter fits the model that its planner uses: a time to
// first token that is linear in the prompt, and a time between tokens that is
// linear in the number of sequences and in the tokens of the pool together.
// Its rules, found by comparing outputs:
//
//   - ordinary least squares with an intercept; of several best fits the one
//     with the smallest slopes;
//   - a duration of 0 ms is no measurement and left out;
//   - a slope over prompt or pool tokens below 0 is refused, one over
//     sequences below -0.001 counts as 0 while the rest of the fit stays;
//   - the axes have 100 equally spaced points: from the shortest to the
//     longest prompt, from 0 to the most tokens in the pool, from 1 to the
//     largest mean context (pool tokens per sequence, both whole);
//   - between axes max(1, pool tokens/context) sequences decode;
//   - durations are at least 0.001 ms.
const (
	samples        = 100
	leastMs        = 0.001
	mostBatchSlope = -0.001
)

// fit makes the profile.
func (m *measurements) fit() (*config.ProfileTable, error) {
	p := &config.ProfileTable{}
	if err := m.fitPrefill(p); err != nil {
		return nil, err
	}
	if err := m.fitDecode(p); err != nil {
		return nil, err
	}
	if fault := p.Check(); !fault.OK() {
		return nil, profileFault(m.decodePath, p, fault)
	}
	return p, nil
}

func (m *measurements) fitPrefill(p *config.ProfileTable) error {
	var s sums
	for i, ms := range m.ttftMs {
		s.add(0, m.isl[i], ms)
	}
	if s.n == 0 {
		return fmt.Errorf("%s: array %s has no value above 0; one or more are accepted", m.prefillPath, rawTTFT)
	}
	f := s.solve()
	if f.perToken < 0 {
		return fmt.Errorf("%s: array %s falls by %s ms per token of %s in the best straight line; one that rises or stays is accepted",
			m.prefillPath, rawTTFT, number(-f.perToken), prefillISL)
	}
	low, high := extremes(m.isl)
	if low == high {
		return fmt.Errorf("%s: array %s has %s only; two different lengths or more are accepted", m.prefillPath, prefillISL, number(low))
	}
	p.PrefillISL = spaced(low, high)
	for _, x := range p.PrefillISL {
		p.PrefillTTFTMs = append(p.PrefillTTFTMs, f.at(0, x))
	}
	return nil
}

func (m *measurements) fitDecode(p *config.ProfileTable) error {
	var s sums
	context := 0.0
	for i, ms := range m.itlMs {
		s.add(m.batch[i], m.kv[i], ms)
		context = max(context, m.kv[i]/m.batch[i])
	}
	if s.n == 0 {
		return fmt.Errorf("%s: array %s has no value above 0; one or more are accepted", m.decodePath, rawITL)
	}
	f := s.solve()
	if f.perToken < 0 {
		return fmt.Errorf("%s: array %s falls by %s ms per token in the pool in the best fit; one that rises or stays is accepted",
			m.decodePath, rawITL, number(-f.perToken))
	}
	if f.perSequence < mostBatchSlope {
		f.perSequence = 0
	}
	if context <= 1 {
		return fmt.Errorf("%s: array %s gives %s tokens per sequence at most; more than 1 is accepted", m.decodePath, rawKVUsage, number(context))
	}
	_, most := extremes(m.kv)
	p.DecodeActiveKVTokens = spaced(0, most)
	p.DecodeContextLength = spaced(1, context)
	for _, kv := range p.DecodeActiveKVTokens {
		for _, c := range p.DecodeContextLength {
			p.DecodeITLMs = append(p.DecodeITLMs, f.at(max(1, kv/c), kv))
		}
	}
	return nil
}

// spaced is NumPy's linspace of samples points.
func spaced(low, high float64) []float64 {
	out := make([]float64, samples)
	step := (high - low) / (samples - 1)
	for i := range out {
		out[i] = float64(float64(i)*step) + low
	}
	out[samples-1] = high
	return out
}

func extremes(v []float64) (low, high float64) {
	low, high = v[0], v[0]
	for _, x := range v {
		low, high = min(low, x), max(high, x)
	}
	return low, high
}

// plane is what is fitted, in ms.
type plane struct {
	perSequence, perToken, base float64
}

func (f plane) at(sequences, tokens float64) float64 {
	return max(float64(f.perSequence*sequences)+float64(f.perToken*tokens)+f.base, leastMs)
}

// sums holds what least squares needs, exactly: sequences b and tokens k are
// whole numbers, durations z are counted in units of 2^-1074 ms, of which
// every float64 is a multiple.
type sums struct {
	n                int64
	b, k, bb, bk, kk big.Int
	z, bz, kz        big.Int
	product          big.Int // scratch
}

const unitExponent = 1074

// add takes a measurement in; one of 0 ms is none.
func (s *sums) add(b, k, ms float64) {
	if ms == 0 {
		return
	}
	s.n++
	bi, ki, z := big.NewInt(int64(b)), big.NewInt(int64(k)), units(ms)
	for _, t := range []struct {
		into *big.Int
		x, y *big.Int
	}{{&s.bb, bi, bi}, {&s.bk, bi, ki}, {&s.kk, ki, ki}, {&s.bz, bi, z}, {&s.kz, ki, z}} {
		t.into.Add(t.into, s.product.Mul(t.x, t.y))
	}
	s.b.Add(&s.b, bi)
	s.k.Add(&s.k, ki)
	s.z.Add(&s.z, z)
}

// units is a finite float64 times 2^1074, exactly.
func units(x float64) *big.Int {
	mantissa, exponent := math.Frexp(x)
	n := big.NewInt(int64(math.Ldexp(mantissa, 53)))
	shift := exponent - 53 + unitExponent
	if shift >= 0 {
		return n.Lsh(n, uint(shift))
	}
	return n.Quo(n, new(big.Int).Lsh(big.NewInt(1), uint(-shift))) // a subnormal: nothing remains
}

// solve finds the best fit. Its numbers are the exact solution, rounded once.
func (s *sums) solve() plane {
	// Moments around the mean, times n.
	centred := func(xy, x, y *big.Int) *big.Int {
		m := new(big.Int).Mul(big.NewInt(s.n), xy)
		return m.Sub(m, new(big.Int).Mul(x, y))
	}
	bb, bk, kk := centred(&s.bb, &s.b, &s.b), centred(&s.bk, &s.b, &s.k), centred(&s.kk, &s.k, &s.k)
	bz, kz := centred(&s.bz, &s.b, &s.z), centred(&s.kz, &s.k, &s.z)
	minus := func(a, b, c, d *big.Int) *big.Int { // ab - cd
		m := new(big.Int).Mul(a, b)
		return m.Sub(m, new(big.Int).Mul(c, d))
	}
	det := minus(bb, kk, bk, bk)
	slopeB, slopeK := new(big.Rat), new(big.Rat)
	switch spread := new(big.Int).Add(bb, kk); {
	case det.Sign() != 0:
		slopeB.SetFrac(minus(bz, kk, kz, bk), det)
		slopeK.SetFrac(minus(kz, bb, bz, bk), det)
	case spread.Sign() != 0: // all on one line: the smallest of the best slopes
		slopeB.SetFrac(bz, spread)
		slopeK.SetFrac(kz, spread)
	}
	base := new(big.Rat).SetInt(&s.z)
	base.Sub(base, new(big.Rat).Mul(slopeB, new(big.Rat).SetInt(&s.b)))
	base.Sub(base, new(big.Rat).Mul(slopeK, new(big.Rat).SetInt(&s.k)))
	base.Quo(base, new(big.Rat).SetInt64(s.n))
	return plane{inMs(slopeB), inMs(slopeK), inMs(base)}
}

// inMs rounds a number of units to ms.
func inMs(x *big.Rat) float64 {
	unit := new(big.Int).Lsh(big.NewInt(1), unitExponent)
	f, _ := new(big.Rat).Quo(x, new(big.Rat).SetInt(unit)).Float64()
	return f
}
