// Package radix is the KV cache of one SGLang rank: a pool of pages and a radix
// tree of the prefixes that are known, kept page by page.
//
// It owns the pages: which are free, which stand in the tree, which nodes of
// the tree are locked and in which order the others will be evicted, and under
// which sequence hash a page has been announced. It does not know requests or
// events: its caller keeps a request's pages and the node it holds, and tells
// the world what Publish made visible and what Removed lists.
//
// A page holds as many tokens as a block and is identified by the hash of
// these tokens alone (seq.Identity.Local). An edge of the tree is the run of
// pages of the node it leads to. Whoever holds a node locks it and all above.
//
// Invariants:
//   - every page is free, not yet given out, in the tree once, or private to
//     one caller.
//   - protected counts the pages of locked nodes, evictable those of the
//     others; whoever is above a locked node is locked too.
//   - the nodes in the heap are exactly the unlocked leaves, the root never.
//     The stamp of each comes from a counter that grows with every operation:
//     equal stamps only stand on one path, so no two leaves tie.
//   - a hash is counted once for every published page that carries it.
//   - slabs and tables grow with use and are reused from then on: calls on a
//     warm cache allocate nothing.
//
// Source: engine notes §7; corrections §9.
package radix
