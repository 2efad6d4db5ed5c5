// Package config holds the numbers that describe an engine and a replay run.
// It owns the value types, their defaults and their validation; it does not
// read JSON, files or flags (host/native does) and knows no sentences: a
// failed check is a Fault, which the host words.
//
// Source of the fields and rules: reference behaviour notes, engine §2.
package config

// Backend is the scheduler family an engine simulates.
type Backend uint8

// The backends of the reference.
const (
	VLLM Backend = iota
	SGLang
	TRTLLM
)

// Preemption chooses the victim when the KV pool is full.
type Preemption uint8

// LIFO preempts the most recently admitted request, FIFO the oldest.
const (
	LIFO Preemption = iota
	FIFO
)

// Role says which part of a request a worker serves.
type Role uint8

// Worker roles; only Aggregated workers serve whole requests.
const (
	Aggregated Role = iota
	Prefill
	Decode
)

// TimingKind selects the source of pass durations.
type TimingKind uint8

// Polynomial is the reference's uncalibrated default, Fixed two constants.
// Profile and Grid look durations up in tables, External asks the host.
const (
	Polynomial TimingKind = iota
	Fixed
	Profile
	Grid
	External
)

// Unbounded stands for a limit given as null: no limit at all.
const Unbounded = int(1) << 62

// Timing describes where pass durations come from. PrefillMs and DecodeMs are
// used by Fixed only, a table by its own kind only. Copies share the tables,
// which nobody changes.
type Timing struct {
	Kind      TimingKind
	PrefillMs float64
	DecodeMs  float64
	Profile   *ProfileTable
	Grid      *GridTable
}

// Engine describes one rank of a simulated engine. Token counts are tokens,
// block counts are blocks of BlockSize tokens.
type Engine struct {
	Backend              Backend
	Role                 Role
	NumGPUBlocks         int
	BlockSize            int
	MaxModelLen          int // 0: no limit
	MaxNumSeqs           int // Unbounded: no limit
	MaxNumBatchedTokens  int // Unbounded: no limit
	EnablePrefixCaching  bool
	EnableChunkedPrefill bool
	Preemption           Preemption
	SpeedupRatio         float64 // 0 means unscaled, as in the reference
	DecodeSpeedupRatio   float64
	EmitKVEvents         bool
	EmitKVTokenIDs       bool
	Timing               Timing

	DPSize             int
	TensorParallelSize int

	// PrefillScheduleInterval lets a vLLM engine of several ranks admit
	// prompts in every so many passes only; 1 means in all.
	PrefillScheduleInterval int
	MTP                     MTP
	Transfer                Transfer
	KVCacheBytesPerToken    int // needed by host offload only; 0: not set
	HostOffload             HostOffload
	DiskOffload             DiskOffload

	SGLang SGLangOptions // used by that backend only
}

// SLA bounds goodput; a negative bound is unset.
type SLA struct {
	TTFTMs float64
	ITLMs  float64
	E2EMs  float64
}

// Set reports whether any bound is set.
func (s SLA) Set() bool { return s.TTFTMs >= 0 || s.ITLMs >= 0 || s.E2EMs >= 0 }

// NoSLA is the SLA without bounds.
func NoSLA() SLA { return SLA{TTFTMs: -1, ITLMs: -1, E2EMs: -1} }

// Pool is a number of workers of one kind.
type Pool struct {
	Engine  Engine
	Workers int
}

// Replay describes a whole run: identical aggregated workers, or two pools of
// them, of which one computes prompts and hands them over to the other; and how
// requests are spread over them.
type Replay struct {
	Engine          Engine  // of the workers; in a disaggregated run of those that decode
	NumWorkers      int     // so many
	Prefill         Pool    // those that compute prompts; without workers: everybody serves whole requests
	TraceBlockSize  int     // tokens per trace hash id
	Concurrency     int     // 0: arrivals follow the trace; else the cap
	Lanes           int     // of a graph of agents: plays under way at once; 0: all, each from its own time
	ArrivalSpeedup  float64 // divides session starts and delays in trace mode
	MaxSimTimeMs    float64 // negative: no cap
	SLA             SLA
	Parity          bool // end as the reference does where a request can never be served
	CaptureRequests bool // keep per-request records

	Sharing        LinkSharing // of bandwidth, between transfers
	PrefillPerNode int         // with SharedByNode: workers of a node; consecutive ones

	Routing Routing
	Scaling Scaling
	Samples Samples
}

// Disaggregated reports whether prompts are computed in a pool of its own.
func (r *Replay) Disaggregated() bool { return r.Prefill.Workers != 0 }
