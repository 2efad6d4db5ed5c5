// Package meter is the metrics of live engines, with the names, labels and
// buckets that the real engines of each type have.
//
// It owns the registry and what is counted when. It does not own what happens:
// workers and those who serve requests tell it.
//
// Invariants: no series exists before the first request; the model's name is that
// of the first request, for the life of the process.
//
// With several workers in one process the label engine counts the ranks of all of
// them: worker times ranks plus rank. SGLang's gauges are sums over all ranks.
//
// Source: live notes §7.
package meter

import (
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/host/native/live/worker"
)

// Meter is the state. Take it from New.
type Meter struct {
	registry *prometheus.Registry
	backend  config.Backend
	dp       int
	once     sync.Once
	bound    atomic.Bool
	ranks    []rank // of all workers
	sglang   sglang
}

// rank is the series of one rank.
type rank struct {
	running, waiting, usage, usageAlias prometheus.Gauge
	preemptions                         prometheus.Counter
	preempted                           int // so far
	ttft, itl, e2e                      prometheus.Observer

	last engine.Metrics // SGLang: guarded by its lock
}

// New returns the metrics of workers of dp ranks each.
func New(b config.Backend, workers, dp int) *Meter {
	return &Meter{registry: prometheus.NewRegistry(), backend: b, dp: dp, ranks: make([]rank, workers*dp)}
}

// Handler serves the metrics as text.
func (m *Meter) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Bind makes the series of a model, at the first call.
func (m *Meter) Bind(model string) {
	m.once.Do(func() {
		if m.backend == config.SGLang {
			m.bindSGLang(model)
		} else {
			m.bindRanks(model)
		}
		m.bound.Store(true)
	})
}

// Buckets in seconds, of vLLM and of SGLang.
var (
	ttftBuckets = []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
	itlBuckets  = []float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	e2eBuckets  = []float64{.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}

	sglangTTFT = []float64{.1, .2, .4, .6, .8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400}
	sglangITL  = []float64{.002, .004, .006, .008, .01, .015, .02, .025, .03, .035, .04, .06, .08, .1, .2, .4, .6, .8, 1, 2, 4, 6, 8}
	sglangE2E  = []float64{.1, .2, .4, .6, .8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400, 600, 1200, 1800, 2400}
)

// bindRanks makes the series of vLLM and TensorRT-LLM.
func (m *Meter) bindRanks(model string) {
	prefix, evictions := "vllm:", "Cumulative number of request preemptions."
	if m.backend == config.TRTLLM {
		prefix, evictions = "trtllm:", "Cumulative number of request preemptions (always 0 under GUARANTEED_NO_EVICT)."
	}
	labels := []string{"engine", "model_name"}
	gauge := func(name, help string) *prometheus.GaugeVec {
		v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + name, Help: help}, labels)
		m.registry.MustRegister(v)
		return v
	}
	histogram := func(name, help string, buckets []float64) *prometheus.HistogramVec {
		v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: prefix + name, Help: help, Buckets: buckets}, labels)
		m.registry.MustRegister(v)
		return v
	}
	running := gauge("num_requests_running", "Number of requests currently running on GPU.")
	waiting := gauge("num_requests_waiting", "Number of requests waiting to be processed.")
	usage := gauge("kv_cache_usage_perc", "KV-cache usage as a fraction of available cache blocks.")
	alias := gauge("gpu_cache_usage_perc", "Compatibility alias for KV-cache usage as a fraction of available cache blocks.")
	preemptions := prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + "num_preemptions_total", Help: evictions}, labels)
	m.registry.MustRegister(preemptions)
	ttft := histogram("time_to_first_token_seconds", "Histogram of time to first token in seconds.", ttftBuckets)
	itl := histogram("inter_token_latency_seconds", "Histogram of inter-token latency in seconds.", itlBuckets)
	e2e := histogram("e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.", e2eBuckets)
	for i := range m.ranks {
		n := strconv.Itoa(i)
		m.ranks[i] = rank{
			running: running.WithLabelValues(n, model), waiting: waiting.WithLabelValues(n, model),
			usage: usage.WithLabelValues(n, model), usageAlias: alias.WithLabelValues(n, model),
			preemptions: preemptions.WithLabelValues(n, model),
			ttft:        ttft.WithLabelValues(n, model), itl: itl.WithLabelValues(n, model), e2e: e2e.WithLabelValues(n, model),
		}
	}
}

// Observer watches worker i.
func (m *Meter) Observer(i int) worker.Observer { return observer{m, i * m.dp} }

type observer struct {
	meter *Meter
	first int // rank of all
}

func (o observer) Passed(rank int, out *engine.Out, _ float64) {
	o.meter.set(o.first+rank, out.Metrics)
}

func (o observer) Commanded(rank int, _ *engine.Effects, x engine.Metrics, _ float64) {
	o.meter.set(o.first+rank, x)
}

// set shows what rank number i is like now. Only its worker calls it.
func (m *Meter) set(i int, x engine.Metrics) {
	if !m.bound.Load() {
		return
	}
	if m.backend == config.SGLang {
		m.setSGLang(i, x)
		return
	}
	r := &m.ranks[i]
	r.running.Set(float64(x.RunningRequests))
	r.waiting.Set(float64(x.WaitingRequests))
	r.usage.Set(x.CacheUsage)
	r.usageAlias.Set(x.CacheUsage)
	if n := x.Preemptions - r.preempted; n > 0 {
		r.preemptions.Add(float64(n))
		r.preempted = x.Preemptions
	}
}

// First, Next and Done tell of a request's first token, of each other one and of
// its normal end, in ms since it came, since the token before, and since it came.
func (m *Meter) First(s worker.Signal, ms float64) { m.rank(s).ttft.Observe(ms / 1000) }

// Next is described at First.
func (m *Meter) Next(s worker.Signal, ms float64) { m.rank(s).itl.Observe(ms / 1000) }

// Done is described at First.
func (m *Meter) Done(s worker.Signal, ms float64) {
	m.rank(s).e2e.Observe(ms / 1000)
	if m.backend == config.SGLang {
		m.sglang.requests.Inc()
	}
}

func (m *Meter) rank(s worker.Signal) *rank { return &m.ranks[s.Worker*uint64(m.dp)+uint64(s.Rank)] }
