// Package accuracy compares replays with runs on real GPUs.
//
// It owns the readers of two kinds of measurements (one vLLM run with a record
// per request, a table of closed-loop benchmarks), the replay of the same load
// with a grid of pass durations, and the table of both side by side. It does
// not own the measurements, which are other people's files, nor an opinion:
// errors are printed as they are.
package accuracy

import (
	"fmt"
	"math"
	"slices"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/host/native/profile"
	"github.com/dryserve/dryserve/internal/parity"
)

// Request is one request of a load.
type Request struct {
	ArrivalMs     float64 // from the start of the run; ignored under a cap
	Input, Output int     // tokens
}

// Sample is what happened to one request.
type Sample struct {
	TTFTMs float64
	TPOTMs float64 // NaN with fewer than two tokens
	E2EMs  float64
}

// Case is a load and what real hardware made of it.
type Case struct {
	Name        string
	Model       string
	Backend     string
	System      string
	TP          int
	Requests    []Request
	Concurrency int // 0: requests arrive by their times

	MaxNumSeqs          int // 0: the engine's default
	MaxNumBatchedTokens int // 0: the engine's default

	// Measured holds means, medians and 99th percentiles in ms, by metric
	// name; what was not measured is absent.
	Measured map[Metric]float64
}

// Metric names a number of a run.
type Metric string

// The metrics, in the order of tables.
const (
	TTFTMean   Metric = "TTFT mean"
	TTFTMedian Metric = "TTFT median"
	TTFTP99    Metric = "TTFT p99"
	TPOTMean   Metric = "TPOT mean"
	TPOTMedian Metric = "TPOT median"
	TPOTP99    Metric = "TPOT p99"
	E2EMean    Metric = "latency mean"
	E2EP99     Metric = "latency p99"
)

// Metrics lists all metrics in the order of tables.
func Metrics() []Metric {
	return []Metric{TTFTMean, TTFTMedian, TTFTP99, TPOTMean, TPOTMedian, TPOTP99, E2EMean, E2EP99}
}

// Engine says how requests are served where the case does not.
type Engine struct {
	BlockSize    int // tokens; 0: the backend's default
	NumGPUBlocks int // 0: the grid's capacity
}

// Nearest picks the grid to predict a case with: of the same model and
// backend, if possible of the same system, then of the nearest number of
// GPUs, then the first. False: there is none.
func Nearest(c Case, grids []*profile.Grid) (*profile.Grid, bool) {
	var best *profile.Grid
	bestFar := math.Inf(1)
	for _, g := range grids {
		if g.Model != c.Model || g.Backend != c.Backend || g.TP < 1 {
			continue
		}
		far := math.Abs(math.Log2(float64(g.TP)) - math.Log2(float64(c.TP)))
		if g.System != c.System {
			far += 1000
		}
		if far < bestFar {
			best, bestFar = g, far
		}
	}
	return best, best != nil
}

// Predict replays the case's load with a grid and returns what became of each
// request, in order of completion. Prompts share nothing.
func Predict(c Case, g *profile.Grid, o Engine) ([]Sample, error) {
	cfg, err := settings(c, g, o)
	if err != nil {
		return nil, err
	}
	rows := make([]trace.Row, len(c.Requests))
	next := uint64(1)
	for i, r := range c.Requests {
		row := trace.Row{TimestampMs: r.ArrivalMs, HasTimestamp: true, InputLength: int64(r.Input), OutputLength: int64(r.Output)}
		for range (r.Input + cfg.TraceBlockSize - 1) / cfg.TraceBlockSize {
			row.HashIDs = append(row.HashIDs, next)
			next++
		}
		rows[i] = row
	}
	load, err := parity.Build(rows, cfg)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Name, err)
	}
	sim := replay.New(cfg, load, replay.Options{Plain: true})
	status := replay.Running
	for status == replay.Running {
		status = sim.Step(1 << 16)
	}
	if status != replay.Done {
		return nil, fmt.Errorf("%s: the replay got stuck with %d requests in flight", c.Name, sim.Fault().InFlight)
	}
	var out []Sample
	for _, r := range sim.Records() {
		if r.Status != replay.Completed {
			return nil, fmt.Errorf("%s: request %d was not served to its end; a smaller load or more blocks are needed", c.Name, r.Turn)
		}
		out = append(out, sample(r.ArrivalMs, r.FirstTokenMs, r.LastTokenMs, int(r.OutputLength)))
	}
	return out, nil
}

func settings(c Case, g *profile.Grid, o Engine) (config.Replay, error) {
	backend := slices.Index([]string{"vllm", "sglang", "trtllm"}, c.Backend)
	if backend < 0 {
		return config.Replay{}, fmt.Errorf("%s: backend is %q; vllm, sglang or trtllm is accepted", c.Name, c.Backend)
	}
	cfg := config.DefaultReplay(config.Backend(backend))
	e := &cfg.Engine
	e.Timing = config.Timing{Kind: config.Grid, Grid: g.Table}
	e.TensorParallelSize = c.TP
	if o.BlockSize > 0 {
		e.BlockSize = o.BlockSize
	}
	if e.NumGPUBlocks = g.Blocks(e.BlockSize); o.NumGPUBlocks > 0 {
		e.NumGPUBlocks = o.NumGPUBlocks
	}
	if c.MaxNumSeqs > 0 {
		e.MaxNumSeqs = c.MaxNumSeqs
	}
	if c.MaxNumBatchedTokens > 0 {
		e.MaxNumBatchedTokens = c.MaxNumBatchedTokens
	}
	cfg.Concurrency, cfg.CaptureRequests = c.Concurrency, true
	if f := cfg.Check(); !f.OK() {
		return cfg, fmt.Errorf("%s: the engine cannot be set up: rule %d of field %d is broken", c.Name, f.Code, f.Field)
	}
	return cfg, nil
}

func sample(arrival, first, last float64, tokens int) Sample {
	s := Sample{TTFTMs: first - arrival, TPOTMs: math.NaN(), E2EMs: last - arrival}
	if tokens > 1 {
		s.TPOTMs = (last - first) / float64(tokens-1)
	}
	return s
}

// Reduce computes all metrics of samples.
func Reduce(samples []Sample) map[Metric]float64 {
	pick := func(of func(Sample) float64) []float64 {
		var v []float64
		for _, s := range samples {
			if x := of(s); !math.IsNaN(x) {
				v = append(v, x)
			}
		}
		slices.Sort(v)
		return v
	}
	ttft := pick(func(s Sample) float64 { return s.TTFTMs })
	tpot := pick(func(s Sample) float64 { return s.TPOTMs })
	e2e := pick(func(s Sample) float64 { return s.E2EMs })
	return map[Metric]float64{
		TTFTMean: mean(ttft), TTFTMedian: quantile(ttft, 0.5), TTFTP99: quantile(ttft, 0.99),
		TPOTMean: mean(tpot), TPOTMedian: quantile(tpot, 0.5), TPOTP99: quantile(tpot, 0.99),
		E2EMean: mean(e2e), E2EP99: quantile(e2e, 0.99),
	}
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v)) // NaN of nothing
}

// quantile interpolates between the neighbours in sorted values, as NumPy
// does; NaN of nothing.
func quantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	at := q * float64(len(v)-1)
	i := int(at)
	if i+1 >= len(v) {
		return v[len(v)-1]
	}
	return v[i] + (at-float64(i))*(v[i+1]-v[i])
}
