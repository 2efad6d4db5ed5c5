// Package modelconfig reads how many bytes of KV cache a token takes out of a
// model's config.json.
//
// It owns which fields count and where they may stand. It does not download
// models, and it does not know what a model type's missing fields would be:
// the reference asks the transformers library for those, here they are an
// error.
//
// Invariants: the answer is above 0; every error is one sentence that names
// the file, the field, what was found and what is accepted.
//
// Source of behaviour: engine notes §2.4 and comparison with the reference.
package modelconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/dryserve/dryserve/host/native/cliutil"
)

// fileName is what a model's directory calls its configuration.
const fileName = "config.json"

// maxFileBytes bounds a configuration; real ones have under 100 KiB.
const maxFileBytes = 16 << 20

// maxDepth is how deep language models are looked for inside others.
const maxDepth = 3

// nestedFields are where models of several parts keep the language model, in
// the order they are looked at.
func nestedFields() []string {
	return []string{"text_config", "llm_config", "language_config", "decoder", "thinker_config"}
}

// The fields that count. A model without the fourth, or its other name, has as
// many KV heads as attention heads.
const (
	layersField  = "num_hidden_layers"
	headsField   = "num_attention_heads"
	hiddenField  = "hidden_size"
	kvHeadsField = "num_key_value_heads"
	kvHeadsOther = "num_kv_heads"
	headDimField = "head_dim"
)

// Options say how to count.
type Options struct {
	// UseHeadDim takes a head's size from head_dim where the file has it. The
	// reference always divides hidden_size by the number of heads, which is
	// too little for models with larger heads: 80 instead of 128 for
	// Qwen3-32B.
	UseHeadDim bool
	// CacheDType is the type of the cache's numbers; empty or "auto" for that
	// of the model's.
	CacheDType string
}

// KVBytesPerToken is the number of bytes that a token's keys and values take
// in all layers of the model at path, a directory or its config.json.
func (o Options) KVBytesPerToken(path string) (int, error) {
	path, data, err := read(path)
	if err != nil {
		return 0, err
	}
	return o.Parse(path, data)
}

// Parse is KVBytesPerToken for a config.json in memory, which path names in
// sentences.
func (o Options) Parse(path string, data []byte) (int, error) {
	c := config{path: path}
	if err := json.Unmarshal(data, &c.fields); err != nil {
		return 0, fmt.Errorf("%s: %s; a JSON object is accepted", path, problem(data, err))
	}
	if c.fields == nil {
		return 0, fmt.Errorf("%s: is null; a JSON object is accepted", path)
	}
	model, ok := c.languageModel(maxDepth, config.whole)
	if !ok {
		model, ok = c.languageModel(maxDepth, config.has) // for the sentence
	}
	if !ok {
		return 0, fmt.Errorf("%s: has no object with %s, %s and %s; a model's config.json is accepted", path, layersField, headsField, hiddenField)
	}
	return o.count(model)
}

func (o Options) count(model config) (int, error) {
	var layers, heads, hidden uint64
	for _, f := range []struct {
		name string
		into *uint64
	}{{layersField, &layers}, {headsField, &heads}, {hiddenField, &hidden}} {
		var err error
		if *f.into, err = model.positive(f.name); err != nil {
			return 0, err
		}
	}
	kvHeads, headDim := heads, hidden/heads
	for _, name := range []string{kvHeadsField, kvHeadsOther} {
		if !model.has(name) {
			continue
		}
		var err error
		if kvHeads, err = model.positive(name); err != nil {
			return 0, err
		}
		break
	}
	if o.UseHeadDim && model.has(headDimField) {
		var err error
		if headDim, err = model.positive(headDimField); err != nil {
			return 0, err
		}
	}
	if headDim == 0 {
		return 0, fmt.Errorf("%s: %s is %d for %d attention heads; at least one per head is accepted", model.path, model.at(hiddenField), hidden, heads)
	}
	dtype := o.CacheDType
	if dtype == "" || dtype == "auto" {
		dtype = model.dtype()
	}
	n := uint64(1)
	for _, factor := range []uint64{layers, 2, kvHeads, headDim, dtypeBytes(dtype)} {
		high, low := bits.Mul64(n, factor)
		if high != 0 || low > math.MaxInt {
			return 0, fmt.Errorf("%s: %d layers, %d KV heads of %d take more bytes per token than can be counted; a model's config.json is accepted", model.path, layers, kvHeads, headDim)
		}
		n = low
	}
	return int(n), nil
}

// dtypeBytes is the size of a number. What the reference does not know has
// two bytes, as most models' types; fp8_e5m2 and types of 64 bits are among it.
func dtypeBytes(dtype string) uint64 {
	switch strings.TrimPrefix(dtype, "torch.") {
	case "float32":
		return 4
	case "int8", "fp8", "fp8_e4m3", "fp8_inc", "fp8_ds_mla", "float8_e4m3fn", "float8_e5m2":
		return 1
	}
	return 2
}

func read(path string) (string, []byte, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, fileName)
	}
	f, err := os.Open(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return "", nil, fmt.Errorf("%s: no such file; a model's directory or its %s is accepted", path, fileName)
		}
		return "", nil, fmt.Errorf("%s: cannot be opened: %w", path, cliutil.Reason(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return "", nil, fmt.Errorf("%s: cannot be read: %w", path, cliutil.Reason(err))
	}
	if len(data) > maxFileBytes {
		return "", nil, fmt.Errorf("%s: is larger than %d MiB; a model's %s is accepted", path, maxFileBytes>>20, fileName)
	}
	return path, data, nil
}

// problem words what the JSON decoder met.
func problem(data []byte, err error) string {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		line := 1 + bytes.Count(data[:min(int(syntax.Offset), len(data))], []byte("\n"))
		return fmt.Sprintf("line %d: %v", line, err)
	case errors.As(err, &kind):
		return "is a JSON " + kind.Value
	}
	return "is no JSON"
}

// config is an object of the file.
type config struct {
	path   string
	prefix string // where it stands, for sentences
	fields map[string]json.RawMessage
}

// has reports whether a field is there and not null.
func (c config) has(name string) bool {
	raw, ok := c.fields[name]
	return ok && string(raw) != "null"
}

// whole reports whether a field is what the reference takes for a whole
// number: true and false are, 4.0 is not.
func (c config) whole(name string) bool {
	raw := strings.TrimPrefix(string(c.fields[name]), "-")
	return raw == "true" || raw == "false" || raw != "" && strings.Trim(raw, "0123456789") == ""
}

// languageModel is the first object that has the three fields without which
// nothing can be counted: this one, or one inside it, depth first.
func (c config) languageModel(depth int, has func(config, string) bool) (config, bool) {
	if has(c, layersField) && has(c, headsField) && has(c, hiddenField) {
		return c, true
	}
	if depth == 0 {
		return config{}, false
	}
	for _, name := range nestedFields() {
		inner := config{path: c.path, prefix: c.at(name) + "."}
		if !c.has(name) || json.Unmarshal(c.fields[name], &inner.fields) != nil {
			continue
		}
		if found, ok := inner.languageModel(depth-1, has); ok {
			return found, true
		}
	}
	return config{}, false
}

// at is a field's full name.
func (c config) at(name string) string { return c.prefix + name }

// positive is a field that must be a whole number above 0.
func (c config) positive(name string) (uint64, error) {
	raw := string(c.fields[name])
	n, err := strconv.ParseUint(raw, 10, 63)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%s: %s is %s; a whole number of at least 1 is accepted", c.path, c.at(name), found(raw))
	}
	return n, nil
}

// found is a value as sentences quote it.
func found(raw string) string {
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		var s string
		if json.Unmarshal([]byte(raw), &s) == nil {
			return cliutil.Quote(s)
		}
	}
	if len(raw) > 40 {
		return "a number of " + strconv.Itoa(len(raw)) + " characters"
	}
	return raw
}

// dtype is the type of the model's numbers, empty if it does not say.
func (c config) dtype() string {
	for _, name := range []string{"dtype", "torch_dtype"} {
		if c.has(name) {
			var s string
			if json.Unmarshal(c.fields[name], &s) != nil {
				return ""
			}
			return s
		}
	}
	return ""
}
