package bench

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// WriteTable prints one line per result. Times are seconds, memory is
// megabytes; a ratio is the reference's median or peak over ours.
func WriteTable(w io.Writer, results []Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "trace\tworkers\trequests\tours min\tmedian\tMB\treference min\tmedian\tMB\ttime ratio\tmemory ratio\tanswers\t")
	for _, r := range results {
		a := summarise(r.Ours)
		peak := fmt.Sprintf("%.0f", a.peakMB)
		if a.atMost {
			peak = "<=" + peak
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%.3f\t%.3f\t%s\t", r.Name, r.Workers, r.Requests, a.min, a.median, peak)
		if len(r.Reference) == 0 {
			fmt.Fprint(t, "-\t-\t-\t-\t-\t-\t\n")
			continue
		}
		b := summarise(r.Reference)
		answers := "equal"
		if r.Router != "" {
			answers = "counts equal"
		}
		if len(r.Differences) > 0 {
			answers = fmt.Sprintf("%d DIFFER", len(r.Differences))
		}
		fmt.Fprintf(t, "%.3f\t%.3f\t%.0f\t%.1f\t%.1f\t%s\t\n", b.min, b.median, b.peakMB, b.median/a.median, b.peakMB/a.peakMB, answers)
	}
	return t.Flush()
}

// WriteGrowth prints what a request costs at two sizes: a program whose work
// does not grow with the length of the trace has a ratio near 1.
func WriteGrowth(w io.Writer, small, large Result) {
	line := func(name string, of func(Result) []Sample) {
		if len(of(small)) == 0 || len(of(large)) == 0 {
			return
		}
		a := perRequest(small, of)
		b := perRequest(large, of)
		fmt.Fprintf(w, "%s: %.2f us per request on %s with %d workers, %.2f on %s with %d: x %.2f\n",
			name, a, small.Name, small.Workers, b, large.Name, large.Workers, b/a)
	}
	line("ours", func(r Result) []Sample { return r.Ours })
	line("reference", func(r Result) []Sample { return r.Reference })
}

// perRequest is the median microseconds per request.
func perRequest(r Result, of func(Result) []Sample) float64 {
	return summarise(of(r)).median * 1e6 / float64(max(r.Requests, 1))
}

// WriteImports prints how long the two Python modules take to import, by the
// medians of the runs of a job that calls ours.
func WriteImports(w io.Writer, results []Result) {
	for _, r := range results {
		if r.From == "" || len(r.Reference) == 0 {
			continue
		}
		a, b := imports(r.Ours), imports(r.Reference)
		fmt.Fprintf(w, "import: %s with %d workers: dryserve %.3f s, dynamo.replay %.3f s\n", r.Name, r.Workers, a, b)
	}
}

func imports(samples []Sample) float64 {
	of := make([]Sample, len(samples))
	for i, s := range samples {
		of[i].Wall = s.Import
	}
	return summarise(of).median
}

// WriteSandbox prints, for every job that was run natively and in WebAssembly,
// how many times longer that took.
func WriteSandbox(w io.Writer, results []Result) {
	for _, s := range results {
		for _, n := range results {
			if s.Cache != "" && n.Cache == "" && s.Trace == n.Trace && s.Workers == n.Workers && s.Engine == n.Engine {
				a, b := summarise(n.Ours), summarise(s.Ours)
				fmt.Fprintf(w, "WebAssembly: %s with %d workers takes %.1f times as long as natively (best of each: %.1f)\n",
					n.Name, n.Workers, b.median/a.median, b.min/a.min)
			}
		}
	}
}
