package frame

import (
	"math"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/core/replay"
)

// scriptColumns are the targets of a scaling script as they cross.
type scriptColumns struct {
	atMs            []float64
	prefill, decode []int32
}

func (c *scriptColumns) fields() []Field {
	return below("scaling.script.", []Field{{Name: "at_ms", Var: &c.atMs}, {Name: "prefill", Var: &c.prefill}, {Name: "decode", Var: &c.decode}})
}

func scriptOf(script []config.Target) *scriptColumns {
	c := &scriptColumns{}
	for _, t := range script {
		note(&c.atMs, t.AtMs)
		push(&c.prefill, int32(t.Prefill))
		push(&c.decode, int32(t.Decode))
	}
	return c
}

// script is what the columns say. Columns that do not belong together are a
// fault.
func (c *scriptColumns) script() (script []config.Target, f Fault) {
	if len(c.prefill) != len(c.atMs) || len(c.decode) != len(c.atMs) {
		return nil, Fault{Code: WrongType, Name: "scaling.script.at_ms"}
	}
	for i, atMs := range c.atMs {
		script = append(script, config.Target{AtMs: atMs, Prefill: int(c.prefill[i]), Decode: int(c.decode[i])})
	}
	return script, Fault{}
}

// scalingFields are those of what changes in the course of a run, but for its
// script.
func scalingFields(r *config.Replay) []Field {
	s := &r.Scaling
	return []Field{
		{Name: "scaling.policy", Var: (*uint8)(&s.Policy)}, {Name: "scaling.first_ms", Var: &s.FirstMs},
		{Name: "scaling.startup_ms", Var: &s.StartupMs}, {Name: "scaling.prefill_startup_ms", Var: &s.PrefillStartupMs},
		{Name: "samples.every_ms", Var: &r.Samples.EveryMs},
	}
}

// trafficNumbers, gaugeNumbers, workNumbers and intervalNumbers are what stands
// together in a column, in this order.
func trafficNumbers(t *replay.Traffic) []float64 {
	return []float64{
		t.DurationS, float64(t.Arrived), float64(t.Completed), t.MeanISL, t.MeanOSL, t.MeanTTFTMs, t.MeanITLMs,
		float64(t.TTFTs), float64(t.ITLs), t.MeanHitRate, float64(t.Routed), t.MeanAccepted, float64(t.Forwards),
	}
}

func setTraffic(t *replay.Traffic, x []float64) {
	*t = replay.Traffic{
		DurationS: x[0], Arrived: int64(x[1]), Completed: int64(x[2]), MeanISL: x[3], MeanOSL: x[4], MeanTTFTMs: x[5], MeanITLMs: x[6],
		TTFTs: int64(x[7]), ITLs: int64(x[8]), MeanHitRate: x[9], Routed: int64(x[10]), MeanAccepted: x[11], Forwards: int64(x[12]),
	}
}

func gaugeNumbers(m *engine.Metrics) []float64 {
	return []float64{
		float64(m.ActiveBlocks), float64(m.InactiveBlocks), float64(m.TotalBlocks), m.CacheUsage, m.PhysicalCacheUsage,
		float64(m.RunningRequests), float64(m.WaitingRequests), float64(m.Preemptions), float64(m.CacheHitTokens), float64(m.CacheTotalTokens),
	}
}

func setGauge(m *engine.Metrics, x []float64) {
	*m = engine.Metrics{
		ActiveBlocks: int(x[0]), InactiveBlocks: int(x[1]), TotalBlocks: int(x[2]), CacheUsage: x[3], PhysicalCacheUsage: x[4],
		RunningRequests: int(x[5]), WaitingRequests: int(x[6]), Preemptions: int(x[7]), CacheHitTokens: int(x[8]), CacheTotalTokens: int(x[9]),
	}
}

func workNumbers(f *engine.Forward) []float64 {
	return []float64{
		float64(f.Prefills), float64(f.PrefillTokens), f.PrefillVariance, float64(f.PrefillKVTokens),
		float64(f.Decodes), float64(f.DecodeKVTokens), f.DecodeVariance,
		float64(f.QueuedPrefills), float64(f.QueuedPrefillLen), f.QueuedPrefillVar, float64(f.QueuedDecodes), float64(f.QueuedDecodeLen), f.QueuedDecodeVar,
		f.DurationMs,
	}
}

func setWork(f *engine.Forward, x []float64) {
	*f = engine.Forward{
		Prefills: int(x[0]), PrefillTokens: int(x[1]), PrefillVariance: x[2], PrefillKVTokens: int(x[3]),
		Decodes: int(x[4]), DecodeKVTokens: int(x[5]), DecodeVariance: x[6],
		QueuedPrefills: int(x[7]), QueuedPrefillLen: int(x[8]), QueuedPrefillVar: x[9], QueuedDecodes: int(x[10]), QueuedDecodeLen: int(x[11]), QueuedDecodeVar: x[12],
		DurationMs: x[13],
	}
}

func intervalNumbers(p *replay.PoolInterval) []float64 {
	return []float64{float64(p.CacheHitTokens), float64(p.CacheTotalTokens), float64(p.Preemptions)}
}

func setInterval(p *replay.PoolInterval, x []float64) {
	*p = replay.PoolInterval{CacheHitTokens: int64(x[0]), CacheTotalTokens: int64(x[1]), Preemptions: int64(x[2])}
}

// How many numbers each has.
const (
	trafficSize  = 13
	gaugeSize    = 10
	workSize     = 14
	intervalSize = 3
)

// numbersAt is row i of a column of so many numbers a row; nil: it has no such
// row.
func numbersAt(column []float64, i, size int) []float64 {
	if (i+1)*size > len(column) {
		return nil
	}
	return column[i*size:][:size]
}

// lists is a column of lists of numbers: how many each has, and all of them.
type lists struct {
	counts, all []int32
	row, at     int // read so far
}

func (l *lists) fields(name string) []Field {
	return []Field{{Name: name + "_count", Var: &l.counts}, {Name: name, Var: &l.all}}
}

func (l *lists) add(list []int32) {
	push(&l.counts, int32(len(list)))
	for _, n := range list {
		push(&l.all, n)
	}
}

// next is the list of the next row; false: there is none.
func (l *lists) next() ([]int32, bool) {
	if l.row >= len(l.counts) || l.counts[l.row] < 0 || l.at+int(l.counts[l.row]) > len(l.all) {
		return nil, false
	}
	list := l.all[l.at:][:l.counts[l.row]]
	l.row, l.at = l.row+1, l.at+len(list)
	return list, true
}

// members are the workers of a pool, a row each time.
type members struct{ active, starting, draining lists }

func (m *members) fields() []Field {
	return append(append(m.active.fields("active"), m.starting.fields("starting")...), m.draining.fields("draining")...)
}

func (m *members) add(active, starting, draining []int32) {
	m.active.add(active)
	m.starting.add(starting)
	m.draining.add(draining)
}

func (m *members) next() (active, starting, draining []int32, ok bool) {
	active, a := m.active.next()
	starting, b := m.starting.next()
	draining, c := m.draining.next()
	return active, starting, draining, a && b && c
}

// TickColumns are a replay.Tick.
type TickColumns struct {
	ordinal int64
	nowMs   float64
	traffic []float64
	pools   [2]struct {
		members
		worker, rank []int32 // of passes
		wallS, work  []float64
	}
}

// poolNames stand before the keys of pools.
var poolNames = [2]string{"prefill.", "decode."}

// Fields lists the keys.
func (c *TickColumns) Fields() []Field {
	fields := []Field{{Name: "ordinal", Var: &c.ordinal}, {Name: "now_ms", Var: &c.nowMs}, {Name: "traffic", Var: &c.traffic}}
	for i := range c.pools {
		p := &c.pools[i]
		fields = append(fields, below(poolNames[i], append(p.fields(), Field{Name: "pass_worker", Var: &p.worker}, Field{Name: "pass_rank", Var: &p.rank},
			Field{Name: "pass_wall_s", Var: &p.wallS}, Field{Name: "pass_work", Var: &p.work}))...)
	}
	return fields
}

// TickOf are the columns of a tick.
func TickOf(t *replay.Tick) *TickColumns {
	c := &TickColumns{ordinal: t.Ordinal, nowMs: t.NowMs, traffic: trafficNumbers(&t.Traffic)}
	for i, s := range [2]*replay.PoolState{&t.Prefill, &t.Decode} {
		p := &c.pools[i]
		p.add(s.Active, s.Starting, s.Draining)
		for k := range s.Passes {
			x := &s.Passes[k]
			push(&p.worker, x.Worker)
			push(&p.rank, x.Rank)
			note(&p.wallS, x.WallS)
			p.work = append(p.work, workNumbers(&x.Work)...)
		}
	}
	return c
}

// Tick is what the columns say; false: they do not belong together.
func (c *TickColumns) Tick() (*replay.Tick, bool) {
	t := &replay.Tick{Ordinal: c.ordinal, NowMs: c.nowMs}
	if len(c.traffic) != trafficSize {
		return nil, false
	}
	setTraffic(&t.Traffic, c.traffic)
	for i, s := range [2]*replay.PoolState{&t.Prefill, &t.Decode} {
		p := &c.pools[i]
		var ok bool
		if s.Active, s.Starting, s.Draining, ok = p.next(); !ok || len(p.rank) != len(p.worker) || len(p.wallS) != len(p.worker) || len(p.work) != workSize*len(p.worker) {
			return nil, false
		}
		for k := range p.worker {
			x := replay.Snapshot{Worker: p.worker[k], Rank: p.rank[k], WallS: p.wallS[k]}
			setWork(&x.Work, numbersAt(p.work, k, workSize))
			s.Passes = append(s.Passes, x)
		}
	}
	return t, true
}

// Deciding is the policy's answer, see replay.Decision.
func Deciding(d *replay.Decision) []Field {
	return []Field{{Name: "target_prefill", Var: &d.Prefill}, {Name: "target_decode", Var: &d.Decode}, {Name: "next_ms", Var: &d.NextMs}}
}

// NoDecision keeps everything and asks no more; it is what absent keys mean.
func NoDecision() replay.Decision {
	return replay.Decision{Prefill: config.KeepWorkers, Decode: config.KeepWorkers, NextMs: math.NaN()}
}

// BadTarget is the key of a decision that is out of range.
func BadTarget(d replay.Decision) string {
	if d.Prefill < config.KeepWorkers {
		return "target_prefill"
	}
	return "target_decode"
}
