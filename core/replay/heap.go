package replay

// earlier orders the entries of a heap; no two compare equal both ways unless
// they are interchangeable.
type earlier[T any] interface{ before(T) bool }

// heap is a binary heap: entry 0 comes before every other.
type heap[T earlier[T]] []T

func (h *heap[T]) push(x T) {
	*h = append(*h, x)
	s := *h
	for i := len(s) - 1; i > 0; {
		up := (i - 1) / 2
		if !s[i].before(s[up]) {
			return
		}
		s[i], s[up] = s[up], s[i]
		i = up
	}
}

func (h *heap[T]) pop() T {
	s := *h
	top, last := s[0], len(s)-1
	s[0] = s[last]
	*h = s[:last]
	h.sink()
	return top
}

// sink restores the order after entry 0 has changed.
func (h *heap[T]) sink() {
	s := *h
	for i := 0; ; {
		c := 2*i + 1
		if c >= len(s) {
			return
		}
		if c+1 < len(s) && s[c+1].before(s[c]) {
			c++
		}
		if !s[c].before(s[i]) {
			return
		}
		s[i], s[c] = s[c], s[i]
		i = c
	}
}
