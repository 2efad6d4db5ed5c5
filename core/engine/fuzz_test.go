package engine_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/core/rng"
	"github.com/dryserve/dryserve/core/seq"
)

// reader turns fuzz bytes into choices; it gives zeros when they are used up.
type reader struct{ data []byte }

func (r *reader) next(n int) int {
	if len(r.data) == 0 {
		return 0
	}
	b := r.data[0]
	r.data = r.data[1:]
	return int(b) % n
}

func pick[T any](r *reader, choices ...T) T { return choices[r.next(len(choices))] }

func (r *reader) config() config.Engine {
	cfg := config.Defaults(config.VLLM)
	cfg.Backend = pick(r, config.VLLM, config.VLLM, config.TRTLLM)
	cfg.BlockSize = 2 + r.next(4)
	cfg.NumGPUBlocks = 2 + r.next(18)
	cfg.MaxNumSeqs = pick(r, 1, 2, 3, 5, 8, config.Unbounded)
	cfg.MaxNumBatchedTokens = pick(r, 1, 3, 4, 8, 13, 24, config.Unbounded)
	cfg.MaxModelLen = pick(r, 0, 0, 9, 20, 33)
	cfg.EnablePrefixCaching = r.next(4) > 0
	cfg.EnableChunkedPrefill = r.next(4) > 0
	cfg.Preemption = pick(r, config.LIFO, config.FIFO)
	cfg.SpeedupRatio = pick(r, 1.0, 0, 3)
	cfg.DecodeSpeedupRatio = pick(r, 1.0, 2)
	cfg.EmitKVEvents = r.next(4) > 0
	cfg.EmitKVTokenIDs = cfg.EmitKVEvents && r.next(2) > 0
	if r.next(3) == 0 {
		cfg.MTP.Drafts = 1 + r.next(config.MaxDrafts)
		cfg.MTP.AcceptRates = [config.MaxDrafts]float64{pick(r, .9, 1, 0), .8, .7, 1, .5}
		cfg.DecodeSpeedupRatio = 1
	}
	cfg.Timing.Kind = pick(r, config.Polynomial, config.Fixed)
	cfg.Timing.PrefillMs = pick(r, 10, 0, 2.5)
	cfg.Timing.DecodeMs = pick(r, 2, 0, 0.75)
	if r.next(2) == 0 && cfg.Backend == config.VLLM && cfg.EnablePrefixCaching && cfg.MTP.Drafts == 0 {
		h := config.DefaultHostOffload(1 + r.next(20))
		h.Scope = pick(r, config.RankLocal, config.ClusterShared)
		h.D2HGBs, h.H2DGBs = pick(r, 1, 0, 0.125, 4, 0.75), pick(r, 1, 0, 0.125, 4, 0.75)
		h.SharedD2HGBs, h.SharedH2DGBs = pick(r, 80, 0.5, 0), pick(r, 80, 0.5, 0)
		h.FirstByteLatencyMs = pick(r, 0.0, 0, 1, 7)
		cfg.HostOffload, cfg.KVCacheBytesPerToken = h, 250_000
	}
	return cfg
}

// action is one command of a fuzzed run.
type action struct {
	at      float64
	cancel  uint64 // 0: submit
	request engine.Request
	id      uint64
}

// actions are in the order of time. Prompts of one family share a beginning.
func (r *reader) actions() []action {
	var list []action
	at := 0.0
	for id := uint64(1); len(r.data) > 0 && id <= 40; id++ {
		at += float64(pick(r, 0, 0, 1, 5, 17, 90))
		if r.next(8) == 7 {
			list = append(list, action{at: at, cancel: 1 + uint64(r.next(int(id)))})
			continue
		}
		family, shared, length := uint32(r.next(3)), r.next(24), r.next(30)
		tokens := []uint32{}
		for i := range uint32(length) {
			if int(i) >= shared {
				family = 100 + uint32(id)
			}
			tokens = append(tokens, 1000*family+i)
		}
		q := engine.Request{Tokens: tokens, MaxOutput: r.next(20), Tag: uint32(7 * id)}
		if r.next(4) == 3 {
			q.OutputIDs = make([]uint32, q.MaxOutput)
			for i := range q.OutputIDs {
				q.OutputIDs[i] = uint32(i % 3)
			}
		}
		binary.BigEndian.PutUint64(q.UUID[8:], id)
		list = append(list, action{at: at, request: q, id: id})
	}
	return list
}

// twin runs the engine and the naive model side by side.
type twin struct {
	t       *testing.T
	cfg     config.Engine
	engine  *engine.Engine
	naive   *naive
	uuids   map[uint64][16]byte
	tags    map[uint64]uint32
	content map[string]uint64 // sequence hash of everything up to a block's end
	eventID uint64
	flight  *naivePass // in flight
	dropped []uint64   // cancelled in flight
}

func newTwin(t *testing.T, cfg config.Engine) *twin {
	return &twin{
		t: t, cfg: cfg, engine: engine.New(cfg, 0),
		naive: &naive{cfg: cfg, pool: naivePool{total: cfg.NumGPUBlocks}, draws: rng.New(cfg.MTP.Seed), host: newNaiveHost(cfg)},
		uuids: map[uint64][16]byte{}, tags: map[uint64]uint32{}, content: map[string]uint64{},
	}
}

func (x *twin) equal(what string, got, want any) {
	x.t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		x.t.Fatalf("%s: %s, want %s", what, g, w)
	}
}

func (x *twin) id(h engine.Handle, tag uint32) uint64 {
	u := x.engine.UUID(h)
	id := binary.BigEndian.Uint64(u[8:])
	if tag != x.tags[id] {
		x.t.Fatalf("request %d has tag %d, want %d", id, tag, x.tags[id])
	}
	return id
}

func (x *twin) apply(a action) {
	if a.cancel > 0 {
		h, known := x.engine.Find(x.uuids[a.cancel])
		known = known && x.uuids[a.cancel] != [16]byte{}
		if !known {
			return
		}
		x.equal("cancel", x.engine.Cancel(h), engine.Applied)
		x.naive.cancel(a.cancel)
		if x.flight != nil {
			x.dropped = append(x.dropped, a.cancel)
		}
		return
	}
	q := a.request
	x.uuids[a.id], x.tags[a.id] = q.UUID, q.Tag
	_, code := x.engine.Submit(q)
	x.equal("submit", code, engine.Applied)
	next := func(k int) uint32 { return seq.OutputToken(q.UUID, uint64(k)) }
	out := q.MaxOutput
	if q.OutputIDs != nil {
		out = len(q.OutputIDs)
		next = func(k int) uint32 { return q.OutputIDs[k] }
	}
	x.naive.submit(&naiveRequest{
		id: a.id, tokens: slices.Clone(q.Tokens), prompt: len(q.Tokens), out: out, nextToken: next, cached: -1,
	})
}

func (x *twin) begin(now float64) float64 {
	end, ok := x.engine.Begin(now)
	n := x.naive
	x.equal("ready", ok, len(n.waiting)+len(n.running) > 0 || n.host != nil && (n.host.news || n.host.anyReady()))
	want := x.naive.run(now)
	if math.Float64bits(end) != math.Float64bits(want.end) {
		x.t.Fatalf("pass at %v ends at %v, want %v", now, end, want.end)
	}
	out := x.engine.Out()
	var admissions [][3]uint64
	for _, a := range out.Admissions {
		admissions = append(admissions, [3]uint64{x.id(a.Req, a.Tag), uint64(a.Reused), uint64(a.Host)})
	}
	x.equal("admissions", admissions, want.admissions)
	var pressure []string
	for _, p := range out.Pressure {
		pressure = append(pressure, fmt.Sprintf("%d (%d, %d, %d)->(%d, %d, %d) own %d", x.id(p.Req, p.Tag),
			p.Before.Running, p.Before.Waiting, p.Before.ActiveBlocks,
			p.After.Running, p.After.Waiting, p.After.ActiveBlocks, p.OwnBlocks))
	}
	x.equal("pressure", pressure, want.pressure)
	var committed []uint64
	for _, h := range out.Committed {
		u := x.engine.UUID(h)
		committed = append(committed, binary.BigEndian.Uint64(u[8:]))
	}
	x.equal("committed", committed, want.committed)
	x.flight, x.dropped = want, nil
	return end
}

func (x *twin) complete(now, end float64) {
	want := x.flight
	x.flight = nil
	if !x.engine.Complete(end) {
		x.t.Fatal("no pass in flight")
	}
	x.naive.complete(want, end)
	out := x.engine.Out()
	var outputs, wanted []naiveOutput
	for _, o := range out.Outputs {
		w := naiveOutput{x.id(o.Req, o.Tag), -1, o.Completed, o.Rejected, -1}
		if o.HasToken {
			w.token = int64(o.Token)
		}
		if o.HasCached {
			w.cached = o.CachedTokens
		}
		outputs = append(outputs, w)
	}
	for _, w := range want.outputs {
		if !slices.Contains(x.dropped, w.id) {
			wanted = append(wanted, w)
		}
	}
	x.equal("outputs", outputs, wanted)
	x.compareEvents(out.KVEvents, out.KVBlocks, out.KVTokens, want)
	x.compareMetrics(out, want, end-now)

	idle := len(want.admissions)+len(want.pressure)+len(wanted)+len(out.KVEvents) == 0
	for _, w := range want.work {
		idle = idle && w.prompt == 0 && w.terminal
	}
	x.equal("effect", out.Effect, !idle)
	if idle && x.engine.RunningLen() > 0 {
		x.t.Fatal("a pass without effect although somebody runs")
	}
}

// hash is the sequence hash of the tokens up to the end of a block, computed
// from the first.
func (x *twin) hash(tokens []uint32) uint64 {
	key := fmt.Sprint(tokens)
	if h, ok := x.content[key]; ok {
		return h
	}
	var s seq.Sequence
	s.Reset(seq.Format{BlockSize: x.cfg.BlockSize, Identify: true}, len(tokens))
	s.AppendAll(tokens)
	h := s.Blocks()[len(s.Blocks())-1].Hash
	x.content[key] = h
	return h
}

func (x *twin) compareEvents(events []engine.KVEvent, blocks []engine.KVBlock, ids []uint32, want *naivePass) {
	if !x.cfg.EmitKVEvents {
		x.equal("KV events", len(events), 0)
		return
	}
	x.equal("number of KV events", len(events), len(want.events))
	for i, e := range events {
		w := want.events[i]
		x.equal("event id", e.ID, x.eventID)
		x.eventID++
		x.equal("removed", e.Kind == engine.Removed, w.removed)
		x.equal("tier", e.Host, w.host)
		if e.Host && !w.removed {
			x.equal("start", e.Start, w.first)
		}
		x.equal("blocks", e.Count, len(w.ends))
		for j, b := range blocks[e.First : e.First+e.Count] {
			tokens := parseTokens(w.ends[j])
			x.equal("block hash", b.Hash, x.hash(tokens))
			if w.removed {
				continue
			}
			own := tokens[len(tokens)-x.cfg.BlockSize:]
			x.equal("tokens hash", b.Local, x.hash(own))
			if x.cfg.EmitKVTokenIDs {
				x.equal("token ids", ids[b.Tokens:b.Tokens+x.cfg.BlockSize], own)
			}
			if before := tokens[:len(tokens)-x.cfg.BlockSize]; j == 0 {
				x.equal("has a parent", e.HasParent, len(before) > 0)
				if len(before) > 0 {
					x.equal("parent", e.Parent, x.hash(before))
				}
			}
		}
	}
}

func parseTokens(content string) (tokens []uint32) {
	inside := false
	for _, c := range content {
		if c < '0' || c > '9' {
			inside = false
			continue
		}
		if !inside {
			tokens = append(tokens, 0)
		}
		inside = true
		tokens[len(tokens)-1] = 10*tokens[len(tokens)-1] + uint32(c-'0')
	}
	return tokens
}

func (x *twin) compareMetrics(out *engine.Out, want *naivePass, duration float64) {
	active, idle := x.naive.pool.active(), len(x.naive.pool.idle())
	total := float64(x.cfg.NumGPUBlocks)
	x.equal("metrics", out.Metrics, engine.Metrics{
		ActiveBlocks: active, InactiveBlocks: idle, TotalBlocks: x.cfg.NumGPUBlocks,
		CacheUsage: float64(active) / total, PhysicalCacheUsage: float64(active+idle) / total,
		RunningRequests: len(x.naive.running), WaitingRequests: len(x.naive.waiting) + len(x.naive.host.guests()), Preemptions: x.naive.preemptions,
	})
	var f engine.Forward
	var prompts, others []int
	for _, w := range want.work {
		switch {
		case w.prompt > 0:
			prompts = append(prompts, w.r.prompt)
			f.PrefillTokens += w.total
			f.PrefillKVTokens += w.prefix
		case !w.terminal:
			others = append(others, w.len)
			f.DecodeKVTokens += w.len
		}
	}
	f.Prefills, f.PrefillVariance = len(prompts), naiveVariance(prompts)
	f.Decodes, f.DecodeVariance = len(others), naiveVariance(others)
	f.QueuedPrefills, f.QueuedPrefillVar = len(want.queued[0]), naiveVariance(want.queued[0])
	f.QueuedDecodes, f.QueuedDecodeVar = len(want.queued[1]), naiveVariance(want.queued[1])
	for _, n := range want.queued[0] {
		f.QueuedPrefillLen += n
	}
	for _, n := range want.queued[1] {
		f.QueuedDecodeLen += n
	}
	f.DurationMs = duration
	x.equal("forward metrics", out.Forward, f)
	x.equal("acceptance", out.Acceptance, engine.Acceptance{Forwards: want.forwards, AcceptedTokens: want.accepted})
}

// failHead gives up on the head of a queue that nothing moves any more.
func (x *twin) failHead() {
	if x.naive.host != nil {
		unloads := x.naive.unload()
		x.equal("unload", x.engine.Unload(), unloads)
		if unloads {
			return
		}
	}
	h, tag, ok := x.engine.FailHead()
	x.equal("fail head", ok, true)
	r := x.naive.candidate()
	x.equal("failed request", x.id(h, tag), r.id)
	x.naive.dequeue(r)
	x.naive.pool.give(r.blocks)
	x.naive.forsake(r)
}

// settle lets the copies end that do so until the given time, between passes.
func (x *twin) settle(until float64) {
	for {
		at, ok := x.engine.NextInternalMs()
		x.equal("next", at, x.naive.nextMs())
		if !ok || at > until {
			return
		}
		said := x.engine.Internal(at)
		want := x.naive.internal(at)
		if !said {
			x.equal("events of nothing", len(want.events), 0)
			continue
		}
		e := x.engine.Effects()
		x.compareEvents(e.KVEvents, e.KVBlocks, e.KVTokens, want)
	}
}

const (
	passLimit = 20000 // far above what 40 requests of 20 tokens can need

	// With speculation a request that outgrows the pool preempts itself and
	// prefills again for ever (corrections §4); such a run is cut short.
	stallLimit = 100
)

// next is when something happens by itself, +Inf if nothing will.
func (x *twin) next(list []action) float64 {
	at := x.naive.nextMs()
	if len(list) > 0 {
		at = min(at, list[0].at)
	}
	return at
}

// drive applies the actions at their times. With early set, those that fall
// into a pass are given while it is in flight, else when it has ended.
func (x *twin) drive(list []action, early bool) {
	now := 0.0
	due := func(limit float64) {
		for len(list) > 0 && list[0].at <= limit {
			x.apply(list[0])
			list = list[1:]
		}
	}
	stalled, blocked := 0, false
	for passes := 0; ; passes++ {
		if x.cfg.HostOffload.Blocks > 0 {
			x.settle(now)
		}
		due(now)
		if next := x.next(list); !x.engine.Ready() || blocked {
			blocked = false
			if !math.IsInf(next, 1) {
				now = next
				continue
			}
			if !x.engine.Ready() {
				break
			}
		}
		if passes > passLimit {
			x.t.Fatal("the run does not end")
		}
		end := x.begin(now)
		if early {
			due(end)
		}
		x.complete(now, end)
		now = end
		if stalled++; len(x.engine.Out().Outputs) > 0 {
			stalled = 0
		}
		if x.cfg.MTP.Drafts > 0 && stalled > stallLimit {
			return
		}
		if !x.engine.Out().Effect && x.engine.WaitingLen() > 0 {
			if blocked = x.naive.host.underway(); !blocked {
				x.failHead()
			}
		}
	}
	x.equal("requests left", len(x.naive.waiting)+len(x.naive.running), 0)
	x.equal("active blocks left", x.engine.Metrics().ActiveBlocks, 0)
}

// FuzzEngine reads a configuration and a list of commands.
func FuzzEngine(f *testing.F) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		data := make([]byte, 20+rng.IntN(150))
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		f.Add(data)
	}
	for seed, with := uint64(1000), 0; with < 300; seed++ { // longer runs with host memory
		rng := rand.New(rand.NewPCG(seed, 1))
		data := make([]byte, 100+rng.IntN(250))
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		if r := (&reader{data}); r.config().HostOffload.Blocks > 0 {
			f.Add(data)
			with++
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := &reader{data}
		cfg := r.config()
		early := r.next(2) > 0
		newTwin(t, cfg).drive(r.actions(), early)
	})
}
