// Package kv is the KV block pool of one worker, kept block by block: the
// readable model of what is cached, held and evicted on a GPU.
//
// It owns the blocks: which are free, which are held and by how many, which
// are idle and in which order they will be evicted, and under which sequence
// hash a full block can be found. It does not know requests, tokens or events:
// its caller keeps a request's list of blocks and tells the world what Acquire
// evicted and what Cache made visible.
//
// A block is free, private (held by one request, without a name) or cached
// (named by a hash). Several cached blocks may carry one hash, when the same
// content was computed more than once: the oldest is the primary, which
// lookups find; when it is evicted the next oldest takes its place.
//
// Invariants:
//   - total = free + active + inactive; inactive blocks are the cached ones
//     that nobody holds, active ones all others that are not free.
//   - inactive blocks form one list in the order they were released; the head
//     is evicted first. A lookup changes nothing.
//   - a hash is in the index exactly while a block carries it.
//   - the slab of blocks grows with use up to total and is reused from then
//     on: calls on a warm pool allocate nothing.
//
// Source: engine notes §5.
package kv
