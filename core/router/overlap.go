package router

import (
	"slices"

	"github.com/dryserve/dryserve/core/active"
	"github.com/dryserve/dryserve/core/kvindex"
)

// lookUp finds what the slots have of a prompt. The list is valid until the
// next call.
func (r *Router) lookUp(q *Request) []found {
	s := &r.scratch
	s.found = s.found[:0]
	locals := q.Locals
	switch {
	case r.Paths != nil:
		r.Paths.Match(q.Leaf, q.Blocks, &s.matches)
	case !r.fed || len(locals) == 0:
		return s.found
	default:
		s.matches.Lasts = r.below
		r.index.Match(locals, false, &s.matches)
	}
	for i, w := range s.matches.Slots {
		s.found = append(s.found, found{w, hits{device: s.matches.Depths[i]}})
	}
	if !r.below {
		return s.found
	}
	r.tiers.Extend(locals, &s.matches, &s.hits)
	for in := range s.hits {
		for i, w := range s.hits[in].Slots {
			if blocks := s.hits[in].Blocks[i]; blocks > 0 {
				*s.hit(w, kvindex.Tier(in)) = blocks
			}
		}
	}
	return s.found
}

// hit is the place for the hits of a slot in a lower tier.
func (s *scratch) hit(w kvindex.Slot, in kvindex.Tier) *int32 {
	i := slices.IndexFunc(s.found, func(f found) bool { return f.slot == w })
	if i < 0 {
		i = len(s.found)
		s.found = append(s.found, found{slot: w})
	}
	switch h := &s.found[i].hits; in {
	case kvindex.Host:
		return &h.host
	case kvindex.Disk:
		return &h.disk
	default:
		return &h.external
	}
}

// bestCached is the most prompt tokens that a worker which takes requests has
// cached, or what is worth as much.
func (r *Router) bestCached(list []found) (tokens uint64) {
	for _, f := range list {
		if r.serving[f.slot] {
			tokens = max(tokens, f.hits.cached(&r.Config, r.BlockSize))
		}
	}
	return tokens
}

// project lists the candidates with what a request would find there
// (router notes §4.1).
func (r *Router) project(sequence []uint64, tokens uint64, list []found) {
	s := &r.scratch
	blocks := 0
	if r.Config.TrackActiveBlocks {
		blocks = int(tokens) / r.BlockSize
		if r.Config.AssumeKVReuse {
			blocks = len(sequence)
		}
	}
	s.candidates = s.candidates[:0]
	for _, id := range r.order {
		w := &r.workers[id]
		for rank := range w.ranks {
			slot := active.Slot(w.first + rank)
			s.at[slot] = int32(len(s.candidates))
			s.candidates = append(s.candidates, candidate{
				slot: int32(slot), worker: id, rank: rank, known: true, factor: 1,
				tokens: r.load.Tokens(slot, r.nowNs), blocks: r.load.Blocks(slot) + blocks, requests: r.load.Requests(slot),
			})
		}
	}
	if r.Config.TrackActiveBlocks && r.Config.AssumeKVReuse {
		r.load.Shared(sequence, &s.shared)
		for i, slot := range s.shared.Slots {
			if k := s.at[slot]; k >= 0 {
				s.candidates[k].blocks -= int(s.shared.Blocks[i])
			}
		}
	}
	for _, f := range list {
		if k := s.at[f.slot]; k >= 0 {
			s.candidates[k].hits = f.hits
		}
	}
	for _, c := range s.candidates {
		s.at[c.slot] = -1
	}
}
