// Package compare tells how two replay reports differ.
//
// It owns reading reports, which values are compared how, and how the
// differences look. It does not make reports (package report does).
//
// Invariants: every value of either report is equal, changed or in one of them
// only. Values that come from the clock of the machine never count as changes.
package compare

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Value is a value of a report. Those inside of lists and objects have keys
// like g2_domains[0].used_blocks.
type Value struct {
	Text   string  // as JSON has it
	Number bool    // X is its value
	X      float64 // finite
}

// Row is a key with what the two reports say.
type Row struct {
	Key   string
	A, B  *Value // nil: the report does not have the key
	Equal bool
	Clock bool // the value comes from the clock of the machine
}

// Percent is the change from A to B in per cent of A; ok is false where there
// is none: one of them is missing or no number, or A is 0 and B is not.
func (r *Row) Percent() (percent float64, ok bool) {
	if r.A == nil || r.B == nil || !r.A.Number || !r.B.Number {
		return 0, false
	}
	if r.A.X == r.B.X {
		return 0, true
	}
	percent = (r.B.X - r.A.X) / math.Abs(r.A.X) * 100
	return percent, !math.IsInf(percent, 0) && !math.IsNaN(percent)
}

// Comparison is the rows of two reports in the order they are shown.
type Comparison struct {
	A, B *Report
	Rows []Row
}

// Compare compares two reports.
func Compare(a, b *Report) *Comparison {
	c := &Comparison{A: a, B: b}
	for key, v := range a.values {
		row := Row{Key: key, A: &v, Clock: clock[key]}
		if w, ok := b.values[key]; ok {
			row.B = &w
			row.Equal = v.Text == w.Text || v.Number && w.Number && v.X == w.X
		}
		c.Rows = append(c.Rows, row)
	}
	for key, w := range b.values {
		if _, ok := a.values[key]; !ok {
			c.Rows = append(c.Rows, Row{Key: key, B: &w, Clock: clock[key]})
		}
	}
	slices.SortFunc(c.Rows, func(x, y Row) int { return order(x.Key, y.Key) })
	return c
}

// clock has the keys whose values differ from run to run.
var clock = map[string]bool{"wall_time_ms": true, "processed_tokens_per_s": true, "processed_output_tokens_per_s": true}

// Equal reports whether the reports say the same, but for the machine's clock.
func (c *Comparison) Equal() bool {
	return !slices.ContainsFunc(c.Rows, func(r Row) bool { return !r.Equal && !r.Clock })
}

// Only lists the keys that one report has and the other does not.
func (c *Comparison) Only() (a, b []string) {
	for i := range c.Rows {
		switch r := &c.Rows[i]; {
		case r.B == nil:
			a = append(a, r.Key)
		case r.A == nil:
			b = append(b, r.Key)
		}
	}
	return a, b
}

// The statistics of a distribution and the distributions, as they are shown.
var (
	statistics    = []string{"mean", "min", "median", "p50", "p75", "p90", "p95", "p99", "max", "std"}
	distributions = []string{"ttft_ms", "ttst_ms", "tpot_ms", "itl_ms", "e2e_latency_ms", "trajectory_e2e_latency_ms", "output_token_throughput_per_user"}
)

// order puts single values in front, by name, then the distributions.
func order(x, y string) int {
	dx, sx := place(x)
	dy, sy := place(y)
	return cmp.Or(cmp.Compare(dx, dy), cmp.Compare(sx, sy), strings.Compare(x, y))
}

func place(key string) (distribution, statistic int) {
	name, rest, _ := strings.Cut(key, "_")
	d, s := slices.Index(distributions, rest), slices.Index(statistics, name)
	if d < 0 || s < 0 {
		return -1, 0
	}
	return d, s
}
