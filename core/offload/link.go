package offload

import "math"

// Link is one direction of the connection between a shared pool and its
// clients. Copies of one direction share it: each gets an equal part of its
// client's bandwidth or, if that is less, of the pool's. A copy whose first
// byte is still on its way takes no part.
type Link struct {
	clientRate float64 // bytes/ms; 0: no limit
	totalRate  float64
	latencyMs  float64
	nowMs      float64 // what is left of the copies is as of this time
	jobs       []job   // in the order they were submitted
	active     []int   // by client: copies that move bytes
	moving     int     // sum of active
}

// job is one copy under way.
type job struct {
	client  int32
	order   uint64  // in which copies were decided on
	copy    int32   // the client's name for it
	startMs float64 // of its first byte
	left    float64 // bytes
	endMs   float64 // if nothing changes before; scratch
	moves   bool
	hashes  []uint64
}

func newLink(clientGBs, totalGBs, latencyMs float64, clients int) Link {
	return Link{
		clientRate: clientGBs * bytesPerMs, totalRate: totalGBs * bytesPerMs, latencyMs: latencyMs, active: make([]int, clients),
	}
}

// rate is the speed of a copy of a client in bytes/ms, +Inf without limits.
func (l *Link) rate(client int32) float64 {
	r := math.Inf(1)
	if l.clientRate > 0 {
		r = l.clientRate / float64(l.active[client])
	}
	if l.totalRate > 0 {
		r = min(r, l.totalRate/float64(l.moving))
	}
	return r
}

// submit queues a copy at nowMs; its hashes are copied.
func (l *Link) submit(client, copy int32, order uint64, bytes int, hashes []uint64, nowMs float64) {
	l.move(nowMs)
	n := len(l.jobs)
	if n < cap(l.jobs) {
		l.jobs = l.jobs[:n+1]
	} else {
		l.jobs = append(l.jobs, job{})
	}
	j := &l.jobs[n]
	*j = job{client: client, copy: copy, order: order, startMs: nowMs + l.latencyMs, left: float64(bytes), hashes: append(j.hashes[:0], hashes...)}
	for i := n; i > 0 && l.jobs[i-1].order > order; i-- {
		l.jobs[i-1], l.jobs[i] = l.jobs[i], l.jobs[i-1]
	}
	l.start()
}

// start lets the copies move whose first byte has come.
func (l *Link) start() {
	for i := range l.jobs {
		if j := &l.jobs[i]; !j.moves && j.startMs <= l.nowMs {
			j.moves = true
			l.active[j.client]++
			l.moving++
		}
	}
}

// next is when the next copy ends or begins to move, +Inf if none is under way.
func (l *Link) next() float64 {
	at := math.Inf(1)
	for i := range l.jobs {
		j := &l.jobs[i]
		if !j.moves {
			at = min(at, j.startMs)
			continue
		}
		j.endMs = l.nowMs
		if r := l.rate(j.client); !math.IsInf(r, 1) {
			j.endMs += j.left / r
		}
		at = min(at, j.endMs)
	}
	return at
}

// move moves bytes until toMs; nothing ends or starts before.
func (l *Link) move(toMs float64) {
	if toMs <= l.nowMs {
		return
	}
	for i := range l.jobs {
		j := &l.jobs[i]
		if !j.moves {
			continue
		}
		if r := l.rate(j.client); !math.IsInf(r, 1) {
			j.left = max(j.left-float64(r*(toMs-l.nowMs)), 0)
		}
	}
	l.nowMs = toMs
}

// advance goes to atMs, the time of the next event, and gives the copies that
// end there to done, in the order they were submitted.
func (l *Link) advance(atMs float64, done func(*job)) {
	l.move(atMs)
	for i := 0; i < len(l.jobs); {
		j := l.jobs[i]
		if !j.moves || j.endMs != atMs {
			i++
			continue
		}
		done(&j)
		l.active[j.client]--
		l.moving--
		last := len(l.jobs) - 1
		copy(l.jobs[i:], l.jobs[i+1:])
		l.jobs[last] = job{hashes: j.hashes}
		l.jobs = l.jobs[:last]
	}
	l.start()
}
