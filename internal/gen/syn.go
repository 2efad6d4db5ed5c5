package gen

import "fmt"

// synthesize gives a case a synthetic workload instead of its trace. One case
// in about thirty breaks a rule of the parameters. Where ours are stricter on
// purpose (a negative share is refused, not taken for none) no case goes.
func synthesize(seed uint64, c *ReplayCase) {
	r := NewRand(seed ^ 0x5E17C0DE)
	c.Name = fmt.Sprintf("syn-%d", seed)
	c.Files, c.Rows = []string{}, nil
	for _, key := range []string{"trace_block_size", "max_sim_time_ms", "replay_concurrency"} {
		delete(c.Kwargs, key)
	}
	if c.Kwargs["arrival_speedup_ratio"] == 0 { // a spoilt trace; a capped run would not look at it
		delete(c.Kwargs, "arrival_speedup_ratio")
	}
	e := c.Engine()
	block, _ := e["block_size"].(int)
	blocks, _ := e["num_gpu_blocks"].(int)
	most := min(block*blocks*2/3, 400)
	if r.Chance(0.05) {
		most = block*blocks + 2*block
	}
	input := r.Between(1, max(1, most))
	if r.Chance(0.3) {
		input = max(1, input/block) * block
	}
	output := pick(r, 1, 2, r.Between(1, 10), r.Between(5, 60))
	if !r.Chance(0.05) {
		output = max(1, min(output, block*blocks+1-input))
	}
	c.Synthetic = map[string]any{"input_tokens": input, "output_tokens": output, "request_count": pick(r, r.Between(1, 4), r.Between(3, 12), r.Between(8, 30))}
	synArrivals(r, c.Kwargs)
	synSessions(r, c.Kwargs)
	if r.Chance(0.03) {
		synSpoil(r, c)
	}
}

// synArrivals chooses when sessions begin.
func synArrivals(r *Rand, k map[string]any) {
	switch r.Intn(3) {
	case 0:
		k["replay_concurrency"] = pick(r, 1, 2, 3, 4, r.Between(5, 20))
	case 1:
		k["request_rate"] = pick(r, 1, 50, 20.5, 333.3, 1000, 1e6, float64(r.Between(1, 5000))/16)
		if r.Chance(0.7) {
			k["arrival_seed"] = pick(r, 0, 7, r.Intn(1<<53)>>r.Intn(53)) // exact in JSON
		}
	default:
		k["arrival_interval_ms"] = pick(r, 0, 1, 7.5, 3.3, 0.1, 100, 1e-3, float64(r.Between(1, 3000))/64)
	}
}

// synSessions makes sessions out of requests, sometimes.
func synSessions(r *Rand, k map[string]any) {
	if r.Chance(0.3) {
		return
	}
	if r.Chance(0.5) {
		k["turns_per_session"] = r.Between(1, 5)
	}
	if r.Chance(0.5) {
		k["inter_turn_delay_ms"] = pick(r, 0, 1, 12.5, 40, float64(r.Between(0, 4000))/64)
	}
	if r.Chance(0.6) {
		k["shared_prefix_ratio"] = pick(r, 0, 1, 0.5, 0.8, 0.25, r.Float64())
	}
	if r.Chance(0.7) {
		k["num_prefix_groups"] = pick(r, 0, 1, 2, 3, 5, 100, 1<<20)
	}
}

// synSpoil breaks one rule.
func synSpoil(r *Rand, c *ReplayCase) {
	k := c.Kwargs
	switch r.Intn(9) {
	case 0:
		c.Synthetic[pick(r, "input_tokens", "output_tokens", "request_count")] = 0
	case 1:
		k["arrival_interval_ms"], k["replay_concurrency"] = 5, 2
	case 2:
		for _, key := range []string{"arrival_interval_ms", "replay_concurrency", "request_rate"} {
			delete(k, key)
		}
	case 3:
		delete(k, "arrival_interval_ms")
		delete(k, "replay_concurrency")
		k["request_rate"] = pick(r, 0, -1.0)
	case 4:
		k["turns_per_session"], k["num_prefix_groups"] = 0, 2
	case 5:
		k["shared_prefix_ratio"], k["num_prefix_groups"] = 1.5, 2
	case 6:
		delete(k, "request_rate")
		delete(k, "replay_concurrency")
		k["arrival_interval_ms"] = -1.0
	case 7:
		k["num_prefix_groups"], k["inter_turn_delay_ms"] = 2, -1.0
	case 8:
		k["turns_per_session"] = 0
		delete(k, "shared_prefix_ratio")
		delete(k, "num_prefix_groups")
		delete(k, "inter_turn_delay_ms")
	}
}
