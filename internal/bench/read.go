package bench

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// Reading is what checking a trace cost: `replay validate`, as a whole process.
type Reading struct {
	Bytes   int64
	Samples []Sample
}

// Reading checks a trace repeat times.
func (p Programs) Reading(trace string, repeat int) (Reading, error) {
	info, err := os.Stat(trace)
	if err != nil {
		return Reading{}, err
	}
	r := Reading{Bytes: info.Size()}
	for range repeat {
		s, _, err := timed(exec.Command(p.Ours, "validate", trace, "--json"))
		if err != nil {
			return r, err
		}
		r.Samples = append(r.Samples, s)
	}
	return r, nil
}

// WriteReading prints the speed by the processor's time, which does not depend
// on what else the machine does, and the memory.
func WriteReading(w io.Writer, name string, r Reading) {
	best, peak := time.Duration(0), 0.0
	for i, s := range r.Samples {
		if i == 0 || s.CPU < best {
			best = s.CPU
		}
		peak = max(peak, s.PeakMB)
	}
	fmt.Fprintf(w, "validate %s: %.0f MB at %.0f MB per second of one core, at most %.0f MB of memory\n",
		name, float64(r.Bytes)/1e6, float64(r.Bytes)/1e6/best.Seconds(), peak)
}
