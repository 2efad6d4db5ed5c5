package sglang

import "github.com/dryserve/dryserve/core/seq"

// matchable is the content of a request's first pages, for looking it up: the
// complete pages of its first n tokens, none without a prefix cache.
func (e *Rank) matchable(r *request, n int) []seq.Identity {
	if !e.cfg.EnablePrefixCaching {
		return nil
	}
	return r.tokens.Blocks()[:n/e.cfg.BlockSize]
}

// lock makes a request that holds nothing hold the cached part of its first n
// tokens.
func (e *Rank) lock(r *request, n int) {
	r.node, r.pages = e.cache.MatchLock(e.matchable(r, n), r.pages[:0])
	r.cached = len(r.pages)
}

// unlock lets go of the path; the request's private pages must be gone.
func (e *Rank) unlock(r *request) {
	e.cache.Unlock(r.node)
	r.node, r.cached = 0, 0
	r.pages = r.pages[:0]
}

// makeRoom evicts what is missing for n pages, or as much as can be had, and
// reports whether they are free now.
func (e *Rank) makeRoom(n int) bool {
	if missing := n - e.cache.Available(); missing > 0 {
		e.cache.Evict(missing)
		e.events.removed(e.cache.Removed())
	}
	return n <= e.cache.Available()
}

// extend gives the request n private pages, if they can be had.
func (e *Rank) extend(r *request, n int) bool {
	if n > e.logicalPages() || !e.makeRoom(n) {
		return false
	}
	r.pages, _ = e.cache.Allocate(r.pages, n)
	return true
}

// logicalPages counts the pages that are free or can be evicted.
func (e *Rank) logicalPages() int { return e.cache.Available() + e.cache.Evictable() }

// publish announces pages from up to to of a request. News begin with the
// first page whose content nobody else has announced; from there on all that
// were not announced themselves belong to it (engine notes §7).
func (e *Rank) publish(r *request, from, to int) {
	if !e.events.emit {
		return
	}
	ids := r.tokens.Blocks()
	opened := false
	for i := from; i < to; i++ {
		fresh, visible := e.cache.Publish(r.pages[i], ids[i].Hash)
		if visible || fresh && opened {
			e.events.stored(&r.tokens, i, opened)
			opened = true
		}
	}
}

// cachePrefix puts the pages of a request that are complete into the cache and
// holds them there.
func (e *Rank) cachePrefix(r *request) {
	to := r.computed / e.cfg.BlockSize
	if !e.cfg.EnablePrefixCaching || to <= r.cached {
		return
	}
	e.publish(r, r.cached, to)
	node := e.cache.Insert(r.node, r.tokens.Blocks()[r.cached:to], r.pages[r.cached:to])
	e.events.removed(e.cache.Removed())
	e.cache.Lock(node)
	e.cache.Unlock(r.node)
	r.node, r.cached = node, to
}

// settle is the end of a request's pages: those whose tokens all have KV stay
// in the cache, the others are freed. The last token has none if it came out of
// a prefill (engine notes §6.4, §6.5).
func (e *Rank) settle(r *request) {
	if !e.cfg.EnablePrefixCaching {
		e.drop(r)
		return
	}
	to := r.computed / e.cfg.BlockSize
	e.cache.Free(r.pages[to:])
	e.events.removed(e.cache.Removed())
	e.publish(r, r.cached, to)
	e.cache.Insert(r.node, r.tokens.Blocks()[r.cached:to], r.pages[r.cached:to])
	e.events.removed(e.cache.Removed())
	e.unlock(r)
}

// drop gives up a request's pages: the private ones are freed.
func (e *Rank) drop(r *request) {
	e.cache.Free(r.pages[r.cached:])
	e.events.removed(e.cache.Removed())
	e.unlock(r)
	r.computed = 0
}
