// Package books keeps what became of the requests of a live server, for a report
// at its end in the form that a replay's has.
//
// It owns the samples of latencies and the sums. It does not own when tokens come
// (live/worker) or how a report is written (report).
//
// Invariants: a request is counted once, when it ends; latencies are of requests
// that came to their normal end only, as in a replay. Times are those of the
// clock at which a token was handed over, not the model's. A request takes 32
// bytes for good, and 8 for each token while it lives.
//
// Source: replay notes §9.1 for the formulas.
package books

import (
	"slices"
	"sync"

	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/stats"
)

// End is how a request ended.
type End uint8

// Ends: all tokens came, the engine did not take it, it could not be served, or
// its client went.
const (
	Completed End = iota
	Rejected
	Failed
	Cancelled
)

// Books is the state. The zero value is empty and ready; methods may be called
// from anywhere.
type Books struct {
	mu      sync.Mutex
	arrived int64
	ended   [Cancelled + 1]int64

	input, output, cached int64 // tokens of completed requests
	firstMs, lastMs       float64
	ttft, ttst, tpot, e2e []float64 // ms
	gaps                  stats.Gaps
}

// Request is one request that has not ended. Its methods are for one goroutine at
// a time.
type Request struct {
	books   *Books
	prompt  int
	cameMs  float64
	timesMs []float64
	over    bool
}

// Arrive notes a request with a prompt of so many tokens.
func (b *Books) Arrive(prompt int, nowMs float64) *Request {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.arrived == 0 {
		b.firstMs, b.lastMs = nowMs, nowMs
	}
	b.arrived++
	return &Request{books: b, prompt: prompt, cameMs: nowMs}
}

// Token notes one more token.
func (r *Request) Token(nowMs float64) { r.timesMs = append(r.timesMs, nowMs) }

// End notes the end; only the first one counts. cached is how many tokens of the
// prompt were found in the cache at the first admission.
func (r *Request) End(how End, cached int, nowMs float64) {
	if r.over {
		return
	}
	r.over = true
	b := r.books
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended[how]++
	if how != Completed {
		return
	}
	b.input += int64(r.prompt)
	b.output += int64(len(r.timesMs))
	b.cached += int64(cached)
	b.lastMs = max(b.lastMs, nowMs)
	n := len(r.timesMs)
	if n == 0 {
		return
	}
	first, last := r.timesMs[0], r.timesMs[n-1]
	b.ttft = append(b.ttft, first-r.cameMs)
	b.e2e = append(b.e2e, last-r.cameMs)
	if n > 1 {
		b.ttst = append(b.ttst, r.timesMs[1]-first)
		b.tpot = append(b.tpot, (last-first)/float64(n-1))
		b.gaps.Add(r.timesMs)
	}
	r.timesMs = nil
}

// Summary is what a replay says of a run: so many workers of so many GPUs each
// served from the first arrival to the last end. What was computed again after a
// preemption is not known here: reuse is that of the first admissions.
func (b *Books) Summary(workers, gpus int) replay.Summary {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := replay.Summary{
		CommittedPrefillTokens: b.input - b.cached, NumRequests: b.arrived, CompletedRequests: b.ended[Completed],
		RejectedRequests: b.ended[Rejected], FailedRequests: b.ended[Failed], CancelledRequests: b.ended[Cancelled],
		TotalInputTokens: b.input, TotalOutputTokens: b.output, DurationMs: b.lastMs - b.firstMs, DecodeGPUsPerWorker: int64(gpus),
		NumTTFT: int64(len(b.ttft)), NumTPOT: int64(len(b.tpot)), NumE2E: int64(len(b.e2e)),
		TTFT: of(b.ttft), TTST: of(b.ttst), TPOT: of(b.tpot), E2E: of(b.e2e), ITL: b.gaps.ITL(), PerUser: b.gaps.PerUser(),
	}
	s.UnfinishedRequests = b.arrived
	for _, n := range b.ended {
		s.UnfinishedRequests -= n
	}
	seconds := max(s.DurationMs/1000, 1e-9)
	s.RequestThroughputRPS = float64(s.CompletedRequests) / seconds
	s.InputThroughputTokS = float64(b.input) / seconds
	s.OutputThroughputTokS = float64(b.output) / seconds
	s.TotalThroughputTokS = float64(b.input+b.output) / seconds
	s.DecodeWorkerSeconds = float64(workers) * s.DurationMs / 1000
	s.GPUHours = s.DecodeWorkerSeconds * float64(gpus) / 3600
	if b.input > 0 {
		s.FirstAdmissionReused = float64(b.cached) / float64(b.input)
		s.PrefixReusedRatio = s.FirstAdmissionReused
	}
	return s
}

// of is the distribution of samples that stay in order.
func of(samples []float64) stats.Dist { return stats.Of(slices.Clone(samples)) }
