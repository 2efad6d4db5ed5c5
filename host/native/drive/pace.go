package drive

import "time"

// Pace chooses how many events a step has, so that steps take about as long on
// any engine and a run can be stopped soon: between least and most. The outcome
// of a run does not depend on it. The zero Pace is ready for use.
type Pace struct{ events int }

const (
	leastEvents = 1 << 6
	mostEvents  = 1 << 16
	shortStep   = 10 * time.Millisecond
	longStep    = 40 * time.Millisecond
)

// Events is the budget of the next step.
func (p *Pace) Events() int {
	if p.events == 0 {
		p.events = 1 << 12
	}
	return p.events
}

// Took tells how long a step with that budget took.
func (p *Pace) Took(d time.Duration) {
	switch {
	case d < shortStep:
		p.events = min(2*p.Events(), mostEvents)
	case d > longStep:
		p.events = max(p.Events()/2, leastEvents)
	}
}
