package stretch

import "github.com/dryserve/dryserve/core/coverage"

// Signal is what a pass said of a request to whoever follows its progress: that
// it has ended, or got its first token and that was not its last.
type Signal struct {
	Turn  int32
	Ended bool
}

// first is a request that got its first token, when so many had ended.
type first struct {
	turn  int32
	ended int32
}

// AppendSignals appends the signals of the last pass in their order (engine notes
// §4.5), those of requests that failed left out.
func (w *Worker) AppendSignals(dst []Signal) []Signal {
	k := 0
	for i, id := range w.ended {
		for ; k < len(w.firsts) && int(w.firsts[k].ended) <= i; k++ {
			dst = append(dst, Signal{Turn: w.firsts[k].turn})
		}
		if r := &w.reqs[id]; r.fate != Failed {
			dst = append(dst, Signal{r.turn, true})
		}
	}
	for ; k < len(w.firsts); k++ {
		dst = append(dst, Signal{Turn: w.firsts[k].turn})
	}
	return dst
}

// AppendFailures appends the ends of the requests that failed.
func (w *Worker) AppendFailures(dst []Signal) []Signal {
	for _, id := range w.ended {
		if r := &w.reqs[id]; r.fate == Failed {
			dst = append(dst, Signal{r.turn, true})
		}
	}
	return dst
}

// Begun reports whether a request got its first token in the last pass, which was
// not its last.
func (w *Worker) Begun() bool { return len(w.firsts) > 0 }

// Watch lets the worker keep what Changes tells.
func (w *Worker) Watch() { w.pool.Changes.On = true }

// Changes is what passes before the given one have made of the prefix cache since
// it was last asked for, see coverage.Log.
func (w *Worker) Changes(before int64) []coverage.Change { return w.pool.Changes.Take(before) }
