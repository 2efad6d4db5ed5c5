package viewers_test

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/dryserve/dryserve/core/config"
	core "github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/workload"
	"github.com/dryserve/dryserve/host/native/drive"
	"github.com/dryserve/dryserve/host/native/engineargs"
	"github.com/dryserve/dryserve/host/native/fleet"
	"github.com/dryserve/dryserve/host/native/tracefile"
	"github.com/dryserve/dryserve/internal/viewers"
)

// spelt is a slice in words that do not depend on the numbers of tracks.
type spelt struct {
	On, Name   string
	Depth      int
	Begin, End int64 // ns; -1: it has none
	Args       map[string]any
}

// counted is a value of a counter from a moment on.
type counted struct {
	On    string
	AtNs  int64
	Value int64
}

// TestTimeline reads timelines of runs that are cut off while requests wait, run
// and are preempted: of two workers of two ranks, and of two pools.
func TestTimeline(t *testing.T) {
	const engine = `"engine": {"block_size": 16, "num_gpu_blocks": 40`
	whole := []string{"prefill", "decode", "prefill and decode", "queued", "preempted", "unfinished", "barrier"}
	for _, c := range []struct {
		name  string
		args  []string
		cfg   func(*config.Replay)
		kinds []string
	}{
		{"ranks", []string{"--num-workers", "2", "--extra-engine-args", `{"dp_size": 2, ` + engine + `}}`}, func(r *config.Replay) {
			r.Engine, r.NumWorkers = parsed(t, `{"dp_size": 2, `+engine+`}}`, config.Aggregated), 2
		}, whole},
		{"pools", []string{
			"--num-prefill-workers", "2", "--prefill-engine-args", `{` + engine + link + `}`, "--decode-engine-args", `{"dp_size": 2, ` + engine + decodes + `}`,
		}, func(r *config.Replay) {
			r.Engine = parsed(t, `{"dp_size": 2, `+engine+decodes+`}`, config.Decode)
			r.Prefill = config.Pool{Engine: parsed(t, `{`+engine+link+`}`, config.Prefill), Workers: 2}
		}, append(slices.Clone(whole), "held", "transfer", "transferred")},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			path, trace := filepath.Join(dir, "run.pftrace"), filepath.Join(dir, "t.jsonl")
			if err := os.WriteFile(trace, []byte(sessions()), 0o644); err != nil {
				t.Fatal(err)
			}
			replay(t, append(c.args, trace, "--trace-block-size", "16", "--max-sim-time-seconds", "11", "--no-table", "--timeline", path)...)
			got, err := tools.ReadTrace(path)
			if err != nil {
				t.Fatal(err)
			}
			cfg := config.DefaultReplay(config.VLLM)
			cfg.TraceBlockSize, cfg.MaxSimTimeMs = 16, 11_000
			c.cfg(&cfg)
			checkTimeline(t, cfg, trace, got, c.kinds)
		})
	}
}

// The two pools: what a transfer takes, and who decodes.
const (
	link    = `, "worker_type": "prefill", "kv_transfer_bandwidth": 1, "kv_bytes_per_token": 100000}`
	decodes = `, "worker_type": "decode"}`
)

func parsed(t *testing.T, text string, role config.Role) config.Engine {
	t.Helper()
	args, err := engineargs.Options{Role: role}.Parse("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return args.Engine
}

func checkTimeline(t *testing.T, cfg config.Replay, trace string, got *viewers.Trace, wantKinds []string) {
	loaded, err := tracefile.Load(context.Background(), []string{trace}, tracefile.Options{TraceBlockSize: 16, ArrivalSpeedup: 1})
	if err != nil {
		t.Fatal(err)
	}
	load := loaded.Workload
	var tape core.Recording
	_, err = drive.Run(context.Background(), core.New(cfg, load, core.Options{Record: true}), drive.Options{Record: func(r *core.Recording) error {
		tape.Passes = append(tape.Passes, r.Passes...)
		tape.Events = append(tape.Events, r.Events...)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	f := fleet.Of(cfg)
	wantSlices, wantCounters := wanted(&tape, load, f)
	gotSlices, gotCounters := told(got)
	// Lanes are checked by themselves: which one a request has is free.
	if d := gocmp.Diff(wantSlices, gotSlices); d != "" {
		t.Errorf("slices differ:\n%.4000s", d)
	}
	if d := gocmp.Diff(wantCounters, gotCounters); d != "" {
		t.Errorf("counters differ:\n%.4000s", d)
	}
	checkTracks(t, got, f)
	checkLanes(t, got)
	kinds := map[string]int{}
	for _, s := range wantSlices {
		kinds[s.Name]++
		if s.End < 0 {
			kinds["unfinished"]++
		}
		if s.Args["waited_for_ranks_us"] != nil {
			kinds["barrier"]++
		}
	}
	for _, kind := range wantKinds {
		if kinds[kind] == 0 {
			t.Errorf("the run shows no %s: %v", kind, kinds)
		}
	}
}

// sessions is a trace of two turns a session, whose prompts begin alike.
func sessions() string {
	var b strings.Builder
	for i := range 120 {
		ids := make([]string, 19)
		for k := range ids {
			if ids[k] = fmt.Sprint(k + 100*(i%3)); k > 8 {
				ids[k] = fmt.Sprint(1000*(i+1) + k)
			}
		}
		for turn := range 2 {
			when := fmt.Sprintf(`"timestamp":%d`, i*113)
			if turn > 0 {
				when = `"delay":40`
			}
			fmt.Fprintf(&b, `{"session_id":"s%d",%s,"input_length":300,"output_length":%d,"hash_ids":[%s]}`+"\n", i, when, 60+7*(i%9), strings.Join(ids, ","))
		}
	}
	return b.String()
}

func ns(ms float64) int64 { return int64(math.Round(ms * 1e6)) }

// wanted is what the timeline of a recording must have.
func wanted(tape *core.Recording, load *workload.Workload, f fleet.Fleet) ([]spelt, []counted) {
	var list []spelt
	var counts []counted
	before := map[string]int64{}
	set := func(id, which int, atNs, n int64) {
		on := tracks(f, id)[1+which]
		if old, known := before[on]; !known || old != n {
			before[on] = n
			counts = append(counts, counted{on, atNs, n})
		}
	}
	for id := range f.Ranks {
		for which := range 3 {
			set(id, which, 0, 0)
		}
	}
	for _, p := range tape.Passes {
		if p.Prefills+p.Decodes > 0 {
			name := "decode"
			if p.Prefills > 0 && p.Decodes > 0 {
				name = "prefill and decode"
			} else if p.Prefills > 0 {
				name = "prefill"
			}
			args := map[string]any{
				"prefills": float64(p.Prefills), "prefill_tokens": float64(p.PrefillTokens), "decodes": float64(p.Decodes), "output_tokens": float64(p.Tokens),
			}
			if us := ns(p.EndMs-p.OwnEndMs) / 1000; us > 0 {
				args["waited_for_ranks_us"] = float64(us)
			}
			list = append(list, spelt{tracks(f, f.Rank(p.Pool, p.Worker, p.Rank))[0], name, 0, ns(p.StartMs), ns(p.EndMs), args})
		}
		for which, n := range [...]int32{p.Running, p.Waiting, p.ActiveBlocks} {
			set(f.Rank(p.Pool, p.Worker, p.Rank), which, ns(p.EndMs), int64(n))
		}
	}
	list = append(list, requests(tape, load, f)...)
	sortAll(list, counts)
	return list, counts
}

// tracks are the names of a rank's tracks with their process: its passes, then
// its counters.
func tracks(f fleet.Fleet, id int) [4]string {
	worker, rank, several := strings.Cut(f.Name(id), ", ")
	list := [4]string{"passes", "running", "waiting", "KV blocks in use"}
	for i := range list {
		if several && i == 0 {
			list[i] += " of " + rank
		} else if several {
			list[i] += ", " + rank
		}
		list[i] = worker + "/" + list[i]
	}
	return list
}

// requests are the slices of the requests: of each itself, and its phases.
func requests(tape *core.Recording, load *workload.Workload, f fleet.Fleet) (list []spelt) {
	ordinal := map[int32]int{}
	for _, s := range load.Sessions {
		for turn := s.First; turn >= 0; turn = load.Turns[turn].Next {
			ordinal[turn] = len(ordinal) + 1
		}
	}
	byTurn := map[int32][]core.Event{}
	for _, e := range tape.Events {
		byTurn[e.Turn] = append(byTurn[e.Turn], e)
	}
	for turn, events := range byTurn {
		whole := spelt{"requests", fmt.Sprintf("request %d", ordinal[turn]), 0, ns(events[0].AtMs), -1, map[string]any{
			"input_tokens": float64(load.Turns[turn].Input), "requested_output_tokens": float64(load.Turns[turn].Output),
		}}
		first := false
		for i, e := range events {
			phase := spelt{"requests", "", 1, ns(e.AtMs), -1, map[string]any{}}
			if i+1 < len(events) {
				phase.End = ns(events[i+1].AtMs)
			}
			switch e.Kind {
			case core.Arrived:
				phase.Name = "queued"
			case core.Admitted:
				phase.Name = "prefill"
				if first {
					phase.Name = "prefill and decode"
				} else if len(f.Pools) > 1 && e.Pool == core.ServingPool {
					phase.Name = "decode"
				}
				phase.Args = map[string]any{"worker": float64(e.Worker), "rank": float64(e.Rank), "cached_tokens": float64(e.Tokens), "host_tokens": float64(e.HostTokens)}
			case core.Held:
				phase.Name = "held"
			case core.Transferring:
				phase.Name, phase.Args["tokens"] = "transfer", float64(e.Tokens)
			case core.Activated:
				phase.Name = "transferred"
				phase.Args["worker"], phase.Args["rank"] = float64(e.Worker), float64(e.Rank)
			case core.Preempted:
				phase.Name = "preempted"
			case core.FirstToken:
				phase.Name, first = "decode", true
			case core.Ended:
				whole.End = ns(e.AtMs)
				whole.Args["output_tokens"], whole.Args["status"] = float64(e.Tokens), "completed"
				continue
			}
			if phase.Args["worker"] != nil && len(f.Pools) > 1 {
				phase.Args["pool"] = map[core.PoolID]string{core.PrefillPool: "prefill", core.ServingPool: "decode"}[e.Pool]
			}
			list = append(list, phase)
		}
		list = append(list, whole)
	}
	return list
}

// told is what a timeline has, in the same words.
func told(trace *viewers.Trace) (list []spelt, counts []counted) {
	on := func(id int64) string {
		track := trace.Tracks[id]
		process := trace.Tracks[track.Parent].Name
		if process == "requests" {
			return process
		}
		return process + "/" + track.Name
	}
	for _, s := range trace.Slices {
		end := int64(-1)
		if s.End != nil {
			end = *s.End
		}
		list = append(list, spelt{on(s.Track), s.Name, s.Depth, s.Begin, end, s.Args})
	}
	for _, c := range trace.Counters {
		counts = append(counts, counted{on(c[0]), c[1], c[2]})
	}
	sortAll(list, counts)
	return list, counts
}

func sortAll(list []spelt, counts []counted) {
	slices.SortFunc(list, func(a, b spelt) int {
		return cmp.Or(cmp.Compare(a.On, b.On), cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.End, b.End), cmp.Compare(a.Depth, b.Depth),
			cmp.Compare(a.Name, b.Name), cmp.Compare(fmt.Sprint(a.Args), fmt.Sprint(b.Args)))
	})
	slices.SortStableFunc(counts, func(a, b counted) int { return cmp.Or(cmp.Compare(a.On, b.On), cmp.Compare(a.AtNs, b.AtNs)) })
}

// checkTracks: a process a worker and one for the requests, a thread a rank,
// three counters each.
func checkTracks(t *testing.T, trace *viewers.Trace, f fleet.Fleet) {
	var got []string
	for _, track := range trace.Tracks {
		parent := trace.Tracks[track.Parent].Name
		if parent == "requests" {
			continue
		}
		name := track.Name
		if parent != "" {
			name = parent + "/" + name
		}
		got = append(got, name+" "+track.Kind+" "+track.Unit)
	}
	want := []string{"requests process "}
	for id := range f.Ranks {
		process, _, _ := strings.Cut(f.Name(id), ", ")
		if process += " process "; !slices.Contains(want, process) {
			want = append(want, process)
		}
		for i, name := range tracks(f, id) {
			want = append(want, name+[...]string{" thread ", " counter requests", " counter requests", " counter blocks"}[i])
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if d := gocmp.Diff(want, got); d != "" {
		t.Errorf("tracks differ:\n%s", d)
	}
}

// checkLanes: requests share a lane only one after the other, phases lie in
// their requests, and there are no more lanes than requests at a time.
func checkLanes(t *testing.T, trace *viewers.Trace) {
	type lane struct{ whole, phase viewers.Slice }
	lanes := map[int64]*lane{}
	var moments [][2]int64 // time, one more or one less
	for _, s := range trace.Slices {
		if trace.Tracks[trace.Tracks[s.Track].Parent].Name != "requests" {
			continue
		}
		l := lanes[s.Track]
		if l == nil {
			l = &lane{}
			lanes[s.Track] = l
		}
		last := &l.whole
		if s.Depth == 1 {
			last = &l.phase
			if s.Begin < l.whole.Begin || l.whole.End != nil && (s.End == nil || *s.End > *l.whole.End) {
				t.Errorf("%s is not inside %s", s.Name, l.whole.Name)
			}
		} else {
			moments = append(moments, [2]int64{s.Begin, 1})
			if s.End != nil {
				moments = append(moments, [2]int64{*s.End, -1})
			}
		}
		if last.Name != "" && (last.End == nil || *last.End > s.Begin) {
			t.Errorf("%s begins before %s ends on the same lane", s.Name, last.Name)
		}
		*last = s
	}
	slices.SortFunc(moments, func(a, b [2]int64) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	now, most := int64(0), int64(0)
	for _, m := range moments {
		now += m[1]
		most = max(most, now)
	}
	if int64(len(lanes)) != most {
		t.Errorf("%d lanes for %d requests at a time", len(lanes), most)
	}
}
