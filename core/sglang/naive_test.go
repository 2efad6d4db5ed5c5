package sglang_test

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/rng"
	"github.com/dryserve/dryserve/core/seq"
	"github.com/dryserve/dryserve/core/timing"
	"github.com/dryserve/dryserve/internal/radixmodel"
)

// A second model of an SGLang rank, written from the notes with lists that are
// searched from end to end and hashes that are computed anew each time. It
// shares the durations, the hashes and the random stream with the rank, nothing
// else.

type naiveRequest struct {
	id        uint64
	tokens    []uint32
	prompt    int
	out       int
	nextToken func(k int) uint32
	computed  int
	pages     []*radixmodel.Page
	node      *radixmodel.Node
	cached    int
	back      bool // was retracted
	source    bool
	handoff   uint64
	tried     bool
}

func (r *naiveRequest) generated() int { return len(r.tokens) - r.prompt }
func (r *naiveRequest) left() int      { return r.out - r.generated() }

type naiveOutput struct {
	id                  uint64
	token               int64 // -1: none
	completed, rejected bool
}

// naivePass is what a pass says.
type naivePass struct {
	end                float64
	admissions         []string
	pressure           []string
	committed          []uint64
	outputs            []naiveOutput
	events             []string
	facts              []string
	prompts            [][3]int // prompt length, computed, cached before
	decoded            []int    // lengths
	queued             [2][]int
	hits, computed     int
	forwards, accepted int
	deferred, model    bool
	stuck              bool
}

type naive struct {
	cfg      config.Engine
	timing   timing.Model
	cache    *radixmodel.Cache
	stream   rng.Stream
	waiting  []*naiveRequest
	running  []*naiveRequest
	prebuilt []*naiveRequest
	pending  []*naiveRequest
	reserved []*naiveRequest
	held     []*naiveRequest
	ratio    float64
	rounds   int
	done     map[uint64]bool // requests that the last pass completed: were they sources?
	pass     *naivePass      // where events go
}

func newNaive(cfg config.Engine) *naive {
	return &naive{
		cfg: cfg, timing: timing.New(cfg), cache: radixmodel.New(cfg.NumGPUBlocks), stream: rng.New(cfg.MTP.Seed),
		ratio: 0.7 * cfg.SGLang.Conservativeness, pass: &naivePass{},
	}
}

// hashes are the local and the chained hashes of the complete pages of n
// tokens.
func (m *naive) hashes(r *naiveRequest, n int) (local, chain []uint64) {
	for end := m.cfg.BlockSize; end <= n; end += m.cfg.BlockSize {
		var b []byte
		for _, t := range r.tokens[end-m.cfg.BlockSize : end] {
			b = binary.LittleEndian.AppendUint32(b, t)
		}
		local = append(local, seq.LocalHash(b))
		if len(chain) == 0 {
			chain = append(chain, local[0])
		} else {
			chain = append(chain, seq.Chain(chain[len(chain)-1], local[len(local)-1]))
		}
	}
	return local, chain
}

func (m *naive) pagesOf(n int) int { return (n + m.cfg.BlockSize - 1) / m.cfg.BlockSize }
func (m *naive) used() int         { return m.cache.Total - m.cache.Available() }
func (m *naive) logical() int      { return m.cache.Available() + m.cache.Count(false) }

func (m *naive) gone() {
	if m.cfg.EmitKVEvents && len(m.cache.Removed) > 0 {
		m.pass.events = append(m.pass.events, fmt.Sprint("removed ", m.cache.Removed))
	}
	m.cache.Removed = nil
}

func (m *naive) room(n int) bool {
	if n > m.cache.Available() {
		m.cache.Evict(n - m.cache.Available())
		m.gone()
	}
	return n <= m.cache.Available()
}

func (m *naive) announce(r *naiveRequest, from, to int) {
	if !m.cfg.EmitKVEvents || !m.cfg.EnablePrefixCaching {
		return
	}
	_, chain := m.hashes(r, to*m.cfg.BlockSize)
	var news []uint64
	parent := "none"
	for i := from; i < to; i++ {
		fresh, visible := m.cache.Publish(r.pages[i], chain[i])
		if visible && len(news) == 0 && i > 0 {
			parent = fmt.Sprint(chain[i-1])
		}
		if visible || fresh && len(news) > 0 {
			news = append(news, chain[i])
		}
	}
	if len(news) > 0 {
		m.pass.events = append(m.pass.events, fmt.Sprint("stored after ", parent, " ", news))
	}
}

// store puts the complete pages of the computed tokens into the tree.
func (m *naive) store(r *naiveRequest) {
	if !m.cfg.EnablePrefixCaching {
		return
	}
	local, _ := m.hashes(r, r.computed)
	m.announce(r, r.cached, len(local))
	node, kept := m.cache.Insert(r.node, local[r.cached:], r.pages[r.cached:len(local)])
	copy(r.pages[r.cached:], kept)
	m.gone()
	m.cache.Lock(node, 1)
	m.cache.Lock(r.node, -1)
	r.node, r.cached = node, len(local)
}

// drop frees the private pages and lets go of the path.
func (m *naive) drop(r *naiveRequest) {
	for _, p := range r.pages[r.cached:] {
		m.cache.Release(p)
	}
	m.gone()
	m.cache.Lock(r.node, -1)
	r.node, r.pages, r.cached, r.computed = m.cache.Root, nil, 0, 0
}

// finish ends a request: what is complete stays known.
func (m *naive) finish(r *naiveRequest) {
	if full := r.computed / m.cfg.BlockSize; m.cfg.EnablePrefixCaching && full < len(r.pages) {
		for _, p := range r.pages[full:] {
			m.cache.Release(p)
		}
		m.gone()
		r.pages = r.pages[:full]
	}
	m.store(r)
	m.drop(r)
}

// lock holds what is known of the first n tokens.
func (m *naive) lock(r *naiveRequest, n int) {
	if !m.cfg.EnablePrefixCaching {
		return
	}
	local, _ := m.hashes(r, n)
	r.node, r.pages = m.cache.MatchLock(local)
	r.pages = slices.Clone(r.pages)
	r.cached = len(r.pages)
}

func (m *naive) extend(r *naiveRequest, n int) bool {
	if n > m.logical() || !m.room(n) {
		return false
	}
	more, _ := m.cache.Allocate(n)
	r.pages = append(r.pages, more...)
	return true
}

func (m *naive) roomMade() {
	for _, r := range m.pending {
		r.tried = false
	}
}

func (m *naive) tryReserve(facts *[]string) {
	if len(m.pending) == 0 || m.pending[0].tried {
		return
	}
	r := m.pending[0]
	m.lock(r, r.prompt)
	fresh := m.pagesOf(r.prompt) - len(r.pages)
	if !m.extend(r, fresh) {
		m.drop(r)
		r.tried = true
		return
	}
	m.pending, m.reserved = m.pending[1:], append(m.reserved, r)
	*facts = append(*facts, fmt.Sprintf("reserved %d %d", r.handoff, fresh*m.cfg.BlockSize))
}
