package group

// Repeat says what becomes of a group whose pass took no time and did nothing
// that could be seen (engine notes §3, same-timestamp convergence).
type Repeat uint8

const (
	// NotApplicable: the scheduler does not change by idle passes. The group is
	// left alone until something else happens.
	NotApplicable Repeat = iota
	// Countdown: prompts are held back for a number of passes more; passing
	// again at once brings them closer.
	Countdown
	// Retry: the scheduler's estimates moved; another pass may admit somebody.
	Retry
	// Exhausted: no further pass at this time can do anything.
	Exhausted
)

// MaxRetries is how often a group may be passed at one time because of Retry.
const MaxRetries = 1024

// Convergence is the verdict on the pass completed last.
type Convergence struct {
	Repeat    Repeat
	Remaining int // of a Countdown: passes still without prompts, it falls with each
}

// Convergence is the verdict on the pass completed last. The family of vLLM
// knows NotApplicable only, SGLang all others.
func (g *Group) Convergence() Convergence { return g.convergence }
