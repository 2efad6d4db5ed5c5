package sweep

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dryserve/dryserve/host/native/cliutil"
)

// Orders are the words by which rows can be sorted.
var Orders = []string{"point", "gpus", "throughput", "ttft", "itl", "e2e"}

// View says how a table is shown.
type View struct {
	Order     string // of Orders
	Statistic string // a word of Statistics: of the latencies that order and front go by
}

// key is the report's name of a latency.
func (v View) key(latency string) string {
	for _, s := range Statistics {
		if s.Word == v.Statistic {
			return s.Key + "_" + latency + "_ms"
		}
	}
	return ""
}

// rows are the points in order. Those without a report stand last.
func (t *Table) rows(v View) []int {
	value := map[string]func(o *Outcome) float64{
		"point": func(*Outcome) float64 { return 0 }, "gpus": func(o *Outcome) float64 { return o.GPUs },
		"throughput": func(o *Outcome) float64 { return -o.PerGPU() },
		"ttft":       func(o *Outcome) float64 { return o.Number(v.key("ttft")) },
		"itl":        func(o *Outcome) float64 { return o.Number(v.key("itl")) },
		"e2e":        func(o *Outcome) float64 { return o.Number(v.key("e2e_latency")) },
	}[v.Order]
	var rows []int
	rank := make([]float64, len(t.Points))
	for i := range t.Points {
		rows = append(rows, i)
		if v.Order != "point" {
			if rank[i] = math.Inf(1); t.done(i) {
				rank[i] = value(t.Outcomes[i])
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b int) int { return cmp.Compare(rank[a], rank[b]) })
	return rows
}

// WriteTable writes the points that have an outcome, then which of them is
// best, and what went wrong with those that have none.
func (t *Table) WriteTable(w io.Writer, v View) error {
	names := t.Columns()
	goodput := t.has("goodput_request_throughput_rps")
	head := append([]string{"Point"}, short(names)...)
	head = append(head, "GPUs", "tok/s/GPU", "TTFT p50", "p99", "ITL p50", "p99", "E2E p50", "hits", "unserved")
	if goodput {
		head = append(head, "good req/s")
	}
	if len(t.SLA) > 0 {
		head = append(head, "SLA")
	}
	table := [][]string{append(head, "front")}
	ttft, itl := t.Front(v.key("ttft")), t.Front(v.key("itl"))
	var failed strings.Builder
	for _, i := range t.rows(v) {
		o := t.Outcomes[i]
		if o == nil {
			continue
		}
		if o.Report == nil {
			fmt.Fprintf(&failed, "Point %d (%s) failed: %s\n", i+1, t.label(i), o.Error)
			continue
		}
		row := []string{strconv.Itoa(i + 1)}
		for _, n := range names {
			row = append(row, t.setting(i, n))
		}
		row = append(row, count(o.GPUs), digits(o.PerGPU()))
		for _, key := range []string{"median_ttft_ms", "p99_ttft_ms", "median_itl_ms", "p99_itl_ms", "median_e2e_latency_ms"} {
			row = append(row, digits(o.Number(key)))
		}
		row = append(row, percent(o.Number("prefix_cache_reused_ratio")), fmt.Sprintf("%.0f", o.Number("rejected_requests")+o.Number("failed_requests")))
		if goodput {
			row = append(row, digits(o.Number("goodput_request_throughput_rps")))
		}
		if len(t.SLA) > 0 {
			row = append(row, map[bool]string{true: "yes", false: "no"}[t.Meets(i)])
		}
		table = append(table, append(row, front(ttft[i], itl[i])))
	}
	text := cliutil.Columns(table) + "\n" + t.about(v) + failed.String()
	_, err := io.WriteString(w, text)
	return err
}

// front names the fronts that a point is on.
func front(ttft, itl bool) string {
	switch {
	case ttft && itl:
		return "ttft+itl"
	case ttft:
		return "ttft"
	case itl:
		return "itl"
	}
	return "-"
}

// about explains the table, and names the best point.
func (t *Table) about(v View) string {
	among := "all points that serve every request"
	if len(t.SLA) > 0 {
		among = "the points that meet the SLA"
	}
	text := fmt.Sprintf("Latencies in ms. front: on the Pareto front of tok/s/GPU and TTFT or ITL (%s), among %s.\n", v.Statistic, among)
	if len(t.SLA) == 0 {
		return text
	}
	sla := t.slaText()
	best := t.Best()
	if best < 0 {
		return text + "No point meets the SLA (" + sla + ").\n"
	}
	o := t.Outcomes[best]
	return text + fmt.Sprintf("Best under the SLA (%s): point %d (%s), %s tok/s/GPU on %s.\n", sla, best+1, t.label(best), digits(o.PerGPU()), gpus(o.GPUs))
}

func (t *Table) slaText() string {
	parts := make([]string, len(t.SLA))
	for i, b := range t.SLA {
		parts[i] = b.Key + " at most " + strconv.FormatFloat(b.Most, 'g', -1, 64)
	}
	return strings.Join(parts, ", ")
}

// has reports whether a report has a number.
func (t *Table) has(key string) bool {
	return slices.ContainsFunc(t.Outcomes, func(o *Outcome) bool { return o != nil && !math.IsNaN(o.Number(key)) })
}

// count spells a number of GPUs, which is whole unless workers come and go.
func count(gpus float64) string {
	if gpus == math.Trunc(gpus) {
		return strconv.FormatFloat(gpus, 'f', 0, 64)
	}
	return strconv.FormatFloat(gpus, 'f', 2, 64)
}

// digits spells a number with about four digits.
func digits(x float64) string {
	switch {
	case math.IsNaN(x):
		return "-"
	case math.Abs(x) >= 1000:
		return cliutil.Grouped(x, 0)
	case math.Abs(x) >= 100:
		return cliutil.Grouped(x, 1)
	}
	return cliutil.Grouped(x, 2)
}

func percent(x float64) string {
	if math.IsNaN(x) {
		return "-"
	}
	return strconv.FormatFloat(100*x, 'f', 1, 64) + "%"
}

// WriteJSON writes the points with their outcomes as an object.
func (t *Table) WriteJSON(w io.Writer, v View) error {
	type row struct {
		Point int `json:"point"` // from 1
		*Outcome
		Settings Settings `json:"settings"` // as they stand in the file
		PerGPU   *float64 `json:"output_tok_s_per_gpu,omitempty"`
		Meets    *bool    `json:"meets_sla,omitempty"`
		TTFT     bool     `json:"ttft_front"`
		ITL      bool     `json:"itl_front"`
	}
	ttft, itl := t.Front(v.key("ttft")), t.Front(v.key("itl"))
	sla := map[string]float64{}
	for _, b := range t.SLA {
		sla[b.Key] = b.Most
	}
	out := struct {
		SLA       map[string]float64 `json:"sla"`
		Statistic string             `json:"statistic"`
		Best      *int               `json:"best"` // a point, null: none
		Points    []row              `json:"points"`
	}{SLA: sla, Statistic: v.Statistic, Points: []row{}}
	if best := t.Best(); best >= 0 {
		best++
		out.Best = &best
	}
	for _, i := range t.rows(v) {
		if t.Outcomes[i] == nil {
			continue
		}
		r := row{Point: i + 1, Outcome: t.Outcomes[i], Settings: t.Points[i], TTFT: ttft[i], ITL: itl[i]}
		if t.done(i) {
			x, meets := t.Outcomes[i].PerGPU(), t.Meets(i)
			if !math.IsNaN(x) {
				r.PerGPU = &x
			}
			if len(t.SLA) > 0 {
				r.Meets = &meets
			}
		}
		out.Points = append(out.Points, r)
	}
	text, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}
