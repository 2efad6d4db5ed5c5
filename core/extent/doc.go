// Package extent is the fast KV block pool: it keeps runs of blocks with one
// fate as one extent instead of block by block.
//
// It owns the blocks of one worker: which prompt blocks are resident, who
// holds them, in which order idle ones are evicted. It does not know tokens,
// hashes or requests: a block is named by its place on a path of the prefix
// tree, and a holder is a list of Hold nodes.
//
// Why it is exact. The reference's pool (engine notes §5) looks up leading
// runs of blocks, releases a request's blocks from its last to its first and
// evicts the least recently released. So blocks that were cached together,
// held by the same requests and released together stay neighbours in the
// eviction order, the last block first: one list entry stands for all of
// them, and evicting k blocks shortens it from its end. Only a hit that
// covers part of an extent splits it.
//
// Invariants:
//   - blocks = free + inactive + active; free is not stored.
//   - an extent with refs 0 is on the LRU list, every other is not.
//   - the extents of a segment are listed in the order they were cached;
//     the primary copy of a block is the first listed extent that has it.
//   - a Hold of n blocks covers its extent and, where that was split later,
//     its continuations, n blocks in all.
package extent
