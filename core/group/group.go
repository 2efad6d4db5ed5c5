// Package group is a logical engine: the data-parallel ranks of one worker
// behind a shared pass barrier.
//
// It owns the barrier: all ranks that have work begin a pass together, the pass
// ends when the slowest of them does, and what any of them said is seen then.
// It counts the group's passes and tells the ranks how far the group is from
// its last idleness, on which the interval between prompts depends. It does not
// own schedulers (each rank is an engine of its own, with its own KV pool), nor
// the choice of a rank for a request.
//
// A Group is stepped like its ranks: commands at any time, each for one rank;
// Begin when it is Ready, Complete when the time that Begin named has come;
// between passes Internal, when the time NextInternalMs names has come.
//
// Invariants:
//   - either all ranks are in flight or none is.
//   - the wave step is 0 exactly if no pass has run since the group was drained.
//   - passing through a warm group allocates nothing.
//
// Source: engine notes §3.
package group

import (
	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/core/offload"
	"github.com/dryserve/dryserve/core/timing"
)

// Group is a worker of one or more ranks.
type Group struct {
	ranks    []rank
	ends     []float64 // of each rank in the pass in flight
	stirred  []bool    // each rank, in the last Internal
	inFlight bool
	waveStep int
	passes   int
	effect   bool

	convergence Convergence // of the pass completed last
}

// New returns an idle group of cfg.DPSize ranks. cfg has passed config's check;
// workerID names the worker in a fleet.
func New(cfg config.Engine, workerID uint64) *Group {
	return NewSharing(cfg, workerID, NewTiers(cfg, 1), 0)
}

// NewSharing is New for worker number index (from 0) of several that share host
// memory or a disk, as cfg asks for.
func NewSharing(cfg config.Engine, workerID uint64, tiers offload.Tiers, index int32) *Group {
	g := &Group{ranks: make([]rank, cfg.DPSize), ends: make([]float64, cfg.DPSize), stirred: make([]bool, cfg.DPSize)}
	for i := range g.ranks {
		tiers.Client, tiers.Worker = index*int32(cfg.DPSize)+int32(i), index
		g.ranks[i] = newRank(cfg, workerID, i, tiers)
	}
	return g
}

// NewTiers returns what so many workers share: host memory, nil if each has its
// own or none, and the disks, nil if there are none.
func NewTiers(cfg config.Engine, workers int) (t offload.Tiers) {
	if o := cfg.HostOffload; o.Blocks > 0 && o.Scope == config.ClusterShared {
		t.Host = offload.New(o, workers*cfg.DPSize)
	}
	if o := cfg.DiskOffload; o.Blocks > 0 {
		t.Disk = offload.NewDisk(o, workers)
	}
	return t
}

// Ranks is the number of ranks.
func (g *Group) Ranks() int { return len(g.ranks) }

// Rank is rank i (from 0) for commands and questions that concern it alone, or
// nil if the ranks are of SGLang.
// Its passes are the group's: Begin, Rest and Complete must not be called.
func (g *Group) Rank(i int) *engine.Engine { return g.ranks[i].engine }

// InFlight reports whether a pass has begun and not been completed. A request
// given then can be scheduled by the next pass at the earliest, on any rank
// (engine notes §3: allow_immediate_admission is its opposite).
func (g *Group) InFlight() bool { return g.inFlight }

// Ready reports whether Begin would run a pass: none is in flight and a rank
// has work. A rank that only waits for a command has none.
func (g *Group) Ready() bool {
	for i := range g.ranks {
		if g.ranks[i].ready() {
			return true
		}
	}
	return false
}

// Begin runs one pass at nowMs, 0 or later, and returns when it ends, which is
// when its slowest rank does; ok is false, and nothing happens, if the group is
// not Ready. What is seen at the start of the pass stands in each rank's Out.
// Complete must follow.
//
// If an outside provider has to say how long the pass takes, endMs is
// timing.Unknown. All but the end is done then; EndMs tells it once what Ask
// asks has been answered.
func (g *Group) Begin(nowMs float64) (endMs float64, ok bool) {
	if g.inFlight || !g.Ready() {
		return 0, false
	}
	g.inFlight = true
	for i := range g.ranks {
		g.ends[i] = g.ranks[i].begin(nowMs, g.waveStep)
	}
	return g.EndMs(), true
}

// EndMs is when the pass begun last ends, or timing.Unknown.
func (g *Group) EndMs() float64 {
	endMs := 0.0 // no time is before it
	for i, ms := range g.ends {
		if ms == timing.Unknown {
			if ms = g.ranks[i].endMs(); ms == timing.Unknown {
				return timing.Unknown
			}
			g.ends[i] = ms
		}
		endMs = max(endMs, ms)
	}
	return endMs
}

// Ask is what has to be known before EndMs can tell, if there is anything: of
// the first rank that cannot tell.
func (g *Group) Ask() (timing.Query, bool) {
	for i, ms := range g.ends {
		if ms == timing.Unknown {
			if q, ask := g.ranks[i].ask(); ask {
				return q, true
			}
		}
	}
	return timing.Query{}, false
}

// ShareAnswers lets all ranks find an outside provider's answers in c.
func (g *Group) ShareAnswers(c *timing.Cache) {
	for i := range g.ranks {
		g.ranks[i].shareAnswers(c)
	}
}

// Complete ends the pass in flight at endMs, the time Begin returned. Every
// rank's Out then holds everything it said, also that of a rank that had
// nothing to do. It reports false, and does nothing, if no pass is in flight.
func (g *Group) Complete(endMs float64) bool {
	if !g.inFlight {
		return false
	}
	g.inFlight = false
	g.passes++
	g.effect = false
	for i := range g.ranks {
		r := &g.ranks[i]
		r.complete(endMs)
		g.effect = g.effect || r.out().Effect
	}
	g.endRound()
	g.waveStep++
	g.restWhenDrained()
	return true
}

// restWhenDrained begins a new wave if no rank has anything left to do.
func (g *Group) restWhenDrained() {
	if g.Drained() {
		g.waveStep = 0
	}
}

// RankEndMs is when rank i would have ended the pass that was begun last by
// itself; the start of the pass if it had nothing to do.
func (g *Group) RankEndMs(i int) float64 { return g.ends[i] }

// Passes counts the passes completed since the start; it is also the number of
// the pass in flight.
func (g *Group) Passes() int { return g.passes }

// WaveStep counts the passes completed since the group was last drained.
func (g *Group) WaveStep() int { return g.waveStep }

// Effect reports whether any rank did something that could be seen in the pass
// completed last (corrections §4).
func (g *Group) Effect() bool { return g.effect }

// NextInternalMs is when a rank next has something to do by itself, between
// passes: a copy to or from host memory ends. ok is false if there is nothing,
// or a pass is in flight, whose end sees to it.
func (g *Group) NextInternalMs() (ms float64, ok bool) {
	if g.inFlight {
		return 0, false
	}
	for i := range g.ranks {
		if at, is := g.ranks[i].nextInternalMs(); is && (!ok || at < ms) {
			ms, ok = at, true
		}
	}
	return ms, ok
}

// Internal does what the ranks have to do by themselves until nowMs and reports
// whether there was anything. The Effects of the ranks that Stirred say what
// they did. It must be called before a command or a pass at a time that is not
// before NextInternalMs.
func (g *Group) Internal(nowMs float64) (any bool) {
	if g.inFlight {
		return false
	}
	for i := range g.ranks {
		g.stirred[i] = g.ranks[i].internal(nowMs)
		any = any || g.stirred[i]
	}
	if any {
		g.restWhenDrained()
	}
	return any
}

// Stirred reports whether rank i did something in the last Internal.
func (g *Group) Stirred(i int) bool { return g.stirred[i] }
