package golden

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// loose are the fields that may differ by looseLimit relative.
var loose = []string{"vp", "vd"}

const looseLimit = 1e-9

// compareEvents compares two lists of events and describes the differences.
func compareEvents(got, want []any) []string {
	var c comparison
	for i := range max(len(got), len(want)) {
		at := fmt.Sprintf("event %d", i)
		switch {
		case i >= len(got):
			c.differ(at, nil, want[i])
		case i >= len(want):
			c.differ(at, got[i], nil)
		default:
			c.value(at, "", got[i], want[i])
		}
	}
	return c.differences
}

type comparison struct{ differences []string }

func (c *comparison) differ(at string, got, want any) {
	g, _ := json.Marshal(got)
	w, _ := json.Marshal(want)
	c.differences = append(c.differences, fmt.Sprintf("%s: got %s, want %s", at, g, w))
}

// value compares what stands at one place. key is the field's name, if it is
// a field.
func (c *comparison) value(at, key string, got, want any) {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			c.differ(at, got, want)
			return
		}
		c.fields(at, g, w)
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			c.differ(at, got, want)
			return
		}
		for i := range w {
			c.value(fmt.Sprintf("%s[%d]", at, i), "", g[i], w[i])
		}
	case json.Number:
		g, ok := got.(json.Number)
		if !ok || !sameNumber(key, g.String(), w.String()) {
			c.differ(at, got, want)
		}
	default: // null, bool, string
		if got != want {
			c.differ(at, got, want)
		}
	}
}

// fields compares the fields that the expected object has.
func (c *comparison) fields(at string, got, want map[string]any) {
	names := []string{}
	for name := range want {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		g, ok := got[name]
		if !ok {
			c.differ(at+"."+name, nil, want[name])
			continue
		}
		c.value(at+"."+name, name, g, want[name])
	}
	if _, mentioned := want["kv_events"]; !mentioned {
		if events, _ := got["kv_events"].([]any); len(events) > 0 {
			c.differ(at+".kv_events", events, []any{})
		}
	}
}

// sameNumber compares two JSON numbers: integers exactly, whatever their size,
// others as float64.
func sameNumber(key, got, want string) bool {
	if got == want {
		return true
	}
	if g, err := strconv.ParseUint(got, 10, 64); err == nil {
		if w, err := strconv.ParseUint(want, 10, 64); err == nil {
			return g == w
		}
	}
	g, errG := strconv.ParseFloat(got, 64)
	w, errW := strconv.ParseFloat(want, 64)
	if errG != nil || errW != nil {
		return false
	}
	if slices.Contains(loose, key) {
		return math.Abs(g-w) <= looseLimit*math.Max(math.Abs(g), math.Abs(w))
	}
	return g == w
}
