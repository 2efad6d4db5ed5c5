package sweep

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/dryserve/dryserve/host/native/scenario"
)

// Statistics are those of a report's distributions, and what people call them.
var Statistics = []struct{ Word, Key string }{
	{"p50", "median"}, {"mean", "mean"}, {"p75", "p75"}, {"p90", "p90"}, {"p95", "p95"}, {"p99", "p99"},
}

// latencies are distributions of a report in ms.
var latencies = []string{"ttft", "ttst", "tpot", "itl", "e2e_latency"}

// Bounded are the numbers of a report that an SLA may bound.
func Bounded() []string {
	var keys []string
	for _, l := range latencies {
		for _, s := range []string{"mean", "min", "max", "median", "p75", "p90", "p95", "p99"} {
			keys = append(keys, s+"_"+l+"_ms")
		}
	}
	return keys
}

// Table is all points of a sweep with their outcomes, nil for those that have
// none yet, and what they are held to.
type Table struct {
	Points   []Settings
	Outcomes []*Outcome
	SLA      []scenario.Bound

	columns []string // nil: not looked for yet
}

// done reports whether a point has a report.
func (t *Table) done(i int) bool { return t.Outcomes[i] != nil && t.Outcomes[i].Report != nil }

// Meets reports whether a point serves all requests within the SLA.
func (t *Table) Meets(i int) bool {
	if !t.done(i) || !t.Outcomes[i].Served() {
		return false
	}
	for _, b := range t.SLA {
		if !(t.Outcomes[i].Number(b.Key) <= b.Most) {
			return false
		}
	}
	return true
}

// Front marks the points of the Pareto front of throughput per GPU and a
// number of the report: of those that serve all requests within the SLA, none
// is better in one and as good in the other.
func (t *Table) Front(key string) []bool {
	front := make([]bool, len(t.Points))
	var order []int
	for i := range t.Points {
		if t.Meets(i) && !math.IsNaN(t.Outcomes[i].Number(key)) {
			order = append(order, i)
		}
	}
	latency := func(i int) float64 { return t.Outcomes[i].Number(key) }
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(latency(a), latency(b)), cmp.Compare(t.Outcomes[b].PerGPU(), t.Outcomes[a].PerGPU()))
	})
	best, at := math.Inf(-1), 0.0
	for _, i := range order {
		x := t.Outcomes[i].PerGPU()
		if x > best || x == best && latency(i) == at {
			front[i], best, at = true, x, latency(i)
		}
	}
	return front
}

// byLatency are the marked points in the order of a latency.
func (t *Table) byLatency(marked []bool, key string) []int {
	order := []int{}
	for i, on := range marked {
		if on {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(t.Outcomes[a].Number(key), t.Outcomes[b].Number(key))
	})
	return order
}

// Best is the point with the highest throughput per GPU among those that meet
// the SLA; of equals the one with fewer GPUs, then with the lower median TTFT.
// -1: none does, or there is no SLA.
func (t *Table) Best() int {
	best := -1
	if len(t.SLA) == 0 {
		return best
	}
	for i := range t.Points {
		if t.Meets(i) && (best < 0 || t.better(t.Outcomes[i], t.Outcomes[best])) {
			best = i
		}
	}
	return best
}

func (t *Table) better(a, b *Outcome) bool {
	return cmp.Or(cmp.Compare(b.PerGPU(), a.PerGPU()), cmp.Compare(a.GPUs, b.GPUs), cmp.Compare(a.Number("median_ttft_ms"), b.Number("median_ttft_ms"))) < 0
}

// Columns are the settings that tell points apart, in the order in which they
// turn up: not those that all points have with one value, and no object that is
// the same wherever it is given.
func (t *Table) Columns() []string {
	if t.columns == nil {
		t.columns = t.apart()
	}
	return t.columns
}

func (t *Table) apart() []string {
	names := []string{}
	first, count, differs := map[string]string{}, map[string]int{}, map[string]bool{}
	for _, p := range t.Points {
		for _, s := range p {
			if count[s.Name]++; count[s.Name] == 1 {
				names = append(names, s.Name)
				first[s.Name] = string(s.Value)
			}
			differs[s.Name] = differs[s.Name] || string(s.Value) != first[s.Name]
		}
	}
	return slices.DeleteFunc(names, func(n string) bool {
		return !differs[n] && (count[n] == len(t.Points) || strings.HasPrefix(first[n], "{"))
	})
}

// short are names of columns without the objects that fields are in, where
// that leaves them apart.
func short(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = n[strings.LastIndexByte(n, '.')+1:]
	}
	for i := range out {
		for k := range out {
			if i != k && out[i] == out[k] {
				return names
			}
		}
	}
	return out
}

// setting is the value of a setting for people, "" where a point has none.
func (t *Table) setting(i int, name string) string {
	for _, s := range t.Points[i] {
		if s.Name == name {
			if string(s.Value) == "null" {
				return "-"
			}
			return s.Text()
		}
	}
	return ""
}

// label names a point by its settings.
func (t *Table) label(i int) string {
	columns := t.Columns()
	names := short(columns)
	var parts []string
	for k, n := range columns {
		if text := t.setting(i, n); text != "" {
			parts = append(parts, names[k]+" "+text)
		}
	}
	if parts == nil {
		return "as the scenario says"
	}
	return strings.Join(parts, ", ")
}
