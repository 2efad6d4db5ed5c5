package offload

import "math"

// bytesPerMs turns decimal GB/s into bytes per millisecond.
const bytesPerMs = 1e6

// link is one direction between host memory and its clients. The copies of a
// client that has the memory for itself follow each other. Those of clients that
// share it go at once: each has an equal part of its client's bandwidth or, if
// that is less, of the memory's; one whose first byte is still on its way takes
// no part.
type link struct {
	rate      float64 // of a client, bytes/ms; 0: no limit
	latencyMs float64
	jobs      []job // under way; in the order they were decided on

	tailMs float64 // when the last copy ends, if they follow each other

	shared    bool
	totalRate float64
	nowMs     float64 // what is left of the copies is as of this time
	active    []int   // by client: copies that move bytes
	moving    int     // sum of active
	nextMs    float64 // what next says, if it is known
	known     bool
}

// job is one copy under way.
type job struct {
	client int32
	id     int32
	order  uint64
	endMs  float64 // if nothing changes before
	hashes []uint64
	bytes  int64
	fromMs float64 // when it was submitted

	startMs float64 // of the first byte, in shared memory
	left    float64 // bytes
	moves   bool
}

func newLink(gbs, latencyMs float64) link {
	return link{rate: gbs * bytesPerMs, latencyMs: latencyMs, nextMs: math.Inf(1)}
}

// share lets clients share the link.
func (l *link) share(gbs float64, clients int) {
	l.shared, l.totalRate, l.active = true, gbs*bytesPerMs, make([]int, clients)
}

// submit adds a copy that may begin at fromMs and returns its end, 0 in shared
// memory.
func (l *link) submit(c *Copy, fromMs float64) (endMs float64) {
	n := len(l.jobs)
	if n < cap(l.jobs) {
		l.jobs = l.jobs[:n+1]
	} else {
		l.jobs = append(l.jobs, job{})
	}
	j := &l.jobs[n]
	*j = job{client: c.Client, id: c.ID, order: c.Order, hashes: append(j.hashes[:0], c.Hashes...), bytes: int64(c.Bytes), fromMs: fromMs}
	if !l.shared {
		l.tailMs = max(l.tailMs, fromMs+l.latencyMs)
		if l.rate > 0 {
			l.tailMs += float64(c.Bytes) / l.rate
		}
		j.endMs = l.tailMs
		return j.endMs
	}
	l.move(fromMs)
	j.startMs, j.left = fromMs+l.latencyMs, float64(c.Bytes)
	for i := n; i > 0 && l.jobs[i-1].order > l.jobs[i].order; i-- {
		l.jobs[i-1], l.jobs[i] = l.jobs[i], l.jobs[i-1]
	}
	l.known = false
	l.start()
	return 0
}

// next is when the next copy ends or begins to move, +Inf if none is under way.
func (l *link) next() float64 {
	if !l.shared {
		if len(l.jobs) > 0 {
			return l.jobs[0].endMs
		}
		return math.Inf(1)
	}
	if l.known {
		return l.nextMs
	}
	l.nextMs, l.known = math.Inf(1), true
	for i := range l.jobs {
		j := &l.jobs[i]
		j.endMs = j.startMs
		if j.moves {
			j.endMs = l.nowMs
			if r := l.speed(j.client); !math.IsInf(r, 1) {
				j.endMs += j.left / r
			}
		}
		l.nextMs = min(l.nextMs, j.endMs)
	}
	return l.nextMs
}

// speed is that of a moving copy of a client in bytes/ms, +Inf without limits.
func (l *link) speed(client int32) float64 {
	r := math.Inf(1)
	if l.rate > 0 {
		r = l.rate / float64(l.active[client])
	}
	if l.totalRate > 0 {
		r = min(r, l.totalRate/float64(l.moving))
	}
	return r
}

// move moves bytes until toMs; nothing ends or starts before.
func (l *link) move(toMs float64) {
	if !l.shared || toMs <= l.nowMs {
		return
	}
	for i := range l.jobs {
		j := &l.jobs[i]
		if !j.moves {
			continue
		}
		if r := l.speed(j.client); !math.IsInf(r, 1) {
			j.left = max(j.left-float64(r*(toMs-l.nowMs)), 0)
		}
	}
	l.nowMs, l.known = toMs, l.known && len(l.jobs) == 0
}

// start lets the copies move whose first byte has come.
func (l *link) start() {
	if !l.shared {
		return
	}
	for i := range l.jobs {
		if j := &l.jobs[i]; !j.moves && j.startMs <= l.nowMs {
			j.moves = true
			l.active[j.client]++
			l.moving++
			l.known = false
		}
	}
}

// ended is the place of the first copy that ends at atMs, which next has said,
// or -1.
func (l *link) ended(atMs float64) int {
	for i := range l.jobs {
		if j := &l.jobs[i]; j.endMs == atMs && (j.moves || !l.shared) {
			return i
		}
	}
	return -1
}

// remove takes out a copy that has ended.
func (l *link) remove(i int) {
	j := l.jobs[i]
	if j.moves {
		l.active[j.client]--
		l.moving--
	}
	last := len(l.jobs) - 1
	copy(l.jobs[i:], l.jobs[i+1:])
	l.jobs[last] = job{hashes: j.hashes} // its room is used again
	l.jobs, l.known = l.jobs[:last], false
}
