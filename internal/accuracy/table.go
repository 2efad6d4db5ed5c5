package accuracy

import (
	"fmt"
	"math"
	"strings"

	"github.com/dryserve/dryserve/host/native/profile"
)

// Line is one number beside ours.
type Line struct {
	Case      string
	Grid      string
	Metric    Metric
	Measured  float64 // ms
	Predicted float64 // ms
}

// ErrorPercent is how far the prediction is above (or below, negative) the
// measurement.
func (l Line) ErrorPercent() float64 { return (l.Predicted/l.Measured - 1) * 100 }

// Compare predicts a case with a grid and sets every measured number beside
// ours.
func Compare(c Case, g *profile.Grid, o Engine) ([]Line, error) {
	samples, err := Predict(c, g, o)
	if err != nil {
		return nil, err
	}
	ours := Reduce(samples)
	var lines []Line
	for _, m := range Metrics() {
		if measured, ok := c.Measured[m]; ok && !math.IsNaN(measured) {
			lines = append(lines, Line{c.Name, gridName(g), m, measured, ours[m]})
		}
	}
	return lines, nil
}

func gridName(g *profile.Grid) string {
	return fmt.Sprintf("%s %s, %s, tp %d", g.Backend, g.BackendVersion, g.System, g.TP)
}

// Markdown is the table of lines, and after it the mean of the errors'
// amounts for each metric.
func Markdown(lines []Line) string {
	var b strings.Builder
	b.WriteString("| run | grid | metric | measured ms | predicted ms | error % |\n|---|---|---|---:|---:|---:|\n")
	for _, l := range lines {
		fmt.Fprintf(&b, "| %s | %s | %s | %.2f | %.2f | %+.1f |\n", l.Case, l.Grid, l.Metric, l.Measured, l.Predicted, l.ErrorPercent())
	}
	for _, m := range Metrics() {
		sum, n := 0.0, 0
		for _, l := range lines {
			if l.Metric == m {
				sum += math.Abs(l.ErrorPercent())
				n++
			}
		}
		if n > 1 {
			fmt.Fprintf(&b, "\n%s: mean amount of %d errors %.1f %%", m, n, sum/float64(n))
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}
