package replay

import (
	"math"
	"slices"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/stats"
	"github.com/dryserve/dryserve/core/stretch"
	"github.com/dryserve/dryserve/core/workload"
)

// books accounts requests: counters, latency samples in completion order,
// token gaps, records. Formulas: replay notes §9.1.
type books struct {
	cfg      config.Replay
	load     *workload.Workload
	tape     *recorder // nil: nobody asks
	arriveMs []float64 // by turn; nil: a turn arrives at its session's start

	nowMs                                float64
	arrived, completed, rejected, failed int64

	committed     int64
	input, output int64 // tokens of completed requests
	most, first   int64 // reused tokens of completed requests
	durationMs    float64
	workerSeconds float64
	workers       float64    // that cost time
	into          []*traffic // what happens to requests is added to these, too

	prefillers     float64 // workers of a pool that computes prompts
	prefillSeconds float64

	ttft, ttst, tpot, e2e []float64
	gaps                  stats.Gaps
	goodput, goodputTok   int64

	times      []float64   // scratch
	again      []Admission // scratch
	records    []Record
	admissions []Admission
	handoffs   []Handoff // by record
	unservable []int32
}

func (b *books) init(cfg config.Replay, w *workload.Workload, varying bool) {
	b.cfg, b.load = cfg, w
	b.workers = float64(cfg.NumWorkers)
	if varying {
		b.arriveMs = make([]float64, len(w.Turns))
	}
	n := len(w.Turns)
	b.ttft, b.ttst = make([]float64, 0, n), make([]float64, 0, n)
	b.tpot, b.e2e = make([]float64, 0, n), make([]float64, 0, n)
}

// tick moves the clock to a timestamp, adding to the worker-seconds (replay
// notes §6.2).
func (b *books) tick(toMs float64) {
	b.workerSeconds += float64(b.workers*(toMs-b.nowMs)) / 1000
	b.prefillSeconds += float64(b.prefillers*(toMs-b.nowMs)) / 1000
	b.nowMs = toMs
}

// tickAll moves the clock through sorted timestamps.
func (b *books) tickAll(times []float64) {
	workers := b.workers
	sum, now := b.workerSeconds, b.nowMs
	for _, t := range times {
		sum += float64(workers*(t-now)) / 1000
		now = t
	}
	b.workerSeconds, b.nowMs = sum, now
}

func (b *books) ended() int64    { return b.completed + b.rejected + b.failed }
func (b *books) inFlight() int64 { return b.arrived - b.ended() }

func (b *books) arrive(turn int32, atMs float64) {
	b.arrived++
	b.tape.arrived(turn, atMs)
	for _, t := range b.into {
		t.arrived++
	}
	if b.arriveMs != nil {
		b.arriveMs[turn] = atMs
	}
}

func (b *books) arrival(turn int32) float64 {
	if b.arriveMs != nil {
		return b.arriveMs[turn]
	}
	return b.load.Sessions[b.load.Turns[turn].Session].StartMs
}

// need makes room for the times of n tokens.
func (b *books) need(n int32) {
	if int(n) > len(b.times) {
		b.times = make([]float64, 2*n)
	}
}

// account books a request that ended at nowMs on a worker: the times of its
// tokens, its admissions after the first.
func (b *books) account(worker int32, r stretch.Result, times []float64, again []Admission, nowMs float64) {
	arrivalMs := b.arrival(r.Turn)
	b.tape.ended(worker, r, nowMs)
	switch {
	case r.Fate == stretch.Rejected:
		b.rejected++
	case r.Fate == stretch.Failed:
		b.failed++
		b.unservable = append(b.unservable, r.Turn)
	default:
		b.complete(r, times, arrivalMs, nowMs)
	}
	if b.cfg.CaptureRequests {
		b.record(worker, r, times, again, arrivalMs, nowMs)
	}
}

func (b *books) complete(r stretch.Result, times []float64, arrivalMs, nowMs float64) {
	b.completed++
	for _, t := range b.into {
		t.end(b.load.Turns[r.Turn].Input, times, arrivalMs)
	}
	b.input += int64(b.load.Turns[r.Turn].Input)
	b.output += int64(len(times))
	b.most += int64(r.Most)
	b.first += int64(r.Reused)
	b.durationMs = max(b.durationMs, nowMs)
	n := len(times)
	if n == 0 {
		if s := b.cfg.SLA; s.Set() && s.TTFTMs < 0 && s.ITLMs < 0 && nowMs-arrivalMs <= s.E2EMs {
			b.goodput++
		}
		return
	}
	first, last := times[0], times[n-1]
	ttft, e2e := max(first-arrivalMs, 0), max(last-arrivalMs, 0)
	b.ttft = append(b.ttft, ttft)
	b.e2e = append(b.e2e, e2e)
	if n > 1 {
		b.ttst = append(b.ttst, max(times[1]-first, 0))
		b.tpot = append(b.tpot, max(last-first, 0)/float64(n-1))
		b.gaps.Add(times)
	}
	if s := b.cfg.SLA; s.Set() && b.meets(s, n, ttft, e2e) {
		b.goodput++
		b.goodputTok += int64(n)
	}
}

// meets checks a request with n > 0 tokens against the SLA, bounds inclusive.
func (b *books) meets(s config.SLA, n int, ttftMs, e2eMs float64) bool {
	if s.E2EMs >= 0 && e2eMs > s.E2EMs || s.TTFTMs >= 0 && ttftMs > s.TTFTMs {
		return false
	}
	return s.ITLMs < 0 || n < 2 || (e2eMs-ttftMs)/float64(n-1) <= s.ITLMs
}

func (b *books) record(worker int32, r stretch.Result, times []float64, again []Admission, arrivalMs, nowMs float64) {
	t := &b.load.Turns[r.Turn]
	nan := math.NaN()
	rec := Record{
		Turn: r.Turn, ArrivalMs: arrivalMs, FirstAdmitMs: nan, TerminalMs: nowMs,
		FirstTokenMs: nan, SecondTokenMs: nan, LastTokenMs: nan,
		InputLength: t.Input, RequestedOutput: t.Output, OutputLength: int32(len(times)),
		ReusedTokens: r.Most, FirstHostTokens: r.Host, Worker: worker*int32(b.cfg.Engine.DPSize) + r.Rank, Status: status(r.Fate),
		AdmissionStart: int32(len(b.admissions)), AdmissionCount: r.Admits,
	}
	if n := len(times); n > 0 {
		rec.FirstTokenMs, rec.LastTokenMs = times[0], times[n-1]
		if n > 1 {
			rec.SecondTokenMs = times[1]
		}
	}
	if r.Admits > 0 {
		rec.FirstAdmitMs = r.AdmitMs
		b.admissions = append(b.admissions, Admission{r.AdmitMs, r.Reused})
		b.admissions = append(b.admissions, again...)
	}
	b.records = append(b.records, rec)
}

func status(f stretch.Fate) TerminalStatus {
	switch f {
	case stretch.Rejected:
		return Rejected
	case stretch.Failed:
		return Failed
	}
	return Completed
}

// Records returns the per-request records (CaptureRequests) in completion order.
func (s *Sim) Records() []Record { return s.books.records }

// Admissions backs the records' admission histories.
func (s *Sim) Admissions() []Admission { return s.books.admissions }

// Handoffs says more of each of the Records of a disaggregated run; there are
// none in others.
func (s *Sim) Handoffs() []Handoff { return s.books.handoffs }

// Unservable lists the turns that failed because they can never be served, in file order.
func (s *Sim) Unservable() []int32 { return s.books.failures() }

func (b *books) failures() []int32 {
	slices.Sort(b.unservable)
	return b.unservable
}

// Summary computes the report's numbers. It sorts the samples: call it once,
// after Step has returned Done.
func (s *Sim) Summary() Summary {
	r := s.books.summary(s.arrivals.agents)
	if s.tiers.Host != nil {
		p := s.tiers.Host.Pool
		r.SharedHost = &HostPool{CapacityBlocks: p.Total(), ResidentBlocks: p.Resident(), UsedBlocks: p.Used()}
	}
	r.Disk = s.diskStats()
	return r
}

// summary reduces the books. It sorts the samples.
func (b *books) summary(a *agents) Summary {
	r := Summary{
		CommittedPrefillTokens: b.committed, NumRequests: b.arrived, CompletedRequests: b.completed,
		RejectedRequests: b.rejected, FailedRequests: b.failed, UnfinishedRequests: b.inFlight(),
		TotalInputTokens: b.input, TotalOutputTokens: b.output, DurationMs: b.durationMs,
		PrefillWorkerSeconds: b.prefillSeconds, DecodeWorkerSeconds: b.workerSeconds,
		DecodeGPUsPerWorker: int64(b.cfg.Engine.TensorParallelSize * b.cfg.Engine.DPSize),
		HasSLA:              b.cfg.SLA.Set(), GoodputCompleted: b.goodput,
		NumTTFT: int64(len(b.ttft)), NumTPOT: int64(len(b.tpot)), NumE2E: int64(len(b.e2e)),
		TTFT: stats.Of(b.ttft), TTST: stats.Of(b.ttst), TPOT: stats.Of(b.tpot), E2E: stats.Of(b.e2e),
		ITL: b.gaps.ITL(), PerUser: b.gaps.PerUser(),
	}
	seconds := b.seconds()
	r.RequestThroughputRPS = float64(b.completed) / seconds
	r.InputThroughputTokS = float64(b.input) / seconds
	r.OutputThroughputTokS = float64(b.output) / seconds
	r.TotalThroughputTokS = float64(b.input+b.output) / seconds
	r.GoodputRequestRPS = float64(b.goodput) / seconds
	if a != nil {
		r.Agents = a.summary()
	}
	r.GoodputOutputTokS = float64(b.goodputTok) / seconds
	if e := b.cfg.Prefill.Engine; b.cfg.Disaggregated() {
		r.PrefillGPUsPerWorker = int64(e.TensorParallelSize * e.DPSize)
	}
	r.GPUHours = (float64(b.prefillSeconds*float64(r.PrefillGPUsPerWorker)) + float64(b.workerSeconds*float64(r.DecodeGPUsPerWorker))) / 3600
	if b.input > 0 {
		r.PrefixReusedRatio = float64(b.most) / float64(b.input)
		r.FirstAdmissionReused = float64(b.first) / float64(b.input)
	}
	return r
}

// seconds is the run's duration as rates are taken over it.
func (b *books) seconds() float64 { return max(b.durationMs/1000, 1e-9) }
