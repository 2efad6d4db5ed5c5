package replay

// event is what happens at a time: the end of a worker's pass (turn is 0), or
// the arrival of a session's turn. One type serves both heaps, and not a
// generic one, whose calls made the event loop half as slow again.
type event struct {
	atMs float64
	id   int32 // worker or session
	turn int32
}

// before is the order of events: by time, then by worker or session, then by
// turn.
func (e event) before(o event) bool {
	return e.atMs < o.atMs || e.atMs == o.atMs && (e.id < o.id || e.id == o.id && e.turn < o.turn)
}

// heap is a binary heap: entry 0 comes before every other.
type heap []event

func (h *heap) push(x event) {
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

func (h *heap) pop() event {
	s := *h
	top, last := s[0], len(s)-1
	s[0] = s[last]
	*h = s[:last]
	h.sink()
	return top
}

// sink restores the order after entry 0 has changed.
func (h *heap) sink() {
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
