package gen

import "fmt"

// routedCase is a case of family kv or kvg2.
func routedCase(seed uint64, family string) (*ReplayCase, error) {
	r := NewRand(seed ^ 0x6B7672)
	of := "any"
	switch {
	case family == "kvg2":
		of = "g2"
	case r.Chance(0.15):
		of = "syn"
	}
	c, err := FamilyCase(seed, of)
	if err != nil {
		return nil, err
	}
	if h, ok := c.Engine()["native_host_offload"].(map[string]any); ok {
		for _, key := range []string{"scope", "kv_layout_id", "shared_d2h_bandwidth_gbps", "shared_h2d_bandwidth_gbps"} {
			delete(h, key) // what all share is not built yet behind a KV router
		}
	}
	c.Name = fmt.Sprintf("%s-%d", family, seed)
	route(r, c)
	if family == "kvpd" {
		c.disaggregate(r)
	}
	return c, nil
}

// route puts a KV router before one to four workers of one or two ranks. Its
// requests wait in about a third of the cases.
func route(r *Rand, c *ReplayCase) {
	k := c.Kwargs
	delete(k, "max_sim_time_ms") // what is cut off leaves no record of where it went
	k["router_mode"] = "kv_router"
	if n := pick(r, 1, 2, 2, 3, 3, 4); n > 1 {
		k["num_workers"] = n
	} else {
		delete(k, "num_workers")
	}
	launch := object(k, "extra_engine_args")
	delete(launch, "dp_size")
	if r.Chance(0.3) {
		launch["dp_size"] = 2
	}
	if r.Chance(0.25) {
		k["kv_event_lag_ms"] = pick(r, 0, 1, 7, 10, 10, 20, 50, float64(r.Between(1, 4000))/64)
	}
	config := map[string]any{}
	real := func(key string, chance float64, values ...float64) {
		if r.Chance(chance) {
			config[key] = pick(r, values...)
		}
	}
	real("overlap_score_credit", 0.3, 0, 0.5, 1, 2, 3.7)
	real("overlap_score_credit_decay", 0.2, 0, 0.1, 1, 5)
	real("prefill_load_scale", 0.2, 0, 0.5, 1, 3)
	real("decode_active_request_weight", 0.2, 0, 0.25, 1, 4)
	real("host_cache_hit_weight", 0.2, 0, 0.5, 1)
	real("router_temperature", 0.2, 0, 0.1, 0.5, 1, 2)
	real("router_queue_threshold", 0.4, 0, 0, 0.1, 0.5, 1, 4)
	if r.Chance(0.3) {
		config["router_queue_policy"] = pick(r, "fcfs", "lcfs", "wspt", "wspt")
	}
	for _, key := range []string{"router_track_active_blocks", "router_assume_kv_reuse", "router_track_prefill_tokens"} {
		if r.Chance(0.12) {
			config[key] = false
		}
	}
	if len(config) > 0 {
		k["router_config"] = config
	}
	if r.Chance(0.1) {
		object(launch, "dynamo")["router_queue_policy"] = pick(r, "fcfs", "lcfs", "wspt")
	}
	if c.Synthetic != nil {
		k["turns_per_session"] = r.Between(2, 4) // records then name sessions
		return
	}
	if r.Chance(0.5) {
		c.comeBack(r)
	}
	c.tell(r)
	if r.Chance(0.3) {
		for i := range c.Rows {
			if r.Chance(0.4) {
				c.Rows[i].Priority = ptr(int32(r.Between(-1, 3)))
			}
			if r.Chance(0.2) {
				c.Rows[i].StrictPriority = ptr(uint32(r.Intn(3)))
			}
		}
	}
}

// tell makes sure that the records of a case can be told apart: either the
// reference names their sessions, because one has two turns, or no two requests
// come at one time with the same lengths.
func (c *ReplayCase) tell(r *Rand) {
	traceSize, _ := c.Kwargs["trace_block_size"].(int)
	type looks struct {
		atMs          float64
		input, output int
	}
	seen := map[looks]bool{}
	turns := map[string]int{}
	for i := range c.Rows {
		row := &c.Rows[i]
		if row.SessionID == nil {
			row.SessionID = ptr(fmt.Sprintf("one-%d", i))
		}
		turns[*row.SessionID]++
		at := looks{input: row.input(traceSize), output: row.output()}
		for _, t := range []*float64{row.CreatedTime, row.Timestamp} {
			if t != nil {
				at.atMs = *t
			}
		}
		for ; seen[at]; at.output++ {
			row.OutputTokenIDs, row.OutputTokens, row.OutputLength = nil, nil, ptr(int64(at.output+1))
		}
		seen[at] = true
	}
	if len(turns) == len(c.Rows) && r.Chance(0.5) {
		for range 2 {
			c.Rows = append(c.Rows, Row{
				SessionID: ptr("two"), Timestamp: ptr(float64(r.Between(0, 300))), HashIDs: []uint64{9, 8}, InputLength: ptr(int64(max(1, traceSize))), OutputLength: ptr(int64(1)),
			})
		}
		c.Rows[len(c.Rows)-1].Timestamp, c.Rows[len(c.Rows)-1].Delay = nil, ptr(float64(r.Intn(3)))
	}
}
