package config

// SchedulePolicy orders the waiting queue of an SGLang engine.
type SchedulePolicy uint8

// FCFS serves in the order of arrival (the reference's "fifo"), LPM the
// longest cached prefix first.
const (
	FCFS SchedulePolicy = iota
	LPM
)

// SGLangOptions is what only an SGLang engine has. Counts are tokens
// (reference behaviour notes, engine §2.2).
type SGLangOptions struct {
	Policy             SchedulePolicy
	MaxPrefillTokens   int     // computed per pass
	ChunkedPrefillSize int     // computed per pass; a multiple of the block size
	ClipMaxNewTokens   int     // output per request that admission reckons with
	Conservativeness   float64 // scales the share of that output which is reserved

	// PrefillDecodeInterval is the number of passes without prompts after one
	// with prompts.
	PrefillDecodeInterval int
}

// DefaultSGLang is what an SGLang engine has when nothing is configured.
func DefaultSGLang() SGLangOptions {
	return SGLangOptions{
		MaxPrefillTokens:   16384,
		ChunkedPrefillSize: 8192,
		ClipMaxNewTokens:   4096,
		Conservativeness:   1,
	}
}

// checkDecodeInterval stands among the other intervals.
func (e Engine) checkDecodeInterval() Fault {
	switch n := e.SGLang.PrefillDecodeInterval; {
	case n < 0:
		return Fault{Negative, FieldPrefillDecodeInterval}
	case n > 0 && e.Backend != SGLang:
		return Fault{NeedsSGLang, FieldPrefillDecodeInterval}
	}
	return Fault{}
}

// checkSGLang: what another backend never reads must only be a number.
func (e Engine) checkSGLang() Fault {
	s := e.SGLang
	switch {
	case !finite(s.Conservativeness):
		return Fault{NotFinite, FieldConservativeness}
	case e.Backend != SGLang:
		return Fault{}
	case s.Policy > LPM:
		return Fault{UnknownValue, FieldSchedulePolicy}
	}
	if c := count(s.MaxPrefillTokens, Unbounded); c != Valid {
		return Fault{c, FieldMaxPrefillTokens}
	}
	if c := count(s.ChunkedPrefillSize, Unbounded); c != Valid {
		return Fault{c, FieldChunkedPrefillSize}
	}
	switch {
	case s.ClipMaxNewTokens < 0:
		return Fault{Negative, FieldClipMaxNewTokens}
	case s.ClipMaxNewTokens > Unbounded:
		return Fault{TooLarge, FieldClipMaxNewTokens}
	}
	if c := ratio(s.Conservativeness); c != Valid {
		return Fault{c, FieldConservativeness}
	}
	return Fault{}
}

// CheckChunk returns the fault of an SGLang engine whose chunk is not a
// multiple of the block size, the default chunk included, or leaves a rank
// without a part of it. Check does not ask for it: its caller may still have
// the chunk elsewhere.
func (e Engine) CheckChunk() Fault {
	switch {
	case e.Backend != SGLang:
		return Fault{}
	case e.SGLang.ChunkedPrefillSize%e.BlockSize != 0:
		return Fault{NotAMultiple, FieldChunkedPrefillSize}
	case e.SGLang.ChunkedPrefillSize < e.DPSize:
		return Fault{NotPositive, FieldChunkedPrefillSize}
	}
	return Fault{}
}
