package answer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/dryserve/dryserve/host/native/cliutil"
)

// Recorded are answers of a trace by the keys that requests ask for them with.
type Recorded map[string][]uint32

// Annotation is how a request names the answer it wants: as an annotation that
// begins so, a key behind it.
const Annotation = "output_replay_id:"

// row is what counts of a line of a trace.
type row struct {
	RequestID    json.RawMessage `json:"request_id"`
	SessionID    json.RawMessage `json:"session_id"`
	OutputLength json.RawMessage `json:"output_length"`
	OutputTokens json.RawMessage `json:"output_tokens"`
	IDs          json.RawMessage `json:"output_token_ids"`
}

// Load reads the answers of a trace in Mooncake's JSON lines. Every error is one
// sentence that names the file and the line.
func Load(path string) (Recorded, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, cliutil.Reason(err))
	}
	return Parse(path, text)
}

// Parse is Load for a text, which path names in sentences.
//
// The key of a row is its request_id without space around it; else, of the n-th
// row (from 0) of a session, "session:n"; else "line:n", n the number of the line
// (from 0). Rows without output_token_ids are left out, but count.
func Parse(path string, text []byte) (Recorded, error) {
	table, turns := Recorded{}, map[string]int{}
	n := -1
	for line := range bytes.Lines(text) {
		n++
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		key, ids, err := parseRow(line, n, turns)
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", path, n+1, err)
		}
		if ids == nil {
			continue
		}
		if _, twice := table[key]; twice {
			return nil, fmt.Errorf("%s: line %d: the key %s has an answer already; each key once is accepted", path, n+1, cliutil.Quote(key))
		}
		table[key] = ids
	}
	return table, nil
}

// parseRow reads line number n; ids is nil for one without an answer.
func parseRow(line []byte, n int, turns map[string]int) (key string, ids []uint32, err error) {
	var r row
	d := json.NewDecoder(bytes.NewReader(line))
	if err := d.Decode(&r); err != nil {
		return "", nil, errors.New("it is not a JSON object; one request a line is accepted")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return "", nil, errors.New("it has something behind the JSON object; one request a line is accepted")
	}
	request, err := text("request_id", r.RequestID)
	if err != nil {
		return "", nil, err
	}
	session, err := text("session_id", r.SessionID)
	if err != nil {
		return "", nil, err
	}
	key = strings.TrimSpace(request)
	if key == "" {
		key = "line:" + strconv.Itoa(n)
		if session != "" {
			key = session + ":" + strconv.Itoa(turns[session])
		}
	}
	if session != "" {
		turns[session]++
	}
	if absent(r.IDs) {
		return "", nil, nil
	}
	ids, err = tokens(r.IDs)
	if err != nil {
		return "", nil, err
	}
	name, length := "output_length", r.OutputLength
	if absent(length) && !absent(r.OutputTokens) {
		name, length = "output_tokens", r.OutputTokens
	}
	if absent(length) {
		return "", nil, errors.New("output_length is missing; the number of output_token_ids is accepted")
	}
	if want, err := strconv.ParseUint(string(length), 10, 63); err != nil || int(want) != len(ids) {
		return "", nil, fmt.Errorf("%s is %s; %d, the number of output_token_ids, is accepted", name, cliutil.Quote(string(length)), len(ids))
	}
	return key, ids, nil
}

func absent(v json.RawMessage) bool { return v == nil || string(v) == "null" }

func text(name string, v json.RawMessage) (s string, err error) {
	if absent(v) {
		return "", nil
	}
	if json.Unmarshal(v, &s) != nil {
		return "", fmt.Errorf("%s is %s; a string is accepted", name, cliutil.Quote(string(v)))
	}
	return s, nil
}

// tokens reads a list of ids, not nil.
func tokens(v json.RawMessage) ([]uint32, error) {
	var list []json.RawMessage
	if json.Unmarshal(v, &list) != nil {
		return nil, fmt.Errorf("output_token_ids is %s; a list of whole numbers is accepted", cliutil.Quote(string(v)))
	}
	ids := make([]uint32, 0, len(list))
	for i, x := range list {
		id, err := strconv.ParseUint(string(x), 10, 32)
		if err != nil {
			return nil, fmt.Errorf("output_token_ids[%d] is %s; a whole number from 0 to %d is accepted", i, cliutil.Quote(string(x)), uint32(math.MaxUint32))
		}
		ids = append(ids, uint32(id))
	}
	return ids, nil
}
