// Package engine is the readable model of a simulated engine: one scheduler
// pass at a time, one block at a time. Every behaviour the faster engines have
// is judged against it.
//
// It owns what one rank of an inference engine owns: the queue of waiting
// requests, the running batch, each request's progress, the rule by which a
// pass shares the token budget, admission, preemption, and what a pass says
// when it ends. It does not own time (the caller says when a pass begins and
// is told when it ends), the blocks themselves (core/kv), block identities
// (core/seq) or durations (core/timing).
//
// An Engine is a value that is stepped: Submit and Cancel at any time, Begin to
// run a pass, Complete when the time that Begin named has come. A pass is
// computed as a whole by Begin; commands given while it is in flight change
// the scheduler's state at once and are seen by the next pass.
//
// Invariants:
//   - a request is waiting, running or finished; a handed-off one may also be
//     held for its transfer. Only running and held requests and those that a
//     transfer or a load brought hold blocks, and exactly those for the tokens
//     that have KV or will be brought. A load may bring one block more than is
//     used, that of the last token, which is computed again.
//   - between passes every running request has at least one token left to
//     compute: a pass either completes a request whose tokens are all computed
//     or gives it its next one.
//   - the waiting queue is served strictly from its head; while a destination
//     waits for blocks, from the first request that has its own.
//   - after warm-up (slabs and lists have reached their size) Submit, Begin
//     and Complete allocate nothing.
//
// It models the schedulers of vLLM and TensorRT-LLM, also with speculative
// decoding, as one of several ranks (core/group), as one end of a handoff of
// prompts between workers, and vLLM with KV blocks kept in host memory
// (core/offload).
//
// Source: engine notes §1 to §5, §8 to §11, §13; corrections §1, §2, §4, §10,
// §12 to §14.
package engine

import (
	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/kv"
	"github.com/dryserve/dryserve/core/offload"
	"github.com/dryserve/dryserve/core/rng"
	"github.com/dryserve/dryserve/core/seq"
	"github.com/dryserve/dryserve/core/timing"
)

// Engine is one rank of a simulated engine.
type Engine struct {
	cfg      config.Engine
	workerID uint64
	format   seq.Format
	timing   timing.Model
	pool     *kv.Pool

	requests requests
	waiting  queue
	running  []Handle // in the order they were admitted

	destinations  destinations
	host          host
	order         uint64 // of the command that brought the last request
	bursts        rng.Bursts
	waveStep      int  // of the next pass
	capacityBound bool // the last pass free to admit all left somebody waiting

	pass   pass
	events events
	out    Out
	said   Effects // of the last command
}

// New returns an idle engine. cfg has passed config's check and describes a
// vLLM or TensorRT-LLM engine; the engine is one of its ranks. workerID names
// the worker in a fleet.
func New(cfg config.Engine, workerID uint64) *Engine { return NewRank(cfg, workerID, 0) }

// NewRank returns rank dpRank (from 0) of a worker of cfg.DPSize ranks.
func NewRank(cfg config.Engine, workerID uint64, dpRank int) *Engine {
	return NewSharing(cfg, workerID, dpRank, offload.Tiers{})
}

// NewSharing is NewRank for a rank that shares host memory or a disk with
// others.
func NewSharing(cfg config.Engine, workerID uint64, dpRank int, tiers offload.Tiers) *Engine {
	identify := cfg.EnablePrefixCaching
	emit := identify && cfg.EmitKVEvents
	keep := emit && cfg.EmitKVTokenIDs
	return &Engine{
		cfg:      cfg,
		workerID: workerID,
		format:   seq.Format{BlockSize: cfg.BlockSize, Identify: identify, KeepTokens: keep},
		timing:   timing.New(cfg),
		pool:     kv.New(cfg.NumGPUBlocks),
		requests: newRequests(),
		events:   events{emit: emit, tokenIDs: keep},

		host:   newHost(cfg, tiers),
		bursts: rng.NewBursts(cfg.RankSeed(workerID, dpRank), cfg.MTP.Rates()),
	}
}

// WorkerID is the number given to New.
func (e *Engine) WorkerID() uint64 { return e.workerID }

// WaitingLen counts the requests that wait: preempted ones are included, and
// destinations that are not active yet.
func (e *Engine) WaitingLen() int {
	return e.waiting.len() + e.host.parking.len() + e.destinations.len()
}

// RunningLen counts the running requests.
func (e *Engine) RunningLen() int { return len(e.running) }

// InFlight reports whether a pass has begun and not been completed.
func (e *Engine) InFlight() bool { return e.pass.inFlight }

// Ready reports whether Begin would run a pass: none is in flight and a
// request is waiting or running (engine notes §3, "Readiness").
func (e *Engine) Ready() bool {
	return !e.pass.inFlight && (e.waiting.len() > 0 || len(e.running) > 0 || e.host.parking.runs())
}

// Out is what the last pass said. See the type for what is valid when.
func (e *Engine) Out() *Out { return &e.out }

// UUID is the id a request was submitted with. h must be a handle that this
// engine has given out and not recycled yet.
func (e *Engine) UUID(h Handle) [16]byte { return e.requests.slab[h].uuid }

// Drained reports whether the engine knows no request and copies nothing.
func (e *Engine) Drained() bool {
	return e.requests.ids.Len() == 0 && e.host.underway == 0
}

// Metrics describes the rank at this moment (engine notes §10.2).
func (e *Engine) Metrics() Metrics {
	active, inactive, total := e.pool.Active(), e.pool.Inactive(), e.pool.Total()
	return Metrics{
		ActiveBlocks:       active,
		InactiveBlocks:     inactive,
		TotalBlocks:        total,
		CacheUsage:         float64(active) / float64(total),
		PhysicalCacheUsage: float64(active+inactive) / float64(total),
		RunningRequests:    len(e.running),
		WaitingRequests:    e.WaitingLen(),
		Preemptions:        e.pass.preemptions,
	}
}
