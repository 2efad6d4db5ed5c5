package oracle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/workload"
	"github.com/dryserve/dryserve/host/native/profile"
	"github.com/dryserve/dryserve/host/native/report"
	"github.com/dryserve/dryserve/internal/gen"
	"github.com/dryserve/dryserve/internal/parity"
)

// Our runs are taken to have no end after endless steps of stepEvents events;
// the cases are tiny.
const (
	stepEvents = 1 << 12
	endless    = 1 << 8
)

// Ours answers a case whose files stand in dir with this project's own
// programs: the hosts' loaders, the core, the hosts' writers.
func Ours(dir string, c *gen.ReplayCase) (a Answer) {
	defer func() {
		if r := recover(); r != nil {
			a = Answer{Outcome: Crash, Error: fmt.Sprintf("panic: %v\n%s", r, debug.Stack())}
		}
	}()
	cfg, err := parity.ConfigWith(c.Kwargs, func(path string) (*config.ProfileTable, error) {
		return profile.LoadProfile(filepath.Join(dir, path))
	})
	if err != nil {
		return Answer{Outcome: Refused, Error: err.Error()}
	}
	load, err := parity.Workload(dir, c, cfg)
	if err != nil {
		return Answer{Outcome: Refused, Error: err.Error()}
	}
	sim := replay.New(cfg, load, replay.Options{})
	begin := time.Now()
	status := replay.Running
	for steps := 0; status == replay.Running; steps++ {
		if steps == endless {
			return Answer{Outcome: NoEnd}
		}
		status = sim.Step(stepEvents)
	}
	if sim.Fault().Endless {
		return Answer{Outcome: NoEnd}
	}
	if status != replay.Done {
		return Answer{Outcome: DeadEnd, Error: fmt.Sprintf("dead end with %d in-flight requests", sim.Fault().InFlight)}
	}
	if a, err = spell(sim, load, cfg, c.Kwargs, time.Since(begin)); err != nil {
		return Answer{Outcome: Crash, Error: err.Error()}
	}
	return a
}

// spell writes a finished run the way the program does and reads it back.
func spell(sim *replay.Sim, load *workload.Workload, cfg config.Replay, kwargs map[string]any, wall time.Duration) (Answer, error) {
	var a Answer
	var text bytes.Buffer
	summary := report.Report{Summary: sim.Summary(), WallMs: wall.Seconds() * 1000, Graph: load.Graph}
	summary.Target, _ = kwargs["execution_model"].(string)
	if err := summary.WriteJSON(&text); err != nil {
		return a, err
	}
	if err := json.Unmarshal(text.Bytes(), &a.Report); err != nil {
		return a, fmt.Errorf("our report: %w", err)
	}
	text.Reset()
	requests := report.Requests{
		Records: sim.Records(), Admissions: sim.Admissions(), Workload: load, Lane: sim.Lane,
		Ranks: int32(cfg.Engine.DPSize), Tiers: cfg.Engine.HostOffload.Blocks > 0,
	}
	if load.NamesSessions(cfg.Concurrency > 0) {
		requests.SessionID = load.SessionID
	}
	if err := requests.WriteJSONL(&text); err != nil {
		return a, err
	}
	for dec := json.NewDecoder(&text); dec.More(); {
		var record map[string]any
		if err := dec.Decode(&record); err != nil {
			return a, fmt.Errorf("our records: %w", err)
		}
		a.Requests = append(a.Requests, record)
	}
	return a, nil
}
