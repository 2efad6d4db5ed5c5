package replay

import "github.com/dryserve/dryserve/core/router"

// produceRouted is Produce behind a KV router at which nobody ever waits. What
// the router knows it knows of each rank by itself, so between two arrivals
// workers can run one after the other and tell it in any order; at an arrival all
// have come to its time.
func (s *Sim) produceRouted(b *Batch) {
	win := s.windows
	for win.placed < win.opened && win.fault.OK() {
		atMs := s.arrivals.start(win.placed)
		for i := range win.lanes {
			if l := &win.lanes[i]; l.busy && l.endMs <= atMs {
				s.runRouted(&b.lanes[i], l, int32(i), atMs, true)
			}
		}
		for win.placed < win.opened && win.fault.OK() && s.arrivals.start(win.placed) == atMs {
			s.placeRouted(s.arrivals.turn(win.placed), atMs)
			win.placed++
		}
		if !win.fault.OK() {
			b.arrivals = b.arrivals[:len(b.arrivals)-(win.opened-win.placed)]
			return
		}
		for i := range win.lanes {
			l := &win.lanes[i]
			if l.due && !l.busy {
				s.driveLane(&b.lanes[i], l, int32(i), atMs)
			}
			l.due = false
		}
	}
	for i := range win.lanes {
		if l := &win.lanes[i]; l.busy && l.endMs < b.toMs {
			s.runRouted(&b.lanes[i], l, int32(i), b.toMs, false)
		}
	}
}

// runRouted runs a busy lane until toMs; a pass that ends at toMs is completed if
// asked for, and the next one not begun.
func (s *Sim) runRouted(b *batchLane, l *lane, id int32, toMs float64, complete bool) {
	for l.busy {
		if !l.w.Begun() {
			s.glideLane(b, l, toMs)
		}
		nowMs := l.endMs
		if nowMs > toMs || nowMs == toMs && !complete {
			break
		}
		l.busy = false
		s.land(b, l, id, nowMs)
		if l.due = nowMs == toMs; l.due {
			break
		}
		s.driveLane(b, l, id, nowMs)
	}
	ends := l.w.Log(l.mark)
	if l.busy {
		ends = ends[:len(ends)-1]
	}
	if len(ends) > 0 {
		s.kv.paths.learn(id, passEnds{firstMs: ends[0], lastMs: ends[0], ends: ends[1:], underWay: l.busy})
	}
}

// land takes what the lane's pass that ends at nowMs has done and tells the
// router of it.
func (s *Sim) land(b *batchLane, l *lane, id int32, nowMs float64) {
	if k := s.kv; k != nil {
		k.signals = l.w.AppendSignals(k.signals[:0])
		for _, x := range k.signals {
			k.tell(x, nowMs) // nobody waits, so nothing can go wrong
		}
	}
	b.land(l, id, nowMs)
}

// placeRouted brings an arriving turn to the router and to its rank.
func (s *Sim) placeRouted(turn int32, nowMs float64) {
	k := s.kv
	fault := k.place(turn, nowMs)
	for fault.OK() {
		ms, asks := k.prediction()
		if !asks {
			break
		}
		fault = k.router.Answer(router.Nanos(ms), true)
	}
	if !fault.OK() {
		s.windows.fault, s.windows.faultMs = fault, nowMs
		return
	}
	for i := range k.router.Placed() {
		s.windows.lanes[k.hand(&k.router.Placed()[i])].due = true
	}
}

// fail ends a run that the router could not go on with.
func (s *Sim) fail() {
	win := s.windows
	s.status = Stuck
	s.fault = Fault{InFlight: s.books.inFlight(), NowMs: win.faultMs, Router: win.fault}
}
