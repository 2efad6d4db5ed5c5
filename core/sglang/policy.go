package sglang

import (
	"cmp"
	"slices"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/engine"
)

const (
	// maxSorted is the longest queue that LPM sorts.
	maxSorted = 128
	// beginningTokens is what two prompts must share, page by page, for the
	// later one to be put off; a prompt with a longer cached prefix is not.
	beginningTokens = 32
)

// ranked is a waiting request and where LPM wants it.
type ranked struct {
	req    engine.Handle
	putOff bool
	prefix int // cached pages of its sequence
}

// sortWaiting orders the queue by the policy (engine notes §6.1, step 3): under
// LPM the longest cached prefix first, but last those whose beginning is not
// cached and will be computed for a request before them.
func (e *Rank) sortWaiting() {
	if e.cfg.SGLang.Policy != config.LPM || !e.cfg.EnablePrefixCaching || e.waiting.len() > maxSorted {
		return
	}
	p := &e.pass
	pages := e.pagesFor(beginningTokens)
	for h := e.waiting.head(e.requests.slab); h != 0; h = e.requests.slab[h].next {
		ids := e.requests.slab[h].tokens.Blocks()
		x := ranked{req: h, prefix: e.cache.Match(ids)}
		if x.prefix*e.cfg.BlockSize <= beginningTokens && len(ids) >= pages {
			beginning := ids[pages-1].Hash
			x.putOff = slices.Contains(p.seen, beginning)
			if !x.putOff {
				p.seen = append(p.seen, beginning)
			}
		}
		p.ranking = append(p.ranking, x)
	}
	slices.SortStableFunc(p.ranking, func(a, b ranked) int {
		if a.putOff != b.putOff {
			if a.putOff {
				return 1
			}
			return -1
		}
		return cmp.Compare(b.prefix, a.prefix)
	})
	e.waiting.relink(e.requests.slab, p.ranking)
}
