package config

import "math"

// ScalingPolicy says who decides how many workers there are.
type ScalingPolicy uint8

// NoScaling keeps the workers of the start. Scripted follows Script, Asked asks
// whoever steps the run.
const (
	NoScaling ScalingPolicy = iota
	Scripted
	Asked
)

// Scaling says how the number of workers changes while a run goes on (replay
// notes §7).
type Scaling struct {
	Policy  ScalingPolicy
	FirstMs float64  // Asked: when it is asked first, finite; before 0 counts as 0
	Script  []Target // Scripted

	// How long workers take to start that are not there from the beginning, in
	// ms: those of Decode, which aggregated ones are, and those of Prefill.
	StartupMs, PrefillStartupMs float64
}

// Target is how many workers there are to be from a time on, those that drain
// not counted.
type Target struct {
	AtMs            float64 // finite, 0 or later, later than that of the target before it
	Prefill, Decode int     // KeepWorkers, or 0 and more; aggregated workers are of Decode
}

// KeepWorkers leaves their number as it is.
const KeepWorkers = -1

// Samples says how often the state of a run is sampled (replay notes §9.3).
type Samples struct {
	EveryMs float64 // 0: never
}

// checkScaling covers what changes in the course of a run.
func (r Replay) checkScaling() Fault {
	s := r.Scaling
	if s.Policy > Asked {
		return Fault{UnknownValue, FieldScaling}
	}
	if s.Policy != NoScaling && r.Routing.Mode == Direct {
		return Fault{Exclusive, FieldScaling}
	}
	if !finite(s.FirstMs) {
		return Fault{NotFinite, FieldScaling}
	}
	for _, ms := range [2]float64{s.StartupMs, s.PrefillStartupMs} {
		if c := ratio(ms); c != Valid {
			return Fault{c, FieldStartup}
		}
	}
	before := math.Inf(-1)
	for _, t := range s.Script {
		if c := ratio(t.AtMs); c != Valid {
			return Fault{c, FieldScaling}
		}
		if !(t.AtMs > before) {
			return Fault{NotAscending, FieldScaling}
		}
		if t.Prefill < KeepWorkers || t.Decode < KeepWorkers {
			return Fault{Negative, FieldScaling}
		}
		if t.Prefill > MaxWorkers || t.Decode > MaxWorkers {
			return Fault{TooLarge, FieldScaling}
		}
		before = t.AtMs
	}
	if c := ratio(r.Samples.EveryMs); c != Valid {
		return Fault{c, FieldSamples}
	}
	return Fault{}
}
