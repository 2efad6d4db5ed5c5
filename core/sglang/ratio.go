package sglang

// Constants of the reference (engine notes §6).
const (
	initialRatio   = 0.7  // of a conservativeness of 1
	leastRatio     = 0.14 // of the initial one
	decaySteps     = 600  // passes from the initial to the least
	retractedSteps = 20   // tokens that a retraction leaves to each survivor
)

// ratio is the share of the output still to come for which admission reserves
// room: it falls with every pass that decodes and rises by retractions.
type ratio struct {
	now     float64
	initial float64
	least   float64
	decay   float64
}

func newRatio(conservativeness float64) ratio {
	initial := float64(initialRatio * conservativeness)
	least := float64(leastRatio * initial)
	return ratio{now: initial, initial: initial, least: least, decay: (initial - least) / decaySteps}
}

func (r *ratio) fall() { r.now = max(r.least, r.now-r.decay) }

// retracted estimates the ratio anew after a retraction: of count survivors
// with the given sums of generated tokens and of output limits.
func (r *ratio) retracted(count, generated, maxOutput int) {
	r.now = min(1, float64(generated+retractedSteps*count)/float64(maxOutput+1))
}

// Round is what a group must know of a rank's pass to end its round
// (engine notes §6.1, step 10).
type Round struct {
	Prefilled    bool // prompt tokens were computed
	RanModel     bool // prompt tokens were computed or tokens decoded
	Deferred     bool // prompts were held back by the interval
	RatioChanged bool // another pass at the same time may admit somebody
}

// Round describes the pass begun last.
func (e *Rank) Round() Round {
	p := &e.pass
	return Round{
		Prefilled:    p.computed > 0,
		RanModel:     p.computed > 0 || p.decoded,
		Deferred:     p.deferred,
		RatioChanged: p.ratioBefore != e.ratio.now,
	}
}

// EndRound tells the rank, once after every Complete, whether any rank of its
// group computed prompt tokens and whether any ran the model at all. A rank
// that is alone (a DPSize of 1) tells itself.
func (e *Rank) EndRound(prefilled, ranModel bool) {
	if prefilled {
		e.rounds = e.cfg.SGLang.PrefillDecodeInterval
	} else {
		e.rounds = max(e.rounds-1, 0)
	}
	if e.pass.deferred && !e.pass.hadDecodes && !ranModel {
		e.ratio.now = e.ratio.initial
	}
}

// PrefillRounds is the number of passes that are still held to be without
// prompts. The ranks of a group have the same.
func (e *Rank) PrefillRounds() int { return e.rounds }
