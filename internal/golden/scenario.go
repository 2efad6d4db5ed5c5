// Package golden replays recorded engine scenarios: it gives a core engine the
// commands of a scenario, lets it run its passes, and compares everything it
// says with what the reference said.
//
// It owns the form of the recorded files, the driver and the
// comparison; it knows no rule of the scheduler. A field that the file does
// not have is not compared, except that KV events which the file does not
// mention must not exist. Numbers are compared bit for bit; only the variances
// of a pass's scheduled work may differ by 1e-9 relative, since the reference
// sums them in the order of a hash map.
package golden

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/dryserve/dryserve/core/config"
)

// Scenario is one recorded run of an engine.
type Scenario struct {
	Name      string
	Engine    config.Engine
	WorkerID  uint64
	MaxPasses int // 0: it ends by itself
	Steps     []Step
	Expect    []any // JSON values, numbers as json.Number
}

// Step is a command that is given at a time.
type Step struct {
	AtMs      float64  `json:"at"`
	Rank      int      `json:"rank"`
	Op        string   `json:"op"`
	ID        uint64   `json:"id"` // the request's UUID as a number
	Handoff   uint64   `json:"h"`
	MaxOutput int      `json:"out"`
	OutputIDs []uint32 `json:"ids"`
	Tokens    []uint32 `json:"tokens"` // the prompt, or:
	Start     uint32   `json:"start"`  // Start, Start+1, …
	Len       uint32   `json:"len"`
}

// prompt is the step's prompt tokens.
func (s Step) prompt() []uint32 {
	if s.Tokens != nil {
		return s.Tokens
	}
	ids := make([]uint32, s.Len)
	for i := range ids {
		ids[i] = s.Start + uint32(i)
	}
	return ids
}

// Load reads a scenario. A field it does not know is an error, so that no
// scenario is run with half of its configuration.
func Load(path string) (*Scenario, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

func parse(data []byte) (*Scenario, error) {
	var file struct {
		Name      string          `json:"name"`
		Config    json.RawMessage `json:"config"`
		DP        int             `json:"dp"`
		WorkerID  uint64          `json:"worker_id"`
		MaxPasses int             `json:"max_passes"`
		Steps     []Step          `json:"steps"`
		Expect    []any           `json:"expect"`
	}
	if err := strict(data, &file); err != nil {
		return nil, err
	}
	cfg, err := ParseEngine(file.Config, max(file.DP, 1))
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	for _, s := range file.Steps {
		if s.Rank < 0 || s.Rank >= cfg.DPSize {
			return nil, fmt.Errorf("a step is for rank %d of %d", s.Rank, cfg.DPSize)
		}
	}
	return &Scenario{
		Name: file.Name, Engine: cfg, WorkerID: file.WorkerID, MaxPasses: file.MaxPasses,
		Steps: file.Steps, Expect: file.Expect,
	}, nil
}

// strict decodes one JSON value, refusing unknown fields and trailing data and
// keeping numbers of untyped values as text.
func strict(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return err
	}
	if d.More() {
		return errors.New("data after the end of the value")
	}
	return nil
}
