//go:build !invariants

package router_test

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/core/group"
	"github.com/dryserve/dryserve/core/relay"
	"github.com/dryserve/dryserve/core/router"
	"github.com/dryserve/dryserve/core/seq"
	"github.com/dryserve/dryserve/host/native/engineargs"
	"github.com/dryserve/dryserve/host/native/routerconfig"
)

const goldens = "../../testdata/router/"

// These runs test the router; with the invariants of the engines checked at
// every pass they would take a minute.

// e2eCase is a run of the reference: aggregated workers behind its KV router.
type e2eCase struct {
	Name       string
	Speedup    float64         `json:"arrival_speedup_ratio"`
	EngineArgs json.RawMessage `json:"engine_args"`
	Estimator  *string
	LagMs      float64         `json:"kv_event_lag_ms"`
	Workers    int             `json:"num_workers"`
	Router     json.RawMessage `json:"router_config"`
	Trace      string
	Requests   []e2eRequest
}

type e2eRequest struct {
	ArrivalMs float64 `json:"arrival_ms"`
	FirstMs   float64 `json:"first_token_ms"`
	LastMs    float64 `json:"last_token_ms"`
	Input     int     `json:"isl"`
	Output    int     `json:"osl"`
	Reused    int
	Routing   []e2eRouting
}

type e2eRouting struct {
	Outcome   string
	WaitMs    float64 `json:"queue_wait_ms"`
	Worker    int
	Rank      int `json:"dp_rank"`
	Scheduler int
	Overlap   int `json:"overlap_tokens"`
	Selected  int `json:"selected_blocks"`
	Best      int `json:"best_blocks"`
}

// e2eRow is a row of a trace.
type e2eRow struct {
	Timestamp float64
	Input     int      `json:"input_length"`
	Output    int      `json:"output_length"`
	IDs       []uint64 `json:"hash_ids"`
	Priority  int
	Strict    uint32 `json:"strict_priority"`
	Class     string `json:"policy_class"`
}

// fleet is a small replay: the workers, the router and a clock.
type fleet struct {
	t       *testing.T
	router  *router.Router
	workers []*group.Group
	ends    []float64 // of the pass in flight, +Inf if there is none
	rows    []e2eRow
	prompts [][]uint32
	arrival []float64
	nowMs   float64
	guess   bool // answers the router's questions

	handles []router.Handle
	begun   []bool // a token or an end was seen
	records []e2eRequest
}

func newFleet(t *testing.T, c *e2eCase, rows []e2eRow, traceBlock int) *fleet {
	t.Helper()
	args, err := engineargs.Parse("engine args", c.EngineArgs)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := routerconfig.Parse("router config", c.Router, routerconfig.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e := args.Engine
	e.EmitKVEvents = true
	f := &fleet{t: t, rows: rows, guess: c.Estimator != nil}
	f.router = router.New(router.Params{
		Config: cfg.Router, BlockSize: e.BlockSize, Seed: router.CanonicalSeed, LagMs: c.LagMs, Predicts: f.guess,
	})
	for id := range c.Workers {
		f.workers = append(f.workers, group.New(e, uint64(id)))
		f.ends = append(f.ends, math.Inf(1))
		f.router.AddWorker(id, e.DPSize, min(e.MaxNumBatchedTokens, router.NoBudget))
	}
	f.prompts = prompts(rows, traceBlock)
	first := rows[0].Timestamp / c.Speedup
	for _, r := range rows {
		f.arrival = append(f.arrival, r.Timestamp/c.Speedup-first)
	}
	f.handles, f.begun, f.records = make([]router.Handle, len(rows)), make([]bool, len(rows)), make([]e2eRequest, len(rows))
	return f
}

// prompts spells the prompts of rows as the reference does: the number of each
// hash id, in order of first appearance, is the token.
func prompts(rows []e2eRow, traceBlock int) (prompts [][]uint32) {
	numbers := map[uint64]uint32{}
	for _, r := range rows {
		var tokens []uint32
		for _, id := range r.IDs {
			n, ok := numbers[id]
			if !ok {
				n = uint32(len(numbers))
				numbers[id] = n
			}
			for range traceBlock {
				tokens = append(tokens, n)
			}
		}
		prompts = append(prompts, tokens[:r.Input])
	}
	return prompts
}

// run turns the clock until nothing is left to happen.
func (f *fleet) run(blockSize int) {
	next := 0
	for {
		at := math.Inf(1)
		if next < len(f.rows) {
			at = f.arrival[next]
		}
		for _, end := range f.ends {
			at = min(at, end)
		}
		if math.IsInf(at, 1) {
			return
		}
		f.nowMs = at
		for w := range f.workers {
			if f.ends[w] == at {
				f.complete(w)
			}
		}
		for next < len(f.rows) && f.arrival[next] <= at {
			f.arrive(next, blockSize)
			next++
		}
		f.drive()
	}
}

func (f *fleet) arrive(i, blockSize int) {
	r := f.rows[i]
	h := seq.Plain(blockSize)
	locals := h.AppendLocals(nil, f.prompts[i], nil)
	handle, fault := f.router.Place(router.Request{
		Tag: uint32(i), Tokens: r.Input, Locals: locals, Sequence: h.AppendChain(nil, locals),
		Class: f.router.Class(r.Class), Priority: max(float64(r.Priority), 0), Strict: r.Strict,
	}, f.nowMs)
	f.handles[i] = handle
	f.records[i].ArrivalMs, f.records[i].Input = f.nowMs, r.Input
	f.dispatch(fault)
}

// dispatch gives what the router has placed to the workers.
func (f *fleet) dispatch(fault router.Fault) {
	f.t.Helper()
	for {
		q, asks := f.router.Asks()
		if !asks || !fault.OK() {
			break
		}
		fault = f.router.Answer(uint64(20*q.Tokens+q.Prefix)*1000, true)
	}
	if !fault.OK() {
		f.t.Fatalf("at %v: %+v", f.nowMs, fault)
	}
	for _, p := range f.router.Placed() {
		i := int(p.Tag)
		g := f.workers[p.Worker]
		q := engine.Request{Tag: p.Tag, Tokens: f.prompts[i], MaxOutput: f.rows[i].Output}
		binary.BigEndian.PutUint64(q.UUID[8:], uint64(i)+1)
		if _, code := g.Submit(p.Rank, q); code != engine.Applied {
			f.t.Fatalf("request %d is not taken: %v", i, code)
		}
		routing := e2eRouting{"immediate", p.ReleasedMs - p.EnteredMs, p.Worker, p.Rank, p.Worker*g.Ranks() + p.Rank,
			p.OverlapBlocks * f.router.BlockSize, p.OverlapBlocks, p.BestBlocks}
		if p.Waited {
			routing.Outcome = "queued"
		}
		f.records[i].Routing = append(f.records[i].Routing, routing)
		if p.Request != f.handles[i] && f.handles[i] != 0 {
			f.t.Fatalf("request %d was %d, is %d", i, f.handles[i], p.Request)
		}
	}
}

// drive begins passes on idle workers, those that take no time included.
func (f *fleet) drive() {
	for again := true; again; {
		again = false
		for w, g := range f.workers {
			if g.InFlight() || !g.Ready() {
				continue
			}
			end, _ := g.Begin(f.nowMs)
			f.ends[w] = end
			if end == f.nowMs {
				f.complete(w)
				again = true
				break
			}
		}
	}
}

// complete ends a worker's pass: its events, then what its requests got.
func (f *fleet) complete(w int) {
	g := f.workers[w]
	g.Complete(f.nowMs)
	f.ends[w] = math.Inf(1)
	for rank := range g.Ranks() {
		out := g.Out(rank)
		for _, a := range out.Admissions {
			r := &f.records[a.Tag]
			r.Reused = max(r.Reused, a.Reused)
		}
		f.publish(w, rank, out)
		for _, o := range out.Outputs {
			f.signal(o)
		}
	}
}

func (f *fleet) publish(w, rank int, out *engine.Out) {
	for i := range out.KVEvents {
		var x router.Event
		relay.Event(&x, w, rank, &out.KVEvents[i], out.KVBlocks)
		if fault := f.router.Apply(&x, f.nowMs); !fault.OK() {
			f.t.Fatalf("event %+v: %+v", x, fault)
		}
	}
}

func (f *fleet) signal(o engine.Output) {
	i := int(o.Tag)
	r := &f.records[i]
	if o.HasToken {
		if r.Output++; r.Output == 1 {
			r.FirstMs = f.nowMs
		}
		r.LastMs = f.nowMs
	}
	switch {
	case o.Completed:
		f.dispatch(f.router.Free(f.handles[i], f.nowMs))
	case !f.begun[i]:
		f.begun[i] = true
		f.dispatch(f.router.PrefillDone(f.handles[i], f.nowMs))
	}
}

// The reference's runs of 120 requests over aggregated workers: who served
// each, after how long, with what overlap, and when its tokens came.
func TestGoldenRuns(t *testing.T) {
	text, err := os.ReadFile(goldens + "e2e.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Cases      []e2eCase
		TraceBlock int `json:"trace_block_size"`
		Trace      string
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, c := range file.Cases {
		if c.EngineArgs == nil {
			continue // disaggregated: core/replay's
		}
		ran++
		t.Run(c.Name, func(t *testing.T) {
			t.Chdir(goldens)
			f := newFleet(t, &c, readRows(t, c.Trace), file.TraceBlock)
			f.run(f.router.BlockSize)
			for i, want := range c.Requests {
				if got := f.records[i]; fmt.Sprint(got) != fmt.Sprint(want) {
					t.Fatalf("request %d: %+v, want %+v", i, got, want)
				}
			}
			if f.router.Waiting() != 0 || len(c.Requests) != 120 {
				t.Errorf("%d requests still wait", f.router.Waiting())
			}
		})
	}
	if ran != 20 {
		t.Errorf("%d runs, want 20", ran)
	}
}

func readRows(t *testing.T, name string) (rows []e2eRow) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		var r e2eRow
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	slices.SortStableFunc(rows, func(a, b e2eRow) int { return cmp.Compare(a.Timestamp, b.Timestamp) })
	return rows
}
