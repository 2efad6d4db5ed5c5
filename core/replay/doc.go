// Package replay runs a workload on simulated workers on one clock and
// reduces what happened to the numbers of a report.
//
// It owns the clock, the order of events at one timestamp, the placement of
// turns in turn, by lot and by load, the arrival of session turns and the
// accounting of requests. It does not own scheduling (packages stretch and
// engine) nor placement by cache (package router), and never reads a
// clock, file or channel: Step is called until it says Done.
//
// Events of one timestamp happen in the reference's order (replay notes §6.4,
// corrections §3): completions by worker id, arrivals, then idle workers by
// id, repeated until nothing changes. Two pools of workers, of which one hands
// prompts over to the other, have an order and an event loop of their own (type
// pools). Where the engines are somebody else's there is the rest of it: which
// turn is next, and the accounts (type Course).
//
// Invariants: the clock never goes back; arrived = completed + rejected +
// failed + cancelled + unfinished.
package replay
