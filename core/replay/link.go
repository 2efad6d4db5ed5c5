package replay

import (
	"math"
	"slices"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/sorting"
)

// links are what prompts are transferred over where transfers share bandwidth:
// one between each worker that computes prompts and each that decodes, or one
// out of each node of workers that compute prompts. Those under way on a link
// get equal parts of it. The reference has no such thing: there every transfer
// has the bandwidth for itself.
type links struct {
	sharing config.LinkSharing
	perNode int32
	table   [][]*link // by source or node, then by target
	busy    []*link   // in the order in which they became busy
	ended   []event   // scratch
}

// link is one of them. Its transfers are counted in the time that each would
// take alone: all get the same share of it, so one ends when that share has
// grown by as much since it began.
type link struct {
	transfers heap    // by the share at which they end, then by request
	shareMs   float64 // that each has got since the link was last idle
	atMs      float64 // when that was
}

func (l *links) shared() bool { return l.sharing != config.NotShared }

// add begins a transfer that would take ms alone.
func (l *links) add(source, target int32, nowMs, ms float64, ordinal, slot int32) {
	x := l.between(source, target)
	if len(x.transfers) == 0 {
		l.busy = append(l.busy, x)
		x.shareMs = 0
	} else {
		x.shareMs += (nowMs - x.atMs) / float64(len(x.transfers))
	}
	x.atMs = nowMs
	x.transfers.push(event{x.shareMs + ms, ordinal, slot})
}

// between is the link from a source to a target.
func (l *links) between(source, target int32) *link {
	if l.sharing == config.SharedByNode {
		source, target = source/l.perNode, 0
	}
	for int(source) >= len(l.table) {
		l.table = append(l.table, nil)
	}
	for int(target) >= len(l.table[source]) {
		l.table[source] = append(l.table[source], &link{})
	}
	return l.table[source][target]
}

// nextMs is when the next transfer of a busy link ends. What is rounded does not
// turn the clock back.
func (x *link) nextMs() float64 {
	return x.atMs + max(0, float64((x.transfers[0].atMs-x.shareMs)*float64(len(x.transfers))))
}

// nextMs is when the next transfer ends, +Inf if none is under way.
func (l *links) nextMs() float64 {
	t := math.Inf(1)
	for _, x := range l.busy {
		t = min(t, x.nextMs())
	}
	return t
}

// take lists the transfers that end at nowMs, by request. The list is valid until
// the next call.
func (l *links) take(nowMs float64) []event {
	l.ended = l.ended[:0]
	for _, x := range l.busy {
		for len(x.transfers) > 0 && x.nextMs() <= nowMs {
			e := x.transfers.pop()
			x.shareMs, x.atMs = e.atMs, nowMs
			l.ended = append(l.ended, e)
		}
	}
	if len(l.ended) > 0 {
		l.busy = slices.DeleteFunc(l.busy, func(x *link) bool { return len(x.transfers) == 0 })
		sorting.Stable(l.ended, func(a, b event) int { return int(a.id - b.id) })
	}
	return l.ended
}
