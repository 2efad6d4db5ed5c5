package router

import "math"

// Seat is where a request went in another run.
type Seat struct {
	Worker, Rank int32
	Known        bool
}

// choose is the candidate that a request goes to; below 0: there is a Fault.
// With Seats it is the one of the other run, if that may be drawn here too.
func (r *Router) choose(tag uint32, costs []float64) (int, Fault) {
	if int(tag) >= len(r.Seats) || !r.Seats[tag].Known {
		k := choose(costs, r.Config.Temperature, &r.lots, &r.scratch.chances)
		if k < 0 {
			return k, Fault{Code: NotFinite}
		}
		return k, Fault{}
	}
	at, least := -1, math.Inf(1)
	for i, c := range costs {
		if seat := r.Seats[tag]; r.scratch.candidates[i].worker == seat.Worker && r.scratch.candidates[i].rank == seat.Rank {
			at = i
		}
		least = min(least, c)
	}
	if at < 0 || r.Config.Temperature == 0 && costs[at] != least {
		return -1, Fault{Code: OtherSeat, Tag: tag}
	}
	return at, Fault{}
}
