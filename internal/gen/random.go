package gen

import "fmt"

// pressure is how much room the KV pool leaves the requests of a case.
type pressure int

const (
	tight  pressure = iota // a handful of blocks: waits, preemptions, dead ends
	medium                 // evictions and some waiting
	roomy                  // hardly ever full
)

// casePlan holds what the parts of a case must agree on.
type casePlan struct {
	r         *Rand
	room      pressure
	blockSize int // tokens per engine block
	traceSize int // tokens per hash id
	pool      int // tokens the KV pool holds
	burst     bool
	doomed    bool // requests may outgrow the pool
	sessions  bool
	replies   bool // some planned output ids spell later prompts
	capped    bool // concurrency mode
}

// Case returns the random replay case of a seed: a vLLM engine of small and
// odd sizes, one to five workers behind a round robin and a short trace. One
// case in about thirty breaks a rule of the inputs on purpose.
func Case(seed uint64) *ReplayCase {
	r := NewRand(seed)
	p := &casePlan{r: r, room: pick(r, tight, tight, tight, medium, medium, roomy)}
	c := &ReplayCase{Name: fmt.Sprintf("seed-%d", seed), Files: []string{TraceFile}, Kwargs: map[string]any{}}
	p.engine(c.Engine())
	p.run(c.Kwargs)
	p.burst = r.Chance(0.25)
	p.doomed = r.Chance(0.1)
	p.sessions = r.Chance(0.4)
	p.replies = r.Chance(0.3)
	c.Rows = p.trace()
	if echo := NewRand(^seed); echo.Chance(0.1) {
		p.echo(echo, c)
	}
	if r.Chance(0.03) {
		p.spoil(c)
	}
	return c
}

// engine fills the engine arguments and fixes the sizes of the plan.
func (p *casePlan) engine(e map[string]any) {
	r := p.r
	e["backend"] = "vllm"
	p.blockSize = pick(r, 2, 3, 4, 4, 5, 7, 8, 8, 16, 16, 32, r.Between(2, 32))
	blocks := 0
	switch p.room {
	case tight:
		blocks = r.Between(2, 12)
	case medium:
		blocks = r.Between(10, 60)
	case roomy:
		blocks = r.Between(100, 1500)
	}
	p.pool = blocks * p.blockSize
	e["block_size"], e["num_gpu_blocks"] = p.blockSize, blocks
	switch r.Intn(5) {
	case 0, 1:
		e["max_num_seqs"] = r.Between(1, 5)
	case 2:
		e["max_num_seqs"] = nil
	case 3:
		e["max_num_seqs"] = r.Between(6, 40)
	}
	switch r.Intn(6) {
	case 0, 1:
		e["max_num_batched_tokens"] = r.Between(1, 3*p.blockSize)
	case 2, 3:
		e["max_num_batched_tokens"] = r.Between(p.blockSize, p.pool+p.blockSize)
	case 4:
		e["max_num_batched_tokens"] = nil
	}
	if r.Chance(0.25) {
		e["enable_chunked_prefill"] = r.Chance(0.2)
	}
	if r.Chance(0.25) {
		e["enable_prefix_caching"] = r.Chance(0.2)
	}
	if r.Chance(0.5) {
		e["preemption_mode"] = pick(r, "fifo", "fifo", "lifo")
	}
	if r.Chance(0.2) {
		e["max_model_len"] = r.Between(1, p.pool+p.blockSize)
	}
	p.timing(e)
}

// timing sets the durations: the default polynomial or two constants, with
// zeros, equal values and values below the clock's resolution among them.
func (p *casePlan) timing(e map[string]any) {
	r := p.r
	value := func() float64 {
		return pick(r, 0, 1, 2, 7, 10, 10, 0.5, 12.345678, 1e-7, 0.1, float64(r.Between(1, 4000))/128)
	}
	switch r.Intn(8) {
	case 0:
		e["timing_model"] = map[string]any{"type": "polynomial"}
	case 1, 2, 3:
		e["timing_model"] = map[string]any{"type": "fixed", "prefill_ms": value(), "decode_ms": value()}
	case 4:
		v := value()
		e["timing_model"] = map[string]any{"type": "fixed", "prefill_ms": v, "decode_ms": v}
	}
	if r.Chance(0.2) {
		e["speedup_ratio"] = pick(r, 0, 0.5, 1.7, 2, 3, 10, 1000)
	}
	if r.Chance(0.15) {
		e["decode_speedup_ratio"] = pick(r, 0, 0.25, 1.5, 2, 7)
	}
}

// run fills the arguments beside the engine's.
func (p *casePlan) run(k map[string]any) {
	r := p.r
	p.traceSize = p.blockSize
	switch r.Intn(6) {
	case 0:
		p.traceSize *= r.Between(2, 5)
	case 1:
		p.traceSize = max(1, p.blockSize/r.Between(2, 4))
	case 2, 3:
		p.traceSize = r.Between(1, 40)
	}
	k["trace_block_size"] = p.traceSize
	if w := pick(r, 1, 1, 1, 2, 2, 3, 4, 5); w > 1 {
		k["num_workers"] = w
	}
	if r.Chance(0.4) {
		p.capped = true
		k["replay_concurrency"] = pick(r, 1, 2, 3, 4, r.Between(5, 20))
	}
	if r.Chance(0.2) {
		k["arrival_speedup_ratio"] = pick(r, 0.5, 2, 3, 1.1, 1000)
	}
	if r.Chance(0.15) {
		k["max_sim_time_ms"] = pick(r, 0, 1, 25, 100, 500, float64(r.Between(1, 100000))/64)
	}
	switch r.Intn(12) {
	case 0:
		k["sla_e2e_ms"] = pick(r, 1, 20, 100, 400.5)
	case 1:
		k["sla_ttft_ms"] = pick(r, 1, 10, 25, 90.25)
	case 2:
		k["sla_itl_ms"] = pick(r, 0.5, 2, 10, 30)
	case 3:
		k["sla_ttft_ms"], k["sla_itl_ms"] = pick(r, 10, 25, 90.25), pick(r, 2, 10, 30)
	}
}

// spoil breaks one rule of the inputs.
func (p *casePlan) spoil(c *ReplayCase) {
	r := p.r
	row := &c.Rows[r.Intn(len(c.Rows))]
	switch r.Intn(10) {
	case 0:
		row.InputLength, row.InputTokens = ptr(int64(len(row.HashIDs)*p.traceSize+1)), nil
	case 1:
		row.InputLength, row.InputTokens = ptr(int64(0)), nil
	case 2:
		row.OutputLength, row.OutputTokens = nil, nil
	case 3:
		row.HashIDs = nil
	case 4:
		row.OutputTokenIDs = []uint32{1, 2, 3, 4, 5, 6, 7}
	case 5:
		row.Delay, row.DelayMs = ptr(-4.0), nil
	case 6:
		row.Timestamp, row.CreatedTime = nil, nil
	case 7:
		row.Delay, row.DelayMs = ptr(3.0), ptr(3.0)
	case 8: // a capped run does not look at the ratio
		if p.capped {
			c.Kwargs["num_workers"] = 0
		} else {
			c.Kwargs["arrival_speedup_ratio"] = 0
		}
	case 9:
		c.Kwargs["sla_e2e_ms"], c.Kwargs["sla_ttft_ms"] = 10, 10
	}
}
