package sweep

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"github.com/dryserve/dryserve/host/native/cliutil"
)

// Outcome is what a point gave: a report, or why there is none.
type Outcome struct {
	Digest   string          `json:"digest"`
	Settings Settings        `json:"settings"`
	GPUs     float64         `json:"gpus,omitempty"`   // on average, where workers come and go
	Report   json.RawMessage `json:"report,omitempty"` // an object
	Error    string          `json:"error,omitempty"`

	numbers map[string]json.RawMessage
}

// Number is one of the report; NaN: it has none of that name.
func (o *Outcome) Number(key string) float64 {
	if o.numbers == nil && o.Report != nil {
		_ = json.Unmarshal(o.Report, &o.numbers) // an object, see Store
	}
	x, err := strconv.ParseFloat(string(o.numbers[key]), 64)
	if err != nil {
		return math.NaN()
	}
	return x
}

// PerGPU is the output tokens per second that a GPU gives.
func (o *Outcome) PerGPU() float64 {
	return o.Number("output_throughput_tok_s") / o.GPUs
}

// Served reports whether some requests were served and none refused.
func (o *Outcome) Served() bool {
	return o.Number("completed_requests") > 0 && o.Number("rejected_requests")+o.Number("failed_requests") == 0
}

// ResultsFile is the name of the file of results in its directory.
const ResultsFile = "results.jsonl"

// Store is a file of results that outcomes are added to. It is for one
// goroutine.
type Store struct {
	Path     string
	Torn     int // bytes of an unfinished line that were taken away
	outcomes map[string]*Outcome
	file     *os.File
}

// settle brings the entry of a new file to disk, where the system can do so.
func settle(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		d.Close()
	}
}

// Open opens the file of results in a directory, both made if need be, and
// keeps other processes from it. A line without an end, which an interruption
// has left, is taken away. Errors are sentences.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("cannot write to %s: %w", dir, cliutil.Reason(err))
	}
	s := &Store{Path: filepath.Join(dir, ResultsFile), outcomes: map[string]*Outcome{}}
	var err error
	if s.file, err = os.OpenFile(s.Path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o666); err != nil {
		return nil, s.cannot("write", err)
	}
	settle(dir)
	if lock(s.file) {
		err = fmt.Errorf("another sweep writes %s; one at a time, or another directory of --output, is accepted", s.Path)
	} else {
		err = s.read()
	}
	if err != nil {
		s.file.Close()
		return nil, err
	}
	return s, nil
}

func (s *Store) cannot(verb string, err error) error {
	return fmt.Errorf("cannot %s %s: %w", verb, s.Path, cliutil.Reason(err))
}

func (s *Store) read() error {
	text, err := os.ReadFile(s.Path)
	if err != nil {
		return s.cannot("read", err)
	}
	whole := bytes.LastIndexByte(text, '\n') + 1
	line := 0
	for row := range bytes.Lines(text[:whole]) {
		line++
		o := &Outcome{}
		if err := json.Unmarshal(row, o); err != nil || o.Digest == "" || (o.Report == nil) == (o.Error == "") || o.Report != nil && (!(o.GPUs > 0) || o.Report[0] != '{') {
			return fmt.Errorf("%s:%d: found %s; an outcome of a sweep, or another directory of --output, is accepted", s.Path, line, cliutil.Quote(string(bytes.TrimSuffix(row, []byte("\n")))))
		}
		s.outcomes[o.Digest] = o
	}
	if s.Torn = len(text) - whole; s.Torn > 0 {
		if err := s.file.Truncate(int64(whole)); err != nil {
			return s.cannot("write", err)
		}
	}
	return nil
}

// Outcome is that with a digest, nil if there is none.
func (s *Store) Outcome(digest string) *Outcome { return s.outcomes[digest] }

// Add writes outcomes, and returns when they are on disk.
func (s *Store) Add(outcomes ...*Outcome) error {
	var lines []byte
	for _, o := range outcomes {
		if s.outcomes[o.Digest] != nil {
			continue
		}
		line, err := json.Marshal(o)
		if err != nil {
			return err
		}
		lines = append(append(lines, line...), '\n')
		s.outcomes[o.Digest] = o
	}
	if lines == nil {
		return nil
	}
	if _, err := s.file.Write(lines); err != nil {
		return s.cannot("write", err)
	}
	if err := s.file.Sync(); err != nil {
		return s.cannot("write", err)
	}
	return nil
}

// Close lets others have the file.
func (s *Store) Close() error { return s.file.Close() }
