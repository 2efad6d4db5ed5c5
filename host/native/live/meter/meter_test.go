package meter_test

import (
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/host/native/live/meter"
	"github.com/dryserve/dryserve/host/native/live/worker"
)

func page(m *meter.Meter) string {
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

// shape is a page without its values, in order.
func shape(page string) []string {
	var lines []string
	for line := range strings.Lines(page) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "#") {
			line = line[:strings.LastIndex(line, " ")]
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

// Names, labels, help and buckets are those of a page of the reference.
func TestGolden(t *testing.T) {
	for name, backend := range map[string]config.Backend{"vllm": config.VLLM, "sglang": config.SGLang, "trtllm": config.TRTLLM} {
		want, err := os.ReadFile("testdata/" + name + ".prom")
		if err != nil {
			t.Fatal(err)
		}
		m := meter.New(backend, 1, 1)
		if p := page(m); p != "" {
			t.Errorf("%s: before the first request: %s", name, p)
		}
		m.Bind("m1")
		m.Bind("m2")
		if d := cmp.Diff(shape(string(want)), shape(page(m))); d != "" {
			t.Errorf("%s (-reference +ours):\n%s", name, d)
		}
	}
}

func has(t *testing.T, page string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(page, line+"\n") {
			t.Errorf("no line %s in\n%s", line, page)
		}
	}
}

func TestRanks(t *testing.T) {
	m := meter.New(config.VLLM, 2, 2)
	m.Observer(1).Passed(1, &engine.Out{}, 0) // too early to be seen
	m.Bind("m")
	m.Observer(1).Passed(1, &engine.Out{Metrics: engine.Metrics{RunningRequests: 3, WaitingRequests: 2, CacheUsage: 0.5, Preemptions: 4}}, 0)
	m.Observer(1).Commanded(1, nil, engine.Metrics{RunningRequests: 2, WaitingRequests: 1, CacheUsage: 0.25, Preemptions: 5}, 0)
	s := worker.Signal{Worker: 1, Rank: 1}
	m.First(s, 15)
	m.Next(s, 20)
	m.Next(s, 30)
	m.Done(s, 400)
	has(t, page(m), `vllm:num_requests_running{engine="3",model_name="m"} 2`, `vllm:num_requests_waiting{engine="3",model_name="m"} 1`,
		`vllm:kv_cache_usage_perc{engine="3",model_name="m"} 0.25`, `vllm:gpu_cache_usage_perc{engine="3",model_name="m"} 0.25`,
		`vllm:num_preemptions_total{engine="3",model_name="m"} 5`, `vllm:num_requests_running{engine="0",model_name="m"} 0`,
		`vllm:time_to_first_token_seconds_bucket{engine="3",model_name="m",le="0.01"} 0`,
		`vllm:time_to_first_token_seconds_bucket{engine="3",model_name="m",le="0.02"} 1`,
		`vllm:inter_token_latency_seconds_sum{engine="3",model_name="m"} 0.05`,
		`vllm:e2e_request_latency_seconds_bucket{engine="3",model_name="m",le="0.3"} 0`, `vllm:e2e_request_latency_seconds_count{engine="3",model_name="m"} 1`)
}

func TestSGLang(t *testing.T) {
	m := meter.New(config.SGLang, 2, 1)
	m.Bind("m")
	m.Observer(0).Passed(0, &engine.Out{Metrics: engine.Metrics{RunningRequests: 3, CacheHitTokens: 30, CacheTotalTokens: 40}}, 0)
	m.Observer(1).Passed(0, &engine.Out{Metrics: engine.Metrics{RunningRequests: 1, WaitingRequests: 5, CacheTotalTokens: 60}}, 0)
	m.Observer(0).Passed(0, &engine.Out{Metrics: engine.Metrics{RunningRequests: 2}}, 0)
	m.Done(worker.Signal{Worker: 1}, 1)
	const ranked = `{engine_type="sglang",model_name="m",moe_ep_rank="0",pp_rank="0",tp_rank="0"} `
	has(t, page(m), `sglang:num_running_reqs`+ranked+`3`, `sglang:num_queue_reqs`+ranked+`5`, `sglang:cache_hit_rate`+ranked+`0.3`,
		`sglang:num_requests_total{engine_type="sglang",model_name="m"} 1`)
}

// What workers behind a frontend count, beside a page of the reference.
func TestGoldenCalls(t *testing.T) {
	want, err := os.ReadFile("testdata/calls.prom")
	if err != nil {
		t.Fatal(err)
	}
	m := meter.New(config.VLLM, 1, 1)
	c := m.Calls()
	c.Uptime("b84a931f29887323")
	c.Publisher("dynamo", "backend", "b84a931f29887323")
	c.Crowd(func() (int, int, int, int, int64) { return 3, 10000, 2, 40000, 1 })
	e := c.Endpoint("dynamo", "backend", "generate", "b84a931f29887323")
	e.Failed(meter.PublishResponse)
	if d := cmp.Diff(shape(string(want)), shape(page(m))); d != "" {
		t.Errorf("(-reference +ours):\n%s", d)
	}
	first, second := e.Begin(100), e.Begin(50)
	first(7, true)
	const labels = `{dynamo_component="backend",dynamo_endpoint="generate",dynamo_namespace="dynamo",worker_id="b84a931f29887323"} `
	has(t, page(m), `dynamo_component_requests_total`+labels+`2`, `dynamo_component_request_bytes_total`+labels+`150`, `dynamo_component_response_bytes_total`+labels+`7`,
		`dynamo_component_cancellation_total`+labels+`1`, `dynamo_component_inflight_requests`+labels+`1`)
	query := c.Endpoint("dynamo", "backend", "worker_kv_query_source_1", "b84a931f29887323").Begin(1)
	e.Travelled(2 * time.Millisecond)
	e.Travelled(-time.Second) // clocks differ
	e.Answered(20 * time.Millisecond)
	e.Failed(meter.PublishResponse)
	has(t, page(m), "dynamo_engine_request 1", "dynamo_request_queue 2", "dynamo_rejection_request_total 1", "dynamo_work_handler_pool_active_tasks 3", "dynamo_work_handler_queue_capacity 40000", "dynamo_work_handler_network_transit_seconds_sum 0.002", "dynamo_work_handler_network_transit_seconds_count 2",
		`dynamo_work_handler_time_to_first_response_seconds_bucket{le="0.01"} 0`, `dynamo_work_handler_time_to_first_response_seconds_bucket{le="0.025"} 1`,
		`dynamo_component_errors_total{dynamo_component="backend",dynamo_endpoint="generate",dynamo_namespace="dynamo",error_type="publish_response",worker_id="b84a931f29887323"} 2`)
	query(1, false)
	second(1, false)
	has(t, page(m), "dynamo_engine_request 0")
}

// Of all names of the reference's system server one is absent: how long requests
// wait for their turn.
func TestNames(t *testing.T) {
	text, err := os.ReadFile("testdata/names.txt")
	if err != nil {
		t.Fatal(err)
	}
	m := meter.New(config.VLLM, 1, 1)
	c := m.Calls()
	c.Uptime("1")
	c.Publisher("n", "c", "1")
	c.Crowd(func() (int, int, int, int, int64) { return 0, 1, 0, 1, 0 })
	e := c.Endpoint("n", "c", "e", "1")
	e.Begin(1)(1, false)
	e.Failed(meter.PublishResponse)
	ours := page(m)
	var absent []string
	for name := range strings.FieldsSeq(string(text)) {
		if !strings.Contains(ours, "# TYPE "+name+" ") {
			absent = append(absent, strings.TrimPrefix(name, "dynamo_work_handler_"))
		}
	}
	want := []string{"permit_wait_seconds"}
	if d := cmp.Diff(want, absent); d != "" {
		t.Errorf("(-known +absent):\n%s", d)
	}
}
