package sglang_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/core/seq"
	"github.com/dryserve/dryserve/core/sglang"
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
	cfg := config.Defaults(config.SGLang)
	cfg.BlockSize = pick(r, 1, 1, 2, 3, 4, 16)
	cfg.NumGPUBlocks = 40/cfg.BlockSize + r.next(20)
	cfg.MaxNumSeqs = pick(r, 1, 2, 3, 5, 8, config.Unbounded)
	cfg.MaxModelLen = pick(r, 0, 0, 0, 9, 20, 33)
	cfg.EnablePrefixCaching = r.next(5) > 0
	cfg.EmitKVEvents = r.next(4) > 0
	cfg.Role = pick(r, config.Aggregated, config.Aggregated, config.Prefill, config.Decode)
	cfg.SGLang.Policy = pick(r, config.FCFS, config.FCFS, config.LPM)
	cfg.SGLang.MaxPrefillTokens = pick(r, 16384, 16384, 24, 7)
	cfg.SGLang.ChunkedPrefillSize = cfg.BlockSize * (1 + r.next(24))
	cfg.SGLang.ClipMaxNewTokens = pick(r, 0, 1, 2, 5, 4096)
	cfg.SGLang.Conservativeness = pick(r, 1, 0, 0.05, 0.3)
	cfg.SGLang.PrefillDecodeInterval = pick(r, 0, 0, 0, 1, 3)
	cfg.MTP.Drafts = pick(r, 0, 0, 0, 1, 3)
	cfg.MTP.AcceptRates = config.DefaultAcceptRates()
	cfg.Timing.Kind = pick(r, config.Polynomial, config.Fixed)
	cfg.Timing.PrefillMs = pick(r, 10, 0, 2.5)
	cfg.Timing.DecodeMs = pick(r, 2, 0, 0.75)
	return cfg
}

// action is one command of a fuzzed run: a request, or a command for one that
// was given before.
type action struct {
	at      float64
	op      string
	id      uint64
	request engine.Request
}

// actions are in the order of time. Prompts of one family share a beginning;
// planned outputs may continue a prompt as another does.
func (r *reader) actions(role config.Role) []action {
	ops := []string{"submit", "submit", "submit", "submit", "cancel"}
	switch role {
	case config.Prefill:
		ops = []string{"prefill", "prefill", "submit", "release", "release", "cancel source", "cancel"}
	case config.Decode:
		ops = []string{"reserve", "reserve", "reserve", "activate", "activate", "activate", "submit", "cancel", "cancel destination"}
	}
	var list []action
	at := 0.0
	for id := uint64(1); len(r.data) > 0 && id <= 40; id++ {
		at += pick(r, 0.0, 0, 1, 5, 17, 90)
		a := action{at: at, op: pick(r, ops...), id: id}
		switch a.op {
		case "submit", "prefill", "reserve":
			a.request = r.request(id)
		default:
			a.id = 1 + uint64(r.next(int(id)))
		}
		list = append(list, a)
	}
	return list
}

func (r *reader) request(id uint64) engine.Request {
	family, shared, length := uint32(r.next(2)), r.next(30), r.next(38)
	tokens := []uint32{}
	for i := range uint32(length) {
		if int(i) >= shared {
			family = 100 + uint32(id)
		}
		tokens = append(tokens, 1000*family+i)
	}
	q := engine.Request{UUID: uuid(id), Tokens: tokens, MaxOutput: r.next(20), Tag: uint32(7 * id), Handoff: 1000 + id}
	if r.next(2) == 1 {
		q.OutputIDs = make([]uint32, q.MaxOutput)
		for i := range q.OutputIDs {
			q.OutputIDs[i] = uint32(length + i)
		}
	}
	return q
}

// twin runs the rank and the naive model side by side.
type twin struct {
	t       *testing.T
	rank    *sglang.Rank
	naive   *naive
	events  uint64
	flight  *naivePass // in flight
	dropped []uint64   // cancelled in flight
	tried   int        // heads that were given up
}

func (x *twin) equal(what string, got, want any) {
	x.t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		x.t.Fatalf("%s: %s, want %s", what, g, w)
	}
}

func (x *twin) id(h engine.Handle, tag uint32) uint64 {
	u := x.rank.UUID(h)
	id := binary.BigEndian.Uint64(u[8:])
	if tag != uint32(7*id) {
		x.t.Fatalf("request %d has tag %d", id, tag)
	}
	return id
}

func (x *twin) facts(list []engine.Lifecycle) (text []string) {
	for _, f := range list {
		x.equal("handoff", f.Handoff, 1000+x.id(f.Req, f.Tag))
		text = append(text, fmt.Sprint([]string{"held", "reserved"}[f.Kind], " ", f.Handoff, " ", f.Tokens))
	}
	return text
}

func (x *twin) kvEvents(events []engine.KVEvent, blocks []engine.KVBlock) (text []string) {
	for _, e := range events {
		x.equal("event id", e.ID, x.events)
		x.events++
		var hashes []uint64
		for _, b := range blocks[e.First : e.First+e.Count] {
			hashes = append(hashes, b.Hash)
		}
		switch {
		case e.Kind == engine.Removed:
			text = append(text, fmt.Sprint("removed ", hashes))
		case e.HasParent:
			text = append(text, fmt.Sprint("stored after ", e.Parent, " ", hashes))
		default:
			text = append(text, fmt.Sprint("stored after none ", hashes))
		}
	}
	return text
}

// apply gives both a command and compares its code and what it said.
func (x *twin) apply(a action) {
	pass := x.naive.pass
	said := &naivePass{}
	if x.flight == nil {
		x.naive.pass = said
	}
	code, want := x.command(a, &said.facts)
	x.naive.pass = pass
	x.equal(a.op, code, want)
	if code != engine.Applied {
		return
	}
	e := x.rank.Effects()
	x.equal("facts of a command", x.facts(e.Lifecycle), said.facts)
	x.equal("events of a command", x.kvEvents(e.KVEvents, e.KVBlocks), said.events)
	x.equal("retired", len(e.Retired) > 0, a.request.UUID == [16]byte{} && a.op != "activate")
}

func (x *twin) command(a action, facts *[]string) (got, want engine.Code) {
	m := x.naive
	h, known := x.rank.Find(uuid(a.id))
	switch a.op {
	case "submit":
		_, got = x.rank.Submit(a.request)
		m.waiting = append(m.waiting, x.add(a))
		return got, engine.Applied
	case "prefill":
		_, got = x.rank.SubmitPrefill(a.request)
		r := x.add(a)
		r.source = true
		m.waiting = append(m.waiting, r)
		return got, engine.Applied
	case "reserve":
		_, got = x.rank.Reserve(a.request)
		if limit := m.cfg.MaxModelLen; limit > 0 && len(a.request.Tokens) >= limit {
			return got, engine.PromptTooLong
		}
		if m.pagesOf(len(a.request.Tokens)) > m.cfg.NumGPUBlocks {
			return got, engine.PromptTooLarge
		}
		m.pending = append(m.pending, x.add(a))
		if x.flight == nil {
			m.tryReserve(facts)
		}
		return got, engine.Applied
	case "activate":
		got = x.rank.Activate(h)
		i := m.index(m.reserved, a.id)
		if i < 0 {
			return got, engine.Noop
		}
		r := m.reserved[i]
		m.reserved, m.prebuilt = slices.Delete(m.reserved, i, i+1), append(m.prebuilt, r)
		free := m.cache.Available()
		r.computed = r.prompt
		m.store(r)
		if m.cache.Available() > free {
			m.roomMade()
		}
		m.tryReserve(facts)
		return got, engine.Applied
	case "release":
		got = x.rank.ReleaseSource(h)
		known = m.index(m.held, a.id) >= 0
	case "cancel source":
		got = x.rank.CancelSource(h)
		known = known && m.isSource(a.id)
	case "cancel destination":
		got = x.rank.CancelDestination(h)
		known = m.index(m.pending, a.id) >= 0 || m.index(m.reserved, a.id) >= 0
	case "cancel":
		got = x.rank.Cancel(h)
	}
	if !known {
		return got, engine.Noop
	}
	m.end(a.id)
	if x.flight != nil {
		x.dropped = append(x.dropped, a.id)
	}
	m.roomMade()
	m.tryReserve(facts)
	return got, engine.Applied
}

func (x *twin) add(a action) *naiveRequest {
	q := a.request
	r := &naiveRequest{
		id: a.id, tokens: slices.Clone(q.Tokens), prompt: len(q.Tokens), out: q.MaxOutput, handoff: q.Handoff,
		node:      x.naive.cache.Root,
		nextToken: func(k int) uint32 { return seq.OutputToken(q.UUID, uint64(k)) },
	}
	if q.OutputIDs != nil {
		r.nextToken = func(k int) uint32 { return q.OutputIDs[k] }
	}
	if limit := x.naive.cfg.MaxModelLen; limit > 0 {
		r.out = min(r.out, max(0, limit-r.prompt))
	}
	return r
}

func (m *naive) lists() []*[]*naiveRequest {
	return []*[]*naiveRequest{&m.waiting, &m.running, &m.prebuilt, &m.pending, &m.reserved, &m.held}
}

func (m *naive) index(list []*naiveRequest, id uint64) int {
	return slices.IndexFunc(list, func(r *naiveRequest) bool { return r.id == id })
}

func (m *naive) isSource(id uint64) bool {
	for _, l := range m.lists() {
		if i := m.index(*l, id); i >= 0 {
			return (*l)[i].source
		}
	}
	return m.done[id] // complete, its last pass in flight
}

// end takes a request out of wherever it is.
func (m *naive) end(id uint64) {
	for k, l := range m.lists() {
		i := m.index(*l, id)
		if i < 0 {
			continue
		}
		r := (*l)[i]
		*l = slices.Delete(*l, i, i+1)
		if k == 5 {
			m.finish(r)
		} else {
			m.drop(r)
		}
	}
}

func (x *twin) begin(now float64) float64 {
	end, ok := x.rank.Begin(now)
	if !ok {
		x.t.Fatal("the rank is not ready")
	}
	want := x.naive.run(now)
	if math.Float64bits(end) != math.Float64bits(want.end) {
		x.t.Fatalf("pass at %v ends at %v, want %v", now, end, want.end)
	}
	out := x.rank.Out()
	var admissions, pressure []string
	for _, a := range out.Admissions {
		admissions = append(admissions, fmt.Sprint(x.id(a.Req, a.Tag), " ", a.Reused))
	}
	x.equal("admissions", admissions, want.admissions)
	for _, p := range out.Pressure {
		pressure = append(pressure, fmt.Sprint(x.id(p.Req, p.Tag), " ", fmt.Sprint(p.Before.Running, p.Before.ActiveBlocks), " ",
			p.After.Running, p.After.ActiveBlocks, " ", p.OwnBlocks, p.AvailableBlocks, p.RequiredBlocks))
	}
	x.equal("pressure", pressure, want.pressure)
	var committed []uint64
	for _, h := range out.Committed {
		u := x.rank.UUID(h)
		committed = append(committed, binary.BigEndian.Uint64(u[8:]))
	}
	x.equal("committed", committed, want.committed)
	x.flight, x.dropped = want, nil
	return end
}

func (x *twin) complete(now, end float64) {
	want := x.flight
	x.flight = nil
	if !x.rank.Complete(end) {
		x.t.Fatal("no pass in flight")
	}
	want.facts = slices.DeleteFunc(want.facts, func(f string) bool {
		return slices.ContainsFunc(x.dropped, func(id uint64) bool { return f[:9] == fmt.Sprint("held ", 1000+id) })
	})
	x.naive.tryReserve(&want.facts)
	out := x.rank.Out()
	var outputs []naiveOutput
	for _, o := range out.Outputs {
		w := naiveOutput{x.id(o.Req, o.Tag), -1, o.Completed, o.Rejected}
		if o.HasToken {
			w.token = int64(o.Token)
		}
		x.equal("cached tokens", o.HasCached, false)
		outputs = append(outputs, w)
	}
	want.outputs = slices.DeleteFunc(want.outputs, func(o naiveOutput) bool { return slices.Contains(x.dropped, o.id) })
	x.equal("outputs", outputs, want.outputs)
	x.equal("facts", x.facts(out.Lifecycle), want.facts)
	x.equal("KV events", x.kvEvents(out.KVEvents, out.KVBlocks), want.events)
	x.equal("acceptance", out.Acceptance, engine.Acceptance{Forwards: want.forwards, AcceptedTokens: want.accepted})
	x.equal("stuck", out.Stuck, want.stuck)
	x.equal("rounds", x.rank.PrefillRounds(), x.naive.rounds)
	x.compareMetrics(out, want, end-now)
}

func (x *twin) compareMetrics(out *engine.Out, want *naivePass, duration float64) {
	m := x.naive
	usage := float64(m.used()) / float64(m.cfg.NumGPUBlocks)
	x.equal("metrics", out.Metrics, engine.Metrics{
		ActiveBlocks: m.used(), TotalBlocks: m.cfg.NumGPUBlocks, CacheUsage: usage, PhysicalCacheUsage: usage,
		RunningRequests: len(m.running),
		WaitingRequests: len(m.waiting) + len(m.pending) + len(m.reserved) + len(m.prebuilt),
		CacheHitTokens:  want.hits, CacheTotalTokens: want.hits + want.computed,
	})
	var f engine.Forward
	var prompts []int
	for _, w := range want.prompts {
		if w[1] > 0 {
			prompts = append(prompts, w[0])
			f.PrefillTokens += w[1]
			f.PrefillKVTokens += w[2]
		}
	}
	f.Prefills, _, f.PrefillVariance = describe(prompts)
	f.Decodes, f.DecodeKVTokens, f.DecodeVariance = describe(want.decoded)
	f.QueuedPrefills, f.QueuedPrefillLen, f.QueuedPrefillVar = describe(want.queued[0])
	f.QueuedDecodes, f.QueuedDecodeLen, f.QueuedDecodeVar = describe(want.queued[1])
	f.DurationMs = duration
	x.equal("forward metrics", out.Forward, f)
}

// describe is the number, the sum and the variance of small lengths.
func describe(lengths []int) (n, sum int, variance float64) {
	squares := 0
	for _, l := range lengths {
		sum += l
		squares += l * l
	}
	n = len(lengths)
	if n > 0 {
		variance = float64(n*squares-sum*sum) / float64(n) / float64(n)
	}
	return n, sum, variance
}

// maxRetries is after how many idle passes at one time a run gives up although
// the ratio still moves.
const maxRetries = 1024

// passLimit is far above what 40 requests of 20 tokens can need.
const passLimit = 100000

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
	retries := 0
	for passes := 0; ; passes++ {
		due(now)
		if !x.rank.Ready() {
			if len(list) == 0 {
				return
			}
			now = list[0].at
			continue
		}
		if passes > passLimit {
			x.t.Fatal("the run does not end")
		}
		end := x.begin(now)
		if early {
			due(end)
		}
		x.complete(now, end)
		out := x.rank.Out()
		round := x.rank.Round()
		idle := end == now && (!out.Effect || out.Stuck) && !round.Deferred
		if !idle || !round.RatioChanged {
			retries = 0
		} else if retries++; retries <= maxRetries {
			idle = false
		}
		if idle {
			if len(list) > 0 { // a command may change it
				now = list[0].at
				continue
			}
			if x.failHead(); x.tried > 100 {
				return
			}
		}
		now = end
	}
}

// failHead gives up on a request that nothing moves any more.
func (x *twin) failHead() {
	m := x.naive
	x.tried++
	want := uint64(0)
	if x.rank.Out().Stuck && len(m.running) == 1 {
		want = m.running[0].id
	} else if len(m.waiting) > 0 {
		want = m.waiting[0].id
	}
	h, tag, ok := x.rank.FailHead()
	x.equal("fail head", ok, want > 0)
	if !ok {
		x.tried = 101 // what is left waits for a command
		return
	}
	x.equal("failed request", x.id(h, tag), want)
	var facts []string
	m.pass = &naivePass{}
	m.end(want)
	m.roomMade()
	m.tryReserve(&facts)
	e := x.rank.Effects()
	x.equal("facts", x.facts(e.Lifecycle), facts)
	x.equal("events", x.kvEvents(e.KVEvents, e.KVBlocks), m.pass.events)
}

// FuzzRank reads a configuration and a list of commands.
func FuzzRank(f *testing.F) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		data := make([]byte, 24+rng.IntN(220))
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := &reader{data}
		cfg := r.config()
		early := r.next(2) > 0
		x := &twin{t: t, rank: sglang.New(cfg, 0), naive: newNaive(cfg)}
		x.drive(r.actions(cfg.Role), early)
	})
}
