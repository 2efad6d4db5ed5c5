// Package report writes what a replay found: the summary as JSON, as a table
// for people, and one JSON line per request.
//
// It owns the layout and the names, byte for byte those of the reference
// where the reference has them, and files that are whole or absent. It does
// not compute: numbers come from core/replay, but for the two rates per second
// of wall time. Everything streams through small buffers.
//
// Source of names and formats: reference behaviour notes, replay §1.3 and §9.
package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/stats"
	"github.com/dryserve/dryserve/core/workload"
	"github.com/dryserve/dryserve/host/native/cliutil"
)

// Report is the summary of a run and the time it took to simulate.
type Report struct {
	replay.Summary
	WallMs float64 // real time from the start of the simulation to its end

	Graph  *workload.Graph // of agents, else nil
	Target string          // the model its requests are run on

	Telemetry *Telemetry   // nil: not asked for
	Workers   []WorkerLoad // nil: not asked for
}

// Telemetry is the samples of a run, each spelt as AppendSample does.
type Telemetry struct {
	IntervalMs float64
	Samples    []string
}

// entry is one key of the report JSON with its value already spelt.
type entry struct{ key, value string }

type entries []entry

func (e *entries) whole(key string, n int64) { *e = append(*e, entry{key, strconv.FormatInt(n, 10)}) }

func (e *entries) real(key string, x float64) {
	*e = append(*e, entry{key, string(cliutil.AppendPythonFloat(nil, x))})
}

// dist adds the nine numbers of a distribution; unit is "_ms" or "".
func (e *entries) dist(name, unit string, d stats.Dist) {
	for _, s := range []struct {
		stat string
		x    float64
	}{
		{"mean", d.Mean}, {"min", d.Min}, {"max", d.Max}, {"median", d.Median}, {"p75", d.P75},
		{"p90", d.P90}, {"p95", d.P95}, {"p99", d.P99}, {"std", d.Std},
	} {
		e.real(s.stat+"_"+name+unit, s.x)
	}
}

// entries lists every key of the reference's summary, and the four counters
// that make the requests add up: num_requests = completed + rejected + failed
// + cancelled + unfinished.
func (r *Report) entries() entries {
	var e entries
	e.whole("committed_prefill_tokens", r.CommittedPrefillTokens)
	e.whole("num_requests", r.NumRequests)
	e.whole("completed_requests", r.CompletedRequests)
	e.whole("rejected_requests", r.RejectedRequests)
	e.whole("failed_requests", r.FailedRequests)
	e.whole("cancelled_requests", r.CancelledRequests)
	e.whole("unfinished_requests", r.UnfinishedRequests)
	e.whole("total_input_tokens", r.TotalInputTokens)
	e.whole("total_output_tokens", r.TotalOutputTokens)
	e.real("duration_ms", r.DurationMs)
	e.real("wall_time_ms", r.WallMs)
	e.real("request_throughput_rps", r.RequestThroughputRPS)
	e.real("input_throughput_tok_s", r.InputThroughputTokS)
	e.real("output_throughput_tok_s", r.OutputThroughputTokS)
	e.real("total_throughput_tok_s", r.TotalThroughputTokS)
	e.real("prefill_worker_seconds", r.PrefillWorkerSeconds)
	e.real("decode_worker_seconds", r.DecodeWorkerSeconds)
	e.whole("prefill_gpus_per_worker", r.PrefillGPUsPerWorker)
	e.whole("decode_gpus_per_worker", r.DecodeGPUsPerWorker)
	e.real("gpu_hours", r.GPUHours)
	processed := r.TotalInputTokens + r.TotalOutputTokens
	e.whole("processed_tokens", processed)
	e.real("processed_tokens_per_s", float64(processed)/r.WallMs*1000)
	e.real("processed_output_tokens_per_s", float64(r.TotalOutputTokens)/r.WallMs*1000)
	e.real("prefix_cache_reused_ratio", r.PrefixReusedRatio)
	e.real("first_admission_prefix_cache_reused_ratio", r.FirstAdmissionReused)
	if r.HasSLA {
		e.whole("goodput_completed_requests", r.GoodputCompleted)
		e.real("goodput_request_throughput_rps", r.GoodputRequestRPS)
		e.real("goodput_output_throughput_tok_s", r.GoodputOutputTokS)
	}
	if p := r.SharedHost; p != nil {
		e = append(e, entry{"g2_domains", fmt.Sprintf("[\n    {\n      \"capacity_blocks\": %d,\n      \"resident_blocks\": %d,\n      \"used_blocks\": %d\n    }\n  ]",
			p.CapacityBlocks, p.ResidentBlocks, p.UsedBlocks)})
	}
	if d := r.Disk; d != nil {
		e = append(e, entry{"g3_offload", diskText(d)})
	}
	e.whole("num_ttft_samples", r.NumTTFT)
	e.whole("num_tpot_samples", r.NumTPOT)
	e.whole("num_e2e_latency_samples", r.NumE2E)
	e.dist("ttft", "_ms", r.TTFT)
	e.dist("ttst", "_ms", r.TTST)
	e.dist("tpot", "_ms", r.TPOT)
	e.dist("itl", "_ms", r.ITL)
	e.dist("e2e_latency", "_ms", r.E2E)
	e.dist("output_token_throughput_per_user", "", r.PerUser)
	if r.Agents != nil {
		e.agents(r.Agents, r.Graph, r.Target)
	}
	if r.Workers != nil {
		e = append(e, entry{"per_worker", workers(r.Workers)})
	}
	if t := r.Telemetry; t != nil {
		e = append(e, entry{"telemetry", object{{"sample_interval_ms", string(cliutil.AppendPythonFloat(nil, t.IntervalMs))}, {"samples", list(t.Samples).json(2)}}.json(1)})
	}
	return append(e, entry{"kv_eviction_policy", `"lru"`}, entry{"power_w", "null"}, entry{"power_coverage", "null"})
}

// clocked are the keys whose values come from the machine's clock.
var clocked = []string{"wall_time_ms", "processed_tokens_per_s", "processed_output_tokens_per_s"}

// Timeless is the summary as WriteJSON has it, but on one line and without
// what comes from the machine's clock: equal runs give equal bytes.
func (r *Report) Timeless() []byte {
	var kept entries
	for _, e := range r.entries() {
		if !slices.Contains(clocked, e.key) {
			kept = append(kept, e)
		}
	}
	var b bytes.Buffer
	if err := json.Compact(&b, kept.json()); err != nil {
		panic(err) // entries are JSON
	}
	return b.Bytes()
}

// WriteJSON writes the summary as json.dumps with indent=2 and sorted keys
// does, with a final newline.
func (r *Report) WriteJSON(w io.Writer) error {
	_, err := w.Write(append(r.entries().json(), '\n'))
	return err
}

// json is an object with sorted keys.
func (e entries) json() []byte {
	slices.SortFunc(e, func(a, b entry) int { return strings.Compare(a.key, b.key) })
	buf := []byte{'{'}
	for i, kv := range e {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = append(buf, "\n  "...)
		buf = cliutil.AppendJSONString(buf, kv.key)
		buf = append(buf, ": "...)
		buf = append(buf, kv.value...)
	}
	return append(buf, "\n}"...)
}
