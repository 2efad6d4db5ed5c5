package profile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"

	"github.com/dryserve/dryserve/host/native/cliutil"
)

// maxJSONBytes bounds a file; a grid of 800 points has 16 KiB.
const maxJSONBytes = 16 << 20

// maxDepth bounds nesting; grids have four levels.
const maxDepth = 16

// wholeFile is what sentences call the outermost value.
const wholeFile = "the file"

// document is a JSON file that is read strictly: no field twice, no field
// unknown, null is no number.
type document struct {
	path string
	root node
}

// node is a JSON value: json.Number, string, bool, nil, []node or members.
type node struct {
	value any
}

type members struct {
	names  []string // as they stand in the file
	values map[string]node
}

func readJSON(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: no such file; a JSON file is accepted", path)
		}
		return nil, fmt.Errorf("%s: cannot be opened: %w", path, cliutil.Reason(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxJSONBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be read: %w", path, cliutil.Reason(err))
	}
	if len(data) > maxJSONBytes {
		return nil, fmt.Errorf("%s: is larger than %d MiB; a smaller JSON file is accepted", path, maxJSONBytes>>20)
	}
	return data, nil
}

func parseJSON(path string, data []byte) (document, error) {
	d := document{path: path}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var err error
	if d.root, err = readNode(dec, 0, ""); err == nil {
		if _, err = dec.Token(); err == io.EOF {
			return d, nil
		}
		if err == nil {
			err = errors.New("something follows the object")
		}
	}
	rest := bytes.TrimLeft(data[dec.InputOffset():], " \t\r\n,:") // what follows the last good token
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err, rest = errors.New("the text ends too early"), nil
	}
	line := 1 + bytes.Count(data[:len(data)-len(rest)], []byte("\n"))
	return d, fmt.Errorf("%s: line %d: %w; one JSON object is accepted", path, line, err)
}

// readNode reads one value; at is its path for sentences.
func readNode(dec *json.Decoder, depth int, at string) (node, error) {
	if depth > maxDepth {
		return node{}, fmt.Errorf("values are nested more than %d deep", maxDepth)
	}
	t, err := dec.Token()
	if err != nil {
		return node{}, err
	}
	switch t {
	case json.Delim('['):
		elements := []node{}
		for dec.More() {
			n, err := readNode(dec, depth+1, at)
			if err != nil {
				return node{}, err
			}
			elements = append(elements, n)
		}
		_, err := dec.Token()
		return node{elements}, err
	case json.Delim('{'):
		m := members{values: map[string]node{}}
		for dec.More() {
			t, err := dec.Token()
			if err != nil {
				return node{}, err
			}
			name, _ := t.(string)
			if _, again := m.values[name]; again {
				return node{}, fmt.Errorf("field %s stands twice", cliutil.Quote(join(at, name)))
			}
			if m.values[name], err = readNode(dec, depth+1, join(at, name)); err != nil {
				return node{}, err
			}
			m.names = append(m.names, name)
		}
		_, err := dec.Token()
		return node{m}, err
	}
	return node{t}, nil
}

// join is the path of a field of the object at.
func join(at, name string) string {
	if at == "" || at == wholeFile {
		return name
	}
	return at + "." + name
}

// errorf words a fault of the value at.
func (d document) errorf(at, format string, args ...any) error {
	return fmt.Errorf("%s: %s %s", d.path, at, fmt.Sprintf(format, args...))
}

// found is a value as sentences quote it.
func (n node) found() string {
	switch v := n.value.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		if len(v) > 40 {
			return "a number of " + strconv.Itoa(len(v)) + " digits"
		}
		return v.String()
	case string:
		return cliutil.Quote(v)
	case []node:
		return "an array"
	}
	return "an object"
}

// object is a node that must be an object. Fields beyond known are refused
// unless known is nil.
func (d document) object(n node, at string, known []string) (members, error) {
	m, ok := n.value.(members)
	if !ok {
		return members{}, d.errorf(at, "is %s; an object is accepted", n.found())
	}
	for _, name := range m.names {
		if known == nil || slices.Contains(known, name) {
			continue
		}
		hint := ""
		if near, ok := cliutil.Nearest(name, known); ok {
			hint = " (did you mean " + near + "?)"
		}
		return members{}, fmt.Errorf("%s: unknown field %s%s; %s are accepted", d.path, cliutil.Quote(join(at, name)), hint, list(known))
	}
	return m, nil
}

// numbers is a node that must be an array of finite numbers.
func (d document) numbers(n node, at string) ([]float64, error) {
	elements, ok := n.value.([]node)
	if !ok {
		return nil, d.errorf(at, "is %s; an array of numbers is accepted", n.found())
	}
	out := make([]float64, len(elements))
	for i, e := range elements {
		x, err := d.number(e, at+"["+strconv.Itoa(i)+"]")
		if err != nil {
			return nil, err
		}
		out[i] = x
	}
	return out, nil
}

// number is a node that must be a number within float64.
func (d document) number(n node, at string) (float64, error) {
	v, ok := n.value.(json.Number)
	if !ok {
		return 0, d.errorf(at, "is %s; a number is accepted", n.found())
	}
	x, err := strconv.ParseFloat(v.String(), 64)
	if err != nil {
		return 0, d.errorf(at, "is %s; a number within the range of float64 is accepted", n.found())
	}
	return x, nil
}

// count is a node that must be a whole number from 1 to limit.
func (d document) count(n node, at string, limit int) (int, error) {
	if v, ok := n.value.(json.Number); ok {
		if i, err := strconv.ParseInt(v.String(), 10, 64); err == nil && i >= 1 && i <= int64(limit) {
			return int(i), nil
		}
	}
	return 0, d.errorf(at, "is %s; a whole number from 1 to %d is accepted", n.found(), limit)
}

// text is a node that must be a string.
func (d document) text(n node, at string) (string, error) {
	s, ok := n.value.(string)
	if !ok {
		return "", d.errorf(at, "is %s; a text is accepted", n.found())
	}
	return s, nil
}
