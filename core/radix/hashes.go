package radix

import "github.com/dryserve/dryserve/core/hashtable"

// hashes counts the published pages of each sequence hash.
type hashes struct{ pages hashtable.Table }

func newHashes() hashes { return hashes{hashtable.New()} }

// add counts a page and reports whether it is the first.
func (t *hashes) add(hash uint64) (first bool) {
	n := t.pages.Get(hash)
	t.pages.Set(hash, n+1)
	return n == 0
}

// remove uncounts a page and reports whether it was the last.
func (t *hashes) remove(hash uint64) (last bool) {
	n := t.pages.Get(hash)
	if n > 1 {
		t.pages.Set(hash, n-1)
		return false
	}
	t.pages.Remove(hash)
	return true
}
