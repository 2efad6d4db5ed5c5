package oracle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/dryserve/dryserve/internal/gen"
)

// answerDir is the folder of a recorded case that holds what the reference of
// that release answered.
const answerDir = "api-1.6.1"

// Recorded is a case with the reference's answer. As a line of a corpus it
// carries its trace as text and its profile, if any, as base64.
type Recorded struct {
	Case    gen.ReplayCase `json:"case"`
	Trace   string         `json:"trace"`
	Docs    []gen.Doc      `json:"docs,omitempty"` // instead of Trace, where it is not a Mooncake one
	Profile []byte         `json:"profile,omitempty"`

	Report   map[string]any   `json:"report,omitempty"`
	Requests []map[string]any `json:"requests,omitempty"`
	Watched
	Error string `json:"error,omitempty"`
}

// NewRecorded pairs a case with an answer that is worth keeping: one that
// finished, was refused or met a dead end.
func NewRecorded(c *gen.ReplayCase, a Answer) (Recorded, error) {
	if a.Outcome == NoEnd || a.Outcome == Crash {
		return Recorded{}, fmt.Errorf("%s: the reference %s, so there is no answer to record", c.Name, outcomeText(a))
	}
	r := Recorded{Case: *c, Docs: c.Docs, Profile: c.Profile, Report: a.Report, Watched: a.Watched, Error: a.Error}
	if c.Docs == nil {
		r.Trace = string(c.Trace())
	}
	for _, record := range a.Requests {
		r.Requests = append(r.Requests, Trim(record))
	}
	return r, nil
}

// Answer is the recorded answer.
func (r *Recorded) Answer() Answer {
	if r.Error != "" {
		return Answer{Outcome: classify(r.Error), Error: r.Error}
	}
	return Answer{Report: r.Report, Requests: r.Requests, Watched: r.Watched}
}

// Save writes the case as a folder dir/name: trace and profile, and in
// answerDir case.json, report.json and requests.jsonl (an error stands in case.json).
func (r *Recorded) Save(dir string) error {
	top := filepath.Join(dir, r.Case.Name)
	sub := filepath.Join(top, answerDir)
	if err := os.MkdirAll(sub, 0o755); err != nil {
		return err
	}
	if err := r.WriteInputs(top); err != nil {
		return err
	}
	head := map[string]any{"name": r.Case.Name, "files": r.Case.Files, "kwargs": r.Case.Kwargs}
	if r.Case.Synthetic != nil {
		head["synthetic"] = r.Case.Synthetic
	}
	if r.Case.Scaling != nil {
		head["scaling_policy"] = r.Case.Scaling
	}
	if r.Error != "" {
		head["error"] = r.Error
	}
	if err := writeJSON(filepath.Join(sub, "case.json"), head); err != nil || r.Error != "" {
		return err
	}
	if err := writeJSON(filepath.Join(sub, "report.json"), r.Report); err != nil {
		return err
	}
	for _, f := range r.watchedFiles() {
		if *f.list != nil {
			if err := writeJSON(filepath.Join(sub, f.name), *f.list); err != nil {
				return err
			}
		}
	}
	var lines bytes.Buffer
	for _, record := range r.Requests {
		fmt.Fprintln(&lines, show(record))
	}
	return os.WriteFile(filepath.Join(sub, "requests.jsonl"), lines.Bytes(), 0o644)
}

// watchedFiles are the files of what a case with a policy or samples has besides.
func (r *Recorded) watchedFiles() []watchedFile {
	return []watchedFile{{"ticks.json", &r.Ticks}, {"lifecycle.json", &r.Lifecycle}, {"telemetry.json", &r.Telemetry}}
}

type watchedFile struct {
	name string
	list *[]map[string]any
}

// WriteInputs writes the files that the case reads.
func (r *Recorded) WriteInputs(dir string) error {
	if r.Profile != nil {
		if err := os.WriteFile(filepath.Join(dir, gen.ProfileFile), r.Profile, 0o644); err != nil {
			return err
		}
	}
	if r.Docs != nil {
		return gen.WriteDocs(dir, r.Docs)
	}
	return os.WriteFile(filepath.Join(dir, gen.TraceFile), []byte(r.Trace), 0o644)
}

func writeJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// readTrace reads the trace's files.
func (r *Recorded) readTrace(top string) error {
	if len(r.Case.Files) == 1 && r.Case.Files[0] == gen.TraceFile {
		trace, err := os.ReadFile(filepath.Join(top, gen.TraceFile))
		r.Trace = string(trace)
		return err
	}
	for _, name := range r.Case.Files {
		doc, err := gen.ReadDoc(top, name)
		if err != nil {
			return err
		}
		r.Docs = append(r.Docs, doc)
	}
	return nil
}

// Load reads a folder Save wrote.
func Load(top string) (Recorded, error) {
	var r Recorded
	sub := filepath.Join(top, answerDir)
	head, err := os.ReadFile(filepath.Join(sub, "case.json"))
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(head, &r.Case); err != nil {
		return r, fmt.Errorf("%s: %w", top, err)
	}
	var failure struct{ Error string }
	if err := json.Unmarshal(head, &failure); err != nil {
		return r, fmt.Errorf("%s: %w", top, err)
	}
	r.Error = failure.Error
	if r.Case.Synthetic == nil {
		if err := r.readTrace(top); err != nil {
			return r, err
		}
	}
	if r.Profile, err = os.ReadFile(filepath.Join(top, gen.ProfileFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	if r.Error != "" {
		return r, nil
	}
	report, err := os.ReadFile(filepath.Join(sub, "report.json"))
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(report, &r.Report); err != nil {
		return r, fmt.Errorf("%s: report: %w", top, err)
	}
	for _, f := range r.watchedFiles() {
		text, err := os.ReadFile(filepath.Join(sub, f.name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = json.Unmarshal(text, f.list)
		}
		if err != nil {
			return r, fmt.Errorf("%s: %s: %w", top, f.name, err)
		}
	}
	requests, err := os.Open(filepath.Join(sub, "requests.jsonl"))
	if err != nil {
		return r, err
	}
	defer requests.Close()
	for dec := json.NewDecoder(requests); dec.More(); {
		var record map[string]any
		if err := dec.Decode(&record); err != nil {
			return r, fmt.Errorf("%s: requests: %w", top, err)
		}
		r.Requests = append(r.Requests, record)
	}
	return r, nil
}
