package report

import (
	"strconv"

	"github.com/dryserve/dryserve/core/replay"
)

// appendHandoff writes the fields of disaggregated serving and where the
// request was sent, in the order in which that was decided.
func (r *Requests) appendHandoff(b []byte, rec *replay.Record, h *replay.Handoff) []byte {
	b = appendOptional(b, `,"prefill_worker_idx":`, h.PrefillScheduler)
	b = appendOptional(b, `,"decode_worker_idx":`, rec.Worker)
	b = appendMs(b, `,"prefill_admit_ms":`, h.PrefillAdmitMs)
	b = appendMs(b, `,"source_held_ms":`, h.HeldMs)
	b = appendMs(b, `,"destination_reserved_ms":`, h.ReservedMs)
	b = appendMs(b, `,"destination_activated_ms":`, h.ActivatedMs)
	b = appendMs(b, `,"decode_admit_ms":`, h.DecodeAdmitMs)
	b = appendMs(b, `,"source_released_ms":`, h.ReleasedMs)
	b = appendOptional(b, `,"decode_reused_input_tokens":`, h.DecodeReused)
	b = appendOptional(b, `,"prefill_route_overlap_tokens":`, overlap(h.PrefillScheduler, h.PrefillRoute, r.BlockSize))
	b = appendOptional(b, `,"decode_route_overlap_tokens":`, overlap(h.DecodeScheduler, h.DecodeRoute, r.BlockSize))
	routes := [2]struct {
		pool             string
		scheduler, ranks int32
		route            replay.Route
	}{{"prefill", h.PrefillScheduler, max(r.PrefillRanks, 1), h.PrefillRoute}, {"decode", h.DecodeScheduler, max(r.Ranks, 1), h.DecodeRoute}}
	if h.DecodeFirst {
		routes[0], routes[1] = routes[1], routes[0]
	}
	b = append(b, `,"routing_history":[`...)
	for i, route := range routes {
		if route.scheduler < 0 {
			break
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = r.appendRoute(b, route.pool, route.scheduler, route.ranks, routed{route.route, h.Routed})
	}
	return append(b, ']')
}

// overlap is how much of a prompt a router believed to be cached where it sent
// it, in tokens; -1: nowhere.
func overlap(scheduler int32, route replay.Route, blockSize int32) int32 {
	if scheduler < 0 {
		return -1
	}
	return route.OverlapBlocks * blockSize
}

// appendOptional writes a number; one below 0 is absent and becomes null.
func appendOptional(b []byte, before string, n int32) []byte {
	if n < 0 {
		return append(append(b, before...), "null"...)
	}
	return strconv.AppendInt(append(b, before...), int64(n), 10)
}
