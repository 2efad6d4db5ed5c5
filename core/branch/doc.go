// Package branch is the fast KV cache of an SGLang rank: a radix tree whose
// edges are runs of pages on known paths, not pages one by one.
//
// It owns what core/radix owns without the pages themselves: which nodes there
// are, which of them are locked, in which order the others will be evicted,
// and how many pages are free, evictable or in use. It does not know tokens,
// hashes or requests: a page is named by its place on a path of the prefix tree,
// or behind a prompt by the request whose it is.
//
// Why it is exact. Two sequences share their first pages exactly where their
// prompts share trace hash ids; what a request generates is like nobody else's.
// So an edge is described by one sequence that it lies on and a range of its
// pages, and a comparison page by page is one question to the prefix tree. No
// number of a page is ever seen offline, so none is kept.
//
// A request whose last cached page is its own generated one holds a leaf that
// nobody else can reach. It may grow without the tree being told: Advance makes
// up for it, before the request lets go.
//
// Invariants:
//   - total = free + evictable + used; free is not stored. Used pages are those
//     of locked nodes and the private ones of requests.
//   - every page of a node lies on the sequence that the node names.
//   - there is at most one node that begins at a given place of a path.
//   - the nodes in the heap are exactly the unlocked leaves, the root never; no
//     two of them have one stamp.
//   - calls on a warm cache allocate nothing.
//
// Source: engine notes §7; corrections §9.
package branch
