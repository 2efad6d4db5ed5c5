package group

import "github.com/dryserve/dryserve/core/sglang"

// SGLang is Rank for a group of SGLang ranks; each of the two is nil where the
// other is not.
func (g *Group) SGLang(i int) *sglang.Rank { return g.ranks[i].sglang }

// endRound tells the ranks of SGLang what all of them did in the pass that is
// over, and concludes whether another at the same time could do more
// (engine notes §3, §6.1 step 10).
func (g *Group) endRound() {
	g.convergence = Convergence{}
	if g.ranks[0].sglang == nil {
		return
	}
	var all sglang.Round
	for i := range g.ranks {
		r := g.ranks[i].sglang.Round()
		all.Prefilled = all.Prefilled || r.Prefilled
		all.RanModel = all.RanModel || r.RanModel
		all.Deferred = all.Deferred || r.Deferred
		all.RatioChanged = all.RatioChanged || r.RatioChanged
	}
	if len(g.ranks) > 1 {
		for i := range g.ranks {
			g.ranks[i].sglang.EndRound(all.Prefilled, all.RanModel)
		}
	}
	switch {
	case all.Deferred:
		g.convergence = Convergence{Repeat: Countdown, Remaining: g.ranks[0].sglang.PrefillRounds()}
	case all.RatioChanged:
		g.convergence = Convergence{Repeat: Retry}
	default:
		g.convergence = Convergence{Repeat: Exhausted}
	}
}
