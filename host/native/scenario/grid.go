package scenario

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/dryserve/dryserve/host/native/cliutil"
)

// The sections that a file of a sweep has beside its flags.
const (
	SweepKey = "sweep"
	SLAKey   = "sla"
)

// Axis is a key that takes several values in turn.
type Axis struct {
	Key    string   // a flag, or another name that is known
	Path   []string // into the flag's JSON; empty: the value as a whole
	Line   int
	Values []Value
}

// Name is the axis as it stands in the file.
func (a *Axis) Name() string { return strings.Join(append([]string{a.Key}, a.Path...), ".") }

// Value is one value of an axis.
type Value struct {
	Line int
	Text string // as on a command line; below a path, or with JSON, as JSON
	JSON bool
	Null bool // the flag is not given; a field may be null as others are
}

// Bound is the most that a number of a report may be.
type Bound struct {
	Key  string // of the report
	Line int
	Most float64
}

// sweep reads the grids: axes by name, or a list of such objects.
func (r *reader) sweep(n *yaml.Node) error {
	grids := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		grids = n.Content
	}
	for _, g := range grids {
		if g = resolved(g); g.Kind != yaml.MappingNode {
			return r.errorf(g, "%s has %s; lists of values by flag, as in \"num-workers: [1, 2]\", are accepted", SweepKey, what(g))
		}
		axes := []Axis{}
		for i := 0; i+1 < len(g.Content); i += 2 {
			a, err := r.axis(g.Content[i], resolved(g.Content[i+1]))
			if err != nil {
				return err
			}
			for _, other := range axes {
				if other.Name() == a.Name() {
					return r.errorf(g.Content[i], "%s stands on line %d, too; once is accepted", a.Name(), other.Line)
				}
			}
			axes = append(axes, a)
		}
		r.file.Grids = append(r.file.Grids, axes)
	}
	return nil
}

func (r *reader) axis(key, n *yaml.Node) (Axis, error) {
	a := Axis{Line: key.Line}
	parts := strings.Split(key.Value, ".")
	a.Key, a.Path = parts[0], parts[1:]
	extra := slices.Contains(r.known.Axes, a.Key)
	if key.Kind != yaml.ScalarNode || !extra && !slices.Contains(r.known.Names, a.Key) {
		key = &yaml.Node{Kind: key.Kind, Line: key.Line, Value: a.Key}
		return a, r.unknown(key, slices.Concat(r.known.Axes, r.known.Names))
	}
	kind := Text
	if !extra {
		kind = r.known.Kind(a.Key)
	}
	if len(a.Path) > 0 && kind != JSON {
		return a, r.errorf(key, "%s has a field %s, but takes no JSON; the flag alone is accepted", a.Key, cliutil.Quote(strings.Join(a.Path, ".")))
	}
	if slices.Contains(a.Path, "") {
		return a, r.errorf(key, "%s has a field without a name; fields separated by dots are accepted", cliutil.Quote(key.Value))
	}
	values := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		values = n.Content
	}
	if len(values) == 0 {
		return a, r.errorf(n, "%s has no values; at least one is accepted", a.Name())
	}
	for _, v := range values {
		value, err := r.point(&a, kind, resolved(v))
		if err != nil {
			return a, err
		}
		a.Values = append(a.Values, value)
	}
	return a, nil
}

// point reads one value of an axis.
func (r *reader) point(a *Axis, kind Kind, n *yaml.Node) (Value, error) {
	v := Value{Line: n.Line}
	switch {
	case len(a.Path) == 0 && n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null":
		v.Null = true
	case len(a.Path) > 0 || kind == JSON && n.Kind != yaml.ScalarNode:
		t := &typesetter{line: 1, column: 1}
		if len(a.Path) > 0 {
			t.line = math.MaxInt // on one line, as it stands in another text
		}
		if err := r.value(t, n, lastOf(a.Path), 0); err != nil {
			return v, err
		}
		v.Text, v.JSON = t.String(), true
	case n.Kind == yaml.ScalarNode:
		v.Text = r.located(kind, n.Value)
	case n.Kind == yaml.MappingNode:
		return v, r.errorf(n, "%s has an object in its list; single values are accepted", a.Name())
	default: // a list, of a flag that takes one
		var texts []string
		for _, e := range n.Content {
			if e = resolved(e); e.Kind != yaml.ScalarNode {
				return v, r.errorf(e, "%s has %s in a list of its list; single values are accepted", a.Name(), what(e))
			}
			texts = append(texts, r.located(kind, e.Value))
		}
		v.Text = strings.Join(texts, ",")
	}
	return v, nil
}

func lastOf(path []string) string {
	if len(path) == 0 {
		return ""
	}
	return path[len(path)-1]
}

// bounds reads the SLA: the most of each number of the report.
func (r *reader) bounds(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return r.errorf(n, "%s is %s; bounds by name, as in \"p99-ttft-ms: 500\", are accepted", SLAKey, what(n))
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], resolved(n.Content[i+1])
		b := Bound{Key: strings.ReplaceAll(key.Value, "-", "_"), Line: key.Line}
		if !slices.Contains(r.known.Bounds, b.Key) {
			return r.unknown(key, dashed(r.known.Bounds))
		}
		for _, other := range r.file.Bounds {
			if other.Key == b.Key {
				return r.errorf(key, "%s stands on line %d, too; once is accepted", key.Value, other.Line)
			}
		}
		x, err := strconv.ParseFloat(value.Value, 64)
		if value.Kind != yaml.ScalarNode || err != nil || !(x > 0) || math.IsInf(x, 0) {
			return r.errorf(value, "%s is %s; a finite number above 0 is accepted", key.Value, what(value))
		}
		b.Most = x
		r.file.Bounds = append(r.file.Bounds, b)
	}
	return nil
}

func dashed(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = strings.ReplaceAll(n, "_", "-")
	}
	return out
}
