package router

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dryserve/dryserve/core/active"
	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/kvindex"
	"github.com/dryserve/dryserve/core/queue"
	"github.com/dryserve/dryserve/core/seq"
)

// threshold is a configuration whose requests wait while all ranks have more
// prompt work than a part of their budget.
func threshold(part float64) config.Router {
	c := config.DefaultRouter()
	c.QueueThreshold = part
	return c
}

func newRouter(c config.Router, workers, ranks int) *Router {
	r := New(Params{Config: c, BlockSize: 4, Seed: CanonicalSeed})
	for id := range workers {
		r.AddWorker(id, ranks, 100)
	}
	return r
}

// place brings a request with a prompt of tokens first, first+1, ….
func place(t *testing.T, r *Router, tag, tokens int, first uint32, nowMs float64) Handle {
	t.Helper()
	prompt := make([]uint32, tokens)
	for i := range prompt {
		prompt[i] = first + uint32(i)
	}
	h := seq.Plain(r.BlockSize)
	locals := h.AppendLocals(nil, prompt, nil)
	handle, f := r.Place(Request{Tag: uint32(tag), Tokens: tokens, Locals: locals, Sequence: h.AppendChain(nil, locals), Class: r.Class("")}, nowMs)
	if !f.OK() {
		t.Fatalf("place: %+v", f)
	}
	return handle
}

// stored says that a rank has stored the blocks of such a prompt.
func stored(r *Router, worker, rank, tokens int, first uint32, tier Tier) *Event {
	prompt := make([]uint32, tokens)
	for i := range prompt {
		prompt[i] = first + uint32(i)
	}
	h := seq.Plain(r.BlockSize)
	locals := h.AppendLocals(nil, prompt, nil)
	return &Event{Worker: worker, Rank: rank, Tier: tier, Locals: locals, Exts: h.AppendChain(nil, locals)}
}

func apply(t *testing.T, r *Router, e *Event, nowMs float64) {
	t.Helper()
	if f := r.Apply(e, nowMs); !f.OK() {
		t.Fatalf("apply %+v: %+v", e, f)
	}
}

func placedTags(r *Router) (tags []int) {
	for _, p := range r.Placed() {
		tags = append(tags, int(p.Tag))
	}
	return tags
}

// The reference's rule for a busy rank.
func TestGoldenBusy(t *testing.T) {
	var file struct {
		Busy []struct {
			Tokens  uint64 `json:"active_tokens"`
			Budget  uint64 `json:"max_batched"`
			Class   string
			Busy    bool
			Enabled bool `json:"queueing_enabled"`
		}
	}
	golden(t, "queue.json", &file)
	class := func(tokens int64, part float64) config.PolicyClass {
		return config.PolicyClass{BusyTokens: tokens, BusyFraction: part}
	}
	classes := map[string]config.PolicyClass{ // of the profile in queue.json
		"interactive-warm": class(config.NoLimit, 0.5),
		"interactive-cold": class(4096, config.Unset),
		"batch-warm":       class(config.NoLimit, 0),
		"batch-cold":       class(config.NoLimit, config.Unset),
		"vip":              class(config.NoLimit, 0.9),
	}
	for _, c := range file.Busy {
		class := classes[c.Class]
		if busy(&class, c.Tokens, c.Budget) != c.Busy || class.Waits() != c.Enabled {
			t.Errorf("%+v: busy %v, waits %v", c, busy(&class, c.Tokens, c.Budget), class.Waits())
		}
	}
	if len(file.Busy) != 35 {
		t.Errorf("%d cases", len(file.Busy))
	}
}

// What the reference makes of hits in several tiers.
func TestGoldenTierWeights(t *testing.T) {
	type row [3]float64 // worker, rank, value
	var file struct {
		Cases []struct {
			BlockSize int     `json:"block_size"`
			Host      float64 `json:"host_cache_hit_weight"`
			Disk      float64 `json:"disk_cache_hit_weight"`
			Steps     []struct {
				Event goldenEvent
				OK    bool
			}
			Queries []struct {
				Locals    []uint64
				Effective []row `json:"effective_overlap_blocks"`
				Cached    []row `json:"effective_cached_tokens"`
				Device    []row `json:"tier_device"`
				Host      []row `json:"tier_host"`
				Disk      []row `json:"tier_disk"`
			}
		}
	}
	golden(t, "tiers.json", &file)
	for i, c := range file.Cases {
		cfg := config.DefaultRouter()
		cfg.HostHitWeight, cfg.DiskHitWeight = c.Host, c.Disk
		r := New(Params{Config: cfg, BlockSize: c.BlockSize})
		for id := range 4 {
			r.AddWorker(id, 4, 100)
		}
		for _, s := range c.Steps {
			if f := r.Apply(s.Event.event(), 0); f.OK() != s.OK {
				t.Fatalf("case %d, %+v: %+v", i, s.Event, f)
			}
		}
		for _, q := range c.Queries {
			got := [5]map[row]bool{{}, {}, {}, {}, {}}
			for _, f := range r.lookUp(&Request{Locals: q.Locals}) {
				at := func(x float64) row { return row{float64(f.slot / 4), float64(f.slot % 4), x} }
				h := f.hits
				for k, x := range []float64{h.effective(&cfg), float64(h.cached(&cfg, c.BlockSize)), float64(h.device), float64(h.host), float64(h.disk + h.external)} {
					if x != 0 {
						got[k][at(x)] = true
					}
				}
			}
			for k, list := range [][]row{q.Effective, q.Cached, q.Device, q.Host, q.Disk} {
				list = slices.DeleteFunc(list, func(x row) bool { return x[2] == 0 })
				for _, x := range list {
					if !got[k][x] {
						t.Errorf("case %d, query %v, list %d: %v is missing in %v", i, q.Locals, k, x, got[k])
					}
				}
				if len(list) != len(got[k]) {
					t.Errorf("case %d, query %v, list %d: %v, want %v", i, q.Locals, k, got[k], list)
				}
			}
		}
	}
}

// goldenEvent is an event in the reference's JSON.
type goldenEvent struct {
	Tier   string `json:"storage_tier"`
	Worker int    `json:"worker_id"`
	Event  struct {
		Rank int `json:"dp_rank"`
		Data any
	}
}

func (e goldenEvent) event() *Event {
	x := &Event{Worker: e.Worker, Rank: e.Event.Rank, Tier: Tier(slices.Index([]string{"device", "host_pinned", "disk", "external"}, e.Tier)), Kind: Cleared}
	data, _ := e.Event.Data.(map[string]any)
	if s, ok := data["stored"].(map[string]any); ok {
		x.Kind = Stored
		if p, ok := s["parent_hash"].(float64); ok {
			x.HasParent, x.Parent = true, uint64(p)
		}
		for _, b := range s["blocks"].([]any) {
			block := b.(map[string]any)
			x.Exts = append(x.Exts, uint64(block["block_hash"].(float64)))
			x.Locals = append(x.Locals, uint64(block["tokens_hash"].(float64)))
		}
	}
	if s, ok := data["removed"].(map[string]any); ok {
		x.Kind = Removed
		for _, h := range s["block_hashes"].([]any) {
			x.Exts = append(x.Exts, uint64(h.(float64)))
		}
	}
	return x
}

// A request waits while all ranks are busy, and an arrival waits behind it even
// if a rank is idle by then; completions let them go.
func TestQueueing(t *testing.T) {
	r := newRouter(threshold(0.5), 2, 1)
	a := place(t, r, 1, 60, 0, 0)
	b := place(t, r, 2, 60, 1000, 1)
	if got := placedTags(r); r.Waiting() != 0 || !slices.Equal(got, []int{2}) {
		t.Fatalf("placed %v, %d wait", got, r.Waiting())
	}
	c := place(t, r, 3, 8, 2000, 2)
	if r.Waiting() != 1 || len(r.Placed()) != 0 {
		t.Fatalf("%d wait", r.Waiting())
	}
	d := place(t, r, 4, 8, 3000, 3)
	if f := r.PrefillDone(a, 10); !f.OK() {
		t.Fatal(f)
	}
	if got := placedTags(r); !slices.Equal(got, []int{3, 4}) {
		t.Fatalf("placed %v", got)
	}
	for _, p := range r.Placed() {
		if !p.Waited || p.ReleasedMs != 10 || p.EnteredMs != float64(p.Tag)-1 {
			t.Errorf("%+v", p)
		}
	}
	for _, h := range []Handle{a, b, c, d} {
		r.Free(h, 20)
	}
	noResidue(t, r)
}

// Requests that are taken back leave the queue.
func TestCancel(t *testing.T) {
	r := newRouter(threshold(0), 1, 1)
	a := place(t, r, 1, 8, 0, 0)
	b := place(t, r, 2, 8, 100, 0)
	c := place(t, r, 3, 8, 200, 0)
	if r.Cancel(a) || !r.Cancel(b) || r.Cancel(b) || r.Waiting() != 1 {
		t.Fatalf("%d wait", r.Waiting())
	}
	r.Free(a, 1)
	if got := placedTags(r); !slices.Equal(got, []int{3}) {
		t.Fatalf("placed %v", got)
	}
	r.Free(c, 2)
	noResidue(t, r)
}

// Without workers a request is refused, or waits if it may.
func TestNoWorkers(t *testing.T) {
	r := newRouter(config.DefaultRouter(), 0, 1)
	if _, f := r.Place(Request{Tokens: 3}, 0); f.Code != NoWorkers {
		t.Errorf("%+v", f)
	}
	r = newRouter(threshold(1), 0, 1)
	h := place(t, r, 7, 8, 0, 0)
	r.AddWorker(0, 1, 100)
	if f := r.Settle(5); !f.OK() || !slices.Equal(placedTags(r), []int{7}) {
		t.Errorf("%+v, %v", f, placedTags(r))
	}
	r.Free(h, 6)
	noResidue(t, r)
}

// A class that is full refuses, with the numbers.
func TestQueueFull(t *testing.T) {
	p := &config.RouterPolicy{
		DefaultFamily: "a", Buckets: []config.PolicyBucket{{MinTokens: 0, Name: "b"}},
		Classes: []config.PolicyClass{{Name: "x", Family: "a", Bucket: "b", Quantum: 1, BusyTokens: 0, BusyFraction: config.Unset,
			MaxRequests: 1, MaxTokens: config.NoLimit, MaxCached: config.NoLimit}},
	}
	if f := p.Check(); !f.OK() {
		t.Fatal(f)
	}
	c := config.DefaultRouter()
	c.Policy = p
	r := newRouter(c, 1, 2)
	for tag := range 4 {
		place(t, r, tag, 8, uint32(tag)*100, 0)
	}
	_, f := r.Place(Request{Tokens: 3, Class: r.Class("nobody")}, 0)
	want := queue.Full{Limit: queue.Requests, Class: 0, Have: 2, Most: 2}
	if f.Code != QueueFull || f.Full != want || r.ClassName(f.Full.Class) != "x" {
		t.Errorf("%+v, want %+v", f, want)
	}
}

// Events are believed when their lag has passed, not before, and in order.
func TestLag(t *testing.T) {
	r := New(Params{Config: config.DefaultRouter(), BlockSize: 4, LagMs: 20})
	r.AddWorker(0, 1, 100)
	r.AddWorker(1, 1, 100)
	apply(t, r, stored(r, 1, 0, 40, 0, Device), 0)
	overlap := func(nowMs float64) int {
		h := place(t, r, 0, 40, 0, nowMs)
		p := r.Placed()[0]
		r.Free(h, nowMs)
		return p.BestBlocks
	}
	if at19, at20 := overlap(19.5), overlap(20); at19 != 0 || at20 != 10 {
		t.Errorf("%d, %d blocks", at19, at20)
	}
	e := stored(r, 1, 0, 40, 0, Device)
	e.Kind = Removed
	apply(t, r, e, 30)
	apply(t, r, stored(r, 1, 0, 20, 0, Device), 31)
	for _, want := range []struct {
		atMs   float64
		blocks int
	}{{49, 10}, {50.5, 0}, {52, 5}} {
		if got := overlap(want.atMs); got != want.blocks {
			t.Errorf("at %v: %d blocks, want %d", want.atMs, got, want.blocks)
		}
	}
	apply(t, r, stored(r, 0, 0, 40, 0, Device), 61)
	r.RemoveWorker(0)
	if got := overlap(100); got != 5 {
		t.Errorf("a worker that is gone is believed: %d blocks", got)
	}
}

// An event that contradicts the index is refused with all that is known of it.
func TestEventRefused(t *testing.T) {
	r := newRouter(config.DefaultRouter(), 1, 2)
	e := stored(r, 0, 1, 8, 0, Device)
	e.HasParent, e.Parent, e.ID = true, 99, 5
	f := r.Apply(e, 0)
	want := EventFault{Why: kvindex.ParentNotFound, Kind: Stored, Worker: 0, Rank: 1, ID: 5, HasParent: true, Parent: 99, Count: 2, First: e.Exts[0], Last: e.Exts[1]}
	if f.Code != EventRefused || f.Event != want {
		t.Errorf("%+v, want %+v", f, want)
	}
	if f := r.Apply(&Event{Worker: 0, Rank: 2, Kind: Cleared}, 0); f.Code != UnknownWorker {
		t.Errorf("%+v", f)
	}
	if f := r.Apply(&Event{Worker: 0, Tier: Disk, Kind: Removed, Exts: []uint64{1}}, 0); !f.OK() {
		t.Errorf("lower tiers refuse nothing: %+v", f)
	}
}

// A worker that drains gets nothing, one that is gone is forgotten, and its
// place is taken by the next.
func TestWorkersDrainAndGo(t *testing.T) {
	r := newRouter(config.DefaultRouter(), 2, 2)
	apply(t, r, stored(r, 0, 1, 40, 0, Device), 0)
	a := place(t, r, 1, 40, 0, 1)
	if p := r.Placed()[0]; p.Worker != 0 || p.Rank != 1 || p.OverlapBlocks != 10 {
		t.Fatalf("%+v", p)
	}
	r.Drain(0)
	b := place(t, r, 2, 40, 0, 2)
	if p := r.Placed()[0]; p.Worker != 1 || p.BestBlocks != 0 {
		t.Fatalf("%+v", p)
	}
	apply(t, r, stored(r, 0, 0, 8, 500, Device), 3) // still believed
	r.RemoveWorker(0)
	r.AddWorker(2, 2, 100)
	c := place(t, r, 3, 40, 0, 4)
	if p := r.Placed()[0]; p.BestBlocks != 0 || r.index.Size() != 0 || r.slots.n != 4 {
		t.Fatalf("%+v, %d blocks, %d slots", p, r.index.Size(), r.slots.n)
	}
	for _, h := range []Handle{a, b, c} {
		if f := r.PrefillDone(h, 5); !f.OK() {
			t.Fatal(f)
		}
		r.Free(h, 5)
	}
	noResidue(t, r)
}

// What a request knew of a worker that went while it waited is forgotten: the
// next worker has its slots.
func TestWaitingForgetsWorkers(t *testing.T) {
	r := newRouter(threshold(0), 2, 1)
	apply(t, r, stored(r, 1, 0, 40, 0, Device), 0)
	a := place(t, r, 1, 8, 900, 0)
	b := place(t, r, 2, 8, 800, 0)
	c := place(t, r, 3, 40, 0, 0)
	r.RemoveWorker(1)
	r.AddWorker(2, 1, 100)
	if f := r.Settle(1); !f.OK() || !slices.Equal(placedTags(r), []int{3}) || r.Placed()[0].BestBlocks != 0 || r.Placed()[0].Worker != 2 {
		t.Errorf("%+v, %+v", f, r.Placed())
	}
	for _, h := range []Handle{a, b, c} {
		r.Free(h, 5)
	}
	noResidue(t, r)
}

// A router that predicts asks before it books, also in the middle of a queue.
func TestPrediction(t *testing.T) {
	c := threshold(0.5)
	c.LoadModel = config.PredictedLoad
	r := New(Params{Config: c, BlockSize: 4, Predicts: true})
	r.AddWorker(0, 1, 100)
	apply(t, r, stored(r, 0, 0, 20, 0, Device), 0)
	a := place(t, r, 1, 81, 0, 0)
	if q, ok := r.Asks(); !ok || q != (Query{61, 20}) || len(r.Placed()) != 0 {
		t.Fatalf("%+v, %v", q, ok)
	}
	if f := r.Answer(61e6, true); !f.OK() || !slices.Equal(placedTags(r), []int{1}) {
		t.Fatalf("%+v, %v", f, placedTags(r))
	}
	b := place(t, r, 2, 8, 500, 1) // 60 tokens left: busy
	if c2 := place(t, r, 3, 8, 600, 2); c2 == 0 || r.Waiting() != 2 {
		t.Fatalf("%d wait", r.Waiting())
	}
	if got := r.load.Tokens(0, 11e6); got != 50 {
		t.Errorf("%d tokens left after 11 ms", got)
	}
	r.PrefillDone(a, 20)
	if q, ok := r.Asks(); !ok || q != (Query{8, 0}) {
		t.Fatalf("%+v, %v", q, ok)
	}
	r.Answer(0, false)
	if _, ok := r.Asks(); !ok || !slices.Equal(placedTags(r), []int{2}) {
		t.Fatalf("%v", placedTags(r))
	}
	if r.Answer(5e6, true); !slices.Equal(placedTags(r), []int{2, 3}) {
		t.Fatalf("%v", placedTags(r))
	}
	if _, ok := r.Asks(); ok {
		t.Error("a question is left")
	}
	r.Free(a, 30)
	r.Free(b, 30)
}

// noResidue checks that nothing of any request is left.
func noResidue(t *testing.T, r *Router) {
	t.Helper()
	free := 0
	for h := r.free; h != 0; h = Handle(r.requests[h].item) {
		free++
	}
	if r.Waiting() != 0 || free != len(r.requests)-1 {
		t.Errorf("%d wait, %d handles are out", r.Waiting(), len(r.requests)-1-free)
	}
	for slot := range r.slots.n {
		w := active.Slot(slot)
		if r.load.Blocks(w) != 0 || r.load.Requests(w) != 0 || r.load.Tokens(w, 1e9) != 0 {
			t.Errorf("slot %d: %d blocks, %d requests, %d tokens", w, r.load.Blocks(w), r.load.Requests(w), r.load.Tokens(w, 1e9))
		}
	}
}

// traffic plays random requests and events; warm, it allocates nothing.
type traffic struct {
	r      *Router
	locals [][]uint64
	chains [][]uint64
	live   []Handle
	below  bool // some events are of lower tiers
	source *rand.PCG
	rnd    *rand.Rand
}

func newTraffic(c config.Router, workers, ranks int, lagMs float64) *traffic {
	x := &traffic{below: true, r: New(Params{Config: c, BlockSize: 16, Seed: 1, LagMs: lagMs, Predicts: true})}
	for id := range workers {
		x.r.AddWorker(id, ranks, 8192)
	}
	x.source = rand.NewPCG(5, 6)
	x.rnd = rand.New(x.source)
	rnd := x.rnd
	for range 100 {
		prompt := make([]uint32, 200+rnd.IntN(3000))
		for i := range prompt {
			prompt[i] = uint32(i) + uint32(i/500)*uint32(rnd.IntN(3))
		}
		h := seq.Plain(16)
		locals := h.AppendLocals(nil, prompt, nil)
		x.locals = append(x.locals, locals)
		x.chains = append(x.chains, h.AppendChain(nil, locals))
	}
	return x
}

func (x *traffic) tier(k int) Tier {
	if !x.below {
		return Device
	}
	return Tier(k / 7 % 2)
}

func (x *traffic) round(t testing.TB) {
	r := x.r
	x.source.Seed(7, 8)
	x.live = x.live[:0]
	now := 0.0
	fine := func(f Fault) {
		for q, asks := r.Asks(); asks && f.OK(); q, asks = r.Asks() {
			f = r.Answer(uint64(q.Tokens)*1000, true)
		}
		if !f.OK() {
			t.Fatalf("%+v", f)
		}
	}
	end := func(h Handle) {
		if !r.Cancel(h) {
			fine(r.Free(h, now))
		}
	}
	for k := range 400 {
		now++
		i := x.rnd.IntN(len(x.locals))
		h, f := r.Place(Request{Tag: uint32(k), Tokens: len(x.locals[i])*16 + 5, Locals: x.locals[i], Sequence: x.chains[i], Strict: uint32(k % 3)}, now)
		fine(f)
		x.live = append(x.live, h)
		fine(r.Apply(&Event{Worker: k % len(r.order), Tier: x.tier(k), Locals: x.locals[i], Exts: x.chains[i]}, now))
		if k%5 == 0 {
			fine(r.Apply(&Event{Worker: k % len(r.order), Tier: x.tier(k), Kind: Cleared}, now))
		}
		if len(x.live) > 20 {
			fine(r.PrefillDone(x.live[len(x.live)-20], now))
		}
		if len(x.live) > 60 {
			end(x.live[len(x.live)-61])
		}
	}
	for _, h := range x.live[len(x.live)-60:] {
		end(h)
	}
	for id := range r.order {
		for tier := range x.tier(7) + 1 {
			fine(r.Apply(&Event{Worker: id, Tier: tier, Kind: Cleared}, now))
		}
	}
	fine(r.Settle(now + 1000))
}

func TestWarmRouterAllocatesNothing(t *testing.T) {
	soft := config.DefaultRouter()
	soft.Temperature = 0.5
	predicted := threshold(0.1)
	predicted.LoadModel = config.PredictedLoad
	for name, c := range map[string]struct {
		cfg config.Router
		lag float64
	}{"default": {config.DefaultRouter(), 0}, "soft": {soft, 0}, "queued": {threshold(0.1), 0}, "predicted": {predicted, 0}, "late": {config.DefaultRouter(), 7}} {
		t.Run(name, func(t *testing.T) {
			x := newTraffic(c.cfg, 4, 2, c.lag)
			round := func() { x.round(t) }
			round()
			round()
			if n := testing.AllocsPerRun(3, round); n != 0 {
				t.Errorf("%v allocations per round", n)
			}
			noResidue(t, x.r)
		})
	}
}

// A thousand workers come and go among requests; nothing of them is left.
func TestWorkersComeAndGo(t *testing.T) {
	x := newTraffic(threshold(0.2), 3, 2, 3)
	r := x.r
	rnd := rand.New(rand.NewPCG(1, 1))
	next, now := 3, 0.0
	present := []int{0, 1, 2}
	var live []Handle
	for joined := 0; joined < 1000; {
		now++
		switch k := rnd.IntN(10); {
		case k < 3:
			r.AddWorker(next, 1+rnd.IntN(2), 8192)
			present = append(present, next)
			next++
			joined++
			r.Settle(now)
		case k < 6 && len(present) > 1:
			i := rnd.IntN(len(present))
			if rnd.IntN(2) == 0 {
				r.Drain(present[i])
			}
			r.RemoveWorker(present[i])
			present = slices.Delete(present, i, i+1)
			r.Settle(now)
		default:
			i := rnd.IntN(len(x.locals))
			h, f := r.Place(Request{Tokens: len(x.locals[i]) * 16, Locals: x.locals[i], Sequence: x.chains[i]}, now)
			if !f.OK() {
				t.Fatal(f)
			}
			live = append(live, h)
			w := present[rnd.IntN(len(present))]
			apply(t, r, &Event{Worker: w, Tier: Tier(rnd.IntN(4)), Locals: x.locals[i], Exts: x.chains[i]}, now)
			if len(live) > 30 {
				if !r.Cancel(live[0]) {
					r.Free(live[0], now)
				}
				live = live[1:]
			}
		}
	}
	for _, h := range live {
		if !r.Cancel(h) {
			r.Free(h, now)
		}
	}
	for _, id := range present {
		r.RemoveWorker(id)
	}
	noResidue(t, r)
	r.index.Check()
	if r.index.Size() != 0 || r.index.Nodes() != 0 || r.index.Blocks() != 0 || r.ranks != 0 || len(r.order) != 0 {
		t.Errorf("%d blocks, %d nodes, %d ranks", r.index.Size(), r.index.Nodes(), r.ranks)
	}
	for in := range kvindex.TierCount {
		if r.tiers.Size(in) != 0 {
			t.Errorf("%d blocks in tier %d", r.tiers.Size(in), in)
		}
	}
}
