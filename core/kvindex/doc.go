// Package kvindex is the KV router's picture of what the workers' caches hold:
// a compressed radix tree of the blocks on the devices, and a plain table of
// edges for each tier below.
//
// It owns the picture: which slot (a rank of a worker) has which prefix. It
// does not know requests, loads or costs, and believes every event: the numbers
// and the order of events are its caller's business.
//
// A block has two names. Its local hash names its own tokens; queries are made
// of these. Its external hash is whatever the engine calls it; removals and
// parents use that. An edge of the tree is the run of blocks of the node it
// leads to; a slot covers a prefix of an edge, in the usual case all of it.
//
// The reference finds a slot's blocks through one table per slot, from external
// hash to node. Here one table serves all slots: as long as one block only
// carries an external hash, and every slot called it so, a slot's entry is
// there exactly while the slot covers the block, and need not be written down.
// Hashes for which that is not so are odd: the entries of their slots are kept
// one by one, and behave as the reference's do (odd.go).
//
// Invariants:
//   - a node that is not dead is covered by somebody; only nodes that odd
//     entries still point to outlive their coverage.
//   - an external hash is in the table exactly while a block or an odd entry
//     carries it; it stands for its only block unless it is odd.
//   - blocks of odd hashes are marked, and so are the nodes with such blocks.
//   - the size of a slot is the number of its entries, written down or not.
//   - slabs and tables grow with use and are reused from then on: calls on a
//     warm index allocate nothing.
//
// Source: router notes §2, §3.
package kvindex
