package gen

import (
	"fmt"
	"slices"
)

// offload gives a case host memory, and prompts that come back after others
// have pushed them off the GPU. Bandwidths and sizes are such that copies often
// end together, or when a pass does.
func offload(r *Rand, c *ReplayCase) {
	e := c.Engine()
	if !r.Chance(0.02) {
		delete(e, "enable_prefix_caching")
	}
	launch := object(c.Kwargs, "extra_engine_args")
	if ranks := pick(r, 1, 1, 1, 2, 3, 4); ranks > 1 {
		launch["dp_size"] = ranks
	}
	gpu, _ := e["num_gpu_blocks"].(int)
	if gpu > 100 {
		gpu = r.Between(4, 60)
		e["num_gpu_blocks"] = gpu
	}
	e["kv_cache_bytes_per_token"] = pick(r, 1, 1000, 100_000, 250_000, 500_000, 1_000_000, 1_000_000, r.Between(1, 3_000_000))
	h := map[string]any{"num_host_blocks": pick(r, 1, 2, r.Between(1, 10), r.Between(1, 2*gpu), r.Between(gpu, 8*gpu))}
	e["native_host_offload"] = h
	bandwidth := func(key string, chance float64) {
		if r.Chance(chance) {
			h[key] = pick(r, 0, 0.1, 0.25, 0.5, 1, 1, 2, 4, 4, 8, 32, float64(r.Between(1, 2000))/64)
		}
	}
	bandwidth("d2h_bandwidth_gbps", 0.9)
	bandwidth("h2d_bandwidth_gbps", 0.9)
	if r.Chance(0.3) {
		h["latency_to_first_byte_ms"] = pick(r, 0, 0.1, 1, 2, 5, 10, 30)
	}
	c.comeBack(r)
	scoped := NewRand(r.Uint64())
	if scoped.Chance(0.5) {
		share(scoped, h)
	}
	if launch["dp_size"] != nil {
		interval(scoped, c)
	}
}

// share makes the pool one of all workers.
func share(r *Rand, h map[string]any) {
	h["scope"], h["kv_layout_id"] = "cluster_shared", "layout"
	for _, key := range []string{"shared_d2h_bandwidth_gbps", "shared_h2d_bandwidth_gbps"} {
		if r.Chance(0.8) {
			h[key] = pick(r, 0, 0.25, 0.5, 1, 1.5, 2, 4, 8, 80, float64(r.Between(1, 2000))/64)
		}
	}
}

// comeBack appends copies of earlier rows: their prompts come again, longer,
// shorter or as they were.
func (c *ReplayCase) comeBack(r *Rand) {
	last := 0.0
	for i := range c.Rows {
		if t := c.Rows[i].Timestamp; t != nil {
			last = max(last, *t)
		}
	}
	first := len(c.Rows)
	gap := pick(r, 0, 2, 10, 40)
	for range r.Between(0, 25) {
		row := c.Rows[r.Intn(first)]
		if row.SessionID != nil {
			continue
		}
		last += float64(r.Between(0, gap))
		row.Timestamp, row.CreatedTime, row.RequestID, row.Delay, row.DelayMs = ptr(last), nil, nil, nil, nil
		row.OutputTokenIDs = nil
		row.HashIDs = slices.Clone(row.HashIDs)
		row.OutputTokens, row.OutputLength = nil, ptr(int64(pick(r, 0, 1, 1, 2, r.Between(1, 8))))
		c.Rows = append(c.Rows, row)
	}
}

// pressed is a case under pressure on both pools: few prompts that come back all
// the time, long outputs, preemptions, room for hardly more than one request.
func pressed(seed uint64) *ReplayCase {
	r := NewRand(seed ^ 0x97E55ED)
	size, gpu := pick(r, 4, 8, 16), r.Between(6, 14)
	c := &ReplayCase{Name: fmt.Sprintf("g2-%d", seed), Files: []string{TraceFile}, Kwargs: map[string]any{"trace_block_size": size}}
	e := c.Engine()
	e["backend"], e["block_size"], e["num_gpu_blocks"] = "vllm", size, gpu
	e["kv_cache_bytes_per_token"] = 1_000_000 / size
	e["timing_model"] = map[string]any{"type": "fixed", "prefill_ms": 10, "decode_ms": 2}
	h := map[string]any{
		"num_host_blocks":    r.Between(4, 60),
		"d2h_bandwidth_gbps": pick(r, 0, 0.0625, 0.25, 1),
		"h2d_bandwidth_gbps": pick(r, 0.1, 0.25, 0.5, 1),
	}
	e["native_host_offload"] = h
	if r.Chance(0.3) {
		e["preemption_mode"] = "fifo"
	}
	if r.Chance(0.5) {
		share(r, h)
	}
	if r.Chance(0.5) {
		c.Kwargs["num_workers"] = r.Between(1, 4)
	}
	if r.Chance(0.2) {
		object(c.Kwargs, "extra_engine_args")["dp_size"] = r.Between(2, 3)
		interval(r, c)
	}
	clock, prompts := 0.0, r.Between(1, 4)
	for range r.Between(6, 40) {
		blocks, first := r.Between(1, gpu*2/3), uint64(100*r.Intn(prompts))
		ids := make([]uint64, blocks+1)
		for i := range ids {
			ids[i] = first + uint64(i)
		}
		clock += float64(pick(r, 0, 0, 0, 2, 10, 40))
		c.Rows = append(c.Rows, Row{
			Timestamp: ptr(clock), HashIDs: ids, InputLength: ptr(int64(blocks*size + pick(r, 0, 1, size-1))),
			OutputLength: ptr(int64(pick(r, 0, 1, r.Between(1, size), r.Between(size, 4*size)))),
		})
	}
	return c
}

// diskCase is a case of family g2 with a disk behind host memory, which is made
// small.
func diskCase(seed uint64) (*ReplayCase, error) {
	c, err := FamilyCase(seed, "g2")
	if err != nil {
		return nil, err
	}
	c.Name = fmt.Sprintf("g3-%d", seed)
	r := NewRand(seed ^ 0xD15C)
	launch := object(c.Kwargs, "extra_engine_args")
	if !r.Chance(0.02) {
		delete(launch, "dp_size")
		delete(c.Engine(), "prefill_schedule_interval")
	}
	h := object(c.Engine(), "native_host_offload")
	for _, name := range []string{"scope", "kv_layout_id", "shared_d2h_bandwidth_gbps", "shared_h2d_bandwidth_gbps"} {
		delete(h, name) // a disk behind shared memory is not built
	}
	if n, ok := h["num_host_blocks"].(int); ok && r.Chance(0.7) {
		h["num_host_blocks"] = min(n, r.Between(1, 12))
	}
	g := map[string]any{"scope": "worker_local", "num_g3_blocks": pick(r, r.Between(1, 10), r.Between(8, 60), 1000)}
	if r.Chance(0.5) {
		g["scope"] = "cluster_shared"
	}
	for _, name := range []string{"read_bandwidth_gbps", "write_bandwidth_gbps", "shared_read_bandwidth_gbps", "shared_write_bandwidth_gbps"} {
		if r.Chance(0.75) {
			g[name] = pick(r, 0, 0.05, 0.25, 0.3, 0.5, 1, 2, 7)
		}
	}
	if r.Chance(0.6) {
		g["latency_to_first_byte_ms"] = pick(r, 0, 0, 0.1, 0.25, 1, 2, 10)
	}
	limited := g["read_bandwidth_gbps"] != 0.0 || g["scope"] == "cluster_shared" && g["shared_read_bandwidth_gbps"] != 0.0
	if !limited && g["latency_to_first_byte_ms"] == 0.0 {
		g["latency_to_first_byte_ms"] = 0.1 // reads that take no time are not built
	}
	c.Engine()["g3_offload"] = g
	return c, nil
}
