package config

import "math"

// Limits of this implementation. The reference takes any 64-bit number; block,
// token and worker handles here are 32 bits wide.
const (
	MaxGPUBlocks  = 1<<31 - 1
	MaxBlockSize  = 1<<31 - 1
	MaxWorkers    = 1 << 20
	MaxRanks      = 1 << 20   // data-parallel ranks of one worker
	MaxTensorSize = 1<<32 - 1 // GPUs of one rank
	MaxTotalSlots = 1<<53 - 1 // NumGPUBlocks*BlockSize: exact as a float64
)

// Code says what is wrong with a field.
type Code uint8

// Valid is the zero Code. The other codes are named after the rule broken.
const (
	Valid              Code = iota
	UnknownValue            // not one of the enumerators
	NotPositive             // an integer below 1
	Negative                // an integer below 0
	BelowTwo                // vLLM and TensorRT-LLM blocks hold at least two tokens
	TooLarge                // above the limit of this implementation
	NotFinite               // NaN or infinite
	NegativeFloat           // a float below 0
	NotPositiveFloat        // a float at or below 0
	NeedsChunking           // SGLang has no mode without chunked prefill
	NeedsEvents             // token ids travel only inside KV events
	NotAggregated           // a run of whole requests needs aggregated workers
	Exclusive               // it excludes another field: an end-to-end bound the other bounds, MTP a decode speed-up, offload MTP, a disk data-parallel ranks, a pool of all workers the KV router
	NeedsVLLM               // only vLLM has it
	NeedsPrefixCaching      // host offload extends the prefix cache
	NotAChance              // a probability outside [0,1]
	NeedsSGLang             // only SGLang has it
	NotAMultiple            // not a multiple of the block size
	NotThisRole             // the workers of a pool have the role of the pool
	Unlike                  // the two pools have to agree on it
	NeedsAggregated         // only a run of whole requests has it
	NotAscending            // not later than the one before it
	NeedsHostOffload        // blocks reach the disk by way of host memory
	NeedsRankLocal          // a disk is modelled behind host memory of each rank only
	TakesNoTime             // reads from a disk have to take some
)

// Field names a field of Engine or Replay.
type Field uint8

// The fields that can be at fault. None belongs to a valid configuration.
const (
	None Field = iota
	FieldBackend
	FieldRole
	FieldNumGPUBlocks
	FieldBlockSize
	FieldTotalSlots // NumGPUBlocks times BlockSize
	FieldMaxModelLen
	FieldMaxNumSeqs
	FieldMaxNumBatchedTokens
	FieldEnableChunkedPrefill
	FieldPreemption
	FieldSpeedupRatio
	FieldDecodeSpeedupRatio
	FieldEmitKVTokenIDs
	FieldTimingKind
	FieldTimingPrefillMs
	FieldTimingDecodeMs
	FieldDPSize
	FieldTensorParallelSize
	FieldNumWorkers
	FieldTraceBlockSize
	FieldConcurrency
	FieldArrivalSpeedup
	FieldMaxSimTimeMs
	FieldSLATTFTMs
	FieldSLAITLMs
	FieldSLAE2EMs
	FieldPrefillScheduleInterval
	FieldMTPDrafts
	FieldMTPAcceptRates
	FieldTransferTiming
	FieldTransferBytes
	FieldTransferBandwidth
	FieldKVCacheBytes
	FieldHostOffload
	FieldSchedulePolicy
	FieldMaxPrefillTokens
	FieldChunkedPrefillSize
	FieldClipMaxNewTokens
	FieldConservativeness
	FieldPrefillDecodeInterval
	FieldLanes
	FieldRouterMode
	FieldKVEventLag
	FieldPrefillRole
	FieldNumPrefillWorkers
	FieldLinkSharing
	FieldPrefillPerNode
	FieldScaling
	FieldStartup
	FieldSamples
	FieldDiskOffload
)

// Fault is the first rule that a configuration breaks; the zero value means
// that it breaks none.
type Fault struct {
	Code  Code
	Field Field
}

// OK reports whether nothing is wrong.
func (f Fault) OK() bool { return f.Code == Valid }

// Check returns the first fault in the reference's order of checks: counts,
// block size, limits, intervals, speed-ups, MTP, SGLang, chunking, events,
// transfer, disk and host offload, timing, then the launch fields. Enumerators come before all of them.
//
// Source: reference behaviour notes, engine §2.1 and §2.2.
func (e Engine) Check() Fault {
	if f := e.checkEnums(); !f.OK() {
		return f
	}
	if f := e.checkCounts(); !f.OK() {
		return f
	}
	if f := e.checkIntervals(); !f.OK() {
		return f
	}
	if f := e.checkDecodeInterval(); !f.OK() {
		return f
	}
	if c := ratio(e.SpeedupRatio); c != Valid {
		return Fault{c, FieldSpeedupRatio}
	}
	if c := ratio(e.DecodeSpeedupRatio); c != Valid {
		return Fault{c, FieldDecodeSpeedupRatio}
	}
	if f := e.checkMTP(); !f.OK() {
		return f
	}
	if f := e.checkSGLang(); !f.OK() {
		return f
	}
	if e.Backend == SGLang && !e.EnableChunkedPrefill {
		return Fault{NeedsChunking, FieldEnableChunkedPrefill}
	}
	if e.EmitKVTokenIDs && !e.EmitKVEvents {
		return Fault{NeedsEvents, FieldEmitKVTokenIDs}
	}
	if f := e.checkTransfer(); !f.OK() {
		return f
	}
	if f := e.checkDiskOffload(); !f.OK() {
		return f
	}
	if f := e.checkHostOffload(); !f.OK() {
		return f
	}
	if f := e.Timing.check(); !f.OK() {
		return f
	}
	if c := count(e.DPSize, MaxRanks); c != Valid {
		return Fault{c, FieldDPSize}
	}
	if c := count(e.TensorParallelSize, MaxTensorSize); c != Valid {
		return Fault{c, FieldTensorParallelSize}
	}
	if e.DiskOffload.Blocks > 0 && e.DPSize > 1 {
		return Fault{Exclusive, FieldDiskOffload}
	}
	return Fault{}
}

func (e Engine) checkEnums() Fault {
	switch {
	case e.Backend > TRTLLM:
		return Fault{UnknownValue, FieldBackend}
	case e.Role > Decode:
		return Fault{UnknownValue, FieldRole}
	case e.Preemption > FIFO:
		return Fault{UnknownValue, FieldPreemption}
	case e.Timing.Kind > External:
		return Fault{UnknownValue, FieldTimingKind}
	}
	return Fault{}
}

func (e Engine) checkCounts() Fault {
	if c := count(e.NumGPUBlocks, MaxGPUBlocks); c != Valid {
		return Fault{c, FieldNumGPUBlocks}
	}
	if c := count(e.BlockSize, MaxBlockSize); c != Valid {
		return Fault{c, FieldBlockSize}
	}
	if e.Backend != SGLang && e.BlockSize < 2 {
		return Fault{BelowTwo, FieldBlockSize}
	}
	if int64(e.NumGPUBlocks) > int64(MaxTotalSlots)/int64(e.BlockSize) {
		return Fault{TooLarge, FieldTotalSlots}
	}
	if c := count(e.MaxNumSeqs, Unbounded); c != Valid {
		return Fault{c, FieldMaxNumSeqs}
	}
	if c := count(e.MaxNumBatchedTokens, Unbounded); c != Valid {
		return Fault{c, FieldMaxNumBatchedTokens}
	}
	switch {
	case e.MaxModelLen < 0:
		return Fault{Negative, FieldMaxModelLen}
	case e.MaxModelLen > Unbounded:
		return Fault{TooLarge, FieldMaxModelLen}
	}
	return Fault{}
}

func (t Timing) check() Fault {
	switch t.Kind {
	case Profile:
		return t.Profile.Check().Fault
	case Grid:
		return t.Grid.Check().Fault
	case Fixed:
	default:
		return Fault{}
	}
	if c := ratio(t.PrefillMs); c != Valid {
		return Fault{c, FieldTimingPrefillMs}
	}
	if c := ratio(t.DecodeMs); c != Valid {
		return Fault{c, FieldTimingDecodeMs}
	}
	return Fault{}
}

// Check returns the first fault of the engine or of the run around it.
//
// Source: reference behaviour notes, replay §1.2 and §2. A negative
// MaxSimTimeMs and negative SLA bounds mean "not set" and are valid.
func (r Replay) Check() Fault {
	if f := r.Engine.Check(); !f.OK() {
		return f
	}
	if f := r.checkPools(); !f.OK() {
		return f
	}
	if c := count(r.NumWorkers, MaxWorkers); c != Valid {
		return Fault{c, FieldNumWorkers}
	}
	if c := count(r.TraceBlockSize, MaxBlockSize); c != Valid {
		return Fault{c, FieldTraceBlockSize}
	}
	if r.Concurrency < 0 {
		return Fault{Negative, FieldConcurrency}
	}
	switch {
	case r.Lanes < 0:
		return Fault{Negative, FieldLanes}
	case r.Lanes > 0 && r.Concurrency > 0:
		return Fault{Exclusive, FieldLanes}
	}
	if c := positive(r.ArrivalSpeedup); c != Valid {
		return Fault{c, FieldArrivalSpeedup}
	}
	if !finite(r.MaxSimTimeMs) {
		return Fault{NotFinite, FieldMaxSimTimeMs}
	}
	if f := r.Routing.check(); !f.OK() {
		return f
	}
	if o := r.Engine.HostOffload; r.Routing.Mode == KVRouter && o.Blocks > 0 && o.Scope == ClusterShared {
		return Fault{Exclusive, FieldRouterMode}
	}
	if f := r.checkScaling(); !f.OK() {
		return f
	}
	if r.Engine.DiskOffload.Blocks > 0 && (r.Routing.Mode == KVRouter || r.Scaling.Policy != NoScaling || r.Samples.EveryMs != 0) {
		return Fault{Exclusive, FieldDiskOffload}
	}
	return r.SLA.check()
}

// checkPools: a pool has its role, and both have the same backend and blocks of
// the same size. Host memory beside handoffs is not modelled, nor are other
// modes of routing.
func (r Replay) checkPools() Fault {
	if !r.Disaggregated() {
		if r.Engine.Role != Aggregated {
			return Fault{NotAggregated, FieldRole}
		}
		return Fault{}
	}
	p := r.Prefill
	if f := p.Engine.Check(); !f.OK() {
		return f
	}
	switch {
	case p.Engine.Role != Prefill:
		return Fault{NotThisRole, FieldPrefillRole}
	case r.Engine.Role != Decode:
		return Fault{NotThisRole, FieldRole}
	case p.Engine.BlockSize != r.Engine.BlockSize:
		return Fault{Unlike, FieldBlockSize}
	case p.Engine.Backend != r.Engine.Backend:
		return Fault{Unlike, FieldBackend}
	case p.Engine.HostOffload.Blocks+r.Engine.HostOffload.Blocks > 0:
		return Fault{NeedsAggregated, FieldHostOffload}
	case r.Routing.Mode != RoundRobin && r.Routing.Mode != KVRouter:
		return Fault{NeedsAggregated, FieldRouterMode}
	case r.Sharing > SharedByNode:
		return Fault{UnknownValue, FieldLinkSharing}
	}
	if c := count(r.PrefillPerNode, MaxWorkers); c != Valid {
		return Fault{c, FieldPrefillPerNode}
	}
	if c := count(p.Workers, MaxWorkers); c != Valid {
		return Fault{c, FieldNumPrefillWorkers}
	}
	return Fault{}
}

// check: a bound at or above 0 is set and must be positive; the end-to-end
// bound cannot stand beside another.
func (s SLA) check() Fault {
	if c := bound(s.TTFTMs); c != Valid {
		return Fault{c, FieldSLATTFTMs}
	}
	if c := bound(s.ITLMs); c != Valid {
		return Fault{c, FieldSLAITLMs}
	}
	if c := bound(s.E2EMs); c != Valid {
		return Fault{c, FieldSLAE2EMs}
	}
	if s.E2EMs >= 0 && (s.TTFTMs >= 0 || s.ITLMs >= 0) {
		return Fault{Exclusive, FieldSLAE2EMs}
	}
	return Fault{}
}

func count(n, limit int) Code {
	switch {
	case n < 1:
		return NotPositive
	case n > limit:
		return TooLarge
	}
	return Valid
}

// ratio accepts finite numbers from 0, -0 included.
func ratio(x float64) Code {
	switch {
	case !finite(x):
		return NotFinite
	case x < 0:
		return NegativeFloat
	}
	return Valid
}

func positive(x float64) Code {
	switch {
	case !finite(x):
		return NotFinite
	case x <= 0:
		return NotPositiveFloat
	}
	return Valid
}

func bound(x float64) Code {
	switch {
	case !finite(x):
		return NotFinite
	case x == 0:
		return NotPositiveFloat
	}
	return Valid
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
