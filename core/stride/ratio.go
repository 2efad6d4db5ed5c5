package stride

// Constants of the reference (engine notes §3, §6).
const (
	initialRatio   = 0.7  // of a conservativeness of 1
	leastRatio     = 0.14 // of the initial one
	decaySteps     = 600  // passes from the initial to the least
	retractedSteps = 20   // tokens that a retraction leaves to each survivor
	maxRetries     = 1024 // passes repeated at one time because the ratio moved
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

// clip is the output that the running requests are reckoned to generate still,
// each at most ClipMaxNewTokens: a sum that falls by low with every step until
// step until.
type clip struct {
	valid bool
	sum   int
	low   int
	at    int64 // the step before which sum holds
	until int64
}

// clipped brings the sum to the step that is next.
func (w *Worker) clipped() *clip {
	c := &w.clip
	if c.valid && w.steps <= c.until {
		c.sum -= c.low * int(w.steps-c.at)
		c.at = w.steps
		return c
	}
	*c = clip{valid: true, at: w.steps, until: never}
	most := w.opts.ClipMaxNewTokens
	for _, id := range w.run {
		left := w.left(id)
		if left <= most {
			c.sum += left
			c.low++
		} else {
			c.sum += most
			c.until = min(c.until, w.steps+int64(left-most))
		}
	}
	return c
}

// left is what a running request still has to generate.
func (w *Worker) left(id int32) int {
	r := &w.reqs[id]
	return int(r.remaining()) - int(w.steps-r.join)
}

// reserved is the room kept for that output, summed request by request as the
// reference does.
func (w *Worker) reserved() float64 {
	sum := 0.0
	for _, id := range w.run {
		n := min(w.left(id), w.opts.ClipMaxNewTokens)
		sum += float64(float64(n) * w.ratio.now)
	}
	return sum
}

// slack is more than the rounding of a sum of requests can amount to.
func slack(sum float64) float64 { return 1e-6 + float64(1e-9*sum) }
