package sglang_test

import (
	"fmt"
	"slices"
	"sort"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/rng"
)

func (m *naive) run(now float64) *naivePass {
	p := &naivePass{deferred: m.rounds > 0}
	m.pass = p
	var rejected []*naiveRequest
	if limit := m.cfg.MaxModelLen; limit > 0 {
		for _, r := range m.waiting {
			if r.prompt >= limit {
				rejected = append(rejected, r)
			}
		}
		m.waiting = slices.DeleteFunc(m.waiting, func(r *naiveRequest) bool { return r.prompt >= limit })
	}
	for len(m.prebuilt) > 0 && len(m.running) < m.cfg.MaxNumSeqs {
		m.running = append(m.running, m.prebuilt[0])
		p.admissions = append(p.admissions, fmt.Sprint(m.prebuilt[0].id, " 0"))
		m.prebuilt = m.prebuilt[1:]
	}
	m.sort()
	var admitted []*naiveRequest
	if len(m.prebuilt)+len(m.pending) == 0 && !p.deferred {
		admitted = m.admit()
	}
	p.end = now
	var done, retracted []*naiveRequest
	decodes := false
	if len(admitted) > 0 {
		isl, prefix := 0, 0
		for _, w := range p.prompts {
			isl += w[1] + w[2]
			prefix += w[2]
		}
		p.end += m.timing.Prefill(len(p.prompts), isl, prefix)
		done = m.first(admitted)
	} else {
		var ms float64
		ms, decodes, done, retracted = m.decode()
		p.end += ms
	}
	m.done = map[uint64]bool{}
	for _, r := range done {
		m.done[r.id] = r.source
		if r.source {
			m.held = append(m.held, r)
			p.facts = append(p.facts, fmt.Sprintf("held %d %d", r.handoff, r.prompt))
			continue
		}
		m.finish(r)
		m.roomMade()
	}
	for _, r := range rejected {
		m.done[r.id] = r.source
		p.outputs = append(p.outputs, naiveOutput{r.id, -1, true, true})
	}
	m.waiting = append(m.waiting, retracted...)
	initial := 0.7 * m.cfg.SGLang.Conservativeness
	least := 0.14 * initial
	if len(retracted) > 0 {
		m.roomMade()
	} else if len(admitted) == 0 && (decodes || !p.deferred) {
		m.ratio = max(least, m.ratio-(initial-least)/600)
	}
	m.rounds = max(0, m.rounds-1)
	if p.computed > 0 {
		m.rounds = m.cfg.SGLang.PrefillDecodeInterval
	}
	if p.deferred && !decodes && !p.model {
		m.ratio = initial
	}
	for _, r := range m.waiting {
		k := 0
		if r.back {
			k = 1
		}
		p.queued[k] = append(p.queued[k], len(r.tokens))
	}
	for _, list := range [][]*naiveRequest{m.pending, m.reserved, m.prebuilt} {
		for _, r := range list {
			p.queued[1] = append(p.queued[1], r.prompt)
		}
	}
	return p
}

func (m *naive) sort() {
	if m.cfg.SGLang.Policy != config.LPM || !m.cfg.EnablePrefixCaching || len(m.waiting) > 128 {
		return
	}
	type place struct{ late, known int }
	places, seen := map[*naiveRequest]place{}, map[uint64]bool{}
	head := m.pagesOf(32)
	for _, r := range m.waiting {
		local, chain := m.hashes(r, len(r.tokens))
		x := place{known: m.cache.Match(local) * m.cfg.BlockSize}
		if x.known <= 32 && len(local) >= head {
			if seen[chain[head-1]] {
				x.late = 1
			}
			seen[chain[head-1]] = true
		}
		places[r] = x
	}
	sort.SliceStable(m.waiting, func(i, j int) bool {
		a, b := places[m.waiting[i]], places[m.waiting[j]]
		return a.late < b.late || a.late == b.late && a.known > b.known
	})
}

func (m *naive) admit() (admitted []*naiveRequest) {
	p, s, size := m.pass, m.cfg.SGLang, m.cfg.BlockSize
	total, input, chunk := float64(m.logical()*size), s.MaxPrefillTokens, s.ChunkedPrefillSize
	for _, r := range m.running {
		total -= float64(min(r.left(), s.ClipMaxNewTokens)) * m.ratio
	}
	for len(m.waiting) > 0 && len(m.running)+len(admitted) < m.cfg.MaxNumSeqs {
		r := m.waiting[0]
		fresh, start := r.computed == 0, r.computed
		if fresh && m.cfg.EnablePrefixCaching {
			n := len(r.tokens)
			if r.out > 0 && n > 0 {
				n--
			}
			local, _ := m.hashes(r, n)
			start = m.cache.Match(local) * size
		}
		want := len(r.tokens) - start
		if want == 0 && !fresh {
			break
		}
		n, reserve := want, min(r.left(), s.ClipMaxNewTokens)
		if m.pagesOf(want)*size > chunk {
			n = min(want, chunk/size*size)
			if n == 0 {
				break
			}
		}
		if n < want {
			reserve = 0
		}
		charged := m.pagesOf(n) * size
		if float64(charged+reserve) >= total || charged > input || charged > chunk {
			break
		}
		if fresh {
			m.lock(r, start)
		}
		if !m.extend(r, m.pagesOf(start+n)-len(r.pages)) {
			if fresh {
				m.drop(r)
			}
			break
		}
		r.computed = start + n
		m.announce(r, start/size, r.computed/size)
		if fresh {
			p.admissions = append(p.admissions, fmt.Sprint(r.id, " ", start))
			p.hits += start
		}
		if n > 0 {
			p.committed = append(p.committed, r.id)
			p.model = true
		}
		p.computed += n
		p.prompts = append(p.prompts, [3]int{r.prompt, n, start})
		admitted, m.waiting = append(admitted, r), m.waiting[1:]
		total -= float64(charged + reserve)
		input, chunk = input-charged, chunk-charged
		if chunk <= 0 {
			break
		}
	}
	return admitted
}

func (m *naive) say(r *naiveRequest) bool {
	t := r.nextToken(r.generated())
	r.tokens = append(r.tokens, t)
	m.pass.outputs = append(m.pass.outputs, naiveOutput{r.id, int64(t), r.left() == 0, false})
	return r.left() == 0
}

// step is a token with room; true: it was the last.
func (m *naive) step(r *naiveRequest) bool {
	if m.pagesOf(len(r.tokens)+1) > len(r.pages) {
		more, _ := m.cache.Allocate(1)
		r.pages = append(r.pages, more...)
	}
	r.computed++
	if m.say(r) {
		return true
	}
	m.store(r)
	return false
}

func (m *naive) first(admitted []*naiveRequest) (done []*naiveRequest) {
	var whole, goOn []*naiveRequest
	for _, r := range admitted {
		if r.computed < len(r.tokens) {
			m.store(r)
			m.waiting = append([]*naiveRequest{r}, m.waiting...)
		} else {
			whole = append(whole, r)
		}
	}
	for _, r := range whole {
		if r.left() == 0 {
			m.pass.outputs = append(m.pass.outputs, naiveOutput{r.id, -1, true, false})
			done = append(done, r)
		}
	}
	growth := 0
	for _, r := range whole {
		if r.left() == 1 && !slices.Contains(done, r) {
			m.say(r)
			done = append(done, r)
		} else if r.left() > 1 {
			goOn = append(goOn, r)
			growth += m.pagesOf(len(r.tokens)+1) - len(r.pages)
		}
	}
	m.running = append(m.running, goOn...)
	if m.room(growth) {
		for _, r := range goOn {
			m.step(r)
		}
	}
	return done
}

func (m *naive) decode() (ms float64, any bool, done, retracted []*naiveRequest) {
	p := m.pass
	var live []*naiveRequest
	for _, r := range m.running {
		if r.left() == 0 {
			p.outputs = append(p.outputs, naiveOutput{r.id, -1, true, false})
			done = append(done, r)
		} else {
			live = append(live, r)
			p.decoded = append(p.decoded, len(r.tokens))
		}
	}
	m.running = live
	if len(live) == 0 {
		return 0, false, done, nil
	}
	burst := 1
	if m.cfg.Role != config.Prefill {
		burst += m.cfg.MTP.Drafts
	}
	growth := func() (n int) {
		for _, r := range m.running {
			n += max(0, m.pagesOf(len(r.tokens)+min(burst, r.left()))-len(r.pages))
		}
		return n
	}
	for growth() > m.logical() && len(m.running) > 1 {
		r := slices.MinFunc(m.running, func(a, b *naiveRequest) int { return a.generated() - b.generated() })
		before, own, room, need := fmt.Sprint(len(m.running), m.used()), len(r.pages), m.logical(), growth()
		m.running = slices.DeleteFunc(m.running, func(x *naiveRequest) bool { return x == r })
		m.drop(r)
		r.back = true
		retracted = append(retracted, r)
		p.pressure = append(p.pressure, fmt.Sprint(r.id, " ", before, " ", len(m.running), m.used(), " ", own, room, need))
	}
	if len(retracted) > 0 {
		generated, out := 0, 0
		for _, r := range m.running {
			generated += r.generated() + 20
			out += r.out
		}
		m.ratio = min(1, float64(generated)/float64(out+1))
	}
	if !m.room(growth()) {
		p.stuck = true
		return 0, true, done, retracted
	}
	p.model = true
	sum := 0
	for _, r := range m.running {
		sum += len(r.tokens)
	}
	ms = m.timing.Decode(len(m.running), sum)
	for _, r := range slices.Clone(m.running) {
		accepted := 1
		for _, rate := range m.cfg.MTP.AcceptRates[:burst-1] {
			if !m.stream.Happens(rng.NewChance(rate)) {
				break
			}
			accepted++
		}
		p.forwards++
		p.accepted += accepted
		p.committed = append(p.committed, r.id)
		for range min(accepted, r.left()) {
			if m.step(r) {
				done = append(done, r)
				m.running = slices.DeleteFunc(m.running, func(x *naiveRequest) bool { return x == r })
			}
		}
	}
	return ms, true, done, retracted
}
