package engine

import "slices"

// parking holds the requests that wait for copies, or have waited and are to be
// looked at before the waiting queue, in the order they came here.
//
// A request that is admitted from the front gives up its place; one that is
// admitted from further back leaves it behind, as in the reference, and finds it
// again if it is parked again, unless all places before it have been given up.
type parking struct {
	list    []Handle // parked requests, and places left behind
	lengths queue    // moments of the parked ones; its links are not used
	ready   int      // parked ones that are to be looked at again
	stirred bool     // a copy has ended since the last pass, and a request is parked
}

func (p *parking) len() int { return p.lengths.len() }

// runs reports whether the rank has a reason to run a pass: the reference runs
// one whenever a copy has ended, also if it is of no use (engine notes §11).
func (p *parking) runs() bool { return p.ready > 0 || p.stirred }

// add parks a request until a copy has ended.
func (p *parking) add(slab []request, h Handle) {
	r := &slab[h]
	p.setReady(r, false)
	if r.parked {
		return
	}
	r.parked = true
	if !r.leftPlace {
		p.list = append(p.list, h)
	}
	r.leftPlace = false
	p.lengths.counted(r).Add(r.waits())
}

// remove takes a request off the list of those that wait for copies.
func (p *parking) remove(slab []request, h Handle) {
	r := &slab[h]
	p.setReady(r, false)
	r.parked = false
	if p.list[0] == h {
		p.list = slices.Delete(p.list, 0, 1)
	} else {
		r.leftPlace = true
	}
	p.lengths.counted(r).Sub(r.waits())
}

// forget gives up the place that a request has left behind.
func (p *parking) forget(slab []request, h Handle) {
	if r := &slab[h]; r.leftPlace {
		i := slices.Index(p.list, h)
		p.list = slices.Delete(p.list, i, i+1)
		r.leftPlace = false
	}
}

// first is the first request that is to be looked at again, or 0. If there is
// one, the places left behind before all parked requests are given up.
func (p *parking) first(slab []request) Handle {
	if p.ready == 0 {
		return 0
	}
	n := 0
	for ; slab[p.list[n]].leftPlace; n++ {
		slab[p.list[n]].leftPlace = false
	}
	p.list = slices.Delete(p.list, 0, n)
	i := slices.IndexFunc(p.list, func(h Handle) bool { return slab[h].ready })
	return p.list[i]
}

// wake is told that a copy has ended. Requests that waited for one are to be
// looked at again, those whose blocks are being loaded are not.
func (p *parking) wake(slab []request) {
	p.stirred = p.len() > 0
	for _, h := range p.list {
		if r := &slab[h]; r.parked && !r.loads {
			p.setReady(r, true)
		}
	}
}

func (p *parking) setReady(r *request, ready bool) {
	if r.ready == ready {
		return
	}
	r.ready = ready
	if ready {
		p.ready++
	} else {
		p.ready--
	}
}

// loaded is the first request that has been loaded for, or 0. Ranks with a disk
// look at it first, so that those that hold blocks cannot block each other.
func (p *parking) loaded(slab []request) Handle {
	for _, h := range p.list {
		if r := &slab[h]; r.ready && len(r.blocks) > 0 {
			return h
		}
	}
	return 0
}
