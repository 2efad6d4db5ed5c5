package engine_test

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"slices"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/rng"
)

// A second model of the vLLM and TensorRT-LLM engines, written from the notes with lists that
// are searched from end to end. It knows no hash: a block is identified by the
// text of all tokens up to its end. It shares no code with the engine but the
// random stream and host memory, which has a naive model of its own, not even
// the durations.

type naiveBlock struct {
	content  string // "" until it is complete and cached
	refs     int
	cachedAt int
	freedAt  int
	place    int
}

type naivePool struct {
	total  int
	clock  int
	blocks []*naiveBlock // all that are not free
	places []int         // in which there was a block once, the one to be taken next last
	made   int
}

func (p *naivePool) find(content string) *naiveBlock {
	var oldest *naiveBlock
	for _, b := range p.blocks {
		if b.content == content && (oldest == nil || b.cachedAt < oldest.cachedAt) {
			oldest = b
		}
	}
	return oldest
}

func (p *naivePool) idle() []*naiveBlock {
	idle := slices.DeleteFunc(slices.Clone(p.blocks), func(b *naiveBlock) bool { return b.refs > 0 })
	slices.SortFunc(idle, func(a, b *naiveBlock) int { return cmp.Compare(a.freedAt, b.freedAt) })
	return idle
}

func (p *naivePool) active() int { return len(p.blocks) - len(p.idle()) }

func (p *naivePool) drop(b *naiveBlock) {
	p.places = append(p.places, b.place)
	p.blocks = slices.DeleteFunc(p.blocks, func(x *naiveBlock) bool { return x == b })
}

// take pins the hits and adds fresh blocks; gone lists the contents that
// vanished.
func (p *naivePool) take(hits []*naiveBlock, fresh int) (held []*naiveBlock, gone []string, ok bool) {
	victims := slices.DeleteFunc(p.idle(), func(b *naiveBlock) bool { return slices.Contains(hits, b) })
	if fresh > p.total-len(p.blocks)+len(victims) {
		return nil, nil, false
	}
	for _, b := range hits {
		b.refs++
		held = append(held, b)
	}
	for p.total-len(p.blocks) < fresh {
		p.drop(victims[0])
		if p.find(victims[0].content) == nil {
			gone = append(gone, victims[0].content)
		}
		victims = victims[1:]
	}
	for range fresh {
		b := &naiveBlock{refs: 1}
		if n := len(p.places); n > 0 {
			b.place, p.places = p.places[n-1], p.places[:n-1]
		} else {
			p.made++
			b.place = p.made
		}
		p.blocks = append(p.blocks, b)
		held = append(held, b)
	}
	return held, gone, true
}

func (p *naivePool) give(held []*naiveBlock) {
	for _, b := range slices.Backward(held) {
		p.clock++
		b.refs--
		if b.refs == 0 && b.content == "" {
			p.drop(b)
		} else if b.refs == 0 {
			b.freedAt = p.clock
		}
	}
}

type naiveRequest struct {
	id        uint64
	tokens    []uint32
	prompt    int
	out       int
	nextToken func(k int) uint32
	generated int
	computed  int
	blocks    []*naiveBlock
	back      bool // was preempted
	cached    int  // at the first admission, -1 before
	signalled bool
	named     int // complete blocks it ever had
	naiveGuest
}

// upTo is the identity of the content of the first n tokens.
func (r *naiveRequest) upTo(n int) string { return fmt.Sprint(r.tokens[:n]) }

type naiveWork struct {
	r                          *naiveRequest
	total, prompt, prefix, len int
	terminal                   bool
}

// naiveEvent is a KV event: the tokens up to the end of each block.
type naiveEvent struct {
	removed bool
	host    bool
	ends    []string
	first   int // Stored: index of the first block
}

type naiveOutput struct {
	id                  uint64
	token               int64 // -1: none
	completed, rejected bool
	cached              int // -1: not said
}

type naivePass struct {
	end        float64
	admissions [][3]uint64 // id, reused, of it from host memory
	pressure   []string
	outputs    []naiveOutput
	events     []naiveEvent
	work       []naiveWork
	committed  []uint64
	accepted   int
	forwards   int
	queued     [2][]int // lengths: fresh, preempted
}

type naive struct {
	cfg         config.Engine
	pool        naivePool
	waiting     []*naiveRequest
	running     []*naiveRequest
	preemptions int
	draws       rng.Stream
	host        *naiveHost // nil: none

	// The pass being made.
	budget    int
	computeMs float64       // when computing begins
	room      []*naiveBlock // reserved for bursts
	preempted bool
	p         *naivePass
}

func (n *naive) remaining(r *naiveRequest) int {
	left := r.out - r.generated
	if n.cfg.MaxModelLen > 0 {
		left = min(left, n.cfg.MaxModelLen-len(r.tokens))
	}
	return max(left, 0)
}

func (n *naive) ceil(tokens int) int {
	return int(math.Ceil(float64(tokens) / float64(n.cfg.BlockSize)))
}

// hit is the leading run of resident blocks, ending before the last token of a
// request that wants another.
func (n *naive) hit(r *naiveRequest) []*naiveBlock {
	var run []*naiveBlock
	last := len(r.tokens)
	if n.cfg.Backend == config.VLLM && n.remaining(r) > 0 {
		last--
	}
	for end := n.cfg.BlockSize; end <= last && n.cfg.EnablePrefixCaching; end += n.cfg.BlockSize {
		b := n.pool.find(r.upTo(end))
		if b == nil {
			break
		}
		run = append(run, b)
	}
	if n.cfg.Backend == config.VLLM && n.cfg.MTP.Drafts > 0 && n.remaining(r) > 0 && len(run) > 0 {
		run = run[:len(run)-1]
	}
	return run
}

func (n *naive) run(now float64) *naivePass {
	n.p = &naivePass{}
	n.budget = n.cfg.MaxNumBatchedTokens
	n.preempted = false
	n.computeMs = now
	n.host.begin()

	for i := 0; i < len(n.running) && n.budget > 0; {
		r := n.running[i]
		var hit []*naiveBlock
		if r.computed == 0 {
			hit = n.hit(r)
		}
		result := n.schedule(r, hit)
		if result == "blocked" {
			break
		}
		if result == "scheduled" {
			i++
		}
	}
	rejected := n.admit(now)
	n.stores(now)
	n.finish(rejected)
	return n.p
}

func (n *naive) admit(now float64) (rejected []*naiveRequest) {
	for !n.preempted && len(n.running) < n.cfg.MaxNumSeqs && (n.host == nil || n.budget > 0) {
		r := n.candidate()
		if r == nil {
			break
		}
		tooLong := n.cfg.MaxModelLen > 0 && r.prompt >= n.cfg.MaxModelLen
		asks, free := n.ceil(len(r.tokens)), n.pool.total-n.pool.active()
		if n.cfg.Backend == config.TRTLLM {
			asks = n.ceil(r.prompt + r.out)
			for _, x := range n.running {
				free -= n.ceil(x.prompt+x.out) - len(x.blocks)
			}
		}
		tooLarge := !r.back && asks > n.pool.total
		if !tooLong && n.host != nil && len(r.blocks) == 0 {
			if parks, full := n.consult(r, now); parks {
				continue
			} else if full {
				break
			}
			free = n.pool.total - n.pool.active()
		}
		if tooLong || tooLarge {
			rejected = append(rejected, r)
			n.dequeue(r)
			n.forsake(r)
			continue
		}
		asks -= len(r.blocks)
		var hit []*naiveBlock
		if len(r.blocks) == 0 {
			hit = n.hit(r)
		}
		shared := 0 // over the whole match, but not more than the hit
		for end := n.cfg.BlockSize; end <= max(r.named*n.cfg.BlockSize, r.prompt); end += n.cfg.BlockSize {
			b := n.pool.find(r.upTo(end))
			if b == nil {
				break
			}
			if b.refs > 0 && shared < len(hit) {
				shared++
			}
		}
		if asks-shared > free {
			break
		}
		hadBudget, reused := n.budget > 0, r.computed+len(hit)*n.cfg.BlockSize
		if n.schedule(r, hit) != "scheduled" {
			break
		}
		n.dequeue(r)
		n.running = append(n.running, r)
		if r.cached < 0 {
			r.cached = reused
		}
		n.p.admissions = append(n.p.admissions, [3]uint64{r.id, uint64(reused), uint64(r.fromHost)})
		r.fromHost = 0
		if !hadBudget {
			break
		}
	}
	return rejected
}

func (n *naive) schedule(r *naiveRequest, hit []*naiveBlock) string {
	before := r.computed + len(hit)*n.cfg.BlockSize
	promptLeft := max(r.prompt-before, 0)
	if promptLeft > n.budget && !n.cfg.EnableChunkedPrefill {
		return "blocked"
	}
	share := min(len(r.tokens)-before, n.budget)
	if share == 0 && before < len(r.tokens) {
		return "blocked"
	}
	for {
		held, gone, ok := n.pool.take(hit, n.ceil(before+share)-len(r.blocks)-len(hit))
		if ok {
			r.blocks = append(r.blocks, held...)
			n.computeMs = max(n.computeMs, n.host.fence(held[len(hit):]))
			if len(gone) > 0 {
				n.p.events = append(n.p.events, naiveEvent{removed: true, ends: gone})
			}
			break
		}
		if n.cfg.Backend == config.TRTLLM {
			panic("an admitted request cannot grow")
		}
		victim := n.preempt()
		n.p.work = slices.DeleteFunc(n.p.work, func(w naiveWork) bool {
			if w.r == victim {
				n.budget += w.total
			}
			return w.r == victim
		})
		if victim == r {
			return "current preempted"
		}
	}
	r.computed = before + share
	r.named = max(r.named, r.computed/n.cfg.BlockSize)
	n.cache(r, before)
	n.budget -= share
	n.p.work = append(n.p.work, naiveWork{
		r: r, total: share, prompt: min(promptLeft, share), prefix: min(before, r.prompt), len: len(r.tokens),
		terminal: n.remaining(r) == 0,
	})
	return "scheduled"
}

func (n *naive) state() string {
	return fmt.Sprintf("(%d, %d, %d)", len(n.running), len(n.waiting)+len(n.host.guests()), n.pool.active())
}

func (n *naive) preempt() *naiveRequest {
	r := n.running[len(n.running)-1]
	if n.cfg.Preemption == config.FIFO {
		r = n.running[0]
	}
	text := fmt.Sprintf("%d %s->", r.id, n.state())
	n.computeMs = max(n.computeMs, n.host.endOf(r))
	own := len(r.blocks)
	n.running = slices.DeleteFunc(n.running, func(x *naiveRequest) bool { return x == r })
	n.waiting = slices.Insert(n.waiting, 0, r)
	n.pool.give(r.blocks)
	r.blocks, r.computed, r.back, r.known = nil, 0, true, 0
	n.preempted = true
	n.preemptions++
	n.p.pressure = append(n.p.pressure, fmt.Sprintf("%s%s own %d", text, n.state(), own))
	return r
}

// cache names the blocks that are complete now and were not before.
func (n *naive) cache(r *naiveRequest, before int) {
	if !n.cfg.EnablePrefixCaching {
		return
	}
	news := false // the block before was news, too
	for i, b := range r.blocks {
		end := (i + 1) * n.cfg.BlockSize
		if end <= before || end > r.computed || i < r.known {
			continue
		}
		content := r.upTo(end)
		first := n.pool.find(content) == nil
		n.pool.clock++
		b.content, b.cachedAt = content, n.pool.clock
		if first && !news {
			n.p.events = append(n.p.events, naiveEvent{first: i})
		}
		if first {
			e := &n.p.events[len(n.p.events)-1]
			e.ends = append(e.ends, content)
		}
		news = first
	}
}

func (n *naive) workOf(r *naiveRequest) naiveWork {
	for _, w := range n.p.work {
		if w.r == r {
			return w
		}
	}
	return naiveWork{}
}

// ready lists the running requests whose tokens are all computed and that want
// another, and those that want none.
func (n *naive) ready() (ready, done []*naiveRequest) {
	for _, r := range n.running {
		switch {
		case r.computed < len(r.tokens):
		case n.remaining(r) == 0:
			done = append(done, r)
		default:
			ready = append(ready, r)
		}
	}
	return ready, done
}

// reserve is how many blocks the bursts may need; victims are found until the
// pool has them.
func (n *naive) reserve() {
	for n.cfg.MTP.Drafts > 0 {
		need := 0
		ready, _ := n.ready()
		for _, r := range ready {
			most := min(n.cfg.MTP.Drafts+1, n.remaining(r))
			need += n.ceil(len(r.tokens)+most) - n.ceil(len(r.tokens))
		}
		room, gone, ok := n.pool.take(nil, need)
		if ok {
			n.room = room
			if len(gone) > 0 {
				n.p.events = append(n.p.events, naiveEvent{removed: true, ends: gone})
			}
			return
		}
		n.preempt()
	}
}

func (n *naive) finish(rejected []*naiveRequest) {
	_, done := n.ready()
	for _, r := range done {
		n.p.outputs = append(n.p.outputs, naiveOutput{r.id, -1, true, false, n.firstSignal(r)})
		n.leave(r)
	}
	n.reserve()
	ready, _ := n.ready()
	decodes, length := 0, 0
	for _, r := range ready {
		if r.generated > 0 || n.workOf(r).prompt == 0 || n.cfg.MTP.Drafts > 0 {
			decodes++
			length += len(r.tokens)
		}
	}
	count, isl, prefix := 0, 0, 0
	for _, w := range n.p.work {
		if w.prompt > 0 {
			count++
			isl += w.prefix + w.prompt
			prefix += w.prefix
		}
		if w.prompt > 0 || slices.Contains(ready, w.r) {
			n.p.committed = append(n.p.committed, w.r.id)
		}
	}
	n.p.end = n.computeMs + naivePrefill(n.cfg, count, isl, prefix)
	n.p.end += naiveDecode(n.cfg, decodes, length)

	for _, r := range ready {
		n.emit(r)
	}
	n.pool.give(n.room)
	n.room = nil
	for _, r := range rejected {
		n.p.outputs = append(n.p.outputs, naiveOutput{r.id, -1, true, true, -1})
	}
	for _, r := range append(slices.Clone(n.waiting), n.host.guests()...) {
		if r.back {
			n.p.queued[1] = append(n.p.queued[1], len(r.tokens))
		} else {
			n.p.queued[0] = append(n.p.queued[0], r.prompt)
		}
	}
}

// emit gives a request its next token or, with drafts, tokens.
func (n *naive) emit(r *naiveRequest) {
	tokens := 1
	if n.cfg.MTP.Drafts > 0 {
		tokens = n.accept()
	}
	if n.workOf(r).prompt == 0 {
		n.p.forwards++
		n.p.accepted += tokens
	}
	for ; tokens > 0 && n.remaining(r) > 0; tokens-- {
		before := r.computed
		r.computed = len(r.tokens)
		n.cache(r, before)
		token := r.nextToken(r.generated)
		r.tokens = append(r.tokens, token)
		if n.cfg.MTP.Drafts > 0 && n.ceil(len(r.tokens)) > len(r.blocks) {
			r.blocks = append(r.blocks, n.room[0])
			n.room = n.room[1:]
		}
		r.generated++
		last := n.remaining(r) == 0
		n.p.outputs = append(n.p.outputs, naiveOutput{r.id, int64(token), last, false, n.firstSignal(r)})
		if last {
			n.leave(r)
		}
	}
}

// accept draws the length of a burst, with the rates as floats.
func (n *naive) accept() int {
	tokens := 1
	for _, rate := range n.cfg.MTP.AcceptRates[:n.cfg.MTP.Drafts] {
		if rate < 1 && float64(n.draws.Uint64()) >= rate*math.Exp2(64) {
			break
		}
		tokens++
	}
	return tokens
}

func (n *naive) firstSignal(r *naiveRequest) int {
	if r.signalled {
		return -1
	}
	r.signalled = true
	return r.cached
}

func (n *naive) leave(r *naiveRequest) {
	n.pool.give(r.blocks)
	r.blocks = nil
	n.forsake(r)
	n.running = slices.DeleteFunc(n.running, func(x *naiveRequest) bool { return x == r })
}

// submit queues a request; TensorRT-LLM limits its output to what the model
// and an empty pool have room for.
func (n *naive) submit(r *naiveRequest) {
	room := n.cfg.NumGPUBlocks*n.cfg.BlockSize - r.prompt
	if n.cfg.Backend == config.TRTLLM {
		if n.cfg.MaxModelLen > 0 {
			r.out = min(r.out, max(n.cfg.MaxModelLen-r.prompt, 0))
		}
		if room > 0 {
			r.out = min(r.out, room)
		}
	}
	n.waiting = append(n.waiting, r)
}

// cancel takes a request out wherever it is.
func (n *naive) cancel(id uint64) {
	for _, r := range append(slices.Clone(n.waiting), n.host.guests()...) {
		if r.id == id {
			n.dequeue(r)
			n.pool.give(r.blocks)
			n.forsake(r)
		}
	}
	for _, r := range slices.Clone(n.running) {
		if r.id == id {
			n.leave(r)
		}
	}
}

func naivePrefill(cfg config.Engine, count, isl, prefix int) float64 {
	if count == 0 || isl/count <= prefix/count {
		return 0
	}
	raw := cfg.Timing.PrefillMs
	if cfg.Timing.Kind == config.Polynomial {
		t := float64(count * (isl/count - prefix/count))
		raw = float64(float64(4.209989e-07*float64(t*t))+float64(1.518344e-02*t)) + 1.650142e+01
	}
	return naiveMs(raw, cfg.SpeedupRatio)
}

func naiveDecode(cfg config.Engine, batch, length int) float64 {
	if batch == 0 {
		return 0
	}
	raw := cfg.Timing.DecodeMs
	if cfg.Timing.Kind == config.Polynomial {
		p := min(float64(length)/float64(cfg.NumGPUBlocks*cfg.BlockSize), 1)
		raw = max(1, float64(float64(-25.74*float64(p*p))+float64(54.01*p))+5.74)
	}
	return naiveMs(raw, cfg.SpeedupRatio*cfg.DecodeSpeedupRatio)
}

// naiveMs is engine notes §8.1 in rational arithmetic.
func naiveMs(rawMs, ratio float64) float64 {
	ns := naiveRound(rawMs / 1000)
	if ratio > 0 && ns > 0 {
		ns = naiveRound(naiveSeconds(ns) / ratio)
	}
	return naiveSeconds(naiveRound(naiveSeconds(ns)*1000/1000)) * 1000
}

func naiveSeconds(ns int64) float64 { return float64(ns/1e9) + float64(ns%1e9)/1e9 }

// naiveRound is the nearest whole number of nanoseconds, ties to even.
func naiveRound(seconds float64) int64 {
	exact := new(big.Rat).SetFloat64(seconds)
	exact.Mul(exact, big.NewRat(1e9, 1))
	down, rest := new(big.Int).QuoRem(exact.Num(), exact.Denom(), new(big.Int))
	half := rest.Lsh(rest, 1).Cmp(exact.Denom())
	if ns := down.Int64(); half > 0 || half == 0 && ns%2 == 1 {
		return ns + 1
	}
	return down.Int64()
}

// naiveVariance is exact up to the two divisions.
func naiveVariance(lengths []int) float64 {
	if len(lengths) == 0 {
		return 0
	}
	sum, squares := new(big.Int), new(big.Int)
	for _, x := range lengths {
		b := big.NewInt(int64(x))
		sum.Add(sum, b)
		squares.Add(squares, new(big.Int).Mul(b, b))
	}
	n := float64(len(lengths))
	squares.Mul(squares, big.NewInt(int64(len(lengths))))
	numerator, _ := new(big.Float).SetInt(squares.Sub(squares, sum.Mul(sum, sum))).Float64()
	return numerator / n / n
}
