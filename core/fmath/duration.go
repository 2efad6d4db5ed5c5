package fmath

import (
	"math"
	"math/bits"
)

const nanosPerSec = 1_000_000_000

// Duration is a span of time in whole nanoseconds, kept the way the reference
// keeps it: Nanos is below 1e9. The conversions to and from float64 seconds
// are those of engine notes §8.1.
type Duration struct {
	Secs  uint64
	Nanos uint32
}

// MaxDuration is the longest Duration, just under 2^64 s.
func MaxDuration() Duration { return Duration{math.MaxUint64, nanosPerSec - 1} }

// MaxModeledMs is the first duration in ms that no Duration holds. The
// reference aborts there; ModeledMs saturates.
const MaxModeledMs = 0x1p64 * 1000

// RoundSeconds is seconds rounded to whole nanoseconds, half to even, from the
// exact value of the float64. What no Duration holds saturates: negative
// values and NaN give 0, values from 2^64 s on give MaxDuration.
func RoundSeconds(seconds float64) Duration {
	if !(seconds >= 0x1p-31) {
		return Duration{} // under half a nanosecond
	}
	if seconds >= 0x1p64 {
		return MaxDuration()
	}
	b := math.Float64bits(seconds)
	mant := b&mantMask | 1<<mantBits
	// seconds = mant * 2^-shift.
	shift := 1023 + mantBits - int(b>>mantBits)
	if shift <= 0 {
		return Duration{Secs: mant << uint(-shift)}
	}
	var secs uint64
	if shift <= mantBits {
		secs = mant >> uint(shift)
		mant &= 1<<uint(shift) - 1
	}
	// mant*1e9 has at most 83 bits, and shift is at most 83. A shift by 64
	// or more gives 0 in Go, so of three terms one or two count.
	s := uint(shift)
	hi, lo := bits.Mul64(mant, nanosPerSec)
	nanos := hi<<(64-s) | lo>>s | hi>>(s-64)
	// The s bits below the point, moved up to the top of 128.
	up := 128 - s
	restHi, restLo := hi<<up|lo>>(64-up)|lo<<(up-64), lo<<up
	if restHi > 1<<63 || restHi == 1<<63 && (restLo != 0 || nanos&1 == 1) {
		nanos++
	}
	if nanos == nanosPerSec {
		return Duration{Secs: secs + 1}
	}
	return Duration{secs, uint32(nanos)}
}

// Seconds is S of engine notes §8.1: seconds and nanoseconds are converted one
// by one and added.
func (d Duration) Seconds() float64 {
	return float64(d.Secs) + float64(d.Nanos)/nanosPerSec
}

const (
	// shortNanos bounds the spans that the fast path treats: below 1 s.
	shortNanos = 0.999e9
	// tieSlack is how close to a rounding tie (in ns) the fast path still
	// decides. Its error is below 2^-20 ns for spans under 1 s.
	tieSlack = 0x1p-18
	nearTie  = 0.5 - tieSlack
)

// ModeledMs is a raw model duration in ms, rounded to whole nanoseconds, then
// divided by ratio (0 or less: not divided) and rounded again, in ms ready to
// be added to a clock (engine notes §8.1, n3). The result saturates from
// MaxModeledMs on; raw values below zero and NaN give 0.
func ModeledMs(raw, ratio float64) float64 {
	// With spans under a second S(n) is n/1e9, and multiplying it by 1000 and
	// dividing again finds the same n: §8.1's third rounding changes nothing.
	seconds := raw / 1000
	y := seconds * nanosPerSec
	if !(y >= 0 && y < shortNanos) {
		return modeledExact(raw, ratio)
	}
	n := roundShort(y, seconds)
	if ratio > 0 && ratio != 1 {
		seconds = n / nanosPerSec / ratio
		y = seconds * nanosPerSec
		if !(y < shortNanos) {
			return modeledExact(raw, ratio)
		}
		n = roundShort(y, seconds)
	}
	return n / nanosPerSec * 1000
}

// roundShort is RoundSeconds(seconds) in ns for y, in [0, shortNanos), within
// 2^-20 of seconds*1e9.
func roundShort(y, seconds float64) float64 {
	n := (y + roundMagic) - roundMagic
	if math.Abs(y-n) < nearTie {
		return n
	}
	return float64(RoundSeconds(seconds).Nanos)
}

// modeledExact is ModeledMs step by step.
func modeledExact(raw, ratio float64) float64 {
	d := RoundSeconds(raw / 1000)
	if ratio > 0 && d != (Duration{}) {
		d = RoundSeconds(d.Seconds() / ratio)
	}
	ms := d.Seconds() * 1000
	return RoundSeconds(ms/1000).Seconds() * 1000
}
