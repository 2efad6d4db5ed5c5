package routerconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/dryserve/dryserve/host/native/cliutil"
)

type kind uint8

const (
	null kind = iota
	boolean
	number
	text
	list
	object
)

// value is a value of a JSON or YAML document, with its place.
type value struct {
	kind    kind
	text    string // literal of a scalar, content of a text
	members []member
	elems   []value
	path    string // as in a.b[2]
	line    int
	doc     *document
}

type member struct {
	name  string
	line  int
	value value
}

// document is where values come from.
type document struct {
	source string
	data   []byte // JSON only
}

// errorf words a fault at a value.
func (v value) errorf(format string, args ...any) error {
	return v.doc.errorAt(v.line, format, args...)
}

func (d *document) errorAt(line int, format string, args ...any) error {
	return fmt.Errorf("%s: line %d: %s", d.source, line, fmt.Sprintf(format, args...))
}

// refuse says what was found and what is accepted.
func (v value) refuse(accepted string) error {
	return v.errorf("%s is %s; %s is accepted", v.path, v.found(), accepted)
}

// found names a value in a sentence.
func (v value) found() string {
	switch v.kind {
	case null:
		return "null"
	case text:
		return cliutil.Quote(v.text)
	case list:
		return "a list"
	case object:
		return "an object"
	}
	return v.text
}

// parseJSON reads a whole JSON document.
func parseJSON(source string, data []byte) (value, error) {
	d := &document{source: source, data: data}
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return value{}, d.errorAt(d.lineOf(int(syntax.Offset)), "not JSON: %v", syntax)
		}
		return value{}, d.errorAt(1, "not JSON: %v", err)
	}
	tokens := json.NewDecoder(bytes.NewReader(data))
	tokens.UseNumber()
	return d.json(tokens, "")
}

func (d *document) lineOf(offset int) int {
	return 1 + bytes.Count(d.data[:min(max(offset-1, 0), len(d.data))], []byte("\n"))
}

// json reads the next value of a text that is known to be JSON.
func (d *document) json(tokens *json.Decoder, path string) (value, error) {
	token, err := tokens.Token()
	if err != nil {
		return value{}, err
	}
	v := value{path: path, line: d.lineOf(int(tokens.InputOffset())), doc: d}
	switch t := token.(type) {
	case bool:
		v.kind, v.text = boolean, strconv.FormatBool(t)
	case json.Number:
		v.kind, v.text = number, t.String()
	case string:
		v.kind, v.text = text, t
	case json.Delim:
		if t == '[' {
			v.kind = list
			for tokens.More() {
				e, err := d.json(tokens, fmt.Sprintf("%s[%d]", path, len(v.elems)))
				if err != nil {
					return v, err
				}
				v.elems = append(v.elems, e)
			}
		} else {
			v.kind = object
			for tokens.More() {
				name, err := tokens.Token()
				if err != nil {
					return v, err
				}
				m := member{name: name.(string), line: d.lineOf(int(tokens.InputOffset()))}
				if m.value, err = d.json(tokens, join(path, m.name)); err != nil {
					return v, err
				}
				if v.members, err = d.add(v.members, m); err != nil {
					return v, err
				}
			}
		}
		_, err = tokens.Token() // the end
	}
	return v, err
}

// add appends a member, unless there is one of that name.
func (d *document) add(members []member, m member) ([]member, error) {
	for _, o := range members {
		if o.name == m.name {
			return members, d.errorAt(m.line, "%s is given twice, first in line %d; once is accepted", m.value.path, o.line)
		}
	}
	return append(members, m), nil
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// parseYAML reads one YAML document.
func parseYAML(source string, data []byte) (value, error) {
	d := &document{source: source}
	var node yaml.Node
	if err := yaml.Unmarshal(data, &node); err != nil {
		return value{}, fmt.Errorf("%s: not YAML: %s", source, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if len(node.Content) == 0 {
		return value{kind: null, line: 1, doc: d}, nil
	}
	return d.yaml(node.Content[0], "", 0)
}

// maxDepth bounds nesting, also through aliases.
const maxDepth = 32

func (d *document) yaml(n *yaml.Node, path string, depth int) (value, error) {
	v := value{path: path, line: n.Line, doc: d, text: n.Value}
	if depth > maxDepth {
		return v, v.errorf("%s is nested %d deep; %d is accepted", path, depth, maxDepth)
	}
	switch n.Kind {
	case yaml.AliasNode:
		return d.yaml(n.Alias, path, depth+1)
	case yaml.SequenceNode:
		v.kind = list
		for i, c := range n.Content {
			e, err := d.yaml(c, fmt.Sprintf("%s[%d]", path, i), depth+1)
			if err != nil {
				return v, err
			}
			v.elems = append(v.elems, e)
		}
	case yaml.MappingNode:
		v.kind = object
		for i := 0; i+1 < len(n.Content); i += 2 {
			m := member{name: n.Content[i].Value, line: n.Content[i].Line}
			var err error
			if m.value, err = d.yaml(n.Content[i+1], join(path, m.name), depth+1); err != nil {
				return v, err
			}
			if v.members, err = d.add(v.members, m); err != nil {
				return v, err
			}
		}
	default:
		switch n.ShortTag() {
		case "!!null":
			v.kind = null
		case "!!bool":
			v.kind, v.text = boolean, strings.ToLower(n.Value)
		case "!!int", "!!float":
			v.kind = number
		default:
			v.kind = text
		}
	}
	return v, nil
}

// Phrases for the accepted values.
const (
	wantObject   = "an object"
	wantList     = "a list"
	wantBool     = "true or false"
	wantText     = "a text"
	wantNumber   = "a finite number of at least 0"
	wantFraction = "a number from 0 to 1"
	wantUint     = "a whole number of at least 0"
	wantPositive = "a whole number of at least 1"
	wantOrNull   = " or null"
)

func (v value) real(accepted string) (float64, error) {
	x, err := strconv.ParseFloat(v.text, 64)
	if v.kind != number || err != nil || math.IsInf(x, 0) || math.IsNaN(x) {
		return 0, v.refuse(accepted)
	}
	return x, nil
}

// whole reads a whole number in plain digits up to most.
func (v value) whole(accepted string, most uint64) (uint64, error) {
	n, err := strconv.ParseUint(v.text, 10, 64)
	switch {
	case v.kind != number || err != nil && !errors.Is(err, strconv.ErrRange):
		return 0, v.refuse(accepted)
	case err != nil || n > most:
		return 0, v.errorf("%s is %s; at most %d is accepted", v.path, v.found(), most)
	}
	return n, nil
}

func (v value) bool() (bool, error) {
	if v.kind != boolean {
		return false, v.refuse(wantBool)
	}
	return v.text == "true", nil
}

func (v value) string() (string, error) {
	if v.kind != text {
		return "", v.refuse(wantText)
	}
	return v.text, nil
}

// word is the position of a text among words.
func (v value) word(words []string) (int, error) {
	if i := slices.Index(words, v.text); v.kind == text && i >= 0 {
		return i, nil
	}
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = strconv.Quote(w)
	}
	return 0, v.refuse(alternatives(quoted))
}

// alternatives is "a, b or c".
func alternatives(list []string) string {
	if len(list) == 1 {
		return list[0]
	}
	return strings.Join(list[:len(list)-1], ", ") + " or " + list[len(list)-1]
}

// unknown words a name that is none of those that there are.
func (v value) unknown(m member, names []string) error {
	shown := cliutil.Quote(join(v.path, m.name))
	if near, ok := cliutil.Nearest(m.name, names); ok {
		return v.doc.errorAt(m.line, "unknown field %s; did you mean %s?", shown, near)
	}
	return v.doc.errorAt(m.line, "unknown field %s; known fields here are %s", shown, strings.Join(names, ", "))
}
