package openai_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/live/fault"
	"github.com/dryserve/dryserve/host/native/live/openai"
)

// refusal asks for something that is refused and spells the error.
func (s *site) refusal(method, path, body string) string {
	s.t.Helper()
	status, text := s.call(method, path, body)
	var r reply
	if err := json.Unmarshal([]byte(text), &r); err != nil || r.Error == nil {
		s.t.Fatalf("%s: status %d, %v: %s", body, status, err, text)
	}
	out := fmt.Sprintf("%d %s", status, r.Error.Type)
	for _, p := range []*string{r.Error.Param, r.Error.Code} {
		if p != nil {
			out += " " + *p
		}
	}
	return out + ": " + r.Error.Message
}

func TestRefusals(t *testing.T) {
	s := start(t, instant(), nil)
	const bad = "400 invalid_request_error"
	for _, c := range []struct{ path, body, want string }{
		{text, `{`, bad + `: the body is not JSON: unexpected end of JSON input, at byte 1; an object is accepted`},
		{text, `[]`, bad + `: the body is of the JSON type array; an object is accepted`},
		{text, `{}`, bad + ` model: model is missing; "m" is accepted`},
		{text, `{"model":"x"}`, `404 invalid_request_error model model_not_found: the model "x" does not exist`},
		{text, `{"model":3}`, bad + ` model: model is of the JSON type number; a string is accepted`},
		{text, `{"model":"m"}`, bad + ` prompt: prompt is missing; a string, a list of strings, a list of token ids or a list of such lists is accepted`},
		{text, `{"model":"m","prompt":[]}`, bad + ` prompt: prompt is "[]"; a string, a list of strings, a list of token ids or a list of such lists is accepted`},
		{text, `{"model":"m","prompt":[null]}`, bad + ` prompt: prompt is "[null]"; a string, a list of strings, a list of token ids or a list of such lists is accepted`},
		{text, `{"model":"m","prompt":[[1],[]]}`, bad + ` prompt: prompt is "[[1],[]]"; a string, a list of strings, a list of token ids or a list of such lists is accepted`},
		{text, `{"model":"m","prompt":[-1]}`, bad + ` prompt: prompt is "[-1]"; a string, a list of strings, a list of token ids or a list of such lists is accepted`},
		{text, `{"model":"m","prompt":"a","messages":[]}`, bad + ` messages: messages are for chats; prompt is accepted`},
		{text, `{"model":"m","prompt":"a","max_tokens":"9"}`, bad + ` max_tokens: max_tokens is of the JSON type string; a whole number is accepted`},
		{text, `{"model":"m","prompt":"a","max_tokens":0}`, bad + ` max_tokens: max_tokens is 0; a whole number from 1 on is accepted`},
		{text, `{"model":"m","prompt":"a","max_tokens":5,"min_tokens":6}`, bad + ` min_tokens: min_tokens is 6; a whole number from 0 to max_tokens is accepted`},
		{text, `{"model":"m","prompt":"a","n":0}`, bad + ` n: n is 0; a whole number from 1 to 128 is accepted`},
		{text, `{"model":"m","prompt":["a","b"],"n":65}`, bad + ` n: the request asks for 130 answers; up to 128 are accepted`},
		{text, `{"model":"m","prompt":"a","best_of":3}`, bad + ` best_of: best_of is 3; n, or nothing, is accepted`},
		{text, `{"model":"m","prompt":"a","temperature":2.5}`, bad + ` temperature: temperature is 2.5; a number from 0 to 2 is accepted`},
		{text, `{"model":"m","prompt":"a","stream":"yes"}`, bad + ` stream: stream is of the JSON type string; true or false is accepted`},
		{text, `{"model":"m","prompt":"a","logprobs":3}`, bad + ` logprobs: logprobs are not simulated; leave logprobs out`},
		{text, `{"model":"m","prompt":"a","suffix":"b"}`, bad + ` suffix: suffix is not simulated; leave it out`},
		{text, `{"model":"m","prompt":"a","stop":5}`, bad + ` stop: stop is "5"; a string or a list of strings is accepted`},
		{text, `{"model":"m","prompt":"a","stop":["b",""]}`, bad + ` stop: stop has an empty string; strings of at least one character are accepted`},
		{text, `{"model":"m","prompt":"a","max_tokens":1000}`, bad + ` prompt context_length_exceeded: this model's maximum context length is 1000 tokens; the request asks for 1001: 1 of the prompt and 1000 of the answer`},
		{text, `{"model":"m","prompt":"` + strings.Repeat("a", 1000) + `"}`, bad + ` prompt context_length_exceeded: the prompt has 1000 tokens; this model's maximum context length is 1000 tokens, answer included`},
		{text, strings.Repeat(" ", 70_000), `413 invalid_request_error: the body has more than 65536 bytes; up to so many are accepted`},
		{chat, `{"model":"m"}`, bad + ` messages: messages are missing or empty; a list of at least one message is accepted`},
		{chat, `{"model":"m","messages":"a"}`, bad + ` messages: messages is of the JSON type string; a list is accepted`},
		{chat, `{"model":"m","messages":[{"role":"king","content":"a"}]}`, bad + ` messages: messages[0].role is "king"; system, developer, user, assistant, tool, function is accepted`},
		{chat, `{"model":"m","messages":[{"role":"user","content":7}]}`, bad + ` messages: messages[0].content is "7"; a string or a list of text parts is accepted`},
		{chat, `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url"}]}]}`, bad + ` messages: messages[0].content[0].type is "image_url"; text is accepted`},
		{chat, `{"model":"m","prompt":"a"}`, bad + ` prompt: prompt is for completions; messages are accepted`},
		{chat, `{"model":"m","messages":[{"role":"user"}],"echo":true}`, bad + ` echo: echo is for completions; leave it out`},
		{chat, `{"model":"m","messages":[{"role":"user"}],"max_tokens":5,"max_completion_tokens":6}`, bad + ` max_tokens: max_tokens is 5 and max_completion_tokens is 6; one of them is accepted`},
		{chat, `{"model":"m","messages":[{"role":"user"}],"max_completion_tokens":1001}`, bad + ` messages context_length_exceeded: this model's maximum context length is 1000 tokens; the request asks for 1020: 19 of the prompt and 1001 of the answer`},
	} {
		if got := s.refusal("POST", c.path, c.body); got != c.want {
			t.Errorf("%.80s\ngot  %s\nwant %s", c.body, got, c.want)
		}
	}
	for _, c := range []struct{ method, path, want string }{
		{"GET", "/v1/files", `404 invalid_request_error unknown_url: there is no GET "/v1/files"; /v1/models, /v1/completions, /v1/chat/completions, /metrics, /health, /live and /version are served`},
		{"GET", text, `405 invalid_request_error method_not_allowed: "/v1/completions" is asked for with "GET"; POST is accepted`},
		{"POST", "/v1/models", `405 invalid_request_error method_not_allowed: "/v1/models" is asked for with "POST"; GET is accepted`},
		{"GET", "/v1/models/x/y", `404 invalid_request_error model model_not_found: the model "x/y" does not exist`},
	} {
		if got := s.refusal(c.method, c.path, ""); got != c.want {
			t.Errorf("%s %s\ngot  %s\nwant %s", c.method, c.path, got, c.want)
		}
	}
}

func TestPages(t *testing.T) {
	s := start(t, instant(), nil)
	for path, want := range map[string]string{
		"/v1/models": `{"object":"list","data":[{"id":"m","object":"model","created":`, "/v1/models/m": `{"id":"m","object":"model","created":`,
		"/health": `{"status":"ready","uptime":{"secs":0,"nanos":`, "/live": `{"status":"ready","uptime":{"secs":0,"nanos":`, "/version": `{"version":"v"}`,
	} {
		if status, body := s.call("GET", path, ""); status != 200 || !strings.HasPrefix(body, want) {
			t.Errorf("%s: status %d, %s", path, status, body)
		}
	}
	s.ask(text, `{"model":"m","prompt":"a"}`)
	if _, page := s.call("GET", "/metrics", ""); !strings.Contains(page, `vllm:time_to_first_token_seconds_count{engine="0",model_name="m"} 1`) ||
		!strings.Contains(page, `vllm:inter_token_latency_seconds_count{engine="0",model_name="m"} 15`) ||
		!strings.Contains(page, `vllm:e2e_request_latency_seconds_count{engine="0",model_name="m"} 1`) {
		t.Error(page)
	}
}

// What the engine does not serve is an error, also of a stream that has not
// begun.
func TestEngineRefuses(t *testing.T) {
	e := instant()
	e.NumGPUBlocks = 4
	s := start(t, e, nil)
	for _, stream := range []string{"", `,"stream":true`} {
		got := s.refusal("POST", text, `{"model":"m","prompt":"`+strings.Repeat("a", 30)+`"`+stream+`}`)
		if got != "400 invalid_request_error context_length_exceeded: the engine does not admit the request: its prompt, or all of it, exceeds the engine's limits" {
			t.Error(got)
		}
	}
	const grows = `{"model":"m","prompt":"aaaa","max_tokens":40`
	if got := s.refusal("POST", text, grows+"}"); got != "500 server_error: the request needs more KV cache than the engine has, and was given up" {
		t.Error(got)
	}
	list, done := s.stream(text, grows+`,"stream":true}`)
	if last := list[len(list)-1]; done || last.Error == nil || last.Error.Type != "server_error" || len(list) < 10 {
		t.Errorf("%d events, done %v", len(list), done)
	}
}

// waitFor waits until a page says something.
func (s *site) waitFor(path, what string) {
	s.t.Helper()
	for range 3000 {
		if _, page := s.call("GET", path, ""); strings.Contains(page, what) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	_, page := s.call("GET", path, "")
	s.t.Fatalf("%s never says %s:\n%s", path, what, page)
}

// slow is an engine that never comes to the end of a test.
func slow() config.Engine {
	e := instant()
	e.SpeedupRatio, e.NumGPUBlocks = 1, 1e5
	e.Timing = config.Timing{Kind: config.Fixed, PrefillMs: 0.01, DecodeMs: 1}
	return e
}

// A client that goes frees the slot of its request, and all of them when it had
// several.
func TestClientGoes(t *testing.T) {
	const running = `vllm:num_requests_running{engine="0",model_name="m"} `
	for _, stream := range []string{"false", "true"} {
		s := start(t, slow(), func(o *openai.Options) { o.ContextTokens = 1e5 })
		client := &http.Client{}
		gone := make(chan struct{})
		r, err := http.NewRequest("POST", s.http.URL+text, strings.NewReader(`{"model":"m","prompt":"abc","n":3,"max_tokens":60000,"stream":`+stream+`}`))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			x, err := client.Do(r.WithContext(ctx))
			if err == nil { // of a stream
				<-ctx.Done()
				_ = x.Body.Close()
			}
			close(gone)
		}()
		s.waitFor("/metrics", running+"3")
		cancel()
		<-gone
		s.waitFor("/metrics", running+"0")
		client.CloseIdleConnections()
	}
}

// Nothing new is taken while the server drains; what is under way goes on.
func TestDrain(t *testing.T) {
	s := start(t, slow(), nil)
	under := make(chan []reply)
	go func() {
		list, _ := s.stream(text, `{"model":"m","prompt":"abc","max_tokens":200,"stream":true}`)
		under <- list
	}()
	s.waitFor("/metrics", `num_requests_running{engine="0",model_name="m"} 1`)
	s.server.Drain()
	if got := s.refusal("POST", text, `{"model":"m","prompt":"a"}`); got != "503 server_error service_unavailable: the server is shutting down" {
		t.Error(got)
	}
	if status, _ := s.call("GET", "/health", ""); status != 503 {
		t.Errorf("health %d", status)
	}
	if status, _ := s.call("GET", "/live", ""); status != 200 {
		t.Errorf("live %d", status)
	}
	if list := <-under; len(list) != 201 {
		t.Errorf("%d events", len(list))
	}
}

func TestFaults(t *testing.T) {
	with := func(f fault.Options) *site {
		return start(t, instant(), func(o *openai.Options) { o.Faults = fault.New(f) })
	}
	const ask = `{"model":"m","prompt":"abc"`
	if got := with(fault.Options{ErrorRate: 1, ErrorStatus: 503}).refusal("POST", text, ask+"}"); got != "503 server_error: this failure was asked for by --fault-error-rate" {
		t.Error(got)
	}
	limited := with(fault.Options{RateLimit: 0.001})
	limited.ask(text, ask+"}")
	if got := limited.refusal("POST", text, ask+"}"); !strings.HasPrefix(got, "429 rate_limit_error rate_limit_exceeded: the rate limit is reached; try again in 16m") {
		t.Error(got)
	}
	resp, err := http.Post(limited.http.URL+text, "", strings.NewReader(ask+"}"))
	if after := resp.Header.Get("Retry-After"); err != nil || after != "1000" && after != "999" {
		t.Errorf("%v, %v", err, resp)
	}
	_ = resp.Body.Close()

	broken := with(fault.Options{DisconnectRate: 1, Seed: 2})
	if resp, err := http.Post(broken.http.URL+text, "", strings.NewReader(ask+"}")); err == nil {
		t.Errorf("status %d over a broken connection", resp.StatusCode)
	}
	resp, err = http.Post(broken.http.URL+text, "", strings.NewReader(ask+`,"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	if list, done := events(t, resp.Body); done || len(list) > 15 {
		t.Errorf("%d events, done %v", len(list), done)
	}
	_ = resp.Body.Close()

	rough := with(fault.Options{Jitter: time.Millisecond, StallRate: 1, Stall: 20 * time.Millisecond})
	began := time.Now()
	if list, done := rough.stream(text, ask+`,"stream":true}`); !done || len(list) != 17 {
		t.Errorf("%d events, done %v", len(list), done)
	}
	rough.ask(text, ask+"}")
	if took := time.Since(began); took < 40*time.Millisecond {
		t.Errorf("it took %v", took)
	}
}
