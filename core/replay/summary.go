package replay

import (
	"github.com/dryserve/dryserve/core/offload"
	"github.com/dryserve/dryserve/core/stats"
)

// Summary holds every number of a report that does not depend on the wall
// clock. Formulas: replay notes §9.1.
type Summary struct {
	CommittedPrefillTokens int64
	NumRequests            int64 // arrived
	CompletedRequests      int64
	RejectedRequests       int64
	FailedRequests         int64
	CancelledRequests      int64
	UnfinishedRequests     int64
	TotalInputTokens       int64
	TotalOutputTokens      int64
	DurationMs             float64

	RequestThroughputRPS  float64
	InputThroughputTokS   float64
	OutputThroughputTokS  float64
	TotalThroughputTokS   float64
	PrefillWorkerSeconds  float64
	DecodeWorkerSeconds   float64
	PrefillGPUsPerWorker  int64
	DecodeGPUsPerWorker   int64
	GPUHours              float64
	PrefixReusedRatio     float64
	FirstAdmissionReused  float64
	SharedHost            *HostPool          // nil without one
	Disk                  *offload.DiskStats // of all workers; nil without disk
	HasSLA                bool
	GoodputCompleted      int64
	GoodputRequestRPS     float64
	GoodputOutputTokS     float64
	NumTTFT, NumTPOT      int64
	NumE2E                int64
	TTFT, TTST, TPOT, ITL stats.Dist // ms
	E2E                   stats.Dist // ms
	PerUser               stats.Dist // tokens/s

	Agents *AgentsSummary // of a graph, else nil
}

// AgentsSummary is what became of the plays of a graph (replay notes §3.4).
type AgentsSummary struct {
	Plays, Completed int64
	Latency          stats.Dist    // ms, of completed plays: from the first request to the last end
	Outcomes         []PlayOutcome // by play; nil in real time, as are the next two
	Events           int64         // of the lifecycle
	Digest           [32]byte
}

// PlayOutcome is how a play ended. Times in ms; NaN is absent.
type PlayOutcome struct {
	Settled    bool
	Failed     bool
	TerminalMs float64 // the last request's end so far, or the one that failed the play
	SettledMs  float64
	FailedNode int32 // -1: none
	Status     TerminalStatus
}

// HostPool is the host memory that all workers share, at the end of a run.
// Pending contents use blocks.
type HostPool struct{ CapacityBlocks, ResidentBlocks, UsedBlocks int }

// TerminalStatus is how a request ended.
type TerminalStatus uint8

// Terminal statuses in the reference's words.
const (
	Completed TerminalStatus = iota
	Rejected
	Canceled
	Failed
)

// Admission is one entry of a record's admission history.
type Admission struct {
	AtMs   float64
	Reused int32 // tokens
}

// Record is what is known of one request that reached a terminal, kept when
// config.Replay.CaptureRequests is set. Times in ms; NaN is absent.
type Record struct {
	Turn            int32 // index into the workload's Turns
	ArrivalMs       float64
	FirstAdmitMs    float64
	TerminalMs      float64
	FirstTokenMs    float64
	SecondTokenMs   float64
	LastTokenMs     float64
	InputLength     int32
	RequestedOutput int32
	OutputLength    int32
	ReusedTokens    int32 // maximum over the admissions
	FirstHostTokens int32 // of those reused at the first admission, loaded from host memory
	Worker          int32 // worker*DPSize + rank
	Status          TerminalStatus
	AdmissionStart  int32 // into Admissions
	AdmissionCount  int32
}

// Handoff is what is known besides of a request of a disaggregated run. Its
// record's Worker is the rank that decoded, -1 if none took it. Times in ms;
// NaN is absent.
type Handoff struct {
	PrefillScheduler int32 // rank that computed the prompt: worker*DPSize + rank; -1: none
	DecodeScheduler  int32 // rank that was asked for room for it; -1: none
	DecodeFirst      bool  // room was asked for before the prompt was computed
	Routed           bool  // by KV routers
	PrefillRoute     Route // what the one of prompts said, if it has placed the request
	DecodeRoute      Route // the same of the other
	PrefillAdmits    int32 // of the record's admissions, the first ones: those of prompts
	DecodeReused     int32 // tokens, maximum over the other admissions; -1: none
	PrefillAdmitMs   float64
	HeldMs           float64 // the prompt was computed and kept for the transfer
	ReservedMs       float64
	ActivatedMs      float64 // the prompt had arrived and could be used
	DecodeAdmitMs    float64
	ReleasedMs       float64 // the prompt was given up where it was computed
}
