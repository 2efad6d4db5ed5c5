package replay_test

import (
	"cmp"
	"math"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/workload"
	"github.com/dryserve/dryserve/host/native/profile"
	"github.com/dryserve/dryserve/internal/gen"
	"github.com/dryserve/dryserve/internal/parity"
)

// taped runs a case and keeps what was recorded.
func taped(s *replay.Sim, budget int) (outcome, replay.Recording) {
	var all, part replay.Recording
	for events := 0; events < long; events += budget {
		status := s.Step(budget)
		s.TakeRecording(&part)
		all.Passes = append(all.Passes, part.Passes...)
		all.Events = append(all.Events, part.Events...)
		all.Gaps = append(all.Gaps, part.Gaps...)
		if status != replay.Running {
			return finish(s, status), all
		}
	}
	return outcome{Status: replay.Running}, all
}

// TestRecordings runs random cases of all kinds with and without a recording:
// the outcome is the same, in any steps, and what was recorded adds up to it.
func TestRecordings(t *testing.T) {
	dir := t.TempDir()
	seen := map[string]int{}
	for _, family := range gen.Families() {
		for seed := range uint64(25) {
			c, err := gen.FamilyCase(seed, family)
			if err != nil {
				t.Fatal(err)
			}
			checkRecording(t, dir, c, seen)
			if t.Failed() {
				t.Fatalf("%s, seed %d", family, seed)
			}
		}
	}
	for _, what := range []string{"runs", "preempted", "rejected", "failed", "host tokens", "gaps", "ranks", "unfinished", "queues", "handoffs", "transfers"} {
		if seen[what] == 0 {
			t.Errorf("no case shows %s", what)
		}
	}
}

func checkRecording(t *testing.T, dir string, c *gen.ReplayCase, seen map[string]int) {
	cfg, err := parity.ConfigWith(c.Kwargs, func(path string) (*config.ProfileTable, error) { return profile.ParseProfile(path, c.Profile) })
	if err != nil {
		return
	}
	cfg.CaptureRequests, cfg.Parity = true, false
	if err := c.WriteInputs(dir); err != nil {
		t.Fatal(err)
	}
	build := func() *workload.Workload {
		w, err := parity.Workload(dir, c, cfg)
		if err != nil {
			return nil
		}
		return w
	}
	if build() == nil {
		return
	}
	want := run(replay.New(cfg, build(), replay.Options{}), long)
	if want.Status == replay.Running {
		return // it has no end
	}
	got, tape := taped(replay.New(cfg, build(), replay.Options{Record: true}), 7)
	if d := gocmp.Diff(want, got, cmpopts.EquateNaNs()); d != "" {
		t.Errorf("the recorded run differs:\n%s", d)
	}
	if _, again := taped(replay.New(cfg, build(), replay.Options{Record: true}), long); !gocmp.Equal(tape, again, cmpopts.EquateNaNs()) {
		t.Error("other steps give another recording")
	}
	var none replay.Recording
	plain := replay.New(cfg, build(), replay.Options{Plain: true})
	run(plain, long)
	if plain.TakeRecording(&none); len(none.Passes)+len(none.Events)+len(none.Gaps) > 0 {
		t.Error("a run that is not recorded has a recording")
	}
	seen["runs"]++
	checkPasses(t, cfg, &want.Summary, &tape, seen)
	checkEvents(t, cfg, &want, &tape, seen)
	checkGaps(t, &want.Summary, &tape, seen)
	lone := cfg.NumWorkers*cfg.Engine.DPSize == 1 && cfg.Routing.Mode != config.KVRouter && !cfg.Disaggregated() // where requests wait, too
	if lone && want.Summary.FailedRequests == 0 && cfg.Engine.Backend != config.SGLang {
		checkQueue(t, &tape, seen)
	}
}

// checkPasses: a rank's passes follow each other and add up to the prompt work
// of the run.
func checkPasses(t *testing.T, cfg config.Replay, sum *replay.Summary, tape *replay.Recording, seen map[string]int) {
	engines := [...]config.Engine{replay.ServingPool: cfg.Engine, replay.PrefillPool: cfg.Prefill.Engine}
	ends := [2][]float64{make([]float64, cfg.NumWorkers*cfg.Engine.DPSize), make([]float64, cfg.Prefill.Workers*cfg.Prefill.Engine.DPSize)}
	prefilled, last := int64(0), 0.0
	for i, p := range tape.Passes {
		if p.EndMs < last {
			t.Errorf("pass %d ends before the one before it: %+v", i, p)
		}
		last = p.EndMs
		e, ends := engines[p.Pool], ends[p.Pool]
		id := int(p.Worker)*e.DPSize + int(p.Rank)
		if p.StartMs < ends[id] || p.OwnEndMs < p.StartMs || p.OwnEndMs > p.EndMs {
			t.Errorf("pass %d is out of place: %+v after %v", i, p, ends[id])
		}
		ends[id] = p.EndMs
		prefilled += int64(p.PrefillTokens)
		if p.Rank > 0 {
			seen["ranks"]++
		}
		if n := int(p.ActiveBlocks) + int(p.CachedBlocks); n > e.NumGPUBlocks || p.ActiveBlocks < 0 || p.CachedBlocks < 0 {
			t.Errorf("pass %d has %d blocks: %+v", i, n, p)
		}
	}
	if prefilled != sum.CommittedPrefillTokens {
		t.Errorf("passes computed %d prompt tokens, the run %d", prefilled, sum.CommittedPrefillTokens)
	}
}

// checkEvents: the events tell what the records tell.
func checkEvents(t *testing.T, cfg config.Replay, want *outcome, tape *replay.Recording, seen map[string]int) {
	byTurn := map[int32][]replay.Event{}
	arrived := int64(0)
	for i, e := range tape.Events {
		if i > 0 && e.AtMs < tape.Events[i-1].AtMs {
			t.Errorf("event %d is before the one before it: %+v", i, e)
		}
		byTurn[e.Turn] = append(byTurn[e.Turn], e)
		if e.Kind == replay.Arrived {
			arrived++
		}
	}
	if arrived != want.Summary.NumRequests {
		t.Errorf("%d requests arrived, want %d", arrived, want.Summary.NumRequests)
	}
	for i, r := range want.Records {
		got := told(byTurn[r.Turn], cfg, seen)
		history := want.Admissions[i]
		if cfg.Disaggregated() {
			h := want.Handoffs[i]
			if rec := r.Worker; rec < 0 {
				got.record.Worker = -1
			}
			if d := gocmp.Diff([3]float64{h.PrefillAdmitMs, h.HeldMs, h.DecodeAdmitMs}, [3]float64{got.prefillMs, got.heldMs, got.decodeMs}, cmpopts.EquateNaNs()); d != "" || h.ActivatedMs != got.activatedMs && !(math.IsNaN(h.ActivatedMs) && math.IsNaN(got.activatedMs)) {
				t.Errorf("the events of turn %d tell another handoff:\n%s\n%+v", r.Turn, d, byTurn[r.Turn])
			}
		}
		got.record.SecondTokenMs, got.record.LastTokenMs = r.SecondTokenMs, r.LastTokenMs
		got.record.InputLength, got.record.RequestedOutput = r.InputLength, r.RequestedOutput
		if d := gocmp.Diff(r, got.record, cmpopts.EquateNaNs()); d != "" {
			t.Errorf("the events of turn %d tell another record:\n%s\n%+v", r.Turn, d, byTurn[r.Turn])
		}
		if !slices.Equal(history, got.history) {
			t.Errorf("the events of turn %d tell of admissions %v, want %v", r.Turn, got.history, history)
		}
		delete(byTurn, r.Turn)
	}
	for _, events := range byTurn {
		seen["unfinished"]++
		if k := events[len(events)-1].Kind; k == replay.Ended {
			t.Errorf("an event without a record: %+v", events)
		}
	}
}

// story is a record told by events.
type story struct {
	record  replay.Record
	history []replay.Admission

	prefillMs, heldMs, activatedMs, decodeMs float64 // of two pools
}

func told(events []replay.Event, cfg config.Replay, seen map[string]int) (s story) {
	nan := math.NaN()
	s.prefillMs, s.heldMs, s.activatedMs, s.decodeMs = nan, nan, nan, nan
	s.record = replay.Record{FirstAdmitMs: nan, FirstTokenMs: nan, SecondTokenMs: nan, LastTokenMs: nan}
	r := &s.record
	for _, e := range events {
		r.Turn = e.Turn
		switch e.Kind {
		case replay.Arrived:
			r.ArrivalMs = e.AtMs
		case replay.Admitted:
			if len(s.history) == 0 {
				r.FirstAdmitMs, r.FirstHostTokens = e.AtMs, e.HostTokens
			}
			first := &s.decodeMs
			if e.Pool == replay.PrefillPool {
				first = &s.prefillMs
			}
			if math.IsNaN(*first) {
				*first = e.AtMs
			}
			if !cfg.Disaggregated() || e.Pool == replay.PrefillPool {
				r.ReusedTokens = max(r.ReusedTokens, e.Tokens)
			}
			s.history = append(s.history, replay.Admission{AtMs: e.AtMs, Reused: e.Tokens})
			seen["host tokens"] += int(e.HostTokens)
		case replay.Preempted:
			seen["preempted"]++
		case replay.Held:
			s.heldMs = e.AtMs
			seen["handoffs"]++
		case replay.Transferring:
			seen["transfers"]++
		case replay.Activated:
			s.activatedMs = e.AtMs
		case replay.FirstToken:
			r.FirstTokenMs = e.AtMs
		case replay.Ended:
			r.TerminalMs, r.Status, r.OutputLength = e.AtMs, e.Status, e.Tokens
			r.Worker = e.Worker*int32(cfg.Engine.DPSize) + e.Rank
			seen[map[replay.TerminalStatus]string{replay.Rejected: "rejected", replay.Failed: "failed"}[e.Status]]++
		}
	}
	r.AdmissionCount = int32(len(s.history))
	return s
}

// checkGaps: the gaps are those of the report, where no request failed.
func checkGaps(t *testing.T, sum *replay.Summary, tape *replay.Recording, seen map[string]int) {
	if sum.FailedRequests+sum.UnfinishedRequests > 0 {
		return
	}
	n, ms, most := 0.0, 0.0, 0.0
	for _, g := range tape.Gaps {
		n += float64(g.N)
		ms += float64(g.N) * g.Ms
		most = max(most, g.Ms)
	}
	tokens := 0
	for _, p := range tape.Passes {
		tokens += int(p.Tokens)
	}
	if int64(tokens) != sum.TotalOutputTokens || n != float64(sum.TotalOutputTokens-sum.NumTTFT) {
		t.Errorf("%d tokens and %v gaps, want %d and %d", tokens, n, sum.TotalOutputTokens, sum.TotalOutputTokens-sum.NumTTFT)
	}
	if n == 0 {
		return
	}
	seen["gaps"]++
	if math.Abs(ms/n-sum.ITL.Mean) > 1e-9*sum.ITL.Mean || most != sum.ITL.Max {
		t.Errorf("gaps of %v ms on average and %v at most, want %v and %v", ms/n, most, sum.ITL.Mean, sum.ITL.Max)
	}
}

// checkQueue: of a lone rank the events count what its own metrics count.
func checkQueue(t *testing.T, tape *replay.Recording, seen map[string]int) {
	waiting, running, at := 0, 0, 0
	admitted := map[int32]bool{}
	for i, p := range tape.Passes {
		if p.EndMs == p.StartMs || i+1 < len(tape.Passes) && tape.Passes[i+1].EndMs == p.EndMs {
			return // the order within a moment is not told
		}
		for ; at < len(tape.Events); at++ {
			e := tape.Events[at]
			if c := cmp.Compare(e.AtMs, p.EndMs); c > 0 || c == 0 && (e.Kind == replay.Arrived || e.Kind == replay.Admitted || e.Kind == replay.Preempted) {
				break
			}
			switch e.Kind {
			case replay.Arrived:
				waiting++
			case replay.Admitted:
				waiting, running, admitted[e.Turn] = waiting-1, running+1, true
			case replay.Preempted:
				waiting, running, admitted[e.Turn] = waiting+1, running-1, false
			case replay.Ended:
				if admitted[e.Turn] {
					running--
				} else {
					waiting--
				}
			}
		}
		if waiting != int(p.Waiting) || running != int(p.Running) {
			t.Errorf("after pass %d, at %v ms, events count %d waiting and %d running, its metrics %d and %d", i, p.EndMs, waiting, running, p.Waiting, p.Running)
			return
		}
		seen["queues"] += waiting
	}
}
