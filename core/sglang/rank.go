// Package sglang is the readable model of a simulated SGLang engine: one
// scheduler pass at a time, one page at a time. It speaks the types of package
// engine.
//
// It owns what one rank of SGLang owns: the queue of waiting requests, the
// running batch, each request's progress, how a pass chooses between prompts
// and decoding, the budgets of prompts, the estimate of the output that is
// still to come (the new-token ratio), retraction, and both ends of a handoff.
// It does not own time, the pages and their cache (core/radix), identities
// (core/seq), durations (core/timing), nor the barrier between ranks: a group
// of several tells each of them how its round ended (EndRound).
//
// A Rank is stepped as an engine.Engine is: commands at any time, Begin to run
// a pass, Complete when the time that Begin named has come.
//
// Invariants:
//   - a pass either computes prompts or decodes, never both.
//   - a running request has computed all its tokens: those whose first token
//     found no room get it in the next decode step.
//   - a request holds one path of the cache, which covers its first cached
//     pages, and private pages behind it; its pages cover what is computed.
//   - a waiting request holds nothing unless part of its prompt is computed.
//   - after warm-up commands and passes allocate nothing.
//
// Source: engine notes §6, §7, §13; corrections §1 to §4, §8, §9, §13, §15.
package sglang

import (
	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/core/moments"
	"github.com/dryserve/dryserve/core/radix"
	"github.com/dryserve/dryserve/core/rng"
	"github.com/dryserve/dryserve/core/seq"
	"github.com/dryserve/dryserve/core/timing"
)

// Rank is one rank of a simulated SGLang engine.
type Rank struct {
	cfg      config.Engine
	workerID uint64
	chunk    int // prompt tokens per pass; config's, shared by the ranks
	format   seq.Format
	timing   timing.Model
	cache    *radix.Cache

	requests requests
	waiting  queue
	running  []engine.Handle // in the order they joined

	pending      []engine.Handle // destinations without room yet, in order
	prebuilt     []engine.Handle // activated ones without a slot yet, in order
	destinations moments.Moments // prompt lengths of all that are not running

	ratio  ratio
	rounds int // passes still without prompts

	bursts rng.Bursts

	pass   pass
	events events
	said   engine.Effects
	out    engine.Out
}

// New returns an idle engine of one rank. cfg has passed config's Check and
// CheckChunk and describes an SGLang engine. workerID names the worker in a
// fleet.
func New(cfg config.Engine, workerID uint64) *Rank { return NewRank(cfg, workerID, 0) }

// NewRank returns rank index (from 0) of an engine of cfg.DPSize ranks. They
// share the chunk, and reserve less each (engine notes §6).
func NewRank(cfg config.Engine, workerID uint64, index int) *Rank {
	conservativeness := cfg.SGLang.Conservativeness
	if cfg.DPSize > 1 {
		conservativeness = float64(conservativeness * 0.3)
	}
	identify := cfg.EnablePrefixCaching
	emit := identify && cfg.EmitKVEvents
	keep := emit && cfg.EmitKVTokenIDs
	return &Rank{
		cfg:      cfg,
		workerID: workerID,
		chunk:    cfg.SGLang.ChunkedPrefillSize / cfg.DPSize,
		format:   seq.Format{BlockSize: cfg.BlockSize, Identify: identify, KeepTokens: keep},
		timing:   timing.New(cfg),
		cache:    radix.New(cfg.NumGPUBlocks),
		requests: newRequests(),
		ratio:    newRatio(conservativeness),
		bursts:   rng.NewBursts(cfg.RankSeed(workerID, index), cfg.MTP.Rates()),
		events:   events{emit: emit, tokenIDs: keep},
	}
}

// WorkerID is the number given to New.
func (e *Rank) WorkerID() uint64 { return e.workerID }

// WaitingLen counts the requests in the waiting queue, retracted ones and those
// whose prompt is computed in part included.
func (e *Rank) WaitingLen() int { return e.waiting.len() }

// RunningLen counts the running requests.
func (e *Rank) RunningLen() int { return len(e.running) }

// InFlight reports whether a pass has begun and not been completed.
func (e *Rank) InFlight() bool { return e.pass.inFlight }

// Ready reports whether Begin would run a pass: none is in flight, and there is
// a request to run or a pass without prompts to count down. Held sources and
// destinations that are not activated make no work (engine notes §3,
// corrections §14).
func (e *Rank) Ready() bool { return !e.pass.inFlight && !e.Drained() }

// Drained reports whether there is nothing to run.
func (e *Rank) Drained() bool {
	return e.waiting.len() == 0 && len(e.running) == 0 && len(e.prebuilt) == 0 && e.rounds == 0
}

// Out is what the last pass said. See the type for what is valid when.
func (e *Rank) Out() *engine.Out { return &e.out }

// UUID is the id a request was submitted with. h must be a handle that this
// rank has given out and not recycled yet.
func (e *Rank) UUID(h engine.Handle) [16]byte { return e.requests.slab[h].uuid }

// Metrics describes the rank at this moment (engine notes §10.2). The hits of a
// pass are in its Out only (corrections §13).
func (e *Rank) Metrics() engine.Metrics {
	active, total := e.activePages(), e.cache.Total()
	usage := float64(active) / float64(total)
	return engine.Metrics{
		ActiveBlocks:       active,
		TotalBlocks:        total,
		CacheUsage:         usage,
		PhysicalCacheUsage: usage,
		RunningRequests:    len(e.running),
		WaitingRequests:    e.waiting.len() + e.destinations.N(),
	}
}

// activePages counts the pages that are not free, cached ones included.
func (e *Rank) activePages() int { return e.cache.Total() - e.cache.Available() }

// pagesFor is the number of pages that n tokens take.
func (e *Rank) pagesFor(n int) int { return (n + e.cfg.BlockSize - 1) / e.cfg.BlockSize }
