// Package replay runs a workload on simulated workers on one clock.
package replay

import (
	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/workload"
)

// Status says why Step returned.
type Status uint8

// Running: the budget is used up. Done: nothing is left to happen. Stuck: see Sim.Fault.
const (
	Running Status = iota
	Done
	Stuck
)

// Fault is why a run failed: a dead end of the reference under parity.
type Fault struct {
	Code     uint8 // 1: effect-free zero-duration pass, the only one so far
	InFlight int64
	NowMs    float64
}

// Options choose between twins that give the same bytes.
type Options struct {
	Plain bool // the readable pass-by-pass, block-by-block engine
}

// Sim is one run.
type Sim struct{ _ int }

// New prepares a run; cfg has passed config's check.
func New(cfg config.Replay, w *workload.Workload, o Options) *Sim { panic("contract") }

// Step runs at most budget internal events (passes and arrivals).
func (s *Sim) Step(budget int) Status { panic("contract") }

// Fault explains Stuck.
func (s *Sim) Fault() Fault { panic("contract") }

// Progress is the number of requests with a terminal and of all requests.
func (s *Sim) Progress() (done, total int64) { panic("contract") }

// Summary computes the report's numbers; call it once, after Done.
func (s *Sim) Summary() Summary { panic("contract") }

// Records returns the per-request records (CaptureRequests) in completion order.
func (s *Sim) Records() []Record { panic("contract") }

// Admissions backs the records' admission histories.
func (s *Sim) Admissions() []Admission { panic("contract") }

// Unservable lists the turns that failed because they can never be served, in order.
func (s *Sim) Unservable() []int32 { panic("contract") }
