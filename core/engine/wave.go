package engine

import "github.com/dryserve/dryserve/core/config"

// SetWaveStep tells the engine, as one of several ranks, how many passes the
// group has run since it was last idle. It decides with the configured
// interval whether the next pass may compute prompts (engine notes §3, §4.2).
func (e *Engine) SetWaveStep(step int) { e.waveStep = step }

// defersPrefill reports whether the coming pass leaves prompts alone: it is
// not the turn of the interval, nobody was left waiting when it last was, and
// there is a request to decode (engine notes §4.2, step 1).
func (e *Engine) defersPrefill() bool {
	c := &e.cfg
	if c.DPSize <= 1 || c.Backend != config.VLLM || e.waveStep%c.PrefillScheduleInterval == 0 || e.capacityBound {
		return false
	}
	for _, h := range e.running {
		if e.prebuilt(h) {
			return true
		}
	}
	return false
}

// prebuilt reports whether the request's whole prompt has KV.
func (e *Engine) prebuilt(h Handle) bool {
	r := &e.requests.slab[h]
	return r.computed >= r.promptLen
}
