package gen

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// TraceFile is the name of a case's trace, as its Files lists it.
const TraceFile = "trace.jsonl"

// ReplayCase is one offline replay both programs can run. Its JSON form is
// that of a recorded case's case.json: file names and the keyword arguments
// of the reference's run_trace_replay, or, with Synthetic, the sizes and the
// keyword arguments of its run_synthetic_trace_replay.
type ReplayCase struct {
	Name      string         `json:"name"`
	Files     []string       `json:"files"`
	Synthetic map[string]any `json:"synthetic,omitempty"`
	Kwargs    map[string]any `json:"kwargs"`
	Rows      []Row          `json:"-"` // the content of a Mooncake trace
	Docs      []Doc          `json:"-"` // the content of any other
	Scaling   *Scaling       `json:"scaling_policy,omitempty"`

	Profile []byte `json:"-"` // the content of ProfileFile; nil: there is none
}

// Doc is a file of a trace as lines of text; a name that ends in .gz is
// compressed when it is written.
type Doc struct {
	Name  string   `json:"name"`
	Lines []string `json:"lines"`
}

// Engine returns the engine object inside the extra engine args, or in those of
// the first pool where there are two; changing it changes the case. It makes the
// object if there is none.
func (c *ReplayCase) Engine() map[string]any {
	return c.engine("extra_engine_args", "prefill_engine_args")
}

// DecodeEngine is Engine, but of the second pool.
func (c *ReplayCase) DecodeEngine() map[string]any {
	return c.engine("extra_engine_args", "decode_engine_args")
}

func (c *ReplayCase) engine(only, pool string) map[string]any {
	if c.Kwargs[pool] != nil {
		only = pool
	}
	return object(object(c.Kwargs, only), "engine")
}

func object(parent map[string]any, key string) map[string]any {
	child, ok := parent[key].(map[string]any)
	if !ok {
		child = map[string]any{}
		parent[key] = child
	}
	return child
}

// Trace is the text of the trace, for people if it is not a Mooncake one.
func (c *ReplayCase) Trace() []byte {
	var b bytes.Buffer
	for _, d := range c.Docs {
		fmt.Fprintf(&b, "%s:\n%s", d.Name, d.text())
	}
	if err := WriteRows(&b, c.Rows); err != nil {
		panic(fmt.Sprintf("gen: a row of %s does not marshal: %v", c.Name, err))
	}
	return b.Bytes()
}

// Unplan drops the output tokens that rows plan, which asks for as many of
// unknown content, and reports whether there were any.
func (c *ReplayCase) Unplan() bool {
	any := false
	for i := range c.Rows {
		r := &c.Rows[i]
		any = any || r.OutputTokenIDs != nil
		r.OutputTokenIDs = nil
	}
	return any
}

// Clone copies everything but the profile and the rows' own slices and
// pointers, which are never changed in place.
func (c *ReplayCase) Clone() *ReplayCase {
	d := *c
	d.Files = slices.Clone(c.Files)
	d.Kwargs = cloneObject(c.Kwargs)
	if c.Synthetic != nil {
		d.Synthetic = cloneObject(c.Synthetic)
	}
	d.Rows = append([]Row(nil), c.Rows...)
	d.Docs = slices.Clone(c.Docs)
	if c.Scaling != nil {
		s := *c.Scaling
		s.Decisions = slices.Clone(s.Decisions)
		d.Scaling = &s
	}
	for i := range d.Docs {
		d.Docs[i].Lines = slices.Clone(d.Docs[i].Lines)
	}
	return &d
}

func cloneObject(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		if child, ok := v.(map[string]any); ok {
			v = cloneObject(child)
		}
		out[k] = v
	}
	return out
}

// WriteInputs writes the trace under its name in Files, if the case has one,
// and the profile, if there is one, below dir.
func (c *ReplayCase) WriteInputs(dir string) error {
	if c.Profile != nil {
		if err := os.WriteFile(filepath.Join(dir, ProfileFile), c.Profile, 0o644); err != nil {
			return err
		}
	}
	if c.Synthetic != nil {
		return nil
	}
	if c.Docs != nil {
		return WriteDocs(dir, c.Docs)
	}
	return os.WriteFile(filepath.Join(dir, TraceFile), c.Trace(), 0o644)
}

// WriteDocs writes the files of a trace below dir.
func WriteDocs(dir string, docs []Doc) error {
	for _, d := range docs {
		text := d.text()
		if strings.HasSuffix(d.Name, ".gz") {
			var b bytes.Buffer
			zip := gzip.NewWriter(&b)
			zip.Write(text) // to memory
			zip.Close()
			text = b.Bytes()
		}
		path := filepath.Join(dir, d.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// ReadDoc reads a file that WriteDocs wrote.
func ReadDoc(dir, name string) (Doc, error) {
	d := Doc{Name: name}
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err == nil && strings.HasSuffix(name, ".gz") {
		var zip *gzip.Reader
		if zip, err = gzip.NewReader(bytes.NewReader(text)); err == nil {
			text, err = io.ReadAll(zip)
		}
	}
	d.Lines = strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	return d, err
}

// text is the content of the file.
func (d *Doc) text() []byte {
	var b bytes.Buffer
	for _, line := range d.Lines {
		b.WriteString(line + "\n")
	}
	return b.Bytes()
}

// MarshalCase is the text of the case's case.json.
func (c *ReplayCase) MarshalCase() ([]byte, error) {
	text, err := json.MarshalIndent(c, "", " ")
	return append(text, '\n'), err
}
