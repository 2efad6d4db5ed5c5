package meter

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dryserve/dryserve/core/engine"
)

// sglang is the series of SGLang, sums over all ranks.
type sglang struct {
	running, queued, hitRate prometheus.Gauge
	requests                 prometheus.Counter

	mu sync.Mutex
}

func (m *Meter) bindSGLang(model string) {
	whole := prometheus.Labels{"engine_type": "sglang", "model_name": model}
	ranked := prometheus.Labels{"engine_type": "sglang", "model_name": model, "tp_rank": "0", "pp_rank": "0", "moe_ep_rank": "0"}
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "sglang:" + name, Help: help, ConstLabels: ranked})
		m.registry.MustRegister(g)
		return g
	}
	histogram := func(name, help string, buckets []float64) prometheus.Observer {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "sglang:" + name, Help: help, ConstLabels: whole, Buckets: buckets})
		m.registry.MustRegister(h)
		return h
	}
	s := &m.sglang
	s.running = gauge("num_running_reqs", "The number of running requests.")
	s.queued = gauge("num_queue_reqs", "The number of queued requests.")
	s.hitRate = gauge("cache_hit_rate", "Cache hit rate.")
	s.requests = prometheus.NewCounter(prometheus.CounterOpts{Name: "sglang:num_requests_total", Help: "Number of requests processed.", ConstLabels: whole})
	m.registry.MustRegister(s.requests)
	all := rank{
		ttft: histogram("time_to_first_token_seconds", "Histogram of time to first token in seconds.", sglangTTFT),
		itl:  histogram("inter_token_latency_seconds", "Histogram of inter-token latency in seconds.", sglangITL),
		e2e:  histogram("e2e_request_latency_seconds", "Histogram of End-to-end request latency in seconds", sglangE2E),
	}
	for i := range m.ranks {
		m.ranks[i] = all
	}
}

// setSGLang shows the sums. A pass without prompts leaves the hit rate alone.
func (m *Meter) setSGLang(i int, x engine.Metrics) {
	s := &m.sglang
	s.mu.Lock()
	defer s.mu.Unlock()
	last := &m.ranks[i].last
	if x.CacheTotalTokens == 0 {
		x.CacheHitTokens, x.CacheTotalTokens = last.CacheHitTokens, last.CacheTotalTokens
	}
	*last = x
	var running, queued, hit, total int
	for j := range m.ranks {
		r := m.ranks[j].last
		running += r.RunningRequests
		queued += r.WaitingRequests
		hit += r.CacheHitTokens
		total += r.CacheTotalTokens
	}
	s.running.Set(float64(running))
	s.queued.Set(float64(queued))
	if total > 0 {
		s.hitRate.Set(float64(hit) / float64(total))
	}
}
