package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/router"
	"github.com/dryserve/dryserve/core/timing"
	"github.com/dryserve/dryserve/core/workload"
	"github.com/dryserve/dryserve/host/native/drive"
	"github.com/dryserve/dryserve/host/native/profile"
	"github.com/dryserve/dryserve/host/native/tracefile"
	"github.com/dryserve/dryserve/host/wasm/frame"
	"github.com/dryserve/dryserve/internal/gen"
	"github.com/dryserve/dryserve/internal/parity"
)

// result is everything a run says.
type result struct {
	Progress   frame.Progressed
	Summary    replay.Summary
	Records    []replay.Record
	Admissions []replay.Admission
	Handoffs   []replay.Handoff
	Routes     []replay.Route // by turn; of those without one the zero value
	Routed     []bool
	Unservable []int32
	IDs        []string
	Lengths    []int32 // tokens of each prompt and answer
	Graph      []any
	Lanes      []int32 // by play
	Recording  replay.Recording
}

// most is more events than any of the cases that end has.
const most = 1 << 16

// native runs a case without frames.
func native(t *testing.T, run frame.Run, load *workload.Workload) (r result) {
	t.Helper()
	s := replay.New(run.Replay, load, replay.Options{Plain: run.Plain, Eventful: run.Eventful, Record: run.Record})
	status := s.Step(most)
	if run.Record {
		s.TakeRecording(&r.Recording)
	}
	switch status {
	case replay.Running:
		r.Progress.Status = frame.Running
		return result{Progress: r.Progress}
	case replay.Done:
		r.Progress.Status = frame.Done
		r.Summary, r.Records, r.Admissions, r.Unservable = s.Summary(), s.Records(), s.Admissions(), s.Unservable()
		r.Handoffs = s.Handoffs()
		r.ask(len(load.Turns), s.Route)
	case replay.Stuck:
		r.Progress.Status, r.Progress.Fault = frame.Failed, s.Fault()
		r.Progress.Fault.Router.Tag = 0 // an inner number
		if r.Progress.Fault.Router.Code == router.QueueFull {
			r.Progress.Class = s.RouterClass(r.Progress.Fault.Router.Full.Class)
		}
		r.Progress.Fault.Router.Full.Class = 0 // it crosses as its name
	}
	r.Progress.Done, r.Progress.Total = s.Progress()
	r.name(load)
	if load.Graph != nil && status == replay.Done {
		for i := range load.Graph.Plays {
			r.Lanes = append(r.Lanes, s.Lane(int32(i)))
		}
	}
	return r
}

// name notes what sessions, requests and plays are called and how they hang
// together.
func (r *result) name(load *workload.Workload) {
	for i := range load.Sessions {
		r.IDs = append(r.IDs, string(load.SessionID(int32(i))))
	}
	for i := range load.Turns {
		r.Lengths = append(r.Lengths, load.Turns[i].Input, load.Turns[i].Output)
	}
	g := load.Graph
	if g == nil {
		return
	}
	r.Graph = []any{g.BlockSize, g.SourceFormat, g.SourceDigest, g.NestedBasis, g.Digest, len(g.Nodes), len(g.Plays)}
	for _, m := range g.Models {
		r.IDs = append(r.IDs, string(g.Texts.At(m)))
	}
	for i := range load.Turns {
		n := &g.Nodes[i]
		r.IDs = append(r.IDs, fmt.Sprintf("%s in %s below %d", g.Request(int32(i)), g.PlayID(n.Play), n.Parent))
	}
	for i := range g.Plays {
		r.IDs = append(r.IDs, fmt.Sprintf("%s from %d", g.PlayID(int32(i)), g.Plays[i].Root))
	}
}

// ask notes where turns went.
func (r *result) ask(turns int, route func(turn int32) (replay.Route, bool)) {
	for i := range turns {
		x, ok := route(int32(i))
		r.Routes, r.Routed = append(r.Routes, x), append(r.Routed, ok)
	}
}

// feed feeds a whole Mooncake trace.
func feed(t *testing.T, s *Sim, text []byte) {
	t.Helper()
	s.Reserve(10)
	for end := false; !end; {
		n := min(len(text), 1000)
		end = n == len(text)
		if _, f, err := s.Feed(text[:n], end, false); err != nil || !f.OK() {
			t.Fatalf("%+v, %v", f, err)
		}
		text = text[n:]
	}
}

// fed runs a Mooncake trace through frames.
func fed(t *testing.T, guest port, run frame.Run, text []byte) result {
	t.Helper()
	s, err := open(context.Background(), guest, run)
	if err != nil {
		t.Fatal(err)
	}
	feed(t, s, text)
	return s.run(t, run)
}

// run runs what was fed.
func (s *Sim) run(t *testing.T, run frame.Run) (r result) {
	t.Helper()
	load, err := s.Outline()
	if err != nil {
		t.Fatal(err)
	}
	if r.Progress, err = s.Step(most); err != nil {
		t.Fatal(err)
	}
	if run.Record {
		if err := s.takeRecording(func(tape *replay.Recording) error { r.Recording = *tape; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if r.Progress.Status == frame.Running {
		return result{Progress: frame.Progressed{Status: frame.Running}}
	}
	r.name(load)
	if r.Progress.Status == frame.Failed {
		return r
	}
	var errs [6]error
	r.Summary, errs[0] = s.Summary()
	r.Records, r.Admissions, errs[1] = s.Records()
	r.Unservable, errs[2] = s.Unservable()
	r.Handoffs, errs[3] = s.Handoffs()
	var route func(turn int32) (replay.Route, bool)
	route, errs[4] = s.Routes()
	r.ask(len(load.Turns), route)
	if r.Summary.Agents != nil {
		r.Lanes, errs[5] = s.Outcomes(r.Summary.Agents)
	}
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	return r
}

// described is the run of a case whose trace is read with these options.
func described(cfg config.Replay, o tracefile.Options) frame.Run {
	return frame.Run{
		Replay: cfg, Format: o.Format, WantBlockSize: o.WantBlockSize, SharedPrefixRatio: o.SharedPrefixRatio, PrefixGroups: o.PrefixGroups,
		ExecutionModel: o.ExecutionModel, NestedBasis: o.NestedBasis,
	}
}

// prepared is a random case of a family with its files; false: its options are
// refused.
func prepared(t *testing.T, dir string, seed int, family string) (paths []string, cfg config.Replay, o tracefile.Options, ok bool) {
	t.Helper()
	c, err := gen.FamilyCase(uint64(seed), family)
	if err != nil {
		t.Fatal(err)
	}
	if cfg, err = parity.Config(c.Kwargs); err != nil || c.Synthetic != nil {
		return nil, cfg, o, false
	}
	if o, err = parity.Options(c.Kwargs, cfg); err != nil {
		return nil, cfg, o, false
	}
	if err := c.WriteInputs(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range c.Files {
		paths = append(paths, filepath.Join(dir, name))
	}
	if len(paths) == 0 {
		paths = []string{filepath.Join(dir, gen.TraceFile)}
	}
	return paths, cfg, o, true
}

// handed loads a trace natively and into a guest, which must count and say the
// same.
func handed(t *testing.T, paths []string, o tracefile.Options, guest port, run frame.Run) (s *Sim, load *workload.Workload) {
	t.Helper()
	loaded, want := tracefile.Load(context.Background(), paths, o)
	s, err := open(context.Background(), guest, run)
	if err != nil {
		t.Fatal(err)
	}
	o.Into = s
	through, got := tracefile.Load(context.Background(), paths, o)
	if (got == nil) != (want == nil) || got != nil && got.Error() != want.Error() || through.Info != loaded.Info || through.Format != loaded.Format {
		t.Fatalf("%v:\ngot  %v %+v\nwant %v %+v", paths, got, through.Info, want, loaded.Info)
	}
	return s, loaded.Workload
}

// Random cases of every family give the same through the guest, natively and
// in WebAssembly, as without it.
func TestSameAsNative(t *testing.T) {
	cases := 70
	if testing.Short() {
		cases = 14
	}
	done := map[frame.Status]int{}
	pools, routers, graphs := 0, 0, 0
	for seed, ran := 0, 0; ran < cases; seed++ {
		family := gen.Families()[seed%len(gen.Families())]
		paths, cfg, o, ok := prepared(t, t.TempDir(), seed, family)
		if !ok {
			continue
		}
		ran++
		cfg.Parity = seed%2 == 0
		run := described(cfg, o)
		run.Plain, run.Record = seed%3 == 0, seed%4 == 0
		var want result
		for name, guest := range map[string]port{"natively": newNativePort(), "in WebAssembly": newWasmPort(t)} {
			s, load := handed(t, paths, o, guest, run)
			if load == nil {
				continue
			}
			if want.IDs == nil {
				want = native(t, run, load)
			}
			if d := cmp.Diff(want, s.run(t, run), cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); d != "" {
				t.Fatalf("%s, seed %d, guest %s (-without +through frames):\n%s", family, seed, name, d)
			}
		}
		done[want.Progress.Status]++
		if want.Progress.Status != frame.Done {
			continue
		}
		if cfg.Disaggregated() {
			pools++
		}
		if cfg.Routing.Mode == config.KVRouter {
			routers++
		}
		if want.Graph != nil {
			graphs++
		}
	}
	if done[frame.Done] < cases/3 || pools < cases/20 || routers < cases/20 || graphs == 0 {
		t.Errorf("only %v of %d cases end, %d in two pools, %d behind a KV router, %d of graphs", done, cases, pools, routers, graphs)
	}
}

// spoilt is a text with a few faults.
func spoilt(rand *gen.Rand, text []byte) []byte {
	text = bytes.Clone(text)
	for range rand.Between(1, 3) {
		at := rand.Intn(len(text))
		switch rand.Intn(4) {
		case 0:
			const odd = "0129-.e\"[]{},: \n\x00\xff"
			text[at] = odd[rand.Intn(len(odd))]
		case 1:
			text = append(text[:at], text[min(len(text), at+rand.Between(1, 9)):]...)
		case 2:
			text = bytes.Replace(text, []byte(`"timestamp": `), []byte(`"delay": `), 1)
		default:
			text = append(text[:at:at], append([]byte("00000000000"[:rand.Between(1, 11)]), text[at:]...)...)
		}
		if len(text) == 0 {
			text = []byte("\n")
		}
	}
	return text
}

// A trace at fault gets the same sentence from both engines, whatever its
// format and the chunks it comes in.
func TestSameSentences(t *testing.T) {
	rand := gen.NewRand(5)
	faults := map[tracefile.Format]int{}
	for seed := range 700 {
		family := "formats"
		if seed%7 == 0 {
			family = "any"
		}
		paths, cfg, o, ok := prepared(t, t.TempDir(), seed, family)
		if !ok {
			continue
		}
		if seed%5 == 0 {
			o.Format = tracefile.Auto
		}
		path := paths[rand.Intn(len(paths))]
		for below := []string{path}; len(below) > 0; below, _ = filepath.Glob(filepath.Join(path, "*")) { // a directory
			path = below[rand.Intn(len(below))]
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) == 0 {
			continue
		}
		if err := os.WriteFile(path, spoilt(rand, text), 0o600); err != nil {
			t.Fatal(err)
		}
		run := described(config.DefaultReplay(config.VLLM), o)
		run.TraceBlockSize, run.Concurrency, run.Lanes, run.ArrivalSpeedup = cfg.TraceBlockSize, cfg.Concurrency, cfg.Lanes, cfg.ArrivalSpeedup
		if run.Concurrency > 0 && run.Lanes > 0 {
			continue
		}
		if _, load := handed(t, paths, o, newNativePort(), run); load == nil {
			faults[o.Format]++
		}
	}
	for f := tracefile.Auto; f <= tracefile.Weka; f++ {
		if faults[f] < 10 && f != tracefile.MooncakeDelta {
			t.Errorf("only %d traces in the format %s are at fault", faults[f], f)
		}
	}
}

// Simulations of one runner are independent.
func TestParallel(t *testing.T) {
	text := gen.Case(3).Trace()
	run := frame.Run{Replay: config.DefaultReplay(config.VLLM)}
	run.TraceBlockSize, run.CaptureRequests, run.Concurrency = 1<<20, true, 3
	want := fed(t, newNativePort(), run, text)
	var wg sync.WaitGroup
	results := make([]result, 4)
	for i := range results {
		guest := newWasmPort(t)
		wg.Go(func() { results[i] = fed(t, guest, run, text) })
	}
	wg.Wait()
	for i, got := range results {
		if d := cmp.Diff(want, got, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("simulation %d:\n%s", i, d)
		}
	}
}

// A guest whose collector hardly ever rests, and so looks through the stacks all
// the time, gives the same.
func TestCollecting(t *testing.T) {
	busy := *compiledRunner(t)
	busy.gcPercent = "1"
	ran := 0
	for seed := 0; ran < 8; seed++ {
		paths, cfg, o, ok := prepared(t, t.TempDir(), seed, []string{"kvpd", "formats", "any"}[seed%3])
		if !ok {
			continue
		}
		run := described(cfg, o)
		run.Record = seed%2 == 0
		guest, err := busy.instantiate(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		s, load := handed(t, paths, o, guest, run)
		if load != nil {
			ran++
			if d := cmp.Diff(native(t, run, load), s.run(t, run), cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); d != "" {
				t.Errorf("seed %d: %s", seed, d)
			}
		}
		guest.close(context.Background())
	}
}

// A run is stopped between two steps.
func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	s, err := compiledRunner(t).Open(ctx, frame.Run{Replay: config.DefaultReplay(config.VLLM)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	text := []byte(strings.Repeat(`{"timestamp":0,"input_length":10,"output_length":50000,"hash_ids":[1]}`+"\n", 40))
	feed(t, s, text)
	steps := 0
	p, err := s.Run(ctx, drive.Options{Progress: func(done, total int64) {
		if steps++; steps == 2 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || p.Status != frame.Running || steps != 2 {
		t.Errorf("%+v, %v after %d steps", p, err, steps)
	}
	if p, err := s.Progress(); err != nil || p.Status != frame.Running {
		t.Errorf("%+v, %v", p, err)
	}
}

// A provider that answers out of a grid gives what the grid gives.
func TestProvider(t *testing.T) {
	g, err := profile.LoadGrid("../../../examples/grid-example-gpu.json")
	if err != nil {
		t.Fatal(err)
	}
	text := gen.Case(3).Trace()
	run := frame.Run{Replay: config.DefaultReplay(config.VLLM)}
	run.TraceBlockSize, run.NumWorkers = 1<<20, 2
	run.Engine.Timing = config.Timing{Kind: config.Grid, Grid: g.Table}
	want := fed(t, newNativePort(), run, text)
	m := timing.New(run.Engine)
	run.Engine.Timing = config.Timing{Kind: config.External}
	asked := 0
	provider := drive.Options{Provider: func(q timing.Query) (float64, error) {
		asked++
		if q.Kind == timing.AskPrefill {
			return m.Prefill(q.Batch, q.Batch*(q.ISL+q.Prefix), q.Batch*q.Prefix), nil
		}
		return m.Decode(q.Batch, q.Batch*q.ISL), nil
	}}
	for name, guest := range map[string]port{"natively": newNativePort(), "in WebAssembly": newWasmPort(t)} {
		s, err := open(context.Background(), guest, run)
		if err != nil {
			t.Fatal(err)
		}
		feed(t, s, text)
		p, err := s.Run(context.Background(), provider)
		if err != nil || p.Status != frame.Done {
			t.Fatalf("%+v, %v", p, err)
		}
		got, err := s.Summary()
		if d := cmp.Diff(want.Summary, got); d != "" || err != nil {
			t.Errorf("%s (-grid +provider): %s%v", name, d, err)
		}
	}
	if asked < 20 {
		t.Errorf("only %d questions", asked)
	}
}

// A question has to be answered with a number.
func TestBadProviders(t *testing.T) {
	ctx := context.Background()
	for want, o := range map[string]drive.Options{
		"the engine's timing model is external and nobody answers it; a provider, or another timing model, is accepted": {},
		"the timing provider failed for a prefill of batch 1, isl 10, prefix 0: broken":                                 {Provider: func(timing.Query) (float64, error) { return 0, errors.New("broken") }},
		"the timing provider answered NaN ms for a prefill of batch 1, isl 10, prefix 0; a finite number is accepted":   {Provider: func(timing.Query) (float64, error) { return math.NaN(), nil }},
	} {
		run := frame.Run{Replay: config.DefaultReplay(config.VLLM)}
		run.Engine.Timing.Kind = config.External
		s, err := open(ctx, newNativePort(), run)
		if err != nil {
			t.Fatal(err)
		}
		feed(t, s, []byte(`{"timestamp":0,"input_length":10,"output_length":2,"hash_ids":[1]}`))
		if _, err := s.Run(ctx, o); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		if _, err := s.Step(1); err == nil || err.Error() != `core.wasm refuses the frame: the key "answer_ms" is missing` {
			t.Errorf("%v", err)
		}
		if _, err := s.Answer(math.Inf(1), 1); err == nil || err.Error() != `core.wasm refuses the frame: the key "answer_ms" has a value out of range` {
			t.Errorf("%v", err)
		}
	}
}

// A simulation that outgrows its memory stops by itself and says so; another
// one of the same runner goes on.
func TestOutOfMemory(t *testing.T) {
	ctx := context.Background()
	core, err := core()
	if err != nil {
		t.Fatal(err)
	}
	r, err := New(ctx, Options{Core: core, MemoryMB: 24})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(ctx)
	var sims [2]*Sim
	for i := range sims {
		if sims[i], err = r.Open(ctx, frame.Run{Replay: config.DefaultReplay(config.VLLM)}); err != nil {
			t.Fatal(err)
		}
	}
	rows := bytes.Repeat([]byte(`{"timestamp":0,"input_length":10,"output_length":2,"hash_ids":[1]}`+"\n"), 2000)
	for err == nil {
		_, _, err = sims[0].Feed(rows, false, false)
	}
	if want := "the simulation inside core.wasm has stopped: runtime: out of memory: "; !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, want %s...", err, want)
	}
	if _, again := sims[0].Progress(); again == nil || again.Error() != err.Error() {
		t.Errorf("afterwards: %v", again)
	}
	feed(t, sims[1], rows[:len(rows)/2000])
	if p, err := sims[1].Run(ctx, drive.Options{}); err != nil || p.Status != frame.Done {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestRefusals(t *testing.T) {
	wrong := frame.Run{Replay: config.DefaultReplay(config.VLLM)}
	wrong.NumWorkers = -1
	_, err := compiledRunner(t).Open(context.Background(), wrong)
	var refused *Refusal
	if !errors.As(err, &refused) || refused.Config != (config.Fault{Code: config.NotPositive, Field: config.FieldNumWorkers}) {
		t.Fatalf("%v", err)
	}
	s, err := open(context.Background(), newNativePort(), frame.Run{Replay: config.DefaultReplay(config.VLLM)})
	if err != nil {
		t.Fatal(err)
	}
	for want, ask := range map[string]func() error{
		"core.wasm refuses the call (error 10, found 2)":                            func() error { _, err := s.Summary(); return err },
		`core.wasm refuses the frame: the key "events" has a value out of range`:    func() error { _, err := s.Step(0); return err },
		`core.wasm refuses the frame: the key "events" is missing`:                  func() error { _, err := s.progressed(frame.Step, nil); return err },
		`core.wasm refuses the frame: the key "x" is not known`:                     func() error { return s.do(frame.Progress, []frame.Field{field("x", ptr(1))}, nil) },
		`core.wasm refuses the frame: the key "events" has a value of another type`: func() error { return s.do(frame.Step, []frame.Field{field("events", ptr("one"))}, nil) },
		"core.wasm refuses the call (error 8, found 77)":                            func() error { return s.do(77, nil, nil) },
	} {
		if err := ask(); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// A damaged cache is emptied and used again.
func TestCache(t *testing.T) {
	ctx := context.Background()
	core, err := core()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "a", "b")
	fresh := func() {
		t.Helper()
		r, err := New(ctx, Options{Core: core, CacheDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		s, err := r.Open(ctx, frame.Run{Replay: config.DefaultReplay(config.VLLM)})
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		if err := r.Close(ctx); err != nil {
			t.Fatal(err)
		}
	}
	entry := func() (path string, size int64) {
		t.Helper()
		err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				info, infoErr := d.Info()
				path, size, err = p, info.Size(), infoErr
			}
			return err
		})
		if err != nil || path == "" {
			t.Fatalf("no entry in the cache: %v", err)
		}
		return path, size
	}
	fresh()
	path, size := entry()
	if err := os.WriteFile(path, []byte("not what it was"), 0o600); err != nil {
		t.Fatal(err)
	}
	fresh()
	if again, n := entry(); again != path || n != size {
		t.Errorf("the cache has %s of %d bytes, not %s of %d", again, n, path, size)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(ctx, Options{Core: core, CacheDir: file}); !errors.Is(err, ErrCache) {
		t.Errorf("a file for a cache: %v", err)
	}
	if _, err := New(ctx, Options{Core: core[:1000], CacheDir: dir}); err == nil || !strings.HasPrefix(err.Error(), "core.wasm cannot be compiled: ") {
		t.Errorf("half a core.wasm: %v", err)
	}
}
