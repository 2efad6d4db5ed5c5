package compare

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/dryserve/dryserve/host/native/cliutil"
)

// Report is a report that was read.
type Report struct {
	Path   string
	values map[string]Value
}

// maxBytes bounds a report; real ones have a few KB.
const maxBytes = 64 << 20

// wanted are keys that every report has.
var wanted = []string{"num_requests", "duration_ms", "mean_ttft_ms"}

const accepted = "a report that replay --report-json has written is accepted"

// Read reads the report at path. Errors are one sentence.
func Read(path string) (*Report, error) {
	data, err := load(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: no such file; %s", path, accepted)
	case err != nil:
		return nil, fmt.Errorf("%s: cannot be read: %w; %s", path, cliutil.Reason(err), accepted)
	}
	return Parse(path, data)
}

func load(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err == nil && len(data) > maxBytes {
		err = fmt.Errorf("it has more than %d MB", maxBytes>>20)
	}
	return data, err
}

// Parse reads a report from its text; path names it.
func Parse(path string, data []byte) (*Report, error) {
	var doc any
	tokens := json.NewDecoder(strings.NewReader(string(data)))
	tokens.UseNumber()
	err := tokens.Decode(&doc)
	if err == nil {
		if _, more := tokens.Token(); more != io.EOF {
			err = errors.New("there is more after the first value")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s:%d: not JSON: %s; %s", path, lineOf(data, err, tokens), strings.TrimPrefix(err.Error(), "json: "), accepted)
	}
	object, ok := doc.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s: is JSON, but no object; %s", path, accepted)
	}
	r := &Report{Path: path, values: map[string]Value{}}
	if err := r.add("", object); err != nil {
		return nil, fmt.Errorf("%s: %w; %s", path, err, accepted)
	}
	for _, key := range wanted {
		if v, ok := r.values[key]; !ok || !v.Number {
			return nil, fmt.Errorf("%s: has no number %q; %s", path, key, accepted)
		}
	}
	return r, nil
}

// lineOf is the line that the decoder did not understand.
func lineOf(data []byte, err error, tokens *json.Decoder) int {
	at := tokens.InputOffset()
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		at = syntax.Offset
	case errors.Is(err, io.ErrUnexpectedEOF):
		at = int64(len(data))
	}
	return 1 + strings.Count(string(data[:min(at, int64(len(data)))]), "\n")
}

// add keeps a value under its key.
func (r *Report) add(key string, v any) error {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			below := name
			if key != "" {
				below = key + "." + name
			}
			if err := r.add(below, inner); err != nil {
				return err
			}
		}
	case []any:
		for i, inner := range v {
			if err := r.add(key+"["+strconv.Itoa(i)+"]", inner); err != nil {
				return err
			}
		}
	case json.Number:
		x, err := v.Float64()
		if err != nil {
			return fmt.Errorf("%s is %s, which no 64-bit float is", key, v)
		}
		r.values[key] = Value{Text: v.String(), Number: true, X: x}
	case string:
		r.values[key] = Value{Text: strconv.Quote(v)}
	case bool:
		r.values[key] = Value{Text: strconv.FormatBool(v)}
	default:
		r.values[key] = Value{Text: "null"}
	}
	return nil
}
