package picture

import (
	"fmt"
	"strconv"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/fleet"
)

// pairs are names and values under a heading.
type pairs PairGroup

func (p *pairs) text(name, value string)     { p.Pairs = append(p.Pairs, [2]string{name, value}) }
func (p *pairs) whole(name string, n int)    { p.text(name, limit(n)) }
func (p *pairs) real(name string, x float64) { p.text(name, strconv.FormatFloat(x, 'g', -1, 64)) }
func (p *pairs) toggle(name string, on bool) {
	p.text(name, map[bool]string{true: "on", false: "off"}[on])
}
func (p *pairs) ms(name string, x float64) { p.text(name, strconv.FormatFloat(x, 'g', -1, 64)+" ms") }
func (p *pairs) limited(name string, x int) {
	p.text(name, map[bool]string{true: "none", false: limit(x)}[x == 0])
}
func (p *pairs) group() PairGroup { return PairGroup(*p) }
func limit(n int) string {
	if n == config.Unbounded {
		return "no limit"
	}
	return whole(int64(n))
}

// Describe words a configuration: what a run depends on, in the field's terms.
func Describe(r config.Replay) []PairGroup {
	pools := fleet.Of(r).Pools
	all := pairs{Title: "Fleet"}
	for i := range pools {
		e, before := pools[i].Engine, ""
		if name := pools[i].Name(); name != "" {
			before = name + " "
		}
		all.whole(before+"workers", pools[i].Workers)
		all.whole("data-parallel ranks of each", e.DPSize)
		all.whole("tensor parallelism", e.TensorParallelSize)
	}
	all.text("routing", routing(r))
	groups := []PairGroup{all.group()}
	for i := range pools {
		after := ""
		if name := pools[i].Name(); name != "" {
			after = ", " + name + " workers"
		}
		groups = append(groups, engine(pools[i].Engine, after), durations(pools[i].Engine, after))
		groups = append(groups, features(pools[i].Engine, after)...)
	}
	if r.Disaggregated() {
		groups = append(groups, handoff(r.Prefill.Engine.Transfer))
	}
	if r.Routing.Mode == config.KVRouter {
		groups = append(groups, router(r.Routing))
	}
	return append(groups, load(r))
}

// engine words a scheduler.
func engine(e config.Engine, after string) PairGroup {
	p := pairs{Title: "Engine" + after}
	p.text("scheduler", backendName(e.Backend))
	p.text("KV cache of a rank", fmt.Sprintf("%s blocks of %s tokens (%s tokens)", limit(e.NumGPUBlocks), limit(e.BlockSize), limit(e.NumGPUBlocks*e.BlockSize)))
	p.whole("running requests at most", e.MaxNumSeqs)
	p.whole("tokens of a pass at most", e.MaxNumBatchedTokens)
	p.limited("model length at most", e.MaxModelLen)
	p.toggle("prefix caching", e.EnablePrefixCaching)
	if e.Backend == config.SGLang {
		s := e.SGLang
		p.text("schedule policy", [...]string{config.FCFS: "fifo", config.LPM: "lpm"}[s.Policy])
		p.whole("prompt tokens of a pass at most", s.MaxPrefillTokens)
		p.whole("chunked prefill size", s.ChunkedPrefillSize)
		p.whole("clipped max new tokens", s.ClipMaxNewTokens)
		p.real("schedule conservativeness", s.Conservativeness)
		p.whole("passes without prompts after one with", s.PrefillDecodeInterval)
	} else {
		p.toggle("chunked prefill", e.EnableChunkedPrefill)
		p.text("preempted first", map[config.Preemption]string{config.LIFO: "the newest", config.FIFO: "the oldest"}[e.Preemption])
	}
	if e.PrefillScheduleInterval > 1 {
		p.whole("passes between prompts", e.PrefillScheduleInterval)
	}
	return p.group()
}

// handoff words what bringing a prompt to the other pool takes.
func handoff(t config.Transfer) PairGroup {
	p := pairs{Title: "Transfers"}
	if t.BytesPerToken == 0 || t.BandwidthGBs == 0 {
		p.text("of prompts", "take no time")
		return p.group()
	}
	p.text("KV cache of a token", whole(int64(t.BytesPerToken))+" bytes")
	p.text("bandwidth", fmt.Sprintf("%g GB/s", t.BandwidthGBs))
	p.text("what is brought", map[config.TransferTiming]string{config.FullPrompt: "the whole prompt", config.DestinationMissing: "what is not there"}[t.Timing])
	return p.group()
}

// routing words how requests are spread over workers.
func routing(r config.Replay) string {
	return [...]string{
		config.RoundRobin: "round robin", config.KVRouter: "KV router", config.Random: "by lot", config.PowerOfTwo: "the less busy of two",
		config.LeastLoaded: "the least busy", config.Direct: "as the workload says",
	}[r.Routing.Mode]
}

// router words what a KV router weighs.
func router(r config.Routing) PairGroup {
	p, c := pairs{Title: "KV router"}, r.Router
	p.real("credit of a cached block", c.OverlapCredit)
	p.real("falling with the load by", c.OverlapCreditDecay)
	p.real("weight of prompt work", c.PrefillLoadScale)
	p.real("weight of a live request", c.ActiveRequestWeight)
	p.real("weight of a block in host memory", c.HostHitWeight)
	p.real("temperature", c.Temperature)
	if c.QueueThreshold >= 0 {
		p.real("requests wait above", c.QueueThreshold)
	} else {
		p.text("requests wait above", "never")
	}
	p.ms("lag of cache events", r.EventLagMs)
	return p.group()
}

// durations words where pass durations come from.
func durations(e config.Engine, after string) PairGroup {
	p := pairs{Title: "Pass durations" + after}
	p.text("from", map[config.TimingKind]string{
		config.Polynomial: "the default polynomials, not calibrated", config.Fixed: "two constants", config.Profile: "a profile",
		config.Grid: "a grid of predictions", config.External: "the host",
	}[e.Timing.Kind])
	if e.Timing.Kind == config.Fixed {
		p.ms("prefill", e.Timing.PrefillMs)
		p.ms("decode", e.Timing.DecodeMs)
	}
	if e.SpeedupRatio != 0 && e.SpeedupRatio != 1 {
		p.real("divided by", e.SpeedupRatio)
	}
	if e.DecodeSpeedupRatio != 0 && e.DecodeSpeedupRatio != 1 {
		p.real("those of decode divided by", e.DecodeSpeedupRatio)
	}
	return p.group()
}

// features words what an engine may have besides.
func features(e config.Engine, after string) (groups []PairGroup) {
	if m := e.MTP; m.Drafts > 0 {
		p := pairs{Title: "Speculative decoding" + after}
		p.whole("drafts of a step", m.Drafts)
		for i, x := range m.Rates() {
			p.text(fmt.Sprintf("draft %d accepted", i+1), percent(x))
		}
		groups = append(groups, p.group())
	}
	if h := e.HostOffload; h.Blocks > 0 {
		p := pairs{Title: "Host memory" + after}
		p.text("pool", limit(h.Blocks)+" blocks, of "+map[config.HostScope]string{config.RankLocal: "each rank", config.ClusterShared: "the cluster"}[h.Scope])
		p.text("GPU to host, host to GPU", fmt.Sprintf("%g, %g GB/s", h.D2HGBs, h.H2DGBs))
		if h.Scope == config.ClusterShared {
			p.text("of the whole pool", fmt.Sprintf("%g, %g GB/s", h.SharedD2HGBs, h.SharedH2DGBs))
		}
		p.ms("to the first byte", h.FirstByteLatencyMs)
		p.text("KV cache of a token", whole(int64(e.KVCacheBytesPerToken))+" bytes")
		groups = append(groups, p.group())
	}
	return groups
}

// load words what arrives and what is hoped for.
func load(r config.Replay) PairGroup {
	load := pairs{Title: "Load"}
	switch {
	case r.Concurrency > 0:
		load.text("arrivals", fmt.Sprintf("%s sessions at a time", limit(r.Concurrency)))
	case r.Lanes > 0:
		load.text("arrivals", fmt.Sprintf("%s plays at a time", limit(r.Lanes)))
	default:
		load.text("arrivals", "at the times of the workload")
	}
	if r.ArrivalSpeedup != 1 {
		load.real("times divided by", r.ArrivalSpeedup)
	}
	if r.MaxSimTimeMs >= 0 {
		load.text("ended at", clock(r.MaxSimTimeMs))
	}
	for _, g := range []Mark{{"goal for TTFT", r.SLA.TTFTMs}, {"goal for mean ITL", r.SLA.ITLMs}, {"goal for request latency", r.SLA.E2EMs}} {
		if g.Value >= 0 {
			load.ms(g.Name, g.Value)
		}
	}
	return load.group()
}
