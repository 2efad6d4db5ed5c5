package gen

import "fmt"

// Scaling is a policy that says the same whatever it is told: when it is asked
// first, and what it decides each time. Once it has no more to say it says
// nothing.
type Scaling struct {
	Initial   float64    `json:"initial"`
	Decisions []Decision `json:"decisions"`
}

// Decision is one answer of a policy; what is nil is left as it is.
type Decision struct {
	Prefill *int     `json:"target_prefill,omitempty"`
	Decode  *int     `json:"target_decode"`
	NextMs  *float64 `json:"next_tick_ms"`
}

// TelemetryKey is the keyword argument of a case that asks for samples: their
// interval in ms.
const TelemetryKey = "telemetry"

// watchedCase is a case of any engine, trace or synthetic workload, whose
// workers come and go, or of which samples are taken.
func watchedCase(seed uint64, family string) (*ReplayCase, error) {
	r := NewRand(seed ^ 0x5CA1E0)
	base := pick(r, "any", "any", "any", "vllm", "dp", "sglang", "mtp", "trtllm", "syn", "formats", "g2", "kv", "kv", "kvg2")
	c, err := FamilyCase(seed, base)
	if err != nil {
		return nil, err
	}
	c.Name = fmt.Sprintf("%s-%d", family, seed)
	scales, looks := family == "scale" || r.Chance(0.3), family == "telemetry" || r.Chance(0.15)
	if base != "kv" && base != "kvg2" { // the records of these can be told apart
		c.Kwargs["num_workers"] = pick(r, 1, 1, 2, 2, 3, 4, 6)
		if r.Chance(0.2) {
			c.hush(r)
		}
	}
	if scales {
		c.scale(r)
	}
	if looks {
		c.Kwargs[TelemetryKey] = samplesMs(r)
	}
	return c, nil
}

// watchedPoolsCase is a case in two pools whose workers come and go, or of which
// samples are taken, or both.
func watchedPoolsCase(seed uint64) (*ReplayCase, error) {
	r := NewRand(seed ^ 0x5CA1ED)
	base := pick(r, "pd", "pd", "kvpd")
	c, err := FamilyCase(seed, base)
	if err != nil {
		return nil, err
	}
	c.Name = fmt.Sprintf("scalepd-%d", seed)
	if base == "pd" && r.Chance(0.2) {
		c.hush(r)
	}
	scales := r.Chance(0.75)
	if scales {
		c.scalePools(r)
	}
	if !scales || r.Chance(0.3) {
		c.Kwargs[TelemetryKey] = samplesMs(r)
	}
	return c, nil
}

func samplesMs(r *Rand) any {
	return pick(r, 1, 3, 7, 10, 25, 50, 100, 100, 250, 1000, 0.1*float64(r.Between(1, 5000)))
}

// hush spreads a trace over a long time, so that ranks fall silent.
func (c *ReplayCase) hush(r *Rand) {
	for i := range c.Rows {
		if t := c.Rows[i].Timestamp; t != nil {
			c.Rows[i].Timestamp = ptr(*t * pick(r, 1, 1, 20, 50.0))
		}
	}
}

// start says how long workers with these arguments start.
func start(r *Rand, args map[string]any) {
	if r.Chance(0.5) {
		args["startup_time"] = pick(r, 0, 0.001, 0.01, 0.02, 0.05, 0.1, 0.15, 1, 30, float64(r.Between(1, 400))/1000)
	}
}

// scalePools gives a case of two pools a policy that changes either.
func (c *ReplayCase) scalePools(r *Rand) {
	c.decide(r)
	start(r, object(c.Kwargs, "prefill_engine_args"))
	start(r, object(c.Kwargs, "decode_engine_args"))
	most, none := pick(r, 2, 3, 5, 8), pick(r, 0, 0, 0.02, 0.3)
	for i := range c.Scaling.Decisions {
		d := &c.Scaling.Decisions[i]
		if d.Prefill = nil; r.Chance(0.75) {
			d.Prefill = ptr(r.Between(1, most))
		}
		if r.Chance(none) {
			d.Prefill = ptr(0)
		}
		if r.Chance(none) {
			d.Decode = ptr(0)
		}
	}
}

// scale gives the case a policy.
func (c *ReplayCase) scale(r *Rand) {
	start(r, object(c.Kwargs, "extra_engine_args"))
	c.decide(r)
}

// decide makes up a policy.
func (c *ReplayCase) decide(r *Rand) {
	now := pick(r, 0, 0, -1, 1, 5, 10, 50, float64(r.Between(0, 400))/4)
	s := &Scaling{Initial: now}
	most := pick(r, 3, 5, 8, 12)
	gap := pick(r, 2, 10, 50, 100, 400, 1200)
	for range r.Between(1, 25) {
		var d Decision
		if !r.Chance(0.25) {
			d.Decode = ptr(r.Between(1, most))
		}
		if r.Chance(0.02) {
			d.Decode = ptr(0)
		}
		if r.Chance(0.1) {
			d.Prefill = ptr(r.Between(0, 3))
		}
		if !r.Chance(0.02) {
			next := now + float64(r.Between(1, 2*gap))
			switch {
			case r.Chance(0.01):
				next = now - 1
			case r.Chance(0.3):
				next = now + float64(r.Between(1, 8*gap))/7
			}
			d.NextMs = &next
			now = max(now, next)
		}
		s.Decisions = append(s.Decisions, d)
	}
	c.Scaling = s
}
