package meter

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var callBuckets = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600}

// Calls counts what workers behind a frontend are asked.
type Calls struct {
	requests, requestBytes, responseBytes, cancelled *prometheus.CounterVec
	inFlight                                         *prometheus.GaugeVec
	duration                                         *prometheus.HistogramVec
	registry                                         *prometheus.Registry
}

// Calls makes these series. It is to be called once.
func (m *Meter) Calls() *Calls {
	labels := []string{"dynamo_component", "dynamo_endpoint", "dynamo_namespace", "worker_id"}
	counter := func(name, help string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dynamo_component_" + name, Help: help}, labels)
		m.registry.MustRegister(v)
		return v
	}
	c := &Calls{
		registry:      m.registry,
		requests:      counter("requests_total", "Total number of requests processed by work handler"),
		requestBytes:  counter("request_bytes_total", "Total number of bytes received in requests by work handler"),
		responseBytes: counter("response_bytes_total", "Total number of bytes sent in responses by work handler"),
		cancelled:     counter("cancellation_total", "Total number of requests cancelled by work handler"),
		inFlight:      prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "dynamo_component_inflight_requests", Help: "Number of requests currently being processed by work handler"}, labels),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "dynamo_component_request_duration_seconds", Help: "Time spent processing requests by work handler", Buckets: callBuckets,
		}, labels),
	}
	m.registry.MustRegister(c.inFlight, c.duration)
	return c
}

// Uptime shows how long a worker, by its id in hexadecimal, has been there.
func (c *Calls) Uptime(worker string) {
	started := time.Now()
	c.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "dynamo_component_uptime_seconds", Help: "Total uptime of the DistributedRuntime in seconds", ConstLabels: prometheus.Labels{"worker_id": worker},
	}, func() float64 { return time.Since(started).Seconds() }))
}

// Endpoint is the series of one endpoint.
type Endpoint struct {
	requests, requestBytes, responseBytes, cancelled prometheus.Counter
	inFlight                                         prometheus.Gauge
	duration                                         prometheus.Observer
}

// Endpoint makes the series of an endpoint of a worker.
func (c *Calls) Endpoint(namespace, component, endpoint, worker string) *Endpoint {
	l := []string{component, endpoint, namespace, worker}
	return &Endpoint{
		c.requests.WithLabelValues(l...), c.requestBytes.WithLabelValues(l...), c.responseBytes.WithLabelValues(l...), c.cancelled.WithLabelValues(l...),
		c.inFlight.WithLabelValues(l...), c.duration.WithLabelValues(l...),
	}
}

// Begin counts a request of so many bytes; the function that it returns is to be
// called at its end.
func (e *Endpoint) Begin(bytes int) (end func(answered int64, cancelled bool)) {
	began := time.Now()
	e.requests.Inc()
	e.requestBytes.Add(float64(bytes))
	e.inFlight.Inc()
	return func(answered int64, cancelled bool) {
		e.inFlight.Dec()
		e.responseBytes.Add(float64(answered))
		e.duration.Observe(time.Since(began).Seconds())
		if cancelled {
			e.cancelled.Inc()
		}
	}
}
