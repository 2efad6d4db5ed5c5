package meter

import (
	"maps"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var callBuckets = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600}

// Calls counts what workers behind a frontend are asked.
type Calls struct {
	requests, requestBytes, responseBytes, cancelled *prometheus.CounterVec
	inFlight                                         *prometheus.GaugeVec
	duration                                         *prometheus.HistogramVec
	errors                                           *prometheus.CounterVec
	engine                                           prometheus.Gauge
	transit, first                                   prometheus.Observer
	registry                                         *prometheus.Registry
}

// PublishResponse is the kind of error that the frontend could not be reached, or
// not be written to.
const PublishResponse = "publish_response"

var (
	transitBuckets = []float64{.0001, .0005, .001, .005, .01, .05, .1, .5, 1}
	firstBuckets   = []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
)

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
	c.errors = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dynamo_component_errors_total", Help: "Total number of errors in work handler processing"},
		[]string{"dynamo_component", "dynamo_endpoint", "dynamo_namespace", "error_type", "worker_id"})
	m.registry.MustRegister(c.inFlight, c.duration, c.errors)
	c.bare()
	return c
}

// Crowd makes the series of a server with a limit: of the requests that it answers
// and lets wait, how many there may be of each, and how many it has refused. The
// queue is never shut while somebody would enter it.
func (c *Calls) Crowd(now func() (running, mayRun, waiting, mayWait int, refused int64)) {
	gauge := func(name, help string, of func() float64) {
		c.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "dynamo_" + name, Help: help}, of))
	}
	waiting := func() float64 { _, _, n, _, _ := now(); return float64(n) }
	gauge("work_handler_pool_active_tasks", "Current number of active worker-pool tasks (permits in use)", func() float64 { n, _, _, _, _ := now(); return float64(n) })
	gauge("work_handler_pool_capacity", "Configured worker-pool capacity (total permits)", func() float64 { _, n, _, _, _ := now(); return float64(n) })
	gauge("work_handler_queue_depth", "Current items in the bounded work queue awaiting dispatcher pickup", waiting)
	gauge("work_handler_queue_capacity", "Configured capacity of the bounded work queue", func() float64 { _, _, _, n, _ := now(); return float64(n) })
	gauge("request_queue", "Current number of requests queued in Dynamo not yet in the engine (--dynamo-request-queue-limit)", waiting)
	c.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "dynamo_rejection_request_total", Help: "Requests rejected because the worker is at capacity (engine in-flight limit and Dynamo queue both full)",
	}, func() float64 { _, _, _, _, n := now(); return float64(n) }), prometheus.NewCounter(prometheus.CounterOpts{
		Name: "dynamo_work_handler_enqueue_rejected_total", Help: "Times enqueuing work failed because the dispatcher channel was closed",
	}))
}

// bare makes the series without labels.
func (c *Calls) bare() {
	histogram := func(name, help string, buckets []float64) prometheus.Observer {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
		c.registry.MustRegister(h)
		return h
	}
	c.engine = prometheus.NewGauge(prometheus.GaugeOpts{Name: "dynamo_engine_request", Help: "Current number of requests being handled by the engine (--engine-request-limit)"})
	c.registry.MustRegister(c.engine)
	c.transit = histogram("dynamo_work_handler_network_transit_seconds", "Frontend-to-backend network transit time (cross-process wall-clock, seconds)", transitBuckets)
	c.first = histogram("dynamo_work_handler_time_to_first_response_seconds", "Backend processing time from handle_payload entry to prologue sent (seconds)", firstBuckets)
}

// Publisher makes the series of a worker's publishers of caches. Engines here never
// drop an event, so it stays 0.
func (c *Calls) Publisher(namespace, component, worker string) {
	c.registry.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{
		Name: "dynamo_component_kv_publisher_engines_dropped_events_total", Help: "Total number of raw events dropped by engines before reaching publisher (detected via event_id gaps)",
		ConstLabels: prometheus.Labels{"dynamo_component": component, "dynamo_namespace": namespace, "worker_id": worker},
	}))
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
	calls                                            *Calls
	labels                                           prometheus.Labels
	engine                                           bool // it asks the engine, not what is known of its cache
	requests, requestBytes, responseBytes, cancelled prometheus.Counter
	inFlight                                         prometheus.Gauge
	duration                                         prometheus.Observer
}

// Endpoint makes the series of an endpoint of a worker.
func (c *Calls) Endpoint(namespace, component, endpoint, worker string) *Endpoint {
	l := []string{component, endpoint, namespace, worker}
	return &Endpoint{
		c, prometheus.Labels{"dynamo_component": component, "dynamo_endpoint": endpoint, "dynamo_namespace": namespace, "worker_id": worker},
		!strings.HasPrefix(endpoint, "worker_kv_query_source_"),
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
	if e.engine {
		e.calls.engine.Inc()
	}
	return func(answered int64, cancelled bool) {
		e.inFlight.Dec()
		if e.engine {
			e.calls.engine.Dec()
		}
		e.responseBytes.Add(float64(answered))
		e.duration.Observe(time.Since(began).Seconds())
		if cancelled {
			e.cancelled.Inc()
		}
	}
}

// Travelled says how long a request was on its way from the frontend, by both
// clocks.
func (e *Endpoint) Travelled(d time.Duration) { e.calls.transit.Observe(max(d, 0).Seconds()) }

// Answered says how long it took from a request's coming until its answer began.
func (e *Endpoint) Answered(d time.Duration) { e.calls.first.Observe(d.Seconds()) }

// Failed counts an error of a kind, such as PublishResponse.
func (e *Endpoint) Failed(kind string) {
	labels := prometheus.Labels{"error_type": kind}
	maps.Copy(labels, e.labels)
	e.calls.errors.With(labels).Inc()
}
