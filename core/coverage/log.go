package coverage

// Change says what a cache has become: with Seg > 0 it has all of the path that
// ends at segment Seg before block At; with Seg < 0 nothing any more of the path
// that ends with segment -Seg from block At on.
type Change struct {
	Pass    int64 // that brought it about
	Seg, At int32
}

// Log is the changes of a cache that nobody has been told yet. Its zero value
// keeps none until it is switched on.
type Log struct {
	On   bool
	Pass int64 // under way; the cache's owner sets it
	list []Change
	told int // of list
}

// Stored notes that the cache has the path that ends at leaf before block to.
func (l *Log) Stored(leaf, to int32) {
	l.list = append(l.list, Change{Pass: l.Pass, Seg: leaf, At: to})
}

// Removed notes that it has nothing of the path that ends with segment seg from
// block from on.
func (l *Log) Removed(seg, from int32) {
	l.list = append(l.list, Change{Pass: l.Pass, Seg: -seg, At: from})
}

// Take is what passes before the given one have changed since it was last taken,
// in order. It is valid until the next change.
func (l *Log) Take(before int64) []Change {
	if l.told > len(l.list)/2 {
		l.list = l.list[:copy(l.list, l.list[l.told:])]
		l.told = 0
	}
	from := l.told
	for l.told < len(l.list) && l.list[l.told].Pass < before {
		l.told++
	}
	return l.list[from:l.told]
}
