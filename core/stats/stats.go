// Package stats reduces token times and latencies to the numbers of a report.
package stats

// Dist is the summary of a distribution. All fields are 0 when empty.
type Dist struct {
	Mean, Min, Max, Median, P75, P90, P95, P99, Std float64
}

// Gaps accumulates inter-token latencies (and their per-user throughput).
type Gaps struct{ _ int }

// Add accounts the gaps between consecutive token times (ms) of one request.
func (g *Gaps) Add(times []float64) { panic("contract") }

// ITL summarises the gaps in ms, PerUser 1000/gap over the gaps above zero.
func (g *Gaps) ITL() Dist     { panic("contract") }
func (g *Gaps) PerUser() Dist { panic("contract") }

// Of summarises samples given in completion order. It may reorder them.
func Of(samples []float64) Dist { panic("contract") }
