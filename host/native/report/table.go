package report

import (
	"io"
	"strings"

	"github.com/dryserve/dryserve/core/stats"
	"github.com/dryserve/dryserve/host/native/cliutil"
)

// WriteTable writes the table of latency metrics and the lines below it.
func (r *Report) WriteTable(w io.Writer) error {
	var b strings.Builder
	b.WriteString("NVIDIA AIPerf | LLM Metrics\n")
	drawTable(&b, r.tableRows())
	b.WriteString("Wall Time (ms): " + grouped(r.WallMs) + "\n")
	b.WriteString("Prefix Cache Reused Ratio: " + grouped(r.PrefixReusedRatio) + "\n")
	b.WriteString("First Admission Prefix Cache Reused Ratio: " + grouped(r.FirstAdmissionReused) + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteSaved writes the line that names the file of the JSON report.
func WriteSaved(w io.Writer, path string) error {
	_, err := io.WriteString(w, "Saved full report to: "+path+"\n")
	return err
}

const columns = 8

type row [columns]string

// tableRows is the heading, the distributions and the single values.
func (r *Report) tableRows() []row {
	rows := []row{
		{"Metric", "avg", "min", "max", "p99", "p90", "p75", "std"},
		distRow("Time to First Token (ms)", r.TTFT),
		distRow("Time to Second Token (ms)", r.TTST),
		distRow("Request Latency (ms)", r.E2E),
		distRow("Inter Token Latency (ms)", r.ITL),
		distRow("Output Token Throughput Per User (tokens/sec/user)", r.PerUser),
	}
	for _, v := range []struct {
		name string
		x    float64
	}{
		{"Output Token Throughput (tokens/sec)", r.OutputThroughputTokS},
		{"Request Throughput (requests/sec)", r.RequestThroughputRPS},
		{"Request Count (requests)", float64(r.CompletedRequests)},
	} {
		rows = append(rows, row{v.name, grouped(v.x), "N/A", "N/A", "N/A", "N/A", "N/A", "N/A"})
	}
	return rows
}

func distRow(name string, d stats.Dist) row {
	return row{name, grouped(d.Mean), grouped(d.Min), grouped(d.Max), grouped(d.P99), grouped(d.P90), grouped(d.P75), grouped(d.Std)}
}

// drawTable frames rows; the first one is the heading. Metric names stand
// left, numbers right, each column as wide as its longest cell.
func drawTable(b *strings.Builder, rows []row) {
	var widths [columns]int
	for _, cells := range rows {
		for i, c := range cells {
			widths[i] = max(widths[i], len(c))
		}
	}
	rule := func(left, line, cross, right string) {
		for i, w := range widths {
			b.WriteString(left)
			b.WriteString(strings.Repeat(line, w+2))
			left = cross
			if i == columns-1 {
				b.WriteString(right + "\n")
			}
		}
	}
	rule("┏", "━", "┳", "┓")
	for n, cells := range rows {
		for i, c := range cells {
			pad := strings.Repeat(" ", widths[i]-len(c))
			if i == 0 {
				b.WriteString("┃ " + c + pad + " ")
			} else {
				b.WriteString("┃ " + pad + c + " ")
			}
		}
		b.WriteString("┃\n")
		if n == 0 {
			rule("┡", "━", "╇", "┩")
		}
	}
	rule("└", "━", "┴", "┘")
}

// grouped spells x with two decimals and commas between thousands.
func grouped(x float64) string { return cliutil.Grouped(x, 2) }
