package report

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/stats"
	"github.com/dryserve/dryserve/core/workload"
)

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// load fills a Report from the reference's numbers.
func load(t *testing.T, name string) Report {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(read(t, name), &m); err != nil {
		t.Fatal(err)
	}
	real := func(key string) float64 { x, _ := m[key].(float64); return x }
	whole := func(key string) int64 { return int64(real(key)) }
	dist := func(name string) stats.Dist {
		return stats.Dist{
			Mean: real("mean_" + name), Min: real("min_" + name), Max: real("max_" + name), Median: real("median_" + name),
			P75: real("p75_" + name), P90: real("p90_" + name), P95: real("p95_" + name), P99: real("p99_" + name), Std: real("std_" + name),
		}
	}
	_, sla := m["goodput_completed_requests"]
	return Report{WallMs: real("wall_time_ms"), Summary: replay.Summary{
		CommittedPrefillTokens: whole("committed_prefill_tokens"),
		NumRequests:            whole("num_requests"),
		CompletedRequests:      whole("completed_requests"),
		RejectedRequests:       whole("num_requests") - whole("completed_requests"),
		TotalInputTokens:       whole("total_input_tokens"),
		TotalOutputTokens:      whole("total_output_tokens"),
		DurationMs:             real("duration_ms"),
		RequestThroughputRPS:   real("request_throughput_rps"),
		InputThroughputTokS:    real("input_throughput_tok_s"),
		OutputThroughputTokS:   real("output_throughput_tok_s"),
		TotalThroughputTokS:    real("total_throughput_tok_s"),
		PrefillWorkerSeconds:   real("prefill_worker_seconds"),
		DecodeWorkerSeconds:    real("decode_worker_seconds"),
		PrefillGPUsPerWorker:   whole("prefill_gpus_per_worker"),
		DecodeGPUsPerWorker:    whole("decode_gpus_per_worker"),
		GPUHours:               real("gpu_hours"),
		PrefixReusedRatio:      real("prefix_cache_reused_ratio"),
		FirstAdmissionReused:   real("first_admission_prefix_cache_reused_ratio"),
		HasSLA:                 sla,
		GoodputCompleted:       whole("goodput_completed_requests"),
		GoodputRequestRPS:      real("goodput_request_throughput_rps"),
		GoodputOutputTokS:      real("goodput_output_throughput_tok_s"),
		NumTTFT:                whole("num_ttft_samples"),
		NumTPOT:                whole("num_tpot_samples"),
		NumE2E:                 whole("num_e2e_latency_samples"),
		TTFT:                   dist("ttft_ms"), TTST: dist("ttst_ms"), TPOT: dist("tpot_ms"), ITL: dist("itl_ms"),
		E2E: dist("e2e_latency_ms"), PerUser: dist("output_token_throughput_per_user"),
	}}
}

func TestWriteJSON(t *testing.T) {
	ours := []string{"cancelled_requests", "failed_requests", "rejected_requests", "unfinished_requests"}
	for _, name := range []string{"edge", "preempt", "reject", "sessions", "sla_e2e"} {
		r := load(t, name+".report.json")
		var out bytes.Buffer
		if err := r.WriteJSON(&out); err != nil {
			t.Fatal(err)
		}
		found := 0
		rest := strings.Join(slices.DeleteFunc(strings.SplitAfter(out.String(), "\n"), func(line string) bool {
			is := slices.ContainsFunc(ours, func(key string) bool { return strings.HasPrefix(line, `  "`+key+`": `) })
			if is {
				found++
			}
			return is
		}), "")
		if want := string(read(t, name+".report.json")); rest != want {
			t.Errorf("%s differs:\n%s", name, firstDifference(rest, want))
		}
		if found != len(ours) {
			t.Errorf("%s: %d of our own keys", name, found)
		}
		if !json.Valid(out.Bytes()) {
			t.Errorf("%s: not JSON", name)
		}
	}
}

func TestWriteJSONCounters(t *testing.T) {
	r := Report{WallMs: 1, Summary: replay.Summary{RejectedRequests: 2, FailedRequests: 3, CancelledRequests: 4, UnfinishedRequests: 5}}
	var out bytes.Buffer
	if err := r.WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"rejected_requests": 2,`, `"failed_requests": 3,`, `"cancelled_requests": 4,`, `"unfinished_requests": 5,`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in %s", want, out.String())
		}
	}
}

// No number may make the report invalid JSON.
func TestWriteJSONNonFinite(t *testing.T) {
	r := Report{Summary: replay.Summary{DurationMs: math.NaN(), GPUHours: math.Inf(1), TotalInputTokens: 5}}
	var out bytes.Buffer
	if err := r.WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	if !json.Valid(out.Bytes()) || !strings.Contains(out.String(), `"duration_ms": null`) {
		t.Error(out.String())
	}
}

func TestWriteTable(t *testing.T) {
	for _, name := range []string{"mc_vllm_single", "sla_e2e"} {
		r := load(t, name+".table.json")
		r.WallMs = 1234567.891
		var out bytes.Buffer
		if err := r.WriteTable(&out); err != nil {
			t.Fatal(err)
		}
		if err := WriteSaved(&out, "report.json"); err != nil {
			t.Fatal(err)
		}
		want := strings.Replace(string(read(t, name+".table.txt")), "<wall>", "1,234,567.89", 1)
		if out.String() != want {
			t.Errorf("%s differs:\n%s", name, firstDifference(out.String(), want))
		}
	}
}

func TestGrouped(t *testing.T) {
	for want, x := range map[string]float64{
		"0.00": 0, "-0.00": -0.001, "0.12": 0.125, "0.38": 0.375, "999.99": 999.99, "1,000.00": 999.995001, "-12,345.60": -12345.6,
		"1,234,567.89": 1234567.891, "123,456,789,012,345,683,968.00": 1.2345678901234568e20, "nan": math.NaN(), "inf": math.Inf(1),
	} {
		if got := grouped(x); got != want {
			t.Errorf("grouped(%v) = %s, want %s", x, got, want)
		}
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return "got  " + g[i] + "\nwant " + w[i]
		}
	}
	return "one is longer"
}

// fixture rebuilds core's records from lines of the reference.
func fixture(t *testing.T, name string) (*Requests, string) {
	t.Helper()
	text := string(read(t, name+".requests.jsonl"))
	r := &Requests{Workload: &workload.Workload{}}
	last := map[string]int32{}
	var ids []string
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		var j struct {
			SessionID *string  `json:"session_id"`
			Arrival   float64  `json:"arrival_time_ms"`
			Admit     *float64 `json:"first_admit_ms"`
			Terminal  float64  `json:"terminal_time_ms"`
			First     *float64 `json:"first_token_ms"`
			Last      *float64 `json:"last_token_ms"`
			TTST      *float64 `json:"ttst_ms"`
			Input     int32    `json:"input_length"`
			Requested int32    `json:"requested_output_length"`
			Output    int32    `json:"output_length"`
			Reused    int32    `json:"reused_input_tokens"`
			Worker    int32    `json:"decode_worker_idx"`
			Status    string   `json:"terminal_status"`
			History   []struct {
				At     float64 `json:"at_ms"`
				Reused int32   `json:"reused_input_tokens"`
			} `json:"admission_history"`
		}
		if err := json.Unmarshal([]byte(line), &j); err != nil {
			t.Fatal(err)
		}
		turn := int32(len(r.Workload.Turns))
		r.addTurn(j.SessionID, &ids, last, turn)
		rec := replay.Record{
			Turn: turn, ArrivalMs: j.Arrival, FirstAdmitMs: orNaN(j.Admit), TerminalMs: j.Terminal, FirstTokenMs: orNaN(j.First),
			LastTokenMs: orNaN(j.Last), SecondTokenMs: sum(orNaN(j.First), orNaN(j.TTST)), InputLength: j.Input, RequestedOutput: j.Requested,
			OutputLength: j.Output, ReusedTokens: j.Reused, Worker: j.Worker, AdmissionStart: int32(len(r.Admissions)), AdmissionCount: int32(len(j.History)),
		}
		if j.Status == "rejected" {
			rec.Status = replay.Rejected
		}
		for _, a := range j.History {
			r.Admissions = append(r.Admissions, replay.Admission{AtMs: a.At, Reused: a.Reused})
		}
		r.Records = append(r.Records, rec)
	}
	if ids[0] != "" {
		r.SessionID = func(s int32) []byte { return []byte(ids[s]) }
	}
	return r, text
}

func (r *Requests) addTurn(id *string, ids *[]string, last map[string]int32, turn int32) {
	w := r.Workload
	t := workload.Turn{Next: -1}
	before, known := int32(0), false
	if id != nil {
		before, known = last[*id]
	}
	if known {
		w.Turns[before].Next = turn
		t.Session, t.Index = w.Turns[before].Session, w.Turns[before].Index+1
	} else {
		t.Session = int32(len(w.Sessions))
		w.Sessions = append(w.Sessions, workload.Session{First: turn})
		name := ""
		if id != nil {
			name = *id
		}
		*ids = append(*ids, name)
	}
	if id != nil {
		last[*id] = turn
	}
	w.Turns = append(w.Turns, t)
}

func orNaN(x *float64) float64 {
	if x == nil {
		return math.NaN()
	}
	return *x
}

// sum finds the b for which b-a is exactly d.
func sum(a, d float64) float64 {
	b := a + d
	for _, c := range []float64{b, math.Nextafter(b, 0), math.Nextafter(b, math.Inf(1))} {
		if c-a == d {
			return c
		}
	}
	return b
}

func TestWriteJSONL(t *testing.T) {
	for _, name := range []string{"edge", "preempt", "reject", "sessions", "sla_e2e"} {
		r, want := fixture(t, name)
		slices.Reverse(r.Records) // the order of records must not matter
		var out bytes.Buffer
		if err := r.WriteJSONL(&out); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("%s differs:\n%s", name, firstDifference(out.String(), want))
		}
	}
}

// Ids count session by session although rows of sessions are interleaved.
func TestOrdinals(t *testing.T) {
	r := &Requests{Workload: &workload.Workload{
		Turns:    []workload.Turn{{Next: 2}, {Session: 1, Next: 3}, {Index: 1, Next: -1}, {Session: 1, Index: 1, Next: -1}},
		Sessions: []workload.Session{{First: 0}, {First: 1}},
	}}
	if got := r.ordinals(); !slices.Equal(got, []int32{1, 3, 2, 4}) {
		t.Error(got)
	}
	for turn := range int32(4) {
		r.Records = append(r.Records, replay.Record{Turn: turn, Status: replay.TerminalStatus(turn)})
	}
	var out bytes.Buffer
	if err := r.WriteJSONL(&out); err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		uuid := "00000000-0000-0000-0000-00000000000" + string(rune('1'+i))
		status := []string{"completed", "canceled", "rejected", "failed"}[i]
		if !strings.Contains(line, uuid) || !strings.Contains(line, status) {
			t.Errorf("line %d: %s", i, line)
		}
	}
}

func TestUUID(t *testing.T) {
	if got := string(appendUUID(nil, 0x0123456789abcdef)); got != "00000000-0000-0000-0123-456789abcdef" {
		t.Error(got)
	}
}

// A record costs no memory of its own beyond the flush buffer and the order.
func TestWriteJSONLStreams(t *testing.T) {
	r := &Requests{Workload: &workload.Workload{}}
	for i := range int32(2000) {
		r.Workload.Turns = append(r.Workload.Turns, workload.Turn{Session: i, Next: -1})
		r.Workload.Sessions = append(r.Workload.Sessions, workload.Session{First: i})
		r.Records = append(r.Records, replay.Record{Turn: i})
	}
	largest, total := 0, 0
	w := writerFunc(func(p []byte) (int, error) { largest, total = max(largest, len(p)), total+len(p); return len(p), nil })
	if n := testing.AllocsPerRun(3, func() { r.WriteJSONL(w) }); n > 4 {
		t.Errorf("%v allocations", n)
	}
	if largest > 2*flushBytes || total < 2000*1000 {
		t.Errorf("largest write %d of %d bytes", largest, total)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
