// Package picture shows a run as one self-contained HTML page.
//
// It owns how a recording is reduced (Collector), which figures a page has
// (Run.Document), and the drawing code, a small ES module that knows figures of
// a few kinds and nothing of replays (assets/draw.js, scatter.js). It does not own the
// numbers of the report, which come from core/replay, nor files.
//
// Invariants: the same run gives the same bytes; a page needs nothing from
// outside; what was binned, rounded or thinned out is said on the page.
package picture

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"
)

// Document is a page as data: what draw.js shows.
type Document struct {
	Title    string   `json:"title"`
	Subtitle string   `json:"subtitle"`
	Cards    []Card   `json:"cards"`
	Figures  []Figure `json:"figures"`
	Notes    []string `json:"notes"` // how numbers were reduced
}

// Card is one number of the summary with what stands beside it.
type Card struct {
	Label  string `json:"label"`
	Value  string `json:"value"`
	Unit   string `json:"unit,omitempty"`
	Detail string `json:"detail,omitempty"`
	Alarm  bool   `json:"alarm,omitempty"` // it deserves a look
}

// Figure is a picture of some kind: lines (values over time), cdf, heat (a
// value by row and time), scatter (points of two values), table, pairs (names
// and values in groups). Which
// fields a kind uses stands at their types.
type Figure struct {
	Kind  string `json:"kind"`
	ID    string `json:"id"`
	Title string `json:"title"`
	About string `json:"about,omitempty"` // what is counted, and when
	Wide  bool   `json:"wide,omitempty"`  // as wide as the page, as all kinds but lines are

	X      *Axis    `json:"x,omitempty"`      // lines, heat: time
	Unit   string   `json:"unit,omitempty"`   // lines, cdf, heat: of the values
	Whole  bool     `json:"whole,omitempty"`  // lines: the values' axis ends at 1
	Series []Series `json:"series,omitempty"` // lines, cdf
	Marks  []Mark   `json:"marks,omitempty"`  // lines, cdf: limits to compare with
	At     Numbers  `json:"at,omitempty"`     // cdf: the fractions of the values

	Rows  []string `json:"rows,omitempty"`  // heat: their names
	Cells Cells    `json:"cells,omitempty"` // heat: row by row

	Scatter *Scatter `json:"scatter,omitempty"` // scatter

	Columns []Column    `json:"columns,omitempty"` // table
	Body    [][]any     `json:"body,omitempty"`    // table: text and numbers
	Groups  []PairGroup `json:"groups,omitempty"`  // pairs
}

// Axis is N bins of StepMs from 0 on.
type Axis struct {
	StepMs float64 `json:"stepMs"`
	N      int     `json:"n"`
	EndMs  float64 `json:"endMs"` // of the run, within the last bin
}

// Series is one line of a figure.
type Series struct {
	Name   string  `json:"name"`
	Values Numbers `json:"values"`
	Area   bool    `json:"area,omitempty"` // filled down to 0
}

// Mark is a value that lines can be compared with.
type Mark struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}

// Scatter is points by a latency, one of several to choose from, and another
// value, of which more is better.
type Scatter struct {
	Points   []Point   `json:"points"`
	Values   Numbers   `json:"values"` // by point
	Name     string    `json:"name"`   // of the values
	Unit     string    `json:"unit"`
	Measures []Measure `json:"measures"`
	Legend   [3]string `json:"legend"` // on the front, beside it, and outside
}

// Point is a point with what is told of it. Those outside are on no front.
type Point struct {
	Name    string      `json:"name"`
	Rows    [][2]string `json:"rows"`
	Outside bool        `json:"outside,omitempty"`
}

// Measure is a latency of all points, in ms, with the points on its Pareto
// front and a limit, 0: none.
type Measure struct {
	Name   string  `json:"name"`
	Values Numbers `json:"values"`
	Front  []int   `json:"front"`
	Limit  float64 `json:"limit,omitempty"`
}

// Column is a column of a table; the numbers of one with Bar are also drawn.
type Column struct {
	Name string `json:"name"`
	Unit string `json:"unit,omitempty"`
	Bar  bool   `json:"bar,omitempty"`
	Text bool   `json:"text,omitempty"`
}

// PairGroup is a heading with names and values.
type PairGroup struct {
	Title string      `json:"title"`
	Pairs [][2]string `json:"pairs"`
}

// Numbers are written with five digits; NaN is null.
type Numbers []float64

// MarshalJSON writes an array.
func (n Numbers) MarshalJSON() ([]byte, error) {
	b := []byte{'['}
	for i, x := range n {
		if i > 0 {
			b = append(b, ',')
		}
		if math.IsNaN(x) || math.IsInf(x, 0) {
			b = append(b, "null"...)
			continue
		}
		b = append(b, strconv.FormatFloat(round5(x), 'g', -1, 64)...)
	}
	return append(b, ']'), nil
}

// round5 rounds to five digits.
func round5(x float64) float64 {
	y, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'e', 4, 64), 64)
	return y
}

// Cells are values from 0 to 1, one byte each: 0 to 254, and 255 for none.
type Cells []byte

// cell is the byte of a value.
func cell(x float64) byte {
	if math.IsNaN(x) {
		return 255
	}
	return byte(math.Round(min(max(x, 0), 1) * 254))
}

// MarshalJSON writes base64.
func (c Cells) MarshalJSON() ([]byte, error) {
	return json.Marshal(base64.StdEncoding.EncodeToString(c))
}

// json spells a document as a script element may hold it.
func (d *Document) json() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b) // it escapes <, > and &
	if err := e.Encode(d); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}
