package compare

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/dryserve/dryserve/host/native/cliutil"
)

// WriteTable writes the values that differ, or all of them, and how many are
// equal.
func (c *Comparison) WriteTable(w io.Writer, all bool) error {
	rows := [][]string{{"Metric", c.A.Path, c.B.Path, "change"}}
	equal := 0
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.Equal {
			equal++
		}
		if r.Equal && !all {
			continue
		}
		a, b := spell(r)
		name := r.Key
		if r.Clock {
			name += " (not compared)"
		}
		rows = append(rows, []string{name, a, b, change(r)})
	}
	text := cliutil.Columns(rows)
	if len(rows) == 1 {
		text = ""
	}
	text += fmt.Sprintf("%d of %d values are equal\n", equal, len(c.Rows))
	_, err := io.WriteString(w, text)
	return err
}

// change is the last column.
func change(r *Row) string {
	percent, ok := r.Percent()
	switch {
	case r.Equal:
		return "="
	case !ok:
		return "-"
	case math.Abs(percent) >= 0.005:
		text := cliutil.Grouped(percent, 2) + " %"
		if percent > 0 {
			text = "+" + text
		}
		return text
	}
	return fmt.Sprintf("%+.1e %%", percent)
}

// spell writes the two values of a row, with as many digits as they need to
// look different.
func spell(r *Row) (a, b string) {
	a, b = short(r.A), short(r.B)
	if a == b && !r.Equal {
		a, b = r.A.Text, r.B.Text
	}
	return a, b
}

func short(v *Value) string {
	switch {
	case v == nil:
		return "-"
	case !v.Number:
		return v.Text
	case !strings.ContainsAny(v.Text, ".eE"):
		return cliutil.Grouped(v.X, 0)
	case v.X == 0:
		return "0"
	case math.Abs(v.X) < 0.01 || math.Abs(v.X) >= 1e15:
		return strconv.FormatFloat(v.X, 'g', 6, 64)
	}
	decimals := 2
	for limit := 100.0; decimals < 5 && math.Abs(v.X) < limit; limit /= 10 {
		decimals++
	}
	return cliutil.Grouped(v.X, decimals)
}

type rowJSON struct {
	Key     string           `json:"key"`
	A       *json.RawMessage `json:"a"`
	B       *json.RawMessage `json:"b"`
	Change  *float64         `json:"change"`
	Percent *float64         `json:"change_percent"`
	Equal   bool             `json:"equal"`
	Counts  bool             `json:"counts"`
}

// WriteJSON writes all values, or those that differ, as a JSON object.
func (c *Comparison) WriteJSON(w io.Writer, all bool) error {
	doc := struct {
		A      string    `json:"a"`
		B      string    `json:"b"`
		Equal  bool      `json:"equal"`
		Values []rowJSON `json:"values"`
	}{c.A.Path, c.B.Path, c.Equal(), []rowJSON{}}
	raw := func(v *Value) *json.RawMessage {
		if v == nil {
			return nil
		}
		text := json.RawMessage(v.Text)
		if !v.Number && v.Text[0] == '"' {
			plain, _ := strconv.Unquote(v.Text)
			text = cliutil.AppendJSONString(nil, plain)
		}
		return &text
	}
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.Equal && !all {
			continue
		}
		j := rowJSON{Key: r.Key, A: raw(r.A), B: raw(r.B), Equal: r.Equal, Counts: !r.Clock}
		if percent, ok := r.Percent(); ok {
			j.Percent = &percent
		}
		if r.A != nil && r.B != nil && r.A.Number && r.B.Number {
			if d := r.B.X - r.A.X; !math.IsInf(d, 0) {
				j.Change = &d
			}
		}
		doc.Values = append(doc.Values, j)
	}
	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}
