package stretch

import "slices"

// Log is the ends of a worker's passes in ms, by number. The ranks of a worker
// share one, because a pass ends for all of them at once.
type Log struct {
	ends   []float64
	base   int64 // number of the pass that ends[0] belongs to
	trimAt int   // length at which Full says so
}

// Add notes the end of the next pass.
func (l *Log) Add(endMs float64) { l.ends = append(l.ends, endMs) }

// Amend replaces the end of the pass added last.
func (l *Log) Amend(endMs float64) { l.ends[len(l.ends)-1] = endMs }

// Extend adds n passes and returns their ends, 0 ms, to be filled in before the
// next call.
func (l *Log) Extend(n int) []float64 {
	at := len(l.ends)
	l.ends = slices.Grow(l.ends, n)[:at+n]
	tail := l.ends[at:]
	clear(tail)
	return tail
}

// Shorten takes the last n passes back.
func (l *Log) Shorten(n int) { l.ends = l.ends[:len(l.ends)-n] }

// From is the ends of the passes from number first on.
func (l *Log) From(first int64) []float64 { return l.ends[first-l.base:] }

// Next is the number of the next pass.
func (l *Log) Next() int64 { return l.base + int64(len(l.ends)) }

// Cut drops the passes before number keep.
func (l *Log) Cut(keep int64) {
	n := copy(l.ends, l.ends[keep-l.base:])
	l.ends, l.base = l.ends[:n], keep
}

// Full reports whether the log has become long enough to look for passes that
// nobody needs any more.
func (l *Log) Full() bool { return len(l.ends) >= l.trimAt }

// Trim is Cut, and settles when the log is Full again.
func (l *Log) Trim(keep int64) {
	l.Cut(keep)
	l.trimAt = max(1024, 2*len(l.ends))
}

// span is the ends of a range of passes, both included.
func (l *Log) span(from, to int64) []float64 { return l.ends[from-l.base : to-l.base+1] }
