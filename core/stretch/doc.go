// Package stretch is the fast vLLM engine: it runs decode passes in a loop
// over passes instead of over requests and tokens, and keeps KV blocks as
// extents (package extent).
//
// It owns one rank's scheduler: its queue, its running requests. It does not
// decide when time passes (package replay does), nor when a pass of several
// ranks ends (package ranks does, and fills their log), and keeps no statistics;
// package engine is the readable model of the same scheduler and the twin it is
// tested against.
//
// Why it is exact. A request is steady when it has computed all its tokens but
// the newest and got a token in the last pass: each further pass computes one
// token and emits one, until the request is done. So for the steady prefix of
// the running list a pass is arithmetic: its requests use one token of budget
// each, the sum of their lengths grows by their number, the blocks that open
// are those of one bucket (a request opens a block every BlockSize passes),
// and a token's time is the end of its pass, so a request's tokens are a range
// of passes. Only a pass in which a block may be missing (a preemption is
// possible), or the budget is smaller than the prefix, is done request by
// request. When every running request is steady and the head of the queue is
// stopped by capacity or by the number of sequences, nothing can change until
// a completion: Glide runs those passes in one loop. Calm, Decode and Advance
// are its parts for a rank that is not alone.
//
// With speculation nothing of that holds: how many tokens a request gets is drawn
// in every pass. Requests are then never steady, every pass is done request by
// request, and only what is cheap stays: extents, no hashes, ranges of passes that
// gave the same number of tokens (burst.go).
//
// Sources: engine notes §4 (scheduler), §8 (timing), §9 (draws); speed notes, advice 4-8.
//
// Invariants:
//   - run[:steady] are steady, run[steady] is not; sums cover exactly those.
//   - a queue entry >= 0 is a turn never admitted, < 0 a preempted request.
//   - passes are numbered as the worker's, whose log has every pass that a live
//     request needs.
package stretch
