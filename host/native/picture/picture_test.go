package picture_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/synth"
	"github.com/dryserve/dryserve/core/workload"
	"github.com/dryserve/dryserve/host/native/drive"
	"github.com/dryserve/dryserve/host/native/picture"
)

// crowded is a run that waits, preempts and reuses prefixes: two workers of two
// ranks with small pools.
func crowded(t *testing.T, sessions int, pools ...int) *run {
	t.Helper()
	cfg := config.DefaultReplay(config.VLLM)
	cfg.NumWorkers, cfg.Engine.DPSize, cfg.CaptureRequests = 2, 2, true
	cfg.Engine.BlockSize, cfg.Engine.NumGPUBlocks, cfg.TraceBlockSize = 16, 60, 16
	cfg.SLA.TTFTMs = 700
	for _, workers := range pools { // that compute prompts, with more blocks
		cfg.Prefill = config.Pool{Engine: cfg.Engine, Workers: workers}
		cfg.Prefill.Engine.Role, cfg.Engine.Role, cfg.Prefill.Engine.NumGPUBlocks = config.Prefill, config.Decode, 90
		cfg.Prefill.Engine.Transfer = config.Transfer{BytesPerToken: 100_000, BandwidthGBs: 1}
	}
	spec := synth.Spec{
		InputTokens: 300, OutputTokens: 120, Sessions: sessions, Turns: 2, Arrival: synth.Poisson, RatePerS: 4, ArrivalSeed: 7,
		PrefixRatio: 0.5, PrefixGroups: 3, TurnDelayMs: 40, BlockSize: 16,
	}
	w, f := synth.Build(spec, workload.Options{ArrivalSpeedup: 1})
	if f.Code != workload.OK {
		t.Fatalf("%+v", f)
	}
	return simulate(t, cfg, w)
}

// ranks are those of r by pool, and the blocks of each.
func (r *run) ranks(pool replay.PoolID) (n int, blocks float64) {
	if pool == replay.PrefillPool {
		return r.cfg.Prefill.Workers * 2, float64(r.cfg.Prefill.Engine.NumGPUBlocks)
	}
	return r.cfg.NumWorkers * 2, float64(r.cfg.Engine.NumGPUBlocks)
}

// tokens is how many were given out.
func (r *run) tokens() (n int64) {
	for _, p := range r.tape.Passes {
		n += int64(p.Tokens)
	}
	return n
}

// run is a run with all that was recorded.
type run struct {
	cfg     config.Replay
	sum     replay.Summary
	records []replay.Record
	tape    replay.Recording
	page    *picture.Collector
	doc     *picture.Document
}

func simulate(t *testing.T, cfg config.Replay, w *workload.Workload) *run {
	t.Helper()
	r := &run{cfg: cfg, page: picture.NewCollector(cfg, w)}
	sim := replay.New(cfg, w, replay.Options{Record: true})
	_, err := drive.Run(context.Background(), sim, drive.Options{Record: func(part *replay.Recording) error {
		r.page.Add(part)
		r.tape.Passes = append(r.tape.Passes, part.Passes...)
		r.tape.Events = append(r.tape.Events, part.Events...)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	r.page.Finish()
	r.sum, r.records = sim.Summary(), sim.Records()
	r.doc = (&picture.Run{Name: "a run", Config: cfg, Summary: &r.sum, Collector: r.page}).Document()
	return r
}

func (r *run) figure(t *testing.T, id string) *picture.Figure {
	t.Helper()
	for i := range r.doc.Figures {
		if r.doc.Figures[i].ID == id {
			return &r.doc.Figures[i]
		}
	}
	t.Fatalf("there is no figure %s", id)
	return nil
}

// area is what a line covers over the run, in units times ms.
func area(f *picture.Figure, series int, whole bool) (sum float64) {
	for i, v := range f.Series[series].Values {
		ms := f.X.StepMs
		if !whole {
			ms = min(ms, f.X.EndMs-float64(i)*ms)
		}
		if !math.IsNaN(v) {
			sum += v * ms
		}
	}
	return sum
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-9*math.Abs(want)) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestFiguresAddUp compares what lines cover with sums over what was recorded:
// of a few requests to many, so that bins have 2 ms to 1 s, and of two pools.
func TestFiguresAddUp(t *testing.T) {
	for _, sessions := range []int{3, 60, 600} {
		crowded(t, sessions).checkSums(t, sessions > 3)
	}
	crowded(t, 60, 1).checkSums(t, true)
	crowded(t, 600, 3).checkSums(t, true)
}

func (r *run) checkSums(t *testing.T, busyRun bool) {
	t.Helper()
	var spent [3]float64 // waiting, running, handed over
	admitted, found := map[int32]bool{}, int64(0)
	at, since, preempted, endMs := map[int32]int{}, map[int32]float64{}, 0, 0.0
	for _, e := range r.tape.Events {
		if e.Kind != replay.Arrived {
			spent[at[e.Turn]] += e.AtMs - since[e.Turn]
		}
		since[e.Turn], endMs = e.AtMs, max(endMs, e.AtMs)
		switch e.Kind {
		case replay.Arrived, replay.Preempted, replay.Activated:
			at[e.Turn] = 0
		case replay.Admitted:
			at[e.Turn] = 1
			if !admitted[e.Turn] {
				admitted[e.Turn] = true
				found += int64(e.Tokens)
			}
		case replay.Held:
			at[e.Turn] = 2
		}
		if e.Kind == replay.Preempted {
			preempted++
		}
	}
	if busyRun && (preempted == 0 || spent[0] == 0 || r.cfg.Disaggregated() && spent[2] == 0) {
		t.Fatalf("nobody is preempted or nobody waits: the case shows nothing (%d, %v)", preempted, spent)
	}
	queue := r.figure(t, "queue-depth")
	near(t, "running", area(queue, 0, false), spent[1])
	near(t, "waiting", area(queue, 1, false), spent[0])
	if r.cfg.Disaggregated() {
		near(t, "handed over", area(queue, 3, false), spent[2])
	} else if busyRun {
		sum := 0.0
		for _, n := range queue.Series[3].Values {
			sum += n
		}
		near(t, "preemptions", sum, float64(preempted))
	}
	near(t, "arrived", area(r.figure(t, "request-rate"), 0, true)/1000, float64(r.sum.NumRequests))
	near(t, "completed", area(r.figure(t, "request-rate"), 1, true)/1000, float64(r.sum.CompletedRequests))
	near(t, "output", area(r.figure(t, "output-throughput"), 0, true)/1000, float64(r.tokens()))
	near(t, "prefill", area(r.figure(t, "prefill-throughput"), 0, true)/1000, float64(r.sum.CommittedPrefillTokens))
	hits := r.figure(t, "cache-hits").Series[1].Values
	near(t, "hits so far", hits[len(hits)-1], float64(found)/float64(300*len(admitted)))
	if r.sum.FailedRequests == 0 { // the report counts completed requests only
		near(t, "hits of the report", float64(found)/float64(300*len(admitted)), r.sum.FirstAdmissionReused)
		near(t, "output of the report", float64(r.tokens()), float64(r.sum.TotalOutputTokens))
	}
	shares := 0.0 // of the blocks of each rank, times ms
	if r.cfg.Disaggregated() {
		shares += r.checkUsage(t, "kv-usage-prefill", replay.PrefillPool, endMs)
		shares += r.checkUsage(t, "kv-usage-decode", replay.ServingPool, endMs)
	} else {
		shares += r.checkUsage(t, "kv-usage", replay.ServingPool, endMs)
	}
	r.checkHeat(t, shares, endMs)
	r.checkTable(t)
	for _, f := range r.doc.Figures {
		for _, s := range f.Series {
			if n := len(s.Values); f.Kind == "lines" && n != f.X.N || f.Kind == "cdf" && n != len(f.At) {
				t.Errorf("%s: %s has %d values", f.ID, s.Name, n)
			}
		}
	}
}

// checkUsage compares the KV usage of a pool and returns the sum of what its
// ranks used, as shares times ms.
func (r *run) checkUsage(t *testing.T, id string, pool replay.PoolID, endMs float64) float64 {
	t.Helper()
	n, blocks := r.ranks(pool)
	inUse, resident, peak := 0.0, 0.0, int32(0)
	last := map[int32]replay.Pass{}
	usage := r.figure(t, id)
	peaks := make([]float64, usage.X.N) // by point, in blocks: of passes that end in it
	for _, p := range r.tape.Passes {
		if p.Pool != pool {
			continue
		}
		id := p.Worker*2 + p.Rank
		inUse += float64(last[id].ActiveBlocks) * (p.EndMs - last[id].EndMs)
		resident += float64(last[id].ActiveBlocks+last[id].CachedBlocks) * (p.EndMs - last[id].EndMs)
		last[id], peak = p, max(peak, p.ActiveBlocks)
		i := int(p.EndMs / usage.X.StepMs)
		peaks[i] = max(peaks[i], float64(p.ActiveBlocks))
	}
	for _, p := range last {
		inUse += float64(p.ActiveBlocks) * (endMs - p.EndMs)
		resident += float64(p.ActiveBlocks+p.CachedBlocks) * (endMs - p.EndMs)
	}
	near(t, id, area(usage, 0, false), inUse/blocks/float64(n))
	near(t, id+" with what is cached", area(usage, 1, false), resident/blocks/float64(n))
	near(t, id+", peak", slices.Max(usage.Series[2].Values), float64(peak)/blocks)
	for i, v := range usage.Series[2].Values {
		if v*blocks < peaks[i]-1e-9 {
			t.Errorf("%s: the peak at %d is %v blocks, want at least %v", id, i, v*blocks, peaks[i])
		}
	}
	return inUse / blocks
}

// checkHeat: a cell is within half of 1/254.
func (r *run) checkHeat(t *testing.T, want, endMs float64) {
	t.Helper()
	f := r.figure(t, "kv-usage-by-worker")
	prefill, _ := r.ranks(replay.PrefillPool)
	serving, _ := r.ranks(replay.ServingPool)
	rows := prefill + serving
	if len(f.Rows) != rows || len(f.Cells) != rows*f.X.N {
		t.Fatalf("%d rows, %d cells of %d columns", len(f.Rows), len(f.Cells), f.X.N)
	}
	if digits := strings.TrimRight(strconv.FormatFloat(f.X.StepMs, 'f', -1, 64), "0"); digits != "1" && digits != "2" {
		t.Errorf("a bin has %v ms", f.X.StepMs)
	}
	sum := 0.0
	for i, c := range f.Cells {
		if c != 255 {
			sum += float64(c) / 254 * min(f.X.StepMs, endMs-float64(i%f.X.N)*f.X.StepMs)
		}
	}
	if math.Abs(sum-want) > float64(rows)*endMs/508 {
		t.Errorf("cells add up to %v, want %v", sum, want)
	}
}

func (r *run) checkTable(t *testing.T) {
	t.Helper()
	f := r.figure(t, "load-by-worker")
	var requests, prefilled, tokens int64
	for _, row := range f.Body {
		if len(row) != len(f.Columns) {
			t.Fatalf("%d cells in a row of %d columns", len(row), len(f.Columns))
		}
		if !strings.HasPrefix(row[0].(string), "prefill") {
			requests += row[1].(int64)
		}
		prefilled, tokens = prefilled+row[3].(int64), tokens+row[4].(int64)
		if busy := row[2].(float64); busy <= 0 || busy > 100 {
			t.Errorf("busy for %v %%", busy)
		}
	}
	if requests != r.sum.CompletedRequests || prefilled != r.sum.CommittedPrefillTokens || tokens != r.tokens() {
		t.Errorf("%d requests, %d and %d tokens, want %d, %d and %d", requests, prefilled, tokens,
			r.sum.CompletedRequests, r.sum.CommittedPrefillTokens, r.tokens())
	}
}

// TestDistributions compares the curves with the exact values.
func TestDistributions(t *testing.T) {
	r := crowded(t, 200)
	var ttft, e2e []float64
	for _, rec := range r.records {
		ttft, e2e = append(ttft, rec.FirstTokenMs-rec.ArrivalMs), append(e2e, rec.LastTokenMs-rec.ArrivalMs)
	}
	f := r.figure(t, "latency-cdf")
	for i, values := range [][]float64{ttft, nil, e2e} {
		slices.Sort(values)
		for k, at := range f.At {
			if values == nil {
				break
			}
			want := values[max(int(math.Ceil(at*float64(len(values))))-1, 0)]
			if got := f.Series[i].Values[k]; math.Abs(got-want) > 0.001*want {
				t.Errorf("%s at %v: %v, want %v", f.Series[i].Name, at, got, want)
			}
		}
	}
	for at, want := range map[float64]float64{0.5: r.sum.ITL.Median, 0.9: r.sum.ITL.P90, 0.99: r.sum.ITL.P99} {
		if got := f.Series[1].Values[slices.Index(f.At, at)]; math.Abs(got-want) > 0.003*want {
			t.Errorf("ITL at %v: %v, want %v", at, got, want)
		}
	}
	if len(f.Marks) != 1 || f.Marks[0].Value != 700 {
		t.Errorf("marks %v, want that of 700 ms", f.Marks)
	}
	if n := len(f.At); f.At[0] != 0 || f.At[n-1] != 1 || !slices.IsSorted(f.At) {
		t.Errorf("the fractions are %v", f.At)
	}
}

// TestPage: a page is one file that asks for nothing, the same every time, and
// its data are what the document says.
func TestPage(t *testing.T) {
	r := crowded(t, 20)
	r.doc.Title = "</script><script>alert(1)</script>"
	r.doc.Subtitle = "<b>&amp;"
	var a, b bytes.Buffer
	if err := r.doc.WriteHTML(&a); err != nil {
		t.Fatal(err)
	}
	again := crowded(t, 20)
	again.doc.Title, again.doc.Subtitle = r.doc.Title, r.doc.Subtitle
	if err := again.doc.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Error("the same run gives another page")
	}
	page := a.String()
	if n := strings.Count(page, "<script"); n != 2 {
		t.Errorf("the page has %d scripts, want its data and its code", n)
	}
	for _, found := range regexp.MustCompile(`(?i)https?://[^"'\s]*|@import|url\(|<link [^>]*>|\bsrc=|\bfetch\(|\bimport\b[^;]*from`).FindAllString(page, -1) {
		if found != "http://www.w3.org/2000/svg" && found != `<link rel="icon" href="data:,">` {
			t.Errorf("the page has %s", found)
		}
	}
	_, data, _ := strings.Cut(page, `id="document">`)
	data, _, _ = strings.Cut(data, "</script>")
	var doc struct {
		Title   string
		Figures []struct {
			ID, Cells string
			Series    []struct{ Values []*float64 }
		}
	}
	if err := json.Unmarshal([]byte(data), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Title != r.doc.Title || len(doc.Figures) != len(r.doc.Figures) {
		t.Errorf("the data have title %q and %d figures", doc.Title, len(doc.Figures))
	}
	for i, f := range r.doc.Figures {
		got := doc.Figures[i]
		if cells, err := base64.StdEncoding.DecodeString(got.Cells); err != nil || !bytes.Equal(cells, f.Cells) {
			t.Errorf("%s: %d cells, %v; want %d", f.ID, len(cells), err, len(f.Cells))
		}
		for k, s := range f.Series {
			for j, v := range s.Values {
				p := got.Series[k].Values[j]
				if math.IsNaN(v) != (p == nil) || p != nil && math.Abs(*p-v) > 1e-4*math.Abs(v) {
					t.Fatalf("%s: %s has %v at %d, want %v", f.ID, s.Name, p, j, v)
				}
			}
		}
	}
}

// TestQueueOfThoseWhoFail: those who end without running have waited, those who
// were preempted too.
func TestQueueOfThoseWhoFail(t *testing.T) {
	cfg := config.DefaultReplay(config.VLLM)
	load := &workload.Workload{Turns: make([]workload.Turn, 3)}
	c := picture.NewCollector(cfg, load)
	c.Add(&replay.Recording{Events: []replay.Event{
		{AtMs: 0, Turn: 0, Kind: replay.Arrived}, {AtMs: 0, Turn: 1, Kind: replay.Arrived}, {AtMs: 100, Turn: 0, Kind: replay.Admitted},
		{AtMs: 200, Turn: 0, Kind: replay.Preempted}, {AtMs: 300, Turn: 0, Kind: replay.Ended, Status: replay.Failed},
		{AtMs: 400, Turn: 1, Kind: replay.Ended, Status: replay.Rejected}, {AtMs: 499, Turn: 2, Kind: replay.Arrived},
	}})
	c.Finish()
	doc := (&picture.Run{Config: cfg, Summary: &replay.Summary{}, Collector: c}).Document()
	f := (&run{doc: doc}).figure(t, "queue-depth")
	near(t, "running", area(f, 0, false), 100)
	near(t, "waiting", area(f, 1, false), 2*100+1*100+2*100+1*100)
	last := len(f.Series[1].Values) - 2 // the run ends with the last arrival
	if v := f.Series[1].Values[last]; v != 0 {
		t.Errorf("%v wait at the end", v)
	}
}

// TestEmptyRun: nothing that arrives is a page, too.
func TestEmptyRun(t *testing.T) {
	cfg := config.DefaultReplay(config.SGLang)
	cfg.MaxSimTimeMs = 0
	w, _ := synth.Build(synth.Spec{InputTokens: 8, OutputTokens: 2, Sessions: 3, Arrival: synth.Constant, IntervalMs: 5, BlockSize: 16}, workload.Options{ArrivalSpeedup: 1})
	r := simulate(t, cfg, w)
	var b bytes.Buffer
	if err := r.doc.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	_, data, _ := strings.Cut(b.String(), `id="document">`)
	data, _, _ = strings.Cut(data, "</script>")
	if r.sum.CompletedRequests != 0 || !json.Valid([]byte(data)) || strings.Contains(data, "NaN") || strings.Contains(data, "Inf") {
		t.Errorf("the page of an empty run has numbers that are none: %s", data)
	}
}
