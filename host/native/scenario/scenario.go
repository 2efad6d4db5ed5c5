// Package scenario reads and writes a command line as a YAML file: flags by
// name, engine arguments and the like as YAML instead of JSON text. A file may
// have a sweep beside them: values that flags take in turn, and an SLA.
//
// It owns the file: its keys, places and paths. What a flag means is the
// program's.
//
// Invariants: what Write writes is read back as the same values. Relative paths
// count from the directory of the file. JSON that a flag gets for YAML has its
// keys on the lines, and where there is room in the columns, of the file, so
// that places in sentences about it are places in the file.
package scenario

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/dryserve/dryserve/host/native/cliutil"
)

// TraceKey is the key of the traces, which have no flag.
const TraceKey = "trace"

// Kind is what a flag takes.
type Kind uint8

// The kinds. Of Text a path is none.
const (
	Text Kind = iota
	Path
	JSON // JSON text, or the path of a file with it
)

// Known are the keys a file may have. Silent ones are not named to those who
// look for a key.
type Known struct {
	Names  []string
	Silent []string
	Kind   func(name string) Kind

	// Of sweeps; without them a file is that of one run. Axes are keys of a
	// sweep that are no flags, Bounds the numbers of a report that an SLA bounds.
	Sweep  bool
	Axes   []string
	Bounds []string
}

// Setting is a flag with its value.
type Setting struct {
	Name string
	Line int
	Text string // as on a command line
	JSON bool   // Text is JSON that stands in the file as YAML
}

// File is what a file says.
type File struct {
	Path     string
	Traces   []string
	Settings []Setting

	Grids  [][]Axis // of a sweep: each is all combinations of its values
	Bounds []Bound
}

// maxBytes bounds a file.
const maxBytes = 16 << 20

// Read reads a file. Errors are one sentence with the file and the line.
func Read(path string, known Known) (*File, error) {
	f, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: no such file; a YAML file with flags by name is accepted", path)
	case err != nil:
		return nil, fmt.Errorf("%s: cannot be opened: %w", path, cliutil.Reason(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: cannot be read: %w", path, cliutil.Reason(err))
	case len(data) > maxBytes:
		return nil, fmt.Errorf("%s: is larger than %d MiB; a YAML file with flags by name is accepted", path, maxBytes>>20)
	}
	return Parse(path, data, known)
}

// Parse reads the text of the file at path.
func Parse(path string, data []byte, known Known) (*File, error) {
	r := &reader{file: &File{Path: path}, dir: filepath.Dir(path), known: known}
	var doc yaml.Node
	decoder := yaml.NewDecoder(strings.NewReader(string(data)))
	err := decoder.Decode(&doc)
	if err == io.EOF || err == nil && len(doc.Content) == 0 {
		return r.file, nil
	}
	if err == nil {
		var second yaml.Node
		if err = decoder.Decode(&second); err == io.EOF {
			return r.file, r.root(doc.Content[0])
		}
		if err == nil {
			return nil, r.errorf(&second, "a second document begins here; one is accepted")
		}
	}
	return nil, fmt.Errorf("%s", notYAML(path, err))
}

// notYAML words an error of the library, which has the line in front.
func notYAML(path string, err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		if number, what, ok := strings.Cut(rest, ": "); ok {
			if _, err := strconv.Atoi(number); err == nil {
				return path + ":" + number + ": not YAML: " + what
			}
		}
	}
	return path + ": not YAML: " + strings.ReplaceAll(text, "\n", " ")
}

// reader is one Parse.
type reader struct {
	file  *File
	dir   string
	known Known
	nodes int // of JSON so far, aliases followed
}

func (r *reader) errorf(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", r.file.Path, n.Line, fmt.Sprintf(format, args...))
}

// root reads the outermost mapping.
func (r *reader) root(n *yaml.Node) error {
	n = resolved(n)
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		return r.errorf(n, "found %s; flags by name, as in \"num-workers: 4\", are accepted", what(n))
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], resolved(n.Content[i+1])
		name := key.Value
		section := name == SweepKey || name == SLAKey
		switch {
		case section && r.known.Sweep:
		case section:
			return r.errorf(key, "%s is for a sweep of runs, and this is one; the keys of a single run, or replay sweep, are accepted", name)
		case name != TraceKey && !slices.Contains(r.known.Names, name) && !slices.Contains(r.known.Silent, name):
			names := append([]string{TraceKey}, r.known.Names...)
			if r.known.Sweep {
				names = append(names, SweepKey, SLAKey)
			}
			return r.unknown(key, names)
		}
		if line := seen[name]; line > 0 {
			return r.errorf(key, "%s stands on line %d, too; once is accepted", name, line)
		}
		seen[name] = key.Line
		if value.Kind == yaml.ScalarNode && value.ShortTag() == "!!null" {
			continue // as if it were not there
		}
		var err error
		switch {
		case section && name == SweepKey:
			err = r.sweep(value)
		case section:
			err = r.bounds(value)
		default:
			err = r.setting(name, key, value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) unknown(key *yaml.Node, names []string) error {
	if key.Kind != yaml.ScalarNode {
		return r.errorf(key, "a key is %s; the name of a flag is accepted", what(key))
	}
	name := cliutil.Quote(key.Value)
	if near, ok := cliutil.Nearest(strings.TrimPrefix(key.Value, "--"), names); ok {
		return r.errorf(key, "unknown key %s; did you mean %s?", name, near)
	}
	return r.errorf(key, "unknown key %s; %s are accepted", name, strings.Join(names, ", "))
}

// setting reads a flag's value.
func (r *reader) setting(name string, key, value *yaml.Node) error {
	kind := Path
	if name != TraceKey {
		kind = r.known.Kind(name)
	}
	var texts []string
	switch {
	case value.Kind == yaml.ScalarNode:
		texts = []string{r.located(kind, value.Value)}
	case kind == JSON:
		text, err := r.json(value)
		if err != nil {
			return err
		}
		r.file.Settings = append(r.file.Settings, Setting{Name: name, Line: key.Line, Text: text, JSON: true})
		return nil
	case value.Kind == yaml.MappingNode:
		return r.errorf(value, "%s is %s; a single value is accepted", name, what(value))
	default:
		for _, e := range value.Content {
			if e = resolved(e); e.Kind != yaml.ScalarNode {
				return r.errorf(e, "%s has %s in its list; single values are accepted", name, what(e))
			}
			texts = append(texts, r.located(kind, e.Value))
		}
	}
	if name == TraceKey {
		r.file.Traces = texts
		return nil
	}
	r.file.Settings = append(r.file.Settings, Setting{Name: name, Line: key.Line, Text: strings.Join(texts, ",")})
	return nil
}

// located lets relative paths count from the file's directory.
func (r *reader) located(kind Kind, text string) string {
	if kind == Text || kind == JSON && IsJSON(text) {
		return text
	}
	return below(r.dir, text)
}

// below is a path that counts from dir. "-" and "" stay what they are.
func below(dir, path string) string {
	if path == "" || path == "-" || filepath.IsAbs(path) {
		return path
	}
	joined := filepath.Join(dir, path)
	if os.IsPathSeparator(path[len(path)-1]) {
		joined += string(filepath.Separator) // it says that a directory is meant
	}
	return joined
}

// IsJSON tells JSON from a path as the flags do.
func IsJSON(text string) bool {
	text = strings.TrimLeft(text, " \t\r\n")
	return text == "" || strings.IndexByte(`{["`, text[0]) >= 0
}

// resolved follows aliases.
func resolved(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// what names a node in a sentence.
func what(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "an object"
	case yaml.SequenceNode:
		return "a list"
	}
	return cliutil.Quote(n.Value)
}
