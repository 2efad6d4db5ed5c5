// Package active is what a KV router believes its workers are busy with: the
// prompts it has sent them and not yet seen to their end.
//
// It owns, for each slot (a rank of a worker): the blocks of its live prompts,
// each counted once however many prompts share it; the prompt tokens still to
// be computed, which may be expected to become fewer as time passes; the number
// of live requests. It does not own the choice of a worker, nor what the caches
// hold when no request is live (core/kvindex).
//
// A prompt is known by the sequence hashes of its complete blocks. A sequence
// hash names everything up to the end of its block, so the live prompts form a
// tree: two that share a hash share all before it. The reference counts every
// hash by itself, which is the same for such hashes.
//
// Invariants:
//   - every live request ends at the end of an edge of the tree (or has no
//     blocks); a node counts, for each slot, the live requests through it.
//   - a slot's blocks are the lengths of the edges it has a request through,
//     and the blocks of requests that share nothing.
//   - the prompts still to be computed of a slot form a list in the order they
//     were added; the first has been going on since the slot's anchor.
//   - slabs and tables grow with use and are reused from then on: a warm
//     tracker allocates nothing.
//
// Source: router notes §5.
package active

import (
	"math"
	"math/bits"
)

// Slot names a rank of a worker: a small number that its owner chose, from 0.
type Slot int32

// Booking is a handle of a live request, above 0.
type Booking int32

// Unknown is the duration of a prefill that nobody predicted.
const Unknown = math.MaxUint64

// Load is the prompt work that a request brings.
type Load struct {
	Tokens uint64 // 0: none
	Ns     uint64 // how long it is expected to take, or Unknown
}

// Tracker is the state. Take it from New.
type Tracker struct {
	tree     tree
	bookings []booking
	free     Booking // linked through next, 0: none
	slots    []slotState
}

// booking is a live request.
type booking struct {
	slot  Slot
	node  int32 // where its prompt ends; 0: nowhere in the tree
	alone int32 // blocks it shares with nobody

	load       Load
	pending    bool    // its prompt is still to be computed
	prev, next Booking // in the slot's list of those
}

// slotState is what a slot is busy with.
type slotState struct {
	blocks      int
	requests    int
	tokens      uint64  // of prompts still to be computed
	first, last Booking // of these
	unpredicted int     // of these, those without a duration
	anchorNs    uint64  // since when the first of them has been going on
}

// New returns a tracker for slots 0 to slots-1; Grow adds more.
func New(slots int) *Tracker {
	t := &Tracker{bookings: make([]booking, 1)}
	t.tree.init()
	t.Grow(slots)
	return t
}

// Grow makes room for slots 0 to slots-1.
func (t *Tracker) Grow(slots int) {
	if n := slots - len(t.slots); n > 0 {
		t.slots = append(t.slots, make([]slotState, n)...)
		t.tree.grow(slots)
	}
}

// Add books a request on slot w at nowNs. sequence holds the hashes of its
// prompt's blocks; alone counts further blocks that it shares with nobody.
func (t *Tracker) Add(w Slot, sequence []uint64, alone int, load Load, nowNs uint64) Booking {
	b := t.free
	if b != 0 {
		t.free = t.bookings[b].next
	} else {
		b = Booking(len(t.bookings))
		t.bookings = append(t.bookings, booking{})
	}
	s := &t.slots[w]
	node := t.tree.insert(sequence)
	t.bookings[b] = booking{slot: w, node: node, alone: int32(alone), load: load}
	s.blocks += alone + t.tree.hold(node, w)
	s.requests++
	if load.Tokens > 0 {
		t.start(b, nowNs)
	}
	return b
}

// start appends a prompt to the slot's list.
func (t *Tracker) start(id Booking, nowNs uint64) {
	b := &t.bookings[id]
	s := &t.slots[b.slot]
	b.pending = true
	s.tokens += b.load.Tokens
	if b.load.Ns == Unknown {
		s.unpredicted++
	}
	if b.prev = s.last; s.last != 0 {
		t.bookings[s.last].next = id
	} else {
		s.first = id
		s.anchorNs = nowNs
	}
	s.last = id
}

// PrefillDone says that the prompt of a request has been computed. Saying it
// again changes nothing.
func (t *Tracker) PrefillDone(id Booking, nowNs uint64) {
	b := &t.bookings[id]
	if !b.pending {
		return
	}
	b.pending = false
	s := &t.slots[b.slot]
	s.tokens -= b.load.Tokens
	if b.load.Ns == Unknown {
		s.unpredicted--
	}
	switch {
	case b.prev == 0:
		s.anchorNs = nowNs
	case b.load.Ns != Unknown:
		// The prompts before it have been given its time as well.
		s.anchorNs = min(saturated(s.anchorNs, b.load.Ns), nowNs)
	}
	if b.prev != 0 {
		t.bookings[b.prev].next = b.next
	} else {
		s.first = b.next
	}
	if b.next != 0 {
		t.bookings[b.next].prev = b.prev
	} else {
		s.last = b.prev
	}
	b.prev, b.next = 0, 0
}

// Free says that a request has ended. Its handle is given out again.
func (t *Tracker) Free(id Booking, nowNs uint64) {
	t.PrefillDone(id, nowNs)
	b := &t.bookings[id]
	s := &t.slots[b.slot]
	s.blocks -= int(b.alone) + t.tree.release(b.node, b.slot)
	s.requests--
	t.bookings[id] = booking{next: t.free}
	t.free = id
}

// Slot is where a live request was booked.
func (t *Tracker) Slot(id Booking) Slot { return t.bookings[id].slot }

// Blocks counts the blocks of a slot's live prompts.
func (t *Tracker) Blocks(w Slot) int { return t.slots[w].blocks }

// Requests counts a slot's live requests.
func (t *Tracker) Requests(w Slot) int { return t.slots[w].requests }

// Tokens is how many prompt tokens a slot is believed to have left to compute
// at nowNs.
func (t *Tracker) Tokens(w Slot, nowNs uint64) uint64 {
	s := &t.slots[w]
	if s.first == 0 {
		return 0
	}
	load := t.bookings[s.first].load
	elapsed := nowNs - min(s.anchorNs, nowNs)
	if s.unpredicted == 0 {
		return s.tokens - min(progress(load, elapsed), s.tokens)
	}
	return s.tokens - load.Tokens + remaining(load, elapsed)
}

// progress is how far a prefill has come after elapsed ns, in tokens. It goes
// on past its end: what is over counts for the prompts behind it.
func progress(load Load, elapsed uint64) uint64 {
	if load.Ns == 0 {
		return math.MaxUint64
	}
	hi, lo := bits.Mul64(load.Tokens, elapsed)
	if hi >= load.Ns {
		return math.MaxUint64
	}
	tokens, _ := bits.Div64(hi, lo, load.Ns)
	return tokens
}

// remaining is what is left of a prefill that has others behind it of which it
// is not known how long they take.
func remaining(load Load, elapsed uint64) uint64 {
	switch load.Ns {
	case Unknown:
		return load.Tokens
	case 0:
		return 0
	}
	left := 1 - seconds(elapsed)/seconds(load.Ns)
	return uint64(math.Ceil(float64(load.Tokens) * min(max(left, 0), 1)))
}

// seconds is a span in seconds: whole ones and the rest are converted one by
// one, as in engine notes §8.1.
func seconds(ns uint64) float64 {
	return float64(ns/1e9) + float64(ns%1e9)/1e9
}

// saturated is a sum that stays at the end of its range.
func saturated(a, b uint64) uint64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return math.MaxUint64
}
