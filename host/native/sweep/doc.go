// Package sweep runs many points, keeps what each gave, and compares them.
//
// It owns the points of a grid, the file of results with its digests, how
// points are spread over processors, which points are best, and how that is
// shown: a table, JSON, a page. What a point is and does is the program's.
//
// Invariants: a line of the file of results is a whole outcome, on disk before
// anybody is told of it; no digest stands there twice; equal points give equal
// lines, whenever and in whatever order they were run.
package sweep

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"

	"github.com/dryserve/dryserve/host/native/cliutil"
	"github.com/dryserve/dryserve/host/native/scenario"
)

// Choice is the value that an axis has in a point.
type Choice struct {
	*scenario.Axis
	scenario.Value
}

// MostPoints is how many a sweep may have.
const MostPoints = 100_000

// Points are all combinations of each grid, the last axis first to change. Axes
// keep their order.
func Points(grids [][]scenario.Axis) ([][]Choice, error) {
	var points [][]Choice
	for _, axes := range grids {
		n := 1
		for i := range axes {
			if n *= len(axes[i].Values); n+len(points) > MostPoints {
				return nil, fmt.Errorf("the sweep has more than %d points; fewer values are accepted", MostPoints)
			}
		}
		for k := range n {
			point := make([]Choice, len(axes))
			for i := len(axes) - 1; i >= 0; i-- {
				values := axes[i].Values
				point[i] = Choice{&axes[i], values[k%len(values)]}
				k /= len(values)
			}
			points = append(points, point)
		}
	}
	return points, nil
}

// Setting is a key of a point and its value as JSON.
type Setting struct {
	Name  string
	Value json.RawMessage
}

// Text is the value for people.
func (s Setting) Text() string {
	var text string
	if json.Unmarshal(s.Value, &text) == nil && string(s.Value) != "null" {
		return text
	}
	return string(s.Value)
}

// Settings are written as an object, in their order.
type Settings []Setting

// SettingsOf are the choices of a point.
func SettingsOf(point []Choice) Settings {
	s := make(Settings, len(point))
	for i, c := range point {
		s[i] = Setting{c.Name(), json.RawMessage(c.Text)}
		switch {
		case c.Null:
			s[i].Value = json.RawMessage("null")
		case c.JSON:
			var b bytes.Buffer
			if json.Compact(&b, s[i].Value) == nil {
				s[i].Value = b.Bytes()
			}
		case !isPlain(c.Text):
			s[i].Value = cliutil.AppendJSONString(nil, c.Text)
		}
	}
	return s
}

// isPlain reports whether a text is true, false, or a number of JSON, so short
// that a reader's float has all of it.
func isPlain(text string) bool {
	if text == "true" || text == "false" {
		return true
	}
	var x float64
	return len(text) < 16 && json.Unmarshal([]byte(text), &x) == nil && text != "null" && !math.IsInf(x, 0)
}

// MarshalJSON writes an object.
func (s Settings) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, x := range s {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(cliutil.AppendJSONString(b, x.Name), ':')
		b = append(b, x.Value...)
	}
	return append(b, '}'), nil
}

// UnmarshalJSON reads an object.
func (s *Settings) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	*s = Settings{}
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("found %s, want an object", text)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var x Setting
		x.Name = name.(string)
		if err := d.Decode(&x.Value); err != nil {
			return err
		}
		*s = append(*s, x)
	}
	return nil
}
