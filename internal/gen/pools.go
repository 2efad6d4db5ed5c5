package gen

import "fmt"

// poolsCase is a disaggregated case: any mixture of engines and workloads, in
// two pools.
func poolsCase(seed uint64) (*ReplayCase, error) {
	r := NewRand(seed ^ 0xD15A66)
	c, err := FamilyCase(seed, pick(r, "any", "any", "any", "any", "any", "mtp", "syn", "formats"))
	if err != nil {
		return nil, err
	}
	c.Name = fmt.Sprintf("pd-%d", seed)
	c.disaggregate(r)
	return c, nil
}

// disaggregate makes the workers of a case two pools. Sizes and durations are
// such that passes and transfers often end together, and that requests wait for
// room where they are to be decoded.
func (c *ReplayCase) disaggregate(r *Rand) {
	args := object(c.Kwargs, "extra_engine_args")
	delete(c.Kwargs, "extra_engine_args")
	other := cloneObject(args)
	c.Kwargs["prefill_engine_args"], c.Kwargs["decode_engine_args"] = args, other
	prefill, decode := object(args, "engine"), object(other, "engine")
	prefill["worker_type"], decode["worker_type"] = "prefill", "decode"
	if n := c.Kwargs["num_workers"]; n != 0 {
		delete(c.Kwargs, "num_workers") // 0 is a spoilt case
	}
	for _, key := range []string{"num_prefill_workers", "num_decode_workers"} {
		if n := pick(r, 1, 1, 2, 2, 3, 4); n > 1 {
			c.Kwargs[key] = n
		}
	}
	if r.Chance(0.5) { // what follows makes the engines less alike
		differ(r, other, decode)
	}
	if r.Chance(0.2) {
		for _, key := range []string{"aic_nextn", "aic_nextn_accept_rates", "aic_mtp_seed"} {
			delete(prefill, key)
		}
	}
	if r.Chance(0.2) {
		delete(decode, "max_model_len")
	}
	if r.Chance(0.75) {
		link(r, prefill)
	}
	if r.Chance(0.2) { // acts on neither
		link(r, decode)
	}
	if r.Chance(0.03) {
		mismatch(r, other, decode)
	}
}

// link gives an engine what a transfer depends on.
func link(r *Rand, e map[string]any) {
	if r.Chance(0.95) {
		e["kv_transfer_bytes_per_token"] = pick(r, 1, 1000, 100_000, 250_000, 500_000, 1_000_000, 1_000_000, 1_000_000, r.Between(1, 3_000_000))
	}
	if r.Chance(0.95) {
		e["kv_transfer_bandwidth"] = pick(r, 0, 0.25, 0.5, 1, 1, 1, 2, 4, 64, float64(r.Between(1, 2000))/64)
	}
	if r.Chance(0.5) {
		e["kv_transfer_timing_mode"] = pick(r, "destination_missing", "destination_missing", "full_prompt")
	}
}

// differ changes the engine of one pool.
func differ(r *Rand, args, e map[string]any) {
	blocks, _ := e["num_gpu_blocks"].(int)
	if r.Chance(0.6) && blocks > 0 {
		e["num_gpu_blocks"] = pick(r, blocks*2, blocks+r.Between(1, 8), max(2, blocks*2/3), r.Between(2, 12))
	}
	if r.Chance(0.3) {
		e["max_num_seqs"] = r.Between(1, 4)
	}
	if r.Chance(0.2) {
		size, _ := e["block_size"].(int)
		e["max_model_len"] = r.Between(1, size*(blocks+1))
	}
	if r.Chance(0.3) {
		e["timing_model"] = map[string]any{"type": "fixed", "prefill_ms": pick(r, 0, 1, 10), "decode_ms": pick(r, 0, 1, 2, 7)}
	}
	if r.Chance(0.3) {
		ranks := r.Between(1, 3)
		args["dp_size"] = ranks
		if o, ok := e["sglang"].(map[string]any); ok {
			if n, ok := o["chunked_prefill_size"].(int); ok {
				o["chunked_prefill_size"] = n * ranks
			}
		}
	}
	if r.Chance(0.3) {
		e["enable_prefix_caching"] = r.Chance(0.5)
	}
	if r.Chance(0.2) {
		e["preemption_mode"] = pick(r, "fifo", "lifo")
	}
}

// mismatch makes two pools that do not fit together.
func mismatch(r *Rand, args, e map[string]any) {
	switch r.Intn(4) {
	case 0:
		e["worker_type"] = pick(r, "prefill", "aggregated")
	case 1:
		e["block_size"] = 2 * e["block_size"].(int)
	case 2:
		e["backend"] = pick(r, "vllm", "trtllm", "sglang")
	default:
		args["dp_size"] = 0
	}
}
