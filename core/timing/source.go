package timing

import "github.com/dryserve/dryserve/core/config"

// Unknown is what a model answers instead of a duration when only the host
// can tell: see Cache.
const Unknown = -1

// source is where a model without a formula finds its durations. It is shared
// by copies of the model; only the cache and what is in it change.
type source struct {
	profile *config.ProfileTable
	grid    *config.GridTable
	cache   *Cache
}

// newSource returns nil for the kinds that are formulas.
func newSource(t config.Timing) *source {
	switch t.Kind {
	case config.Profile:
		return &source{profile: t.Profile}
	case config.Grid:
		return &source{grid: t.Grid}
	case config.External:
		return &source{cache: NewCache()}
	}
	return nil
}

// prefill is the raw duration in ms of count prompts with computed new tokens
// each on top of prefix ones, or Unknown. All but prefix are above 0.
func (s *source) prefill(count, computed, prefix int) float64 {
	switch {
	case s.profile != nil:
		return prefillOfProfile(s.profile, count*computed)
	case s.grid != nil:
		return prefillOfGrid(s.grid, count, computed, prefix)
	}
	ms, ok := s.cache.Lookup(prefillQuery(count, computed, prefix))
	if !ok {
		return Unknown
	}
	return atLeast(ms, 0)
}

// decode is the raw duration in ms of one step of batch sequences with sumLen
// tokens together, or Unknown. h remembers where the last look-up ended.
func (s *source) decode(batch, sumLen int, h *hint) float64 {
	if batch <= 0 {
		return Unknown // nobody said how many sequences the tokens belong to
	}
	switch {
	case s.profile != nil:
		return decodeOfProfile(s.profile, batch, sumLen, h)
	case s.grid != nil:
		return decodeOfGrid(s.grid, batch, sumLen, h)
	}
	ms, ok := s.cache.Lookup(decodeQuery(batch, sumLen))
	if !ok {
		return Unknown
	}
	return atLeast(ms, decodeFloor)
}

// canBeZero is Model.CanBeZero for a source. It may be wrong on the safe
// side: true although every pass takes time.
func (s *source) canBeZero(m *Model) bool {
	least := 0.0 // an outside provider may say 0
	switch {
	case s.profile != nil:
		least = leastPrefillOfProfile(s.profile)
	case s.grid != nil:
		least = leastOf(s.grid.PrefillMs)
	}
	if m.prefills && vanishes(least, m.prefillRatio) {
		return true
	}
	least = decodeFloor
	if s.grid != nil {
		least = leastOf(s.grid.DecodeMs)
	}
	return m.step.decodes && vanishes(least, m.step.ratio)
}

// hint is where a step found its intervals the last time. In a run of decode
// steps the next look-up ends there or right after.
type hint struct {
	row, col int32
}

// atLeast is ms with a floor, which NaN falls to.
func atLeast(ms, floor float64) float64 {
	if ms > floor {
		return ms
	}
	return floor
}

// interval is the i with axis[i] <= x < axis[i+1], clamped to the intervals
// that axis has, for an axis of two points or more. from is a guess.
func interval(axis []float64, x float64, from int32) int {
	last := len(axis) - 2
	i := int(from)
	if i > last {
		i = last
	}
	if x >= axis[i] {
		if i == last || x < axis[i+1] {
			return i
		}
		if i++; i == last || x < axis[i+1] {
			return i
		}
	}
	lo, hi := 0, last // axis[lo] <= x if lo > 0; x < axis[hi+1] if hi < last
	for lo < hi {
		mid := int(uint(lo+hi+1) >> 1)
		if x >= axis[mid] {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return lo
}

// leastOf is the smallest of one or more numbers.
func leastOf(v []float64) float64 {
	least := v[0]
	for _, x := range v {
		least = min(least, x)
	}
	return least
}
