package kvindex

import "math/bits"

// names finds what an external hash stands for: a block, or ^number of an odd
// hash. It keeps no hashes, only a byte of each beside the number, in buckets
// of the size of a cache line; who looks up compares with the name of what it
// finds. An entry that finds its bucket full goes to the next one that is not,
// and is counted in each that it passes.
type names struct {
	buckets []bucket
	used    int
	shift   uint8 // of a mixed hash, to the bucket where it belongs
}

// bucket holds up to bucketSize numbers. The bytes of lo, then those of the low
// half of hi, are their tags, 0 behind the last; above them hi has the number
// of entries and, from bit passedShift on, that of those that passed.
type bucket struct {
	lo, hi uint64
	ids    [bucketSize]int32
}

const (
	bucketSize   = 12
	countShift   = 32
	passedShift  = 40
	onePassed    = 1 << passedShift
	eachByte     = 0x0101010101010101
	lowBits      = 0x7F7F7F7F7F7F7F7F
	highTags     = 0x80808080 // of hi
	firstBuckets = 8
)

func newNames() names {
	return names{buckets: make([]bucket, firstBuckets), shift: uint8(64 - bits.TrailingZeros(firstBuckets))}
}

// mix spreads a hash over 64 bits; the highest choose the bucket.
func mix(ext uint64) uint64 { return ext * spread }

// tagByte is the byte of a mixed hash that a bucket keeps; not 0.
func tagByte(h uint64) uint64 { return max(h>>24&0xFF, 1) }

// tagged marks the highest bit of exactly the bytes of word that are the tag,
// which is given in every byte of tags.
func tagged(word, tags uint64) uint64 {
	x := word ^ tags
	return ^((x&lowBits + lowBits) | x | lowBits)
}

// full is how many entries a table of a size takes.
func (t *names) full() int { return len(t.buckets) * bucketSize * 7 / 10 }

// insert enters a number whose hash is not there; there is room.
func (t *names) insert(ext uint64, id int32) {
	h := mix(ext)
	mask := uint64(len(t.buckets) - 1)
	for i := h >> t.shift; ; i++ {
		b := &t.buckets[i&mask]
		k := b.hi >> countShift & 0xFF
		if k == bucketSize {
			b.hi += onePassed
			continue
		}
		b.ids[k] = id
		if k < 8 {
			b.lo |= tagByte(h) << (8 * k)
		} else {
			b.hi |= tagByte(h) << (8 * (k - 8))
		}
		b.hi += 1 << countShift
		t.used++
		return
	}
}

// at is where a number that is there under a hash stands. If it is on its way
// out, those that count its passing forget it.
func (t *names) at(ext uint64, id int32, out bool) (b *bucket, k uint64) {
	h := mix(ext)
	tags := tagByte(h) * eachByte
	mask := uint64(len(t.buckets) - 1)
	for i := h >> t.shift; ; i++ {
		b := &t.buckets[i&mask]
		for m := tagged(b.lo, tags); m != 0; m &= m - 1 {
			if k := uint64(bits.TrailingZeros64(m)) >> 3; b.ids[k] == id {
				return b, k
			}
		}
		for m := tagged(b.hi, tags) & highTags; m != 0; m &= m - 1 {
			if k := uint64(bits.TrailingZeros64(m))>>3 + 8; b.ids[k] == id {
				return b, k
			}
		}
		if out {
			b.hi -= onePassed
		}
	}
}

// remove takes out a number that is there under a hash.
func (t *names) remove(ext uint64, id int32) {
	b, k := t.at(ext, id, true)
	last := b.hi>>countShift&0xFF - 1
	tag := b.tag(last)
	b.setTag(last, 0)
	if k != last {
		b.setTag(k, tag)
		b.ids[k] = b.ids[last]
	}
	b.hi -= 1 << countShift
	t.used--
}

func (b *bucket) tag(k uint64) uint64 {
	if k < 8 {
		return b.lo >> (8 * k) & 0xFF
	}
	return b.hi >> (8 * (k - 8)) & 0xFF
}

func (b *bucket) setTag(k, tag uint64) {
	word := &b.lo
	if k >= 8 {
		word, k = &b.hi, k-8
	}
	*word = *word&^(0xFF<<(8*k)) | tag<<(8*k)
}

// ahead is how many hashes touch looks at in one go.
const ahead = 32

// touch reads the buckets where hashes belong, so that they are near when the
// hashes are entered or removed one by one: the reads wait for memory together.
// What it returns means nothing.
func (t *names) touch(exts []uint64) (x uint64) {
	buckets := t.buckets
	mask := uint64(len(buckets) - 1)
	for _, ext := range exts {
		x ^= buckets[mix(ext)>>t.shift&mask].lo
	}
	return x
}

// reserve makes room for n more names. It must not be called while a block has
// an owner and no name.
func (x *Index) reserve(n int) {
	t := &x.blocks
	if t.used+n <= t.full() {
		return
	}
	size := len(t.buckets)
	for t.used+n > t.full() {
		size *= 2
		t.buckets = make([]bucket, size)
		t.shift--
	}
	t.used = 0
	for b, owner := range x.owner {
		if owner >= 0 && owner&mark == 0 {
			t.insert(x.ext[b], int32(b))
		}
	}
	for n := range x.odd.list {
		if r := &x.odd.list[n]; n > 0 && !r.spare {
			t.insert(r.ext, ^int32(n))
		}
	}
}

// nameOf is the external hash that a number in the table stands for.
func (x *Index) nameOf(id int32) uint64 {
	if id >= 0 {
		return x.ext[id]
	}
	return x.odd.list[^id].ext
}

// find is what the index knows of an external hash: a block, ^number of an odd
// hash, or that it is not there.
func (x *Index) find(ext uint64) (v int32, ok bool) {
	h := mix(ext)
	tags := tagByte(h) * eachByte
	t := &x.blocks
	mask := uint64(len(t.buckets) - 1)
	for i := h >> t.shift; ; i++ {
		b := &t.buckets[i&mask]
		for m := tagged(b.lo, tags); m != 0; m &= m - 1 {
			if id := b.ids[bits.TrailingZeros64(m)>>3]; x.nameOf(id) == ext {
				return id, true
			}
		}
		for m := tagged(b.hi, tags) & highTags; m != 0; m &= m - 1 {
			if id := b.ids[bits.TrailingZeros64(m)>>3+8]; x.nameOf(id) == ext {
				return id, true
			}
		}
		if b.hi < onePassed {
			return 0, false
		}
	}
}
