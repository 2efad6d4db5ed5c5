package openai_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/live/clock"
	"github.com/dryserve/dryserve/host/native/live/fault"
	"github.com/dryserve/dryserve/host/native/live/fleet"
	"github.com/dryserve/dryserve/host/native/live/meter"
	"github.com/dryserve/dryserve/host/native/live/openai"
	"github.com/dryserve/dryserve/host/native/live/tokenizer"
)

// instant is an engine that takes no time.
func instant() config.Engine {
	e := config.Defaults(config.VLLM)
	e.SpeedupRatio, e.BlockSize, e.NumGPUBlocks = 1e9, 4, 256
	return e
}

// site is a running server.
type site struct {
	t      *testing.T
	server *openai.Server
	http   *httptest.Server
}

// start serves one worker of an engine; change may change what is served.
func start(t *testing.T, e config.Engine, change func(*openai.Options)) *site {
	t.Helper()
	c := clock.NewWall(false)
	o := openai.Options{
		Clock: c, Tokenizer: tokenizer.Builtin(), Ends: []uint32{256, 258}, Meter: meter.New(e.Backend, 1, e.DPSize), Faults: fault.New(fault.Options{}),
		Log: slog.New(slog.DiscardHandler), Model: "m", Version: "v", ContextTokens: 1000, ChatTokens: 20, MaxBodyBytes: 1 << 16,
	}
	o.Style.IDs = o.Tokenizer.Words()
	if change != nil {
		change(&o)
	}
	f := fleet.New(fleet.Options{Engine: e, Workers: 1, Clock: c, Observer: o.Meter.Observer})
	o.Backend = f
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { f.Run(ctx); close(done) }()
	s := &site{t: t, server: openai.New(o)}
	s.http = httptest.NewServer(s.server)
	t.Cleanup(func() {
		s.http.CloseClientConnections()
		s.http.Close()
		cancel()
		<-done
	})
	return s
}

// call asks and returns the status and the answer.
func (s *site) call(method, path, body string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.http.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := s.http.Client().Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// reply is what counts of an answer or an event.
type reply struct {
	ID, Object, Model string
	Created           int64
	Choices           []struct {
		Index   int
		Text    *string
		Message *struct {
			Role, Content string
			Reasoning     string `json:"reasoning_content"`
		}
		Delta *struct {
			Role, Content string
			Reasoning     string `json:"reasoning_content"`
		}
		Finish *string `json:"finish_reason"`
	}
	Usage *usage
	Error *struct {
		Message, Type string
		Param, Code   *string
	}
}

type usage struct {
	Prompt  int `json:"prompt_tokens"`
	Answer  int `json:"completion_tokens"`
	Total   int `json:"total_tokens"`
	Details struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	Thoughts struct {
		Tokens int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// ask asks for a whole answer, which must come.
func (s *site) ask(path, body string) reply {
	s.t.Helper()
	status, text := s.call("POST", path, body)
	var r reply
	if err := json.Unmarshal([]byte(text), &r); err != nil || status != 200 {
		s.t.Fatalf("%s: status %d, %v: %s", body, status, err, text)
	}
	return r
}

// events reads a stream to its end, or to where it breaks.
func events(t *testing.T, body io.Reader) (list []reply, done bool) {
	t.Helper()
	for lines := bufio.NewScanner(body); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		switch {
		case lines.Text() == "":
		case !ok || done:
			t.Fatalf("a line %q", lines.Text())
		case data == "[DONE]":
			done = true
		default:
			var r reply
			if err := json.Unmarshal([]byte(data), &r); err != nil {
				t.Fatalf("%v: %s", err, data)
			}
			list = append(list, r)
		}
	}
	return list, done
}

func (s *site) stream(path, body string) ([]reply, bool) {
	s.t.Helper()
	resp, err := s.http.Client().Post(s.http.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream; charset=utf-8" {
		s.t.Fatalf("%s: status %d, %s", body, resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	return events(s.t, resp.Body)
}
