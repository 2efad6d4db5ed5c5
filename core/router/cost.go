package router

import (
	"math"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/fmath"
)

// candidate is what is known of a rank when a request looks for one.
type candidate struct {
	slot   int32
	worker int32
	rank   int32

	known    bool    // its load is
	tokens   uint64  // prompt work that is left
	blocks   int     // of live prompts, those that the request would add included
	requests int     // live
	hits     hits    // blocks of the prompt it has
	factor   float64 // of the cost, for tastes of the request; 1: none
}

// hits is how many blocks of a prompt a rank has, by tier; each tier counts
// beyond the one before.
type hits struct {
	device, host, disk, external int32
}

// some reports whether there is a hit at all.
func (h hits) some() bool { return h != hits{} }

// effective is the hits in blocks on the device that are worth the same
// (router notes §3).
func (h hits) effective(c *config.Router) float64 {
	blocks := float64(h.device)
	if h.host != 0 && c.HostHitWeight != 0 {
		blocks += float64(float64(h.host) * c.HostHitWeight)
	}
	if h.disk != 0 && c.DiskHitWeight != 0 {
		blocks += float64(float64(h.disk) * c.DiskHitWeight)
	}
	if h.external != 0 && c.DiskHitWeight != 0 {
		blocks += float64(float64(h.external) * c.DiskHitWeight)
	}
	return blocks
}

// cached is effective in tokens.
func (h hits) cached(c *config.Router, blockSize int) uint64 {
	return fmath.Uint64(math.Round(float64(h.effective(c) * float64(blockSize))))
}

// raw is the hits in tokens, whatever they are worth.
func (h hits) raw(blockSize int) uint64 {
	return uint64(h.device+h.host+h.disk+h.external) * uint64(blockSize)
}

// pricing is what the costs of all candidates of a request share.
type pricing struct {
	cfg       *config.Router
	blockSize float64
	tokens    uint64  // of the prompt
	blocks    float64 // of the prompt, at least 1
	least     uint64  // prompt work of the candidate with the least
	decode    bool    // a live pool whose prompt work is not tracked
}

// newPricing prices a request of a prompt of so many tokens.
func newPricing(cfg *config.Router, blockSize int, tokens uint64, candidates []candidate) pricing {
	p := pricing{cfg: cfg, blockSize: float64(blockSize), tokens: tokens, blocks: float64(max(1, ceilDiv(tokens, blockSize)))}
	for i, c := range candidates {
		if i == 0 || c.tokens < p.least {
			p.least = c.tokens
		}
	}
	return p
}

func ceilDiv(n uint64, by int) uint64 { return (n + uint64(by) - 1) / uint64(by) }

// cost is what it costs to send the request to c, in blocks; lower is better
// (router notes §4.2). cached and device are its hits in tokens and in blocks,
// shared what a cache that all share adds to them.
func (p *pricing) cost(c *candidate, cached uint64, device, host, disk, shared float64) float64 {
	cfg := p.cfg
	credit := 0.0
	if cfg.OverlapCredit != 0 {
		credit = float64(float64(cfg.OverlapCredit*p.decay(c.tokens)) * device)
		credit += float64(cfg.HostHitWeight * host)
		credit += float64(cfg.DiskHitWeight * disk)
		credit += shared
	} else {
		cached = 0
	}
	blocks := float64(c.blocks)
	active := float64(cfg.ActiveRequestWeight * float64(c.requests))
	var sum float64
	if p.decode && !cfg.TrackPrefillTokens && cfg.OverlapCredit > 0 {
		sum = max(blocks-credit, 0) + active
	} else {
		work := max(p.work(c, cached)/p.blockSize-credit, 0)
		sum = float64(cfg.PrefillLoadScale*work) + blocks + active
	}
	return float64(sum * c.factor)
}

// work is the prompt work that c would have, in tokens.
func (p *pricing) work(c *candidate, cached uint64) float64 {
	switch {
	case !p.cfg.TrackPrefillTokens:
		return 0
	case !c.known:
		return float64(p.tokens)
	}
	return float64(c.tokens + (p.tokens - min(cached, p.tokens)) + cached)
}

// decay is how much of the credit of a hit counts on a rank with so much
// prompt work.
func (p *pricing) decay(tokens uint64) float64 {
	if !p.cfg.TrackPrefillTokens || p.cfg.OverlapCreditDecay <= 0 {
		return 1
	}
	more := float64(tokens-min(p.least, tokens)) / p.blockSize
	return 1 / (1 + float64(p.cfg.OverlapCreditDecay*(more/p.blocks)))
}

// price is the cost of a candidate by its hits.
func (p *pricing) price(c *candidate) float64 {
	h := c.hits
	return p.cost(c, h.cached(p.cfg, int(p.blockSize)), float64(h.device), float64(h.host), float64(h.disk+h.external), 0)
}

// Taste is the factor of a rank's cost for a request that prefers certain
// ranks: sum is the weights of its preferences that the rank meets.
func Taste(sum float64) float64 { return fmath.Exp(-fmath.Tanh(sum)) }

// beyond counts the blocks from position p on in ranges of blocks, each from a
// first up to but not including a last one (router notes §4.2).
func beyond(ranges [][2]uint64, p uint64) (blocks uint64) {
	for _, r := range ranges {
		if from := max(r[0], p); from < r[1] {
			blocks += r[1] - from
		}
	}
	return blocks
}
