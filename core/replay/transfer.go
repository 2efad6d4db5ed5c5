package replay

import (
	"math"

	"github.com/dryserve/dryserve/core/config"
)

// transferMs is how long the prompt is under way (replay notes §6.3).
func (h *handoffs) transferMs(r *handoff) float64 {
	t := h.transfer
	if t.BytesPerToken == 0 || t.BandwidthGBs == 0 {
		return 0
	}
	return float64(float64(h.moving(r))*float64(t.BytesPerToken)) / float64(t.BandwidthGBs*1e9) * 1000
}

// moving is how many tokens a transfer brings.
func (h *handoffs) moving(r *handoff) int32 {
	if h.transfer.Timing == config.DestinationMissing {
		return r.missing
	}
	return h.spell.load.Turns[r.turn].Input
}

// start begins the transfer of a prompt.
func (h *handoffs) start(r *handoff, slot int32) {
	ms, nowMs := h.transferMs(r), h.pools.sim.books.nowMs
	if ms <= 0 {
		h.push(activate, slot)
		return
	}
	h.tell(r, PrefillPool, r.source, Transferring, h.moving(r))
	r.waits = true
	if h.links.shared() {
		h.links.add(r.source.worker, r.target.worker, nowMs, ms, r.ordinal, slot)
	} else {
		h.transfers.push(event{nowMs + ms, r.ordinal, slot})
	}
}

// nextMs is when the next transfer ends, +Inf if none is under way.
func (h *handoffs) nextMs() float64 {
	switch {
	case h.links.shared():
		return h.links.nextMs()
	case len(h.transfers) > 0:
		return h.transfers[0].atMs
	}
	return math.Inf(1)
}

// arrived ends the transfers that end now and reports whether there were any.
func (h *handoffs) arrived() (any bool) {
	nowMs := h.pools.sim.books.nowMs
	if h.links.shared() {
		for _, e := range h.links.take(nowMs) {
			h.push(activate, e.turn)
			any = true
		}
		return any
	}
	for len(h.transfers) > 0 && h.transfers[0].atMs == nowMs {
		h.push(activate, h.transfers.pop().turn)
		any = true
	}
	return any
}
