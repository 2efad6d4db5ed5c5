package scenario

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/dryserve/dryserve/host/native/cliutil"
)

// pathKeys are the fields of engine and router arguments that hold paths.
var pathKeys = []string{"path", "planner_profile_data", "router_policy_config", "router_tracking_key_file", "response_replay_trace_path"}

// Bounds of what aliases can make of a small file.
const (
	maxDepth = 64
	maxNodes = 1 << 20
)

// json spells a value as JSON, with line ends and spaces so that it stands
// where it stands in the file.
func (r *reader) json(n *yaml.Node) (string, error) {
	t := &typesetter{line: 1, column: 1}
	err := r.value(t, n, "", 0)
	return t.String(), err
}

// typesetter writes text and knows where it is.
type typesetter struct {
	strings.Builder
	line, column int
}

// to goes on to a place, as far as that is ahead.
func (t *typesetter) to(line, column int) {
	if t.line < line {
		t.WriteString(strings.Repeat("\n", line-t.line))
		t.line, t.column = line, 1
	}
	if t.line == line && t.column < column {
		t.WriteString(strings.Repeat(" ", column-t.column))
		t.column = column
	}
}

func (t *typesetter) put(text string) {
	t.WriteString(text)
	t.column += utf8.RuneCountInString(text)
}

// value spells a value; key is that of the object it is in.
func (r *reader) value(t *typesetter, n *yaml.Node, key string, depth int) error {
	n = resolved(n)
	if r.nodes++; r.nodes > maxNodes || depth > maxDepth {
		return r.errorf(n, "there are more than %d values, aliases counted, or they are nested deeper than %d; fewer are accepted", maxNodes, maxDepth)
	}
	switch n.Kind {
	case yaml.MappingNode:
		t.put("{")
		for i := 0; i+1 < len(n.Content); i += 2 {
			if i > 0 {
				t.put(",")
			}
			name := n.Content[i]
			if name.Kind != yaml.ScalarNode || name.ShortTag() == "!!merge" {
				return r.errorf(name, "a key is %s; a name is accepted", what(name))
			}
			t.to(name.Line, name.Column)
			t.put(string(cliutil.AppendJSONString(nil, name.Value)) + ":")
			if err := r.value(t, n.Content[i+1], name.Value, depth+1); err != nil {
				return err
			}
		}
		t.put("}")
	case yaml.SequenceNode:
		t.put("[")
		for i, e := range n.Content {
			if i > 0 {
				t.put(",")
			}
			if err := r.value(t, e, "", depth+1); err != nil {
				return err
			}
		}
		t.put("]")
	default:
		text, err := r.scalar(n, key)
		if err != nil {
			return err
		}
		t.to(n.Line, n.Column)
		t.put(text)
	}
	return nil
}

// scalar spells a single value.
func (r *reader) scalar(n *yaml.Node, key string) (string, error) {
	switch n.ShortTag() {
	case "!!null":
		return "null", nil
	case "!!bool":
		return strings.ToLower(n.Value), nil
	case "!!int", "!!float":
		if !json.Valid([]byte(n.Value)) {
			return "", r.errorf(n, "found the number %s; one spelt as in JSON is accepted", n.Value)
		}
		return n.Value, nil
	}
	text := n.Value
	if slices.Contains(pathKeys, key) {
		text = below(r.dir, text)
	}
	return string(cliutil.AppendJSONString(nil, text)), nil
}
