// Package ranks is a worker of the fast engine: one or more data-parallel ranks
// behind a shared pass barrier.
//
// It owns the barrier, the numbering of passes and their log, and the turn in
// which ranks get requests. It does not own schedulers (each rank is one of its
// own, with its own KV pool; package stretch) nor the clock; package group is
// the same for the readable engine.
//
// All ranks that have work begin a pass together; it ends when the slowest of
// them does, and every token of it is seen then. A rank without work rests. A
// pass has one number and one end for all, so the ranks share one log, and a
// token's time is an entry of it whichever rank gave the token. Between events
// the durations of a run of passes are independent of each other on every
// rank: each computes its own, and the clock takes the largest of each pass.
//
// Invariants:
//   - every rank's next pass is the group's, also where it rested.
//   - after Begin and Glide the log has the end of every pass begun.
//   - stepping allocates nothing once the log and the lists have grown.
//
// Source: engine notes §3.
package ranks
