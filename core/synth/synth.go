// Package synth makes synthetic workloads: so many requests of one size, or
// sessions of turns that share prefixes, and when they arrive.
//
// It owns the arrival processes, the random streams behind them, and which
// prompts share what. It does not run anything, and how a workload is kept is
// core/workload's.
//
// Two kinds of workload come out. Without turns, groups, shares or delays
// every request is one by itself whose prompt is drawn token by token, so no
// two share a block. With any of them there are sessions, whose prompts are
// hash ids of one engine block each; a turn does not continue the one before
// it. Source: replay notes §4.
//
// Invariants: equal specs give equal workloads on every platform; what passes
// Check is built, unless it is larger than a workload can be.
package synth

import (
	"math"

	"github.com/dryserve/dryserve/core/fmath"
	"github.com/dryserve/dryserve/core/rng"
	"github.com/dryserve/dryserve/core/workload"
)

// Arrival says when sessions begin.
type Arrival uint8

// Capped: when there is room under a concurrency cap. Poisson: after
// exponentially distributed gaps. Constant: after equal gaps.
const (
	Capped Arrival = iota
	Poisson
	Constant
)

// Spec describes a workload. Every turn has the same size.
type Spec struct {
	InputTokens  int
	OutputTokens int
	Sessions     int // requests, where a session has one turn
	Turns        int // per session; 0 counts as 1 where nothing else makes sessions

	Arrival     Arrival
	RatePerS    float64 // of sessions, Poisson
	IntervalMs  float64 // between sessions, Constant
	ArrivalSeed uint64  // Poisson

	PrefixRatio  float64 // share of a prompt's blocks that its group has in common
	PrefixGroups uint32  // 0: nothing is shared
	TurnDelayMs  float64 // between the end of a turn and the next one
	BlockSize    int     // tokens of an engine block, which a hash id stands for
}

// Seed is that of the stream which chooses groups.
const Seed = 42

// Default is the seed of arrivals where none is given.
const DefaultArrivalSeed = 42

// plain reports whether the requests stand by themselves.
func (s Spec) plain() bool {
	return s.Turns <= 1 && s.PrefixRatio == 0 && s.PrefixGroups == 0 && s.TurnDelayMs == 0
}

// Field names a field of a Spec.
type Field uint8

// The fields that can be at fault.
const (
	None Field = iota
	InputTokens
	OutputTokens
	Sessions
	Turns
	RatePerS
	IntervalMs
	PrefixRatio
	TurnDelayMs
)

// MaxTokens is the most of everything that is counted.
const MaxTokens = math.MaxInt32

// Check returns the first field that is out of its range: counts from 1 to
// MaxTokens, a finite rate above 0, finite times from 0, a ratio from 0 to 1.
// An interval so short that its inverse is no number is no interval either.
func (s Spec) Check() Field {
	for _, c := range []struct {
		n     int
		field Field
	}{{s.InputTokens, InputTokens}, {s.OutputTokens, OutputTokens}, {s.Sessions, Sessions}} {
		if c.n < 1 || c.n > MaxTokens {
			return c.field
		}
	}
	switch {
	case s.Arrival == Poisson && !(s.RatePerS > 0 && s.RatePerS <= math.MaxFloat64):
		return RatePerS
	case s.Arrival == Constant && !(s.IntervalMs == 0 || s.IntervalMs > 0 && s.IntervalMs <= math.MaxFloat64 && !math.IsInf(1000/s.IntervalMs, 1)):
		return IntervalMs
	case !(s.PrefixRatio >= 0 && s.PrefixRatio <= 1):
		return PrefixRatio
	case !(s.TurnDelayMs >= 0 && s.TurnDelayMs <= math.MaxFloat64):
		return TurnDelayMs
	case s.Turns > MaxTokens, s.Turns < 1 && !(s.Turns == 0 && s.plain()):
		return Turns
	}
	return None
}

// Build makes the workload of a spec that has passed Check.
func Build(s Spec, o workload.Options) (*workload.Workload, workload.Fault) {
	if turns := float64(s.Sessions) * float64(max(s.Turns, 1)); turns > workload.MaxTurns {
		return nil, workload.Fault{Code: workload.TooManyRows, Limit: workload.MaxTurns}
	}
	if s.plain() {
		return s.requests(o)
	}
	return s.sessions(o)
}

// requests makes single requests: each prompt is one hash id as long as the
// prompt, and its tokens are drawn.
func (s Spec) requests(o workload.Options) (*workload.Workload, workload.Fault) {
	b := workload.NewBuilder(s.InputTokens)
	b.Reserve(s.Sessions)
	clock := s.clock()
	for i := range s.Sessions {
		f := b.Open(0, clock.next(), s.Arrival != Capped)
		if f.Code == workload.OK {
			f = b.Turn([]uint64{uint64(i)}, int64(s.InputTokens), int64(s.OutputTokens), 0)
		}
		if f.Code != workload.OK {
			return nil, f
		}
	}
	b.Draw()
	return b.Finish(o)
}

// shared is the namespace of the hash ids that a group has in common, as wide
// as a group's number and a block's leave room for.
const shared = 0xD00D << 48

// sessions makes sessions of turns.
func (s Spec) sessions(o workload.Options) (*workload.Workload, workload.Fault) {
	b := workload.NewBuilder(s.BlockSize)
	b.NameSessions("session_")
	clock, groups := s.clock(), rng.New(Seed)
	blocks := (s.InputTokens + s.BlockSize - 1) / s.BlockSize
	common := 0
	if s.PrefixGroups > 0 && s.PrefixRatio > 0 {
		common = min(blocks, int(math.Round(float64(blocks)*s.PrefixRatio)))
	}
	if most := float64(s.Sessions) * float64(s.Turns) * float64(blocks-common); most > workload.MaxIDs {
		return nil, workload.Fault{Code: workload.TooManyIDs, Limit: workload.MaxIDs}
	}
	ids := make([]uint64, blocks)
	fresh := uint64(0)
	for range s.Sessions {
		f := b.Open(0, clock.next(), s.Arrival != Capped)
		if s.PrefixGroups > 0 && s.PrefixRatio > 0 {
			group := uint64(groups.Below(s.PrefixGroups))
			for i := range common {
				ids[i] = shared | group<<32 | uint64(i)
			}
		}
		for turn := 0; turn < s.Turns && f.Code == workload.OK; turn++ {
			for i := common; i < blocks; i++ {
				fresh++
				ids[i] = fresh
			}
			delayMs := s.TurnDelayMs
			if turn == 0 {
				delayMs = 0
			}
			f = b.Turn(ids, int64(s.InputTokens), int64(s.OutputTokens), delayMs)
		}
		if f.Code != workload.OK {
			return nil, f
		}
	}
	return b.Finish(o)
}

// clock hands out the arrivals.
type clock struct {
	draws  *rng.Stream // nil: gaps are all gapMs
	gapMs  float64     // or their mean
	nextMs float64
}

// clock begins the arrivals. An equal gap is the inverse of a rate, as in the
// reference, so it may differ from the interval in its last digit.
func (s Spec) clock() *clock {
	switch {
	case s.Arrival == Poisson:
		draws := rng.New(s.ArrivalSeed)
		return &clock{draws: &draws, gapMs: 1000 / s.RatePerS}
	case s.Arrival == Constant && s.IntervalMs > 0:
		return &clock{gapMs: 1000 / (1000 / s.IntervalMs)}
	}
	return &clock{}
}

// next is the next arrival in ms; the first is 0.
func (c *clock) next() float64 {
	atMs := c.nextMs
	gapMs := c.gapMs
	if c.draws != nil {
		const minNormal = 0x1p-1022
		gapMs = -float64(gapMs * fmath.Log(max(1-c.draws.Float64(), minNormal)))
	}
	c.nextMs = atMs + gapMs
	return atMs
}
