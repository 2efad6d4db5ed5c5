package scenario

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Entry is a flag as Write writes it.
type Entry struct {
	Name   string
	Given  bool   // else it is written as a comment, with its default
	Text   string // as on a command line
	Plain  bool   // a number, or true or false
	Kind   Kind
	Inline []byte // of JSON: the text itself, also where the flag names a file
}

// Section is entries under a heading.
type Section struct {
	Title   string
	Entries []Entry
}

// Write writes a file. Relative paths count from dir and become absolute, so
// that the file may stand anywhere.
func Write(w io.Writer, head, dir string, traces []string, sections []Section) error {
	var b bytes.Buffer
	b.WriteString("# " + head + "\n")
	if len(traces) > 0 {
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for _, t := range traces {
			list.Content = append(list.Content, text(below(dir, t)))
		}
		value := list
		if len(traces) == 1 {
			value = list.Content[0]
		}
		if err := put(&b, TraceKey, value); err != nil {
			return err
		}
	}
	for _, s := range sections {
		b.WriteString("\n# " + s.Title + "\n")
		for _, e := range s.Entries {
			if !e.Given {
				b.WriteString(strings.TrimRight("# "+e.Name+": "+e.Text, " ") + "\n")
				continue
			}
			value, err := e.node(dir)
			if err == nil {
				err = put(&b, e.Name, value)
			}
			if err != nil {
				return err
			}
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// put writes a key with its value.
func put(b *bytes.Buffer, name string, value *yaml.Node) error {
	encoder := yaml.NewEncoder(b)
	encoder.SetIndent(2)
	err := encoder.Encode(&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{text(name), value}})
	if closing := encoder.Close(); err == nil {
		err = closing
	}
	return err
}

func text(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	if strings.ContainsAny(s, "\n\r") || strings.TrimSpace(s) != s {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// node is the value of an entry.
func (e *Entry) node(dir string) (*yaml.Node, error) {
	switch {
	case e.Kind == JSON && e.Inline != nil:
		tokens := json.NewDecoder(bytes.NewReader(e.Inline))
		tokens.UseNumber()
		n, err := fromJSON(tokens, "", dir)
		if err != nil {
			return nil, fmt.Errorf("--%s is not JSON: %w", e.Name, err)
		}
		return n, nil
	case e.Kind == Path:
		return text(below(dir, e.Text)), nil
	case e.Plain:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: e.Text}, nil
	}
	return text(e.Text), nil
}

// fromJSON is the next value as YAML; key is that of the object it is in.
func fromJSON(tokens *json.Decoder, key, dir string) (*yaml.Node, error) {
	token, err := tokens.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		if t == '{' {
			n.Kind = yaml.MappingNode
		}
		for tokens.More() {
			name := ""
			if t == '{' {
				k, err := tokens.Token()
				if err != nil {
					return nil, err
				}
				name = k.(string)
				n.Content = append(n.Content, text(name))
			}
			value, err := fromJSON(tokens, name, dir)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, value)
		}
		if len(n.Content) == 0 || t == '[' {
			n.Style = yaml.FlowStyle
		}
		_, err := tokens.Token()
		return n, err
	case json.Number:
		return number(t.String()), nil
	case string:
		if slices.Contains(pathKeys, key) {
			t = below(dir, t)
		}
		return text(t), nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: fmt.Sprint(t)}, nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
}

// number keeps the spelling of a number.
func number(s string) *yaml.Node {
	tag := "!!int"
	if strings.ContainsAny(s, ".eE") {
		tag = "!!float"
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: s}
}
