package gen

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Families are the kinds of case that FamilyCase makes.
func Families() []string {
	return []string{"vllm", "trtllm", "sglang", "dp", "mtp", "any", "npz", "syn", "formats", "g2", "g3", "kv", "kvg2", "pd", "kvpd", "scale", "telemetry"}
}

// FamilyCase is Case(seed) for another kind of engine: TensorRT-LLM, SGLang,
// two to four data-parallel ranks, speculative decoding (with some of the
// others), any mixture, or any mixture with durations from a profile. Family
// vllm is Case itself. Family syn is the mixture with a synthetic workload
// instead of a trace, family formats with a trace in a format other than
// Mooncake. Family g2 is vLLM with host memory, family g3 also with a disk.
// Families kv and kvg2 are the mixture, sometimes with a synthetic workload, and
// g2 behind a KV router. Family pd is the mixture, also with these workloads, in
// two pools of workers; family kvpd is kv in two pools.
// Family scale lets workers of any of these come and go, family telemetry takes
// samples, and now and then each does the other too.
func FamilyCase(seed uint64, family string) (*ReplayCase, error) {
	if !slices.Contains(Families(), family) {
		return nil, fmt.Errorf("gen: there is no family %q", family)
	}
	c := Case(seed)
	switch family {
	case "syn":
		mixed, err := FamilyCase(seed, "any")
		if err == nil {
			synthesize(seed, mixed)
		}
		return mixed, err
	case "formats":
		return formatsCase(seed)
	case "kv", "kvg2", "kvpd":
		return routedCase(seed, family)
	case "pd":
		return poolsCase(seed)
	case "scale", "telemetry":
		return watchedCase(seed, family)
	}
	if family == "vllm" {
		return c, nil
	}
	c.Name = fmt.Sprintf("%s-%d", family, seed)
	r := NewRand(seed ^ 0xF0A1171E5)
	if family == "g3" {
		return diskCase(seed)
	}
	if family == "g2" {
		if seed%3 == 0 {
			return pressed(seed), nil
		}
		offload(r, c)
		return c, nil
	}
	often := 0.0 // how often a case has what its family does not ask for
	switch family {
	case "any", "npz":
		often = 0.5
	case "mtp":
		often = 0.25
	}
	has := func(r *Rand, kind string, p float64) bool { return family == kind || p > 0 && r.Chance(p) }
	e := c.Engine()
	if has(r, "trtllm", often) {
		e["backend"] = "trtllm"
	}
	ranks := has(r, "dp", often)
	if ranks {
		object(c.Kwargs, "extra_engine_args")["dp_size"] = r.Between(2, 4)
	}
	// Streams of their own: the cases of the older families stay what they were.
	if r := NewRand(seed ^ 0x5619A46); has(r, "sglang", 0.8*often) {
		sglang(r, e, c)
	}
	if r := NewRand(seed ^ 0x1E7A11); ranks {
		interval(r, c)
	}
	if r := NewRand(seed ^ 0xB0257); has(r, "mtp", often) {
		speculate(r, c)
	}
	if family == "npz" {
		c.profiled(r)
	}
	return c, nil
}

// interval lets ranks admit prompts in some passes only. Only vLLM takes more
// than 1.
func interval(r *Rand, c *ReplayCase) {
	e := c.Engine()
	if !r.Chance(0.6) || e["backend"] != "vllm" && !r.Chance(0.05) {
		return
	}
	e["prefill_schedule_interval"] = r.Between(1, 6)
	if r.Chance(0.1) {
		block(r, c)
	}
}

// sglang makes the engine one of SGLang, with its own budgets; they are kept
// small, and about one in thirty does not fit the others. Its pool gets more
// room than the other engines', because admission reserves some of it.
func sglang(r *Rand, e map[string]any, c *ReplayCase) {
	e["backend"] = "sglang"
	delete(e, "enable_chunked_prefill")
	size := e["block_size"].(int)
	if r.Chance(0.25) { // pages of one token, as many as the pool held
		e["num_gpu_blocks"] = e["num_gpu_blocks"].(int) * size
		size = 1
		e["block_size"] = size
	}
	if r.Chance(0.7) {
		e["num_gpu_blocks"] = e["num_gpu_blocks"].(int) * r.Between(2, 4)
	}
	o := map[string]any{}
	switch r.Intn(4) {
	case 0:
		o["chunked_prefill_size"] = size
	case 1, 2:
		o["chunked_prefill_size"] = size * r.Between(1, 12)
	default:
		if 8192%size != 0 {
			o["chunked_prefill_size"] = size * 512
		}
	}
	if r.Chance(0.03) {
		o["chunked_prefill_size"] = r.Between(1, 3*size)
	}
	if ranks, ok := object(c.Kwargs, "extra_engine_args")["dp_size"].(int); ok && r.Chance(0.8) {
		if n, ok := o["chunked_prefill_size"].(int); ok {
			o["chunked_prefill_size"] = n * ranks
		}
	}
	if r.Chance(0.4) {
		o["max_prefill_tokens"] = r.Between(1, 12*size)
	}
	if r.Chance(0.6) {
		o["clip_max_new_tokens"] = pick(r, 0, 0, 1, 2, 5, r.Between(1, 40))
	}
	if r.Chance(0.6) {
		o["schedule_conservativeness"] = pick(r, 0, 0, 0.1, 0.25, 1, 1.5, 3)
	}
	if r.Chance(0.4) {
		o["schedule_policy"] = pick(r, "lpm", "lpm", "fifo")
	}
	if r.Chance(0.3) {
		e["prefill_decode_interval"] = r.Between(0, 5)
	}
	e["sglang"] = o
	if r.Chance(0.3) {
		choir(r, e, c)
	}
}

// choir makes the prompts a few songs sung again and again, often several at
// once: what is left in the cache of one depends on when the others ended, down
// to the order within a step. The pool holds about what three or four of them
// leave.
func choir(r *Rand, e map[string]any, c *ReplayCase) {
	size := e["block_size"].(int)
	songs, pages := r.Between(2, 6), r.Between(1, 6)
	e["num_gpu_blocks"] = pages*r.Between(2, 7) + r.Between(2, 8)
	delete(e, "max_model_len")
	c.Kwargs["trace_block_size"] = size
	for _, key := range []string{"replay_concurrency", "max_sim_time_ms", "num_workers"} {
		if r.Chance(0.8) {
			delete(c.Kwargs, key)
		}
	}
	clock := 0.0
	c.Rows = make([]Row, r.Between(6, 40))
	for i := range c.Rows {
		if !r.Chance(0.4) {
			clock += float64(r.Between(1, 120))
		}
		song := r.Intn(songs)
		length := pages
		if r.Chance(0.3) {
			length = r.Between(1, pages)
		}
		row := Row{Timestamp: ptr(clock)}
		for k := range length {
			// The songs begin alike.
			if k < pages/3 {
				row.HashIDs = append(row.HashIDs, uint64(k))
			} else {
				row.HashIDs = append(row.HashIDs, uint64(100*(song+1)+k))
			}
		}
		tokens := length * size
		if r.Chance(0.4) {
			tokens -= r.Intn(size)
		}
		row.InputLength = ptr(int64(tokens))
		row.OutputLength = ptr(int64(r.Between(0, 3*size+1)))
		c.Rows[i] = row
	}
}

// speculate adds speculative decoding. A request that outgrows the pool then
// preempts itself for ever, which takes the oracle long to see: few cases have
// one. Songs sung together leave copies of blocks (see choir): a hit is cut
// short, and the block is computed again.
func speculate(r *Rand, c *ReplayCase) {
	e := c.Engine()
	if e["backend"] != "sglang" && r.Chance(0.25) {
		choir(r, e, c)
	}
	if !r.Chance(0.03) { // it is refused beside speculation
		delete(e, "decode_speedup_ratio")
	}
	e["aic_nextn"] = r.Between(1, 5)
	if r.Chance(0.7) {
		var rates []string
		for range r.Between(1, 6) {
			rates = append(rates, strconv.FormatFloat(float64(r.Between(0, 8))/8, 'f', -1, 64))
		}
		e["aic_nextn_accept_rates"] = strings.Join(rates, ",")
	}
	if r.Chance(0.5) {
		e["aic_mtp_seed"] = r.Between(0, 1000)
	}
	if !r.Chance(0.02) {
		c.fit()
	}
}

// fit shortens the outputs that do not fit in the pool behind their prompts.
func (c *ReplayCase) fit() {
	e := c.Engine()
	traceSize, _ := c.Kwargs["trace_block_size"].(int)
	pool := e["block_size"].(int) * e["num_gpu_blocks"].(int)
	for i := range c.Rows {
		row := &c.Rows[i]
		room := max(pool-row.input(traceSize), 0)
		if row.output() <= room {
			continue
		}
		short := int64(room)
		if row.OutputLength != nil {
			row.OutputLength = &short
		} else {
			row.OutputTokens = &short
		}
		row.OutputTokenIDs = row.OutputTokenIDs[:min(room, len(row.OutputTokenIDs))]
	}
}

// block makes it likely that a rank's first request needs more tokens in one
// pass than there are and never begins, while other ranks and workers go on.
// The run ends before everything stands still, or in a dead end.
func block(r *Rand, c *ReplayCase) {
	e := c.Engine()
	e["enable_chunked_prefill"] = false
	e["max_num_batched_tokens"] = r.Between(4, 40)
	e["prefill_schedule_interval"] = r.Between(3, 11)
	c.Kwargs["num_workers"] = r.Between(1, 4)
	c.Kwargs["max_sim_time_ms"] = r.Between(20, 200)
}
