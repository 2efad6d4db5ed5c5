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
	"github.com/dryserve/dryserve/core/router"
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
// programs: the hosts' loaders, the core, the hosts' writers. Where the
// reference has drawn lots that cannot be repeated, among workers that cost the
// same, ours goes where it went, provided that it might have.
func Ours(dir string, c *gen.ReplayCase, reference Answer) (a Answer) {
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
	if c.Scaling != nil {
		cfg.Scaling.Policy, cfg.Scaling.FirstMs = config.Asked, c.Scaling.Initial
	}
	a = asked(cfg, load, c, reference)
	if c.Scaling == nil || cfg.Samples.EveryMs > 0 || a.Outcome == Crash || cfg.Routing.Mode == config.KVRouter {
		return a
	}
	// Without anybody to be told what its passes do, a run may have fast engines.
	cfg.Scaling.Policy, cfg.Scaling.Script = config.Scripted, scripted(c.Scaling)
	if load, err = parity.Workload(dir, c, cfg); err != nil {
		return Answer{Outcome: Crash, Error: err.Error()}
	}
	if diff := unlike(a, asked(cfg, load, c, reference)); diff != "" {
		return Answer{Outcome: Crash, Error: diff}
	}
	return a
}

// asked goes where the reference went.
func asked(cfg config.Replay, load *workload.Workload, c *gen.ReplayCase, reference Answer) (a Answer) {
	var err error
	var went places
	if cfg.Disaggregated() {
		went.prefill, err = seats(load, reference, "prefill")
		if err == nil {
			went.decode, err = seats(load, reference, "decode")
		}
	} else {
		went.all, err = seats(load, reference, "agg")
	}
	if err != nil {
		return Answer{Outcome: Crash, Error: err.Error()}
	}
	for {
		a = simulate(cfg, load, c, went)
		// Nothing says where requests went in a run that did not finish.
		same := a.Outcome == reference.Outcome && inFlight(a.Error) == inFlight(reference.Error)
		if went.known() || cfg.Routing.Mode != config.KVRouter || a.Outcome == Crash || same || cfg.Routing.Seed == config.CanonicalSeed+lots {
			return a
		}
		cfg.Routing.Seed++
	}
}

// lots is how many seeds are tried for the end that a run of the reference's
// with a KV router came to.
const lots = 400

// places are where the reference's routers have placed turns: that of all
// workers, or those of two pools.
type places struct{ all, prefill, decode []router.Seat }

func (p places) known() bool { return p.all != nil || p.prefill != nil }

// simulate runs to the end, whichever that is.
func simulate(cfg config.Replay, load *workload.Workload, c *gen.ReplayCase, went places) Answer {
	o := replay.Options{Seats: went.all}
	if cfg.Disaggregated() {
		o = replay.Options{Seats: went.prefill, DecodeSeats: went.decode}
	}
	sim := replay.New(cfg, load, o)
	begin := time.Now()
	told := policy{says: c.Scaling}
	status := replay.Running
	for steps := 0; status == replay.Running || status == replay.NeedScaling; {
		if status = sim.Step(stepEvents); status == replay.NeedScaling {
			if err := told.answer(sim); err != nil {
				return Answer{Outcome: Crash, Error: err.Error()}
			}
			continue
		}
		if steps++; steps == endless {
			return Answer{Outcome: NoEnd}
		}
	}
	f := sim.Fault()
	switch {
	case f.Endless:
		return Answer{Outcome: NoEnd}
	case f.Nobody || f.Router.Code == router.NoWorkers:
		return Answer{Outcome: Nobody}
	case !f.Router.OK():
		return Answer{Outcome: Refused, Error: fmt.Sprintf("fault of the router: %+v", f.Router)}
	case status != replay.Done:
		return Answer{Outcome: DeadEnd, Error: fmt.Sprintf("dead end with %d in-flight requests", f.InFlight)}
	}
	a, err := spell(sim, load, cfg, c.Kwargs, time.Since(begin))
	if err == nil {
		a.Watched, err = watchedOf(sim, load, a.Requests)
		a.Ticks = told.ticks
	}
	if err != nil {
		return Answer{Outcome: Crash, Error: err.Error()}
	}
	return a
}

// placement is the entry of a record's history for a pool, nil if there is none.
func placement(history []any, pool string) map[string]any {
	for _, x := range history {
		if went, ok := x.(map[string]any); ok && went["pool"] == pool {
			return went
		}
	}
	return nil
}

// seats is where the reference's router of a pool has placed the turns of a
// workload. It is an error if its records cannot be told apart.
func seats(load *workload.Workload, reference Answer, pool string) ([]router.Seat, error) {
	if !routed(reference) {
		return nil, nil
	}
	type turn struct {
		session       string
		index         int32
		arrivalMs     float64 // without a session
		input, output float64
	}
	at := map[turn]router.Seat{}
	for _, r := range reference.Requests {
		session, named := r["session_id"].(string)
		index, _ := r["turn_index"].(float64)
		history, _ := r["routing_history"].([]any)
		went := placement(history, pool)
		if went == nil {
			continue
		}
		worker, placed := went["logical_worker_id"].(float64)
		rank, _ := went["dp_rank"].(float64)
		key := turn{session: session, index: int32(index)}
		if !named {
			key.arrivalMs, _ = r["arrival_time_ms"].(float64)
			key.input, _ = r["input_length"].(float64)
			key.output, _ = r["requested_output_length"].(float64)
		}
		seat := router.Seat{Worker: int32(worker), Rank: int32(rank), Known: placed}
		if other, twice := at[key]; twice && other != seat {
			return nil, fmt.Errorf("two records of the reference's look alike: %+v", key)
		}
		at[key] = seat
	}
	all := make([]router.Seat, len(load.Turns))
	for i := range all {
		t := &load.Turns[i]
		seat, named := at[turn{session: string(load.SessionID(t.Session)), index: t.Index}]
		if !named {
			seat = at[turn{arrivalMs: load.Sessions[t.Session].StartMs, input: float64(t.Input), output: float64(t.Output)}]
		}
		all[i] = seat
	}
	return all, nil
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
		Handoffs: sim.Handoffs(), PrefillRanks: int32(cfg.Prefill.Engine.DPSize),
	}
	if cfg.Routing.Mode == config.KVRouter {
		requests.Route, requests.BlockSize = sim.Route, int32(cfg.Engine.BlockSize)
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
