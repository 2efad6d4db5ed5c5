package engine

// Handle names a request inside an engine. It is small, never 0, and valid
// from the Submit that returned it until the first Begin after the request's
// terminal output was in Out (or after it was cancelled or failed).
type Handle int32

// Code is the result of a command.
type Code uint8

// Results of commands. All but Applied leave the engine unchanged.
const (
	Applied        Code = iota
	Noop                // there is no such request
	AlreadyActive       // a request with this UUID has not reached its end yet
	NegativeOutput      // MaxOutput is below zero
	PromptTooLong       // a destination's prompt leaves no room below the model's limit
	PromptTooLarge      // a destination's prompt does not fit in the pool
)

// Request describes what to run. The engine copies what it keeps.
type Request struct {
	UUID      [16]byte // in RFC byte order, as printed
	Tag       uint32   // echoed with everything Out says of the request
	Tokens    []uint32 // prompt, may be empty
	MaxOutput int      // tokens to generate, >= 0; ignored if OutputIDs is not nil
	OutputIDs []uint32 // planned output; if not nil its length is the output length
	Handoff   uint64   // echoed in lifecycle facts of a handed-off request
}

// output is the number of tokens asked for.
func (q *Request) output() int {
	if q.OutputIDs != nil {
		return len(q.OutputIDs)
	}
	return q.MaxOutput
}

// Out is what a pass said: slices owned by the engine. The fields under "start"
// are valid from Begin on, those under "end" from Complete on, all of them
// until the next Begin (engine notes §3). Cancel may take entries out of
// Outputs while the pass is in flight.
type Out struct {
	// Start of the pass.

	// Committed lists the requests that did prompt work or output a token, in
	// the order they were scheduled (the reference lists them by UUID).
	Committed  []Handle
	Admissions []Admission // in admission order
	Pressure   []Pressure  // in the order of the preemptions

	// End of the pass.

	// Outputs lists completions without a token, then tokens, both in running
	// order, then rejections in queue order (engine notes §4.5).
	Outputs    []Output
	Lifecycle  []Lifecycle // in the order of the outputs, then of reservations
	KVEvents   []KVEvent   // in the order of the scheduling decisions
	KVBlocks   []KVBlock   // the events' blocks
	KVTokens   []uint32    // the stored blocks' tokens, if they are emitted
	Metrics    Metrics
	Forward    Forward
	Acceptance Acceptance

	// Effect is false for a pass that did nothing that could be seen: no
	// admission, no pressure, no output, no fact, no work scheduled. Repeating such a
	// pass at the same time does nothing either (corrections §4).
	Effect bool

	// Copied is true if a copy to or from host memory ended with the pass.
	Copied bool

	// Began is true if the rank has a disk and the pass began to load from host
	// memory or to read from disk. The reference then runs a pass without effect
	// once more.
	Began bool

	// Stuck is true for a decode step of SGLang whose only request found no
	// room for its next token. It counts as an effect: the reference repeats it
	// for ever. FailHead ends the request (corrections §4).
	Stuck bool
}

// Effects is what a command said besides its code: slices owned by the engine,
// valid until its next command or Begin. KV events are here only if no pass is
// in flight; else they come with the end of the pass (engine notes §3).
type Effects struct {
	KVEvents []KVEvent
	KVBlocks []KVBlock
	KVTokens []uint32

	Lifecycle []Lifecycle
	Retired   []Handle // requests that ended by the command
}

// LifecycleKind tells the facts about a handed-off request apart.
type LifecycleKind uint8

// Kinds of lifecycle facts.
const (
	SourceHeld          LifecycleKind = iota // its prompt is computed and kept for the transfer
	DestinationReserved                      // the blocks for its prompt are reserved
)

// Lifecycle is a fact about a handed-off request.
type Lifecycle struct {
	Kind    LifecycleKind
	Req     Handle
	Tag     uint32
	Handoff uint64
	// Tokens are, of a source, the prompt; of a destination, the reserved blocks
	// that were not resident, in tokens: what a transfer has to bring.
	Tokens int
}

// Admission says that a waiting request joined the running batch.
type Admission struct {
	Req    Handle
	Tag    uint32
	Reused int // tokens found in the prefix cache, those loaded for it included
	Host   int // of them, tokens loaded from host memory
}

// Load is the state of a rank around a preemption.
type Load struct {
	Running, Waiting int // requests
	ActiveBlocks     int
}

// Pressure says that a running request was preempted because the KV pool was
// full (engine notes §10.4).
type Pressure struct {
	Req           Handle
	Tag           uint32
	Before, After Load
	OwnBlocks     int // blocks the request held

	// SGLang only: blocks that were free or could be evicted before, and those
	// that the batch needed.
	AvailableBlocks, RequiredBlocks int
}

// Output is one signal of a request. A terminal one has Completed set; a
// rejected request has Rejected set as well and no token.
type Output struct {
	Req          Handle
	Tag          uint32
	Token        uint32 // if HasToken
	HasToken     bool
	Completed    bool
	Rejected     bool
	HasCached    bool // only in the request's first signal, never if rejected
	CachedTokens int  // prefix tokens found at the first admission, if HasCached
}

// KVEventKind tells stored from removed blocks.
type KVEventKind uint8

// Kinds of KV events.
const (
	Stored KVEventKind = iota
	Removed
)

// KVEvent says that blocks became known to, or vanished from, the prefix
// cache. Its blocks are Out.KVBlocks[First:First+Count].
type KVEvent struct {
	ID           uint64 // counts the rank's events from 0
	Kind         KVEventKind
	Host         bool   // of host memory, not of the GPU
	Start        int    // Host, Stored: index of the first block in its prompt
	HasParent    bool   // Stored: the first block continues Parent
	Parent       uint64 // sequence hash
	First, Count int
}

// KVBlock is one block of an event. Local and the tokens are known for stored
// blocks only; the tokens are Out.KVTokens[Tokens:Tokens+BlockSize], present
// when the engine emits token ids.
type KVBlock struct {
	Hash   uint64
	Local  uint64
	Tokens int
}

// Metrics describes a rank between two passes (engine notes §10.2).
type Metrics struct {
	ActiveBlocks       int
	InactiveBlocks     int
	TotalBlocks        int
	CacheUsage         float64 // active / total
	PhysicalCacheUsage float64 // (active + inactive) / total
	RunningRequests    int
	WaitingRequests    int
	Preemptions        int // since the start; SGLang counts none

	// SGLang only, of one pass: prompt tokens found cached at admissions, and
	// the sum of these and of the tokens computed.
	CacheHitTokens   int
	CacheTotalTokens int
}

// Forward describes the work of one pass (engine notes §10.1). Variances are
// population variances of lengths in tokens; the queued ones are of the
// requests left waiting when the pass was scheduled.
type Forward struct {
	Prefills         int     // requests with prompt work
	PrefillTokens    int     // scheduled for them
	PrefillVariance  float64 // of their prompt lengths
	PrefillKVTokens  int     // tokens of their prompts computed before this pass; SGLang counts those generated before a retraction, too
	Decodes          int     // requests with other work
	DecodeKVTokens   int     // sum of their sequence lengths
	DecodeVariance   float64
	QueuedPrefills   int // never admitted
	QueuedPrefillLen int // sum of their prompt lengths
	QueuedPrefillVar float64
	QueuedDecodes    int // preempted
	QueuedDecodeLen  int // sum of their sequence lengths
	QueuedDecodeVar  float64
	DurationMs       float64
}

// Acceptance counts decoding steps and the tokens they yielded (engine notes
// §9); without speculation the two are equal. A request that still had prompt
// work in the pass is not counted.
type Acceptance struct {
	Forwards       int
	AcceptedTokens int
}
