package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/live/answer"
	"github.com/dryserve/dryserve/host/native/live/discovery"
	"github.com/dryserve/dryserve/host/native/live/dynamo"
	"github.com/dryserve/dryserve/host/native/live/plane"
	"github.com/dryserve/dryserve/internal/stand"
)

// What an aggregated worker records, with two ranks; all of it goes with it.
func TestRecords(t *testing.T) {
	s, o := start(t, func(o *dynamo.Options) { o.Engine.DPSize = 2 })
	for bucket, want := range map[string]int{"instances": 3, "mdc": 1, "event_channels": 5, "event_sources": 2} {
		if got := records(t, o.Root, bucket); len(got) != want {
			t.Errorf("%s: %q", bucket, got)
		}
	}
	if !strings.HasPrefix(s.Address(), "127.0.0.1:") {
		t.Errorf("it listens at %s", s.Address())
	}
	s.Close()
	for _, bucket := range []string{"instances", "mdc", "event_channels", "event_sources"} {
		if got := records(t, o.Root, bucket); len(got) != 0 {
			t.Errorf("%s: %q", bucket, got)
		}
	}
}

const frame = `{"data":{"data":{"token_ids":[%s],"tokens":null,"text":null,"output_type":"text","cum_log_probs":null,"log_probs":null,"top_logprobs":null,"finish_reason":%s,"index":null%s}},"complete_final":false}`

func usage(prompt, answer, cached int) string {
	return fmt.Sprintf(`,"completion_usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"audio_tokens":null,"cached_tokens":%d}}`, prompt, answer, prompt+answer, cached)
}

// Answers, item by item.
func TestGenerate(t *testing.T) {
	s, o := start(t, func(o *dynamo.Options) {
		o.Recorded = answer.Recorded{"k": {7, 8}}
		o.Style.Reasoning = &answer.Reasoning{Start: 60, End: 62, Ratio: 1}
	})
	f, path := newFrontend(t, s.Address()), endpoint(t, o.Root, "generate")
	const final = `{"complete_final":true}`
	invalid := func(message, public string) []string {
		return []string{`{"data":{"event":"error","error":{"error_type":"InvalidArgument","class":"InvalidRequest","reason":"request.invalid_argument","message":"` + message +
			`","diagnostic":"` + message + `","public":{"type":"message","message":"` + public + `"}}},"complete_final":false}`, final}
	}
	for _, c := range []struct {
		body string
		want []string
	}{
		{`{"token_ids":[1,2,3,4,5],"stop_conditions":{"max_tokens":2}}`, []string{
			fmt.Sprintf(frame, "60", "null", usage(5, 1, 0)), fmt.Sprintf(frame, "62", "null", ""), fmt.Sprintf(frame, "", `"length"`, usage(5, 2, 0)), final}},
		{`{"token_ids":[1,2,3,4,5],"annotations":["output_replay_id:k"],"stop_conditions":{"max_tokens":9}}`, []string{
			fmt.Sprintf(frame, "7", "null", usage(5, 1, 4)), fmt.Sprintf(frame, "8", "null", ""), fmt.Sprintf(frame, "", `"length"`, usage(5, 2, 4)), final}},
		{`{"token_ids":[` + strings.Repeat("1,", 5000) + `1],"stop_conditions":{"max_tokens":2}}`, []string{
			fmt.Sprintf(frame, "", `{"error":"request rejected: request exceeds worker admission limits"}`, ""), final}},
		{`{"token_ids":[1]}`, invalid("max_output_tokens must be specified for mocker", "`max_output_tokens` (or `max_tokens`) is required by the mocker worker")},
		{`{"token_ids":[1],"stop_conditions":{"max_tokens":2},"routing":{"dp_rank":1}}`, invalid("dp_rank 1 is out of bounds for dp_size 1", "dp_rank 1 is out of bounds for dp_size 1")},
	} {
		if reply := f.ask(path, c.body); reply != "" {
			t.Fatalf("reply %q", reply)
		}
		if got := f.accept().all(); strings.Join(got, "\n") != strings.Join(c.want, "\n") {
			t.Errorf("%.80s\ngot  %s\nwant %s", c.body, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
	if reply := f.ask("1/no/such/endpoint", "{}"); reply != "Server unavailable: unknown endpoint 1/no/such/endpoint" {
		t.Error(reply)
	}
	if reply := f.ask(path, `{"stop_conditions":{}}`); reply != "" {
		t.Error(reply)
	}
	if got := f.accept().all(); len(got) != 2 || !strings.Contains(got[0], "the request has no token_ids") {
		t.Errorf("%q", got)
	}
}

// A recovery query tells what is cached.
func TestQuery(t *testing.T) {
	s, o := start(t, nil)
	f := newFrontend(t, s.Address())
	f.ask(endpoint(t, o.Root, "generate"), `{"token_ids":[1,2,3,4,5,6,7,8],"stop_conditions":{"max_tokens":1}}`)
	f.accept().all()
	path := endpoint(t, o.Root, "query")
	f.ask(path, `{"worker_id":1,"dp_rank":0,"start_event_id":null}`)
	if got := f.accept().all(); len(got) != 2 || !strings.HasPrefix(got[0], `{"data":{"Error":"this is worker `) {
		t.Errorf("%q", got)
	}
	hex, _, _ := strings.Cut(path, "/")
	var id uint64
	if _, err := fmt.Sscanf(hex, "%x", &id); err != nil {
		t.Fatal(err)
	}
	f.ask(path, fmt.Sprintf(`{"worker_id":%d,"dp_rank":0,"start_event_id":null}`, id))
	if got := f.accept().all(); len(got) != 2 || !strings.HasPrefix(got[0], `{"data":{"TreeDump":{"events":[{"worker_id":`) || strings.Count(got[0], "block_hash") != 2 ||
		!strings.HasSuffix(got[0], `"last_event_id":1,"reset_scope":"all"}},"complete_final":false}`) {
		t.Errorf("%q", got)
	}
}

// slow never comes to the end of a test, with one request at a time.
func slow(o *dynamo.Options) {
	o.Engine.SpeedupRatio, o.Engine.MaxNumSeqs, o.Engine.NumGPUBlocks = 1, 1, 1e5
	o.Engine.Timing = config.Timing{Kind: config.Fixed, PrefillMs: 1, DecodeMs: 1}
}

// A request that is killed, or stopped, or whose reader has gone, gives its slot
// to the next; it gets no end.
func TestCancel(t *testing.T) {
	for _, way := range []string{`"kill"`, `"stop"`, "close"} {
		s, o := start(t, slow)
		f, path := newFrontend(t, s.Address()), endpoint(t, o.Root, "generate")
		f.ask(path, `{"token_ids":[1],"stop_conditions":{"max_tokens":300000}}`)
		long := f.accept()
		if i := long.item(); !strings.HasPrefix(i, `{"data":{"data":{"token_ids":[`) {
			t.Fatalf("%q", i)
		}
		if way == "close" {
			_ = long.conn.Close()
		} else {
			long.say(way)
			if got := long.all(); got[len(got)-1] != "cut" {
				t.Errorf("%s: it ends with %q", way, got[len(got)-1])
			}
		}
		f.ask(path, `{"token_ids":[1],"stop_conditions":{"max_tokens":2}}`)
		if got := f.accept().all(); len(got) != 4 {
			t.Errorf("%s: the next gets %q", way, got)
		}
	}
}

// Workers that leave are not found any more; what is under way comes to its end.
func TestDrain(t *testing.T) {
	s, o := start(t, slow)
	f, path := newFrontend(t, s.Address()), endpoint(t, o.Root, "generate")
	f.ask(path, `{"token_ids":[1],"stop_conditions":{"max_tokens":100}}`)
	under := f.accept()
	under.item()
	done := make(chan error)
	go func() { done <- s.Drain(soon(t)) }()
	if got := under.all(); len(got) != 101 || got[100] != `{"complete_final":true}` {
		t.Errorf("%d items, the last %s", len(got), got[len(got)-1])
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := records(t, o.Root, "instances"); len(got) != 0 {
		t.Errorf("%q", got)
	}
	// Without time what is under way is cut.
	s, o = start(t, slow)
	f, path = newFrontend(t, s.Address()), endpoint(t, o.Root, "generate")
	f.ask(path, `{"token_ids":[1],"stop_conditions":{"max_tokens":300000}}`)
	under = f.accept()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Drain(ctx); err == nil {
		t.Error("it has drained")
	}
	s.Close()
	if got := under.all(); got[len(got)-1] != "cut" {
		t.Errorf("it ends with %q", got[len(got)-1])
	}
}

// Who is one too many is told so at once; who waits is served in turn.
func TestOverloaded(t *testing.T) {
	server, err := plane.Listen("127.0.0.1:0", "", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	server.Limit(1, 1)
	s, o := start(t, func(o *dynamo.Options) {
		slow(o)
		o.Requests = server
	})
	f, path := newFrontend(t, s.Address()), endpoint(t, o.Root, "generate")
	for i, want := range []string{"", "", "", "Server overloaded: worker at capacity"} {
		if got := f.ask(path, `{"token_ids":[1],"stop_conditions":{"max_tokens":5}}`); got != want {
			t.Errorf("request %d: %q, want %q", i, got, want)
		}
	}
	for f.n = 1; f.n < 4; f.n++ {
		if got := f.accept().all(); len(got) != 7 {
			t.Errorf("request %d: %q", f.n, got)
		}
	}
}

// What is no frame ends its connection and nothing else.
func TestGarbage(t *testing.T) {
	s, o := start(t, nil)
	for _, text := range []string{"GET / HTTP/1.1\r\n\r\n", "\x00\x00\x00\x00\xff\xff\xff\xff", "\x00\x05ab"} {
		conn, err := net.Dial("tcp", s.Address())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
		_ = conn.(*net.TCPConn).CloseWrite()
		if _, err := io.ReadAll(conn); err != nil {
			t.Error(err)
		}
		_ = conn.Close()
	}
	f := newFrontend(t, s.Address())
	f.ask(endpoint(t, o.Root, "generate"), `{"token_ids":[1],"stop_conditions":{"max_tokens":2}}`)
	if got := f.accept().all(); len(got) != 4 {
		t.Errorf("%q", got)
	}
}

// Workers that come later are found later.
func TestStagger(t *testing.T) {
	s, o := start(t, func(o *dynamo.Options) {
		o.Workers, o.StaggerMs = 2, func(i int) float64 { return float64(i) * 3.6e6 }
	})
	if got := records(t, o.Root, "mdc"); len(got) != 1 {
		t.Errorf("%q", got)
	}
	s.Close()
	s, o = start(t, func(o *dynamo.Options) { o.Workers = 3 })
	if got := records(t, o.Root, "mdc"); len(got) != 3 {
		t.Errorf("%q", got)
	}
	s.Close()
}

// shaky is a place that does not work at first.
type shaky struct {
	discovery.Store
	left atomic.Int32
}

func (s *shaky) Join(ctx context.Context) (discovery.Records, error) {
	r, err := s.Store.Join(ctx)
	if err == nil && s.left.Add(-1) >= 0 {
		return broken{r}, nil
	}
	return r, err
}

// broken takes no cards.
type broken struct{ discovery.Records }

func (b broken) Put(bucket, key string, text []byte) error {
	if bucket == discovery.Cards {
		return errors.New("broken")
	}
	return b.Records.Put(bucket, key, text)
}

// A worker that cannot be recorded is not there at all; one that comes later is
// tried again.
func TestShakyPlace(t *testing.T) {
	memory := &discovery.Memory{}
	s := &shaky{Store: memory}
	s.left.Store(2)
	start(t, func(o *dynamo.Options) { o.Store, o.StaggerMs = s, func(int) float64 { return 1 } })
	keys := func() int { return len(memory.Keys()) }
	stand.Until(t, "the worker is recorded", func() bool { return keys() == 8 })
	s = &shaky{Store: memory}
	s.left.Store(1)
	memory.Close()
	again := &discovery.Memory{}
	s.Store = again
	o := options(t)
	o.Store = s
	if _, err := dynamo.Start(o); err == nil || err.Error() != "broken" {
		t.Error(err)
	}
	if len(again.Keys()) > 0 {
		t.Errorf("%q", again.Keys())
	}
	if _, err := again.Join(t.Context()); err == nil {
		t.Error("the place is left open")
	}
}

// The system server: metrics, health, and nothing else.
func TestSystem(t *testing.T) {
	s, o := start(t, func(o *dynamo.Options) {
		o.System, o.Health = "127.0.0.1:0", dynamo.Health{Ready: true, HealthPath: "/health", Living: "/live"}
	})
	f := newFrontend(t, s.Address())
	f.ask(endpoint(t, o.Root, "generate"), `{"model":"m1","token_ids":[1,2,3],"stop_conditions":{"max_tokens":3}}`)
	f.accept().all()
	get := func(path string) (int, string) {
		resp, err := http.Get("http://" + s.System() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	for _, path := range []string{"/health", "/live"} {
		if status, text := get(path); status != 200 || !strings.HasPrefix(text, `{"status":"ready","uptime":{"secs":0,"nanos":`) || !strings.Contains(text, `},"endpoints":{"generate":"ready","worker_kv_query_source_`) {
			t.Errorf("%s: status %d, %s", path, status, text)
		}
	}
	if status, text := get("/metadata"); status != 404 || text != "Route not found" {
		t.Errorf("status %d, %s", status, text)
	}
	_, text := get("/metrics")
	for _, line := range []string{
		`vllm:time_to_first_token_seconds_count{engine="0",model_name="m1"} 1`, `vllm:inter_token_latency_seconds_count{engine="0",model_name="m1"} 2`,
		`vllm:e2e_request_latency_seconds_count{engine="0",model_name="m1"} 1`, `dynamo_component_requests_total{dynamo_component="backend",dynamo_endpoint="generate",dynamo_namespace="dynamo",worker_id="`,
	} {
		if !strings.Contains(text, line) {
			t.Errorf("no %s in\n%s", line, text)
		}
	}
}
