package oracle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/workload"
	"github.com/dryserve/dryserve/host/native/report"
	"github.com/dryserve/dryserve/internal/gen"
)

// policy answers a run as a case says, and notes what it was told.
type policy struct {
	says  *gen.Scaling
	ticks []map[string]any
}

// decision is the n-th answer.
func decision(says *gen.Scaling, n int) replay.Decision {
	d := replay.Decision{Prefill: config.KeepWorkers, Decode: config.KeepWorkers, NextMs: math.NaN()}
	if n >= len(says.Decisions) {
		return d
	}
	given := says.Decisions[n]
	if given.Prefill != nil {
		d.Prefill = *given.Prefill
	}
	if given.Decode != nil {
		d.Decode = *given.Decode
	}
	if given.NextMs != nil {
		d.NextMs = *given.NextMs
	}
	return d
}

func (p *policy) answer(s *replay.Sim) error {
	t, ok := s.Tick()
	if !ok {
		return fmt.Errorf("the run waits for a policy and asks nothing")
	}
	var told map[string]any
	if err := json.Unmarshal(report.AppendTick(nil, t), &told); err != nil {
		return fmt.Errorf("our tick: %w", err)
	}
	p.ticks = append(p.ticks, told)
	if !s.Scale(decision(p.says, len(p.ticks)-1)) {
		return fmt.Errorf("our run refuses a decision")
	}
	return nil
}

// scripted is the script that does what a policy says.
func scripted(says *gen.Scaling) []config.Target {
	var script []config.Target
	atMs := max(says.Initial, 0)
	for n := 0; ; n++ {
		d := decision(says, n)
		script = append(script, config.Target{AtMs: atMs, Prefill: d.Prefill, Decode: d.Decode})
		if !(d.NextMs > atMs) {
			return script
		}
		atMs = d.NextMs
	}
}

// watchedOf reads back what a run says besides its report.
func watchedOf(s *replay.Sim, load *workload.Workload, requests []map[string]any) (w Watched, err error) {
	var text bytes.Buffer
	var buf []byte
	if err = report.WriteSamples(&text, s.Samples(), &buf); err != nil {
		return w, err
	}
	for dec := json.NewDecoder(&text); dec.More(); {
		var sample map[string]any
		if err := dec.Decode(&sample); err != nil {
			return w, fmt.Errorf("our samples: %w", err)
		}
		w.Telemetry = append(w.Telemetry, sample)
	}
	text.Reset()
	if err = report.WriteLifecycle(&text, s.Lifecycle(), load); err != nil {
		return w, err
	}
	if err = json.Unmarshal(text.Bytes(), &w.Lifecycle); err != nil {
		return w, fmt.Errorf("our lifecycle: %w", err)
	}
	names := map[string]any{}
	for _, r := range requests {
		names[r["uuid"].(string)] = []any{r["arrival_time_ms"], r["first_admit_ms"], r["input_length"], r["decode_worker_idx"]}
	}
	for _, op := range w.Lifecycle {
		ids := op["topology_released_request_uuids"].([]any)
		for i, id := range ids {
			ids[i] = names[id.(string)]
		}
	}
	return w, nil
}

// unlike tells what differs between a run that was asked and the same run by a
// script; "" if nothing does. Then a fast engine has given the same answer.
func unlike(asked, scripted Answer) string {
	scripted.Ticks = asked.Ticks
	for _, key := range wallClock {
		delete(scripted.Report, key)
		if x, ok := asked.Report[key]; ok {
			scripted.Report[key] = x
		}
	}
	if reflect.DeepEqual(asked, scripted) {
		return ""
	}
	if diffs := Compare(asked, scripted); len(diffs) > 0 {
		return fmt.Sprint("by a script: ", diffs)
	}
	return "by a script the run differs"
}
