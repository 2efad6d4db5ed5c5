package engineargs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dryserve/dryserve/host/native/cliutil"
)

type kind uint8

const (
	null kind = iota
	boolean
	number
	text
	array
	object
)

// value is one JSON value with its place in the text.
type value struct {
	kind    kind
	yes     bool   // boolean
	text    string // literal of a number, content of a text
	members []member
	elems   []value
	path    string // dotted, "" for the document
	offset  int    // of its first byte
}

// member is one field of an object, in the order of the text.
type member struct {
	name   string
	offset int // of the name
	value  value
}

// notBuilt is a value that asks for a feature which is not built yet, and
// what is accepted instead.
type notBuilt struct {
	feature  string
	at       value
	accepted string
}

// decoder turns one document into Args. at remembers where each field was
// read, so that rules between fields can name a place.
type decoder struct {
	source   string
	data     []byte
	options  Options
	args     Args
	at       map[string]value
	older    bool // the flat form of the older releases
	pageSize int  // sglang.page_size of the flat form
	flatHost flatHost

	estimator estimator

	accepts map[string]string // phrase of each field read
	rates   OptString         // aic_nextn_accept_rates as written
	feature notBuilt          // first feature asked for and not built
}

// document parses the whole text; it is the only place that sees bad JSON.
func (d *decoder) document() (value, error) {
	d.at = make(map[string]value)
	d.accepts = make(map[string]string)
	if bad := firstInvalidUTF8(d.data); bad >= 0 {
		return value{}, d.errorAt(bad, "byte 0x%02x is not UTF-8; JSON in UTF-8 is accepted", d.data[bad])
	}
	// A whole-text check first: its errors have offsets, and the token walk
	// below cannot fail after it.
	var whole json.RawMessage
	if err := json.Unmarshal(d.data, &whole); err != nil {
		var syntax *json.SyntaxError
		if !errors.As(err, &syntax) {
			return value{}, d.errorAt(0, "not JSON: %v", err)
		}
		offset := int(syntax.Offset)
		if offset > 0 && offset <= len(d.data) && syntax.Error() != "unexpected end of JSON input" {
			offset-- // Offset counts the bad byte itself
		}
		return value{}, d.errorAt(offset, "not JSON: %v", syntax)
	}
	tokens := json.NewDecoder(bytes.NewReader(d.data))
	tokens.UseNumber()
	return d.next(tokens, "")
}

func firstInvalidUTF8(data []byte) int {
	if utf8.Valid(data) {
		return -1
	}
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

// next reads one value. Duplicate names are refused here for every object.
func (d *decoder) next(tokens *json.Decoder, path string) (value, error) {
	v := value{path: path, offset: d.start(tokens)}
	token, err := tokens.Token()
	if err != nil {
		return value{}, d.errorAt(v.offset, "not JSON: %v", err)
	}
	switch t := token.(type) {
	case nil:
		v.kind = null
	case bool:
		v.kind, v.yes = boolean, t
	case json.Number:
		v.kind, v.text = number, t.String()
	case string:
		v.kind, v.text = text, t
	case json.Delim:
		if t == '[' {
			v.kind = array
			err = d.elements(tokens, &v)
		} else {
			v.kind = object
			err = d.fields(tokens, &v)
		}
		if err != nil {
			return value{}, err
		}
		tokens.Token() // the closing delimiter, known to be there
	}
	return v, nil
}

func (d *decoder) elements(tokens *json.Decoder, v *value) error {
	for tokens.More() {
		e, err := d.next(tokens, fmt.Sprintf("%s[%d]", v.path, len(v.elems)))
		if err != nil {
			return err
		}
		v.elems = append(v.elems, e)
	}
	return nil
}

func (d *decoder) fields(tokens *json.Decoder, v *value) error {
	seen := make(map[string]bool)
	for tokens.More() {
		m := member{offset: d.start(tokens)}
		token, _ := tokens.Token()
		m.name, _ = token.(string)
		if seen[m.name] {
			return d.errorAt(m.offset, "field %s appears twice; once is accepted", cliutil.Quote(join(v.path, m.name)))
		}
		seen[m.name] = true
		var err error
		if m.value, err = d.next(tokens, join(v.path, m.name)); err != nil {
			return err
		}
		v.members = append(v.members, m)
	}
	return nil
}

// start is the offset of the next token's first byte.
func (d *decoder) start(tokens *json.Decoder) int {
	i := int(tokens.InputOffset())
	for i < len(d.data) && strings.IndexByte(" \t\r\n,:", d.data[i]) >= 0 {
		i++
	}
	return i
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// found says what a value is, for "x is <found>; y is accepted".
func (v value) found() string {
	switch v.kind {
	case null:
		return "null"
	case boolean:
		return fmt.Sprintf("the boolean %v", v.yes)
	case number:
		return "the number " + shorten(v.text)
	case text:
		return "the text " + cliutil.Quote(v.text)
	case array:
		return "an array"
	default:
		return "an object"
	}
}

// shorten keeps a number literal of any length readable.
func shorten(literal string) string {
	if len(literal) <= 40 {
		return literal
	}
	return literal[:40] + "..."
}

func (d *decoder) errorf(v value, format string, args ...any) error {
	return d.errorAt(v.offset, format, args...)
}

// errorAt prefixes a sentence with source:line:column, columns in characters.
func (d *decoder) errorAt(offset int, format string, args ...any) error {
	before := d.data[:min(max(offset, 0), len(d.data))]
	line := 1 + bytes.Count(before, []byte{'\n'})
	column := 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
	return fmt.Errorf("%s:%d:%d: %s", d.source, line, column, fmt.Sprintf(format, args...))
}
