package config

import "math"

// MaxDrafts is the largest number of tokens that can be drafted per step.
const MaxDrafts = 5

// MTP describes speculative decoding by multi-token prediction: each step
// drafts tokens of which a random number is accepted
// (reference behaviour notes, engine §2.2 and §9).
type MTP struct {
	Drafts      int                // aic_nextn; 0: no speculation
	AcceptRates [MaxDrafts]float64 // of each draft after the one before it; the first Drafts count
	Seed        uint64             // of rank 0 of worker 0
}

// Rates are the chances of the drafts, each after the one before it.
func (m MTP) Rates() []float64 { return m.AcceptRates[:m.Drafts] }

// RankSeed is the seed of a rank's bursts: every rank of every worker has its
// own (engine notes §3). It wraps.
func (e Engine) RankSeed(worker uint64, rank int) uint64 {
	return e.MTP.Seed + worker*uint64(e.DPSize) + uint64(rank)
}

// DefaultMTPSeed is the seed of speculation when none is configured.
const DefaultMTPSeed = 42

// DefaultAcceptRates are the chances of the drafts when none are configured.
func DefaultAcceptRates() [MaxDrafts]float64 { return [MaxDrafts]float64{0.85, 0.3} }

// TransferTiming says which tokens of a handed-off prompt are charged.
type TransferTiming uint8

// FullPrompt charges the whole prompt, DestinationMissing the blocks that the
// destination did not have.
const (
	FullPrompt TransferTiming = iota
	DestinationMissing
)

// Transfer describes the link over which a prefill worker hands its KV on. A
// transfer takes no time unless both numbers are above 0.
type Transfer struct {
	BytesPerToken int     // 0: not set
	BandwidthGBs  float64 // decimal; 0: no limit or not set
	Timing        TransferTiming
}

// LinkSharing says which transfers of a run share bandwidth with each other.
type LinkSharing uint8

// None; those between the same two workers; those out of the same node of
// workers that compute prompts.
const (
	NotShared LinkSharing = iota
	SharedByPair
	SharedByNode
)

// HostScope says who shares a pool of host memory.
type HostScope uint8

// RankLocal gives each data-parallel rank a pool of its own, ClusterShared all
// ranks of all workers of a run one pool.
const (
	RankLocal HostScope = iota
	ClusterShared
)

// HostOffload describes KV blocks kept in host memory (tier G2). Bandwidths
// are decimal GB/s; 0 sets no limit. Those of the pool as a whole are read in
// scope ClusterShared only.
type HostOffload struct {
	Scope              HostScope
	Blocks             int // of the pool; 0: no offload
	D2HGBs             float64
	H2DGBs             float64
	SharedD2HGBs       float64
	SharedH2DGBs       float64
	FirstByteLatencyMs float64
}

// DefaultHostOffload is what a pool of the given blocks has when nothing else
// is configured.
func DefaultHostOffload(blocks int) HostOffload {
	return HostOffload{Blocks: blocks, D2HGBs: 32, H2DGBs: 32, SharedD2HGBs: 80, SharedH2DGBs: 80}
}

// DiskScope says who shares a pool on disk.
type DiskScope uint8

// WorkerLocal gives each worker a pool of its own, DiskShared all workers of a
// run one pool.
const (
	WorkerLocal DiskScope = iota
	DiskShared
)

// DiskOffload describes KV blocks kept on disk behind host memory (tier G3).
// Bandwidths are decimal GB/s; 0 sets no limit. Those of the pool as a whole
// are read in scope DiskShared only.
type DiskOffload struct {
	Scope              DiskScope
	Blocks             int // of the pool; 0: no offload
	ReadGBs            float64
	WriteGBs           float64
	SharedReadGBs      float64
	SharedWriteGBs     float64
	FirstByteLatencyMs float64
}

// DefaultDiskOffload is what a pool of the given blocks has when nothing else
// is configured.
func DefaultDiskOffload(blocks int) DiskOffload {
	return DiskOffload{Blocks: blocks, ReadGBs: 10, WriteGBs: 10, SharedReadGBs: 80, SharedWriteGBs: 80, FirstByteLatencyMs: 0.1}
}

// checkIntervals and checkMTP stand where the reference checks them: after
// the limits, before and after the speed-ups.
func (e Engine) checkIntervals() Fault {
	if c := count(e.PrefillScheduleInterval, Unbounded); c != Valid {
		return Fault{c, FieldPrefillScheduleInterval}
	}
	if e.PrefillScheduleInterval != 1 && e.Backend != VLLM {
		return Fault{NeedsVLLM, FieldPrefillScheduleInterval}
	}
	return Fault{}
}

func (e Engine) checkMTP() Fault {
	switch d := e.MTP.Drafts; {
	case d < 0:
		return Fault{Negative, FieldMTPDrafts}
	case d > MaxDrafts:
		return Fault{TooLarge, FieldMTPDrafts}
	case d > 0 && e.DecodeSpeedupRatio != 1:
		return Fault{Exclusive, FieldMTPDrafts}
	}
	for _, p := range e.MTP.AcceptRates {
		switch {
		case !finite(p):
			return Fault{NotFinite, FieldMTPAcceptRates}
		case p < 0 || p > 1:
			return Fault{NotAChance, FieldMTPAcceptRates}
		}
	}
	return Fault{}
}

func (e Engine) checkTransfer() Fault {
	switch {
	case e.Transfer.Timing > DestinationMissing:
		return Fault{UnknownValue, FieldTransferTiming}
	case e.Transfer.BytesPerToken < 0:
		return Fault{Negative, FieldTransferBytes}
	case e.KVCacheBytesPerToken < 0:
		return Fault{Negative, FieldKVCacheBytes}
	}
	if c := ratio(e.Transfer.BandwidthGBs); c != Valid {
		return Fault{c, FieldTransferBandwidth}
	}
	return Fault{}
}

// tier checks the size, the scope and the speeds of memory below that of the GPU.
func tier(blocks int, scopeKnown bool, speeds ...float64) Code {
	for _, x := range speeds {
		if c := ratio(x); c != Valid {
			return c
		}
	}
	switch {
	case !scopeKnown:
		return UnknownValue
	case blocks < 0:
		return Negative
	case blocks > MaxGPUBlocks:
		return TooLarge
	}
	return Valid
}

// checkDiskOffload: floats are checked even if nothing is offloaded. That there
// are no data-parallel ranks is checked last of all, as the reference does.
func (e Engine) checkDiskOffload() Fault {
	d := e.DiskOffload
	if c := tier(d.Blocks, d.Scope <= DiskShared, d.ReadGBs, d.WriteGBs, d.SharedReadGBs, d.SharedWriteGBs, d.FirstByteLatencyMs); c != Valid {
		return Fault{c, FieldDiskOffload}
	}
	switch {
	case d.Blocks == 0:
		return Fault{}
	case e.Role != Aggregated:
		return Fault{NotAggregated, FieldDiskOffload}
	case e.HostOffload.Blocks == 0:
		return Fault{NeedsHostOffload, FieldDiskOffload}
	case e.HostOffload.Scope == ClusterShared:
		return Fault{NeedsRankLocal, FieldDiskOffload}
	case d.readsInstantly():
		return Fault{TakesNoTime, FieldDiskOffload}
	}
	return Fault{}
}

// readsInstantly reports whether a read may take no time at all.
func (d DiskOffload) readsInstantly() bool {
	limited := d.ReadGBs > 0 || d.Scope == DiskShared && d.SharedReadGBs > 0
	return !limited && d.FirstByteLatencyMs == 0
}

// checkHostOffload: floats are checked even if nothing is offloaded.
func (e Engine) checkHostOffload() Fault {
	h := e.HostOffload
	if c := tier(h.Blocks, h.Scope <= ClusterShared, h.D2HGBs, h.H2DGBs, h.SharedD2HGBs, h.SharedH2DGBs, h.FirstByteLatencyMs); c != Valid {
		return Fault{c, FieldHostOffload}
	}
	switch {
	case h.Blocks == 0:
		return Fault{}
	case e.Backend != VLLM:
		return Fault{NeedsVLLM, FieldHostOffload}
	case !e.EnablePrefixCaching:
		return Fault{NeedsPrefixCaching, FieldHostOffload}
	case e.MTP.Drafts > 0:
		return Fault{Exclusive, FieldHostOffload}
	case e.KVCacheBytesPerToken == 0:
		return Fault{NotPositive, FieldKVCacheBytes}
	case e.KVCacheBytesPerToken > math.MaxInt64/e.BlockSize/max(h.Blocks, e.DiskOffload.Blocks):
		return Fault{TooLarge, FieldKVCacheBytes}
	}
	return Fault{}
}
