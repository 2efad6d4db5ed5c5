package engine

import "github.com/dryserve/dryserve/core/moments"

// work is what a pass computes for one request.
type work struct {
	req       Handle
	total     int  // tokens
	prompt    int  // of them prompt tokens
	prefix    int  // prompt tokens that had KV before
	promptLen int  // the whole prompt
	seqLen    int  // prompt and generated
	terminal  bool // wants no token
}

// batch is the work of one pass and what is left of its token budget.
type batch struct {
	budget int
	works  []work // in the order scheduled

	// The prompts among it, as the timing model wants them: their number and
	// sums of their computed lengths after and before the pass.
	prompts int
	isl     int
	prefix  int
}

func (b *batch) reset(budget int) {
	*b = batch{budget: budget, works: b.works[:0]}
}

func (b *batch) add(w work) {
	b.works = append(b.works, w)
	b.budget -= w.total
	if w.prompt > 0 {
		b.prompts++
		b.isl += w.prefix + w.prompt
		b.prefix += w.prefix
	}
}

// undo takes out the work of a request that is preempted after it was
// scheduled, if there is any.
func (b *batch) undo(h Handle) {
	for i, w := range b.works {
		if w.req != h {
			continue
		}
		b.budget += w.total
		if w.prompt > 0 {
			b.prompts--
			b.isl -= w.prefix + w.prompt
			b.prefix -= w.prefix
		}
		b.works = append(b.works[:i], b.works[i+1:]...)
		return
	}
}

// describe fills in the scheduled part of f.
func (b *batch) describe(f *Forward) {
	var prompts, others moments.Moments
	for _, w := range b.works {
		switch {
		case w.prompt > 0:
			prompts.Add(w.promptLen)
			f.PrefillTokens += w.total
			f.PrefillKVTokens += w.prefix
		case !w.terminal:
			others.Add(w.seqLen)
		}
	}
	f.Prefills, f.PrefillVariance = prompts.N(), prompts.Variance()
	f.Decodes, f.DecodeKVTokens, f.DecodeVariance = others.N(), others.Sum(), others.Variance()
}
