// Package stride is the fast engine of one SGLang rank: it gives the passes of
// core/sglang by runs of passes and runs of pages.
//
// It owns what core/sglang owns (queue, running batch, budgets, new-token
// ratio, retraction) for whole requests: no handoff, no speculation, no events.
// It does not own time, nor the pages (core/branch).
//
// Why it is fast. Prompts stop all decoding, so passes are of two kinds. Only
// decode steps are logged: a running request gets one token in each, so its
// tokens are a range of steps, and the pages of the whole batch are due by the
// residue of the step. Tokens that come out of a prefill stand by themselves.
// Between two events (an arrival, a last token, a first page of one's own, a
// prompt that may fit) nothing is done per request. Glide runs such steps.
//
// A page that a running request completes enters the cache, which moves its
// lock and stamps its path. Once the request holds a leaf of its own
// (branch.Cache.Own) nobody can see when that happens, and it is made up for
// when the request leaves the batch. Until then it is an event of its own.
//
// Invariants:
//   - a running request has computed all its tokens, and has pages for them.
//   - sumLen, buckets and due describe the running requests before the next step.
//   - after warm-up passes allocate nothing.
//
// Source: engine notes §6, §7; corrections §2 to §4, §8, §9.
package stride
