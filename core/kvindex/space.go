package kvindex

import "math/bits"

// space hands out ranges of block slots, so that the blocks of an edge lie
// side by side: a buddy allocator. A free piece has a power of two of slots and
// starts at a multiple of its size; it is linked through the first of them.
type space struct {
	heads [32]int32 // first free piece of each size, -1: none
	some  uint32    // bit k: there is a free piece of 2^k slots
}

// In owner, slots that belong to no run are negative: loose, or head-k for the
// first slot of a free piece of 2^k slots.
const (
	loose = -1
	head  = -2
)

func newSpace() space {
	var s space
	for i := range s.heads {
		s.heads[i] = -1
	}
	return s
}

// take returns the first of free slots that lie side by side, n of them or, if
// there is no room for that many in one place, fewer, n > 0. Their owners are
// still to be set.
func (x *Index) take(n int32) (b, got int32) {
	order := bits.Len32(uint32(n - 1))
	if x.space.some>>max(order-2, 0) == 0 { // a quarter in one place would do
		x.widen(order)
	}
	if fits := x.space.some >> order << order; fits != 0 {
		order = bits.TrailingZeros32(fits)
	} else {
		order = bits.Len32(x.space.some) - 1
	}
	b = x.space.heads[order]
	x.unlink(b, order)
	n = min(n, 1<<order)
	x.give(b+n, 1<<order-n)
	return b, n
}

// widen adds free slots, among them a piece of at least 2^order.
func (x *Index) widen(order int) {
	old := len(x.owner)
	piece := 1 << order
	size := (old + max(old/4, 1024) + piece) / piece * piece
	x.local = grown(x.local, size)
	x.ext = grown(x.ext, size)
	x.owner = grown(x.owner, size)
	for i := old; i < size; i++ {
		x.owner[i] = loose
	}
	x.give(int32(old), int32(size-old))
}

// grown lengthens a slice with zeros.
func grown[T any](s []T, n int) []T {
	if n <= cap(s) {
		return s[:n]
	}
	t := make([]T, n)
	copy(t, s)
	return t
}

// give frees n slots from b on, which no run owns and no piece holds.
func (x *Index) give(b, n int32) {
	for n > 0 {
		order := min(bits.Len32(uint32(n))-1, bits.TrailingZeros32(uint32(b)))
		x.join(b, order)
		b += 1 << order
		n -= 1 << order
	}
}

// join frees one piece, together with its free neighbours.
func (x *Index) join(b int32, order int) {
	for order < len(x.space.heads)-2 {
		buddy := b ^ 1<<order
		if int(buddy) >= len(x.owner) || x.owner[buddy] != int32(head-order) {
			break
		}
		x.unlink(buddy, order)
		x.owner[buddy] = loose
		x.owner[b] = loose
		b &^= 1 << order
		order++
	}
	first := x.space.heads[order]
	x.owner[b] = int32(head - order)
	x.local[b] = uint64(uint32(first)) // next
	x.ext[b] = uint64(uint32(0xFFFFFFFF))
	if first >= 0 {
		x.ext[first] = uint64(uint32(b)) // previous
	}
	x.space.heads[order] = b
	x.space.some |= 1 << order
}

// unlink takes a free piece out of its list.
func (x *Index) unlink(b int32, order int) {
	next, prev := int32(uint32(x.local[b])), int32(uint32(x.ext[b]))
	if prev >= 0 {
		x.local[prev] = uint64(uint32(next))
	} else if x.space.heads[order] = next; next < 0 {
		x.space.some &^= 1 << order
	}
	if next >= 0 {
		x.ext[next] = uint64(uint32(prev))
	}
}
