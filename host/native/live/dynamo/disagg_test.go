package dynamo_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/live/dynamo"
	"github.com/dryserve/dryserve/host/native/live/handoff"
	"github.com/dryserve/dryserve/internal/stand"
)

// prefill makes the workers of a site compute prompts, at a bootstrap port if
// there is one.
func prefill(o *dynamo.Options, port int) {
	o.Engine.Role, o.Component = config.Prefill, "prefill"
	o.Handoff = dynamo.Handoff{Bind: "127.0.0.1", Host: "127.0.0.1", TimeoutMs: 300_000}
	if port > 0 {
		o.Handoff.Ports = []int{port}
	}
}

func decode(o *dynamo.Options) {
	o.Engine.Role, o.Handoff = config.Decode, dynamo.Handoff{TimeoutMs: 300_000}
}

// pair is a worker of each kind, and somebody who asks them.
type pair struct {
	t       *testing.T
	prompts *frontend
	decodes *frontend
	paths   [2]string
	port    int
	n       int
}

func newPair(t *testing.T, change func(*dynamo.Options)) *pair {
	t.Helper()
	p := &pair{t: t, port: stand.Port(t)}
	for i, role := range []func(*dynamo.Options){func(o *dynamo.Options) { prefill(o, p.port) }, decode} {
		s, o := start(t, func(o *dynamo.Options) {
			role(o)
			if change != nil {
				change(o)
			}
		})
		p.paths[i] = endpoint(t, o.Root, "generate")
		if f := newFrontend(t, s.Address()); i == 0 {
			p.prompts = f
		} else {
			p.decodes = f
		}
	}
	return p
}

// info is the two halves' common part of a new handoff.
func (p *pair) info() string {
	p.n++
	return fmt.Sprintf(`"bootstrap_info":{"bootstrap_host":"127.0.0.1","bootstrap_port":%d,"bootstrap_room":%d,"handoff_id":"00000000-0000-4000-8000-%012d"}`, p.port, p.n, p.n)
}

// both asks both halves, whose requests have one id.
func (p *pair) both(tokens, maxTokens int) (first, second *stream) {
	p.t.Helper()
	prompt, info := "1"+strings.Repeat(",1", tokens-1), p.info()
	p.prompts.n, p.decodes.n = p.n-1, p.n-1
	if r := p.prompts.ask(p.paths[0], fmt.Sprintf(`{"token_ids":[%s],"stop_conditions":{"max_tokens":1},%s}`, prompt, info)); r != "" {
		p.t.Fatal(r)
	}
	if r := p.decodes.ask(p.paths[1], fmt.Sprintf(`{"token_ids":[%s],"stop_conditions":{"max_tokens":%d},%s}`, prompt, maxTokens, info)); r != "" {
		p.t.Fatal(r)
	}
	return p.prompts.accept(), p.decodes.accept()
}

// free wants both workers to have nothing left: a handoff that needs all of their
// caches is served.
func (p *pair) free() {
	p.t.Helper()
	first, second := p.both(3990, 2)
	if got := first.all(); len(got) != 3 {
		p.t.Errorf("the prompt's items are %q", got)
	}
	if got := second.all(); len(got) != 4 {
		p.t.Errorf("the answer's items are %q", got)
	}
}

// A prompt is computed by one worker and decoded by another: the first half is
// one token and its end, the second all tokens.
func TestBootstrap(t *testing.T) {
	for _, c := range []struct {
		backend config.Backend
		ranks   int
	}{{config.VLLM, 1}, {config.SGLang, 1}, {config.VLLM, 2}, {config.SGLang, 2}} {
		backend := c.backend
		p := newPair(t, func(o *dynamo.Options) { o.Engine.Backend, o.Engine.DPSize = backend, c.ranks })
		for i := range 4 {
			first, second := p.both(150, 4)
			a, b := first.all(), second.all()
			told := backend == config.VLLM
			if len(a) != 3 || !strings.Contains(a[0], `"index":null,"disaggregated_params":"dummy"`) || strings.Contains(a[1], "dummy") ||
				!strings.Contains(a[1], `"token_ids":[],`) || !strings.Contains(a[1], `"finish_reason":"length"`) || strings.Contains(a[1], `"completion_tokens":1,"total_tokens":151`) != told {
				t.Errorf("backend %d, handoff %d: the first half is %q", backend, i, a)
			}
			if len(b) != 6 || strings.Contains(strings.Join(b, ""), "dummy") || !strings.Contains(b[4], `"finish_reason":"length"`) || strings.Contains(b[4], `"total_tokens":154`) != told {
				t.Errorf("backend %d, handoff %d: the second half is %q", backend, i, b)
			}
			if cached := strings.Contains(a[0], `"cached_tokens":148`); told && cached != (i >= c.ranks) { // ranks are asked in turn
				t.Errorf("handoff %d: %s", i, a[0])
			}
		}
		p.free()
	}
}

// A transfer takes its time, by the source's bandwidth; a prompt that is handed
// over by the frontend takes as long.
func TestTransferTime(t *testing.T) {
	bytesPerToken, bandwidth := uint64(100_000), 0.1 // 10 tokens are 10 ms
	p := newPair(t, func(o *dynamo.Options) {
		o.Handoff.Timing = handoff.Timing{BytesPerToken: &bytesPerToken, BandwidthGBs: &bandwidth}
	})
	start := time.Now()
	first, second := p.both(100, 2)
	first.all()
	second.all()
	if d := time.Since(start); d < 100*time.Millisecond {
		t.Errorf("it took %v", d)
	}
	start = time.Now()
	p.prompts.ask(p.paths[0], `{"token_ids":[1`+strings.Repeat(",1", 99)+`]}`)
	if got := p.prompts.accept().all(); len(got) != 3 || time.Since(start) < 100*time.Millisecond {
		t.Errorf("%q after %v", got, time.Since(start))
	}
}

// Who cancels one half ends the other, whatever it has come to, and nothing is
// left on either side.
func TestCancelHalves(t *testing.T) {
	for _, backend := range []config.Backend{config.VLLM, config.SGLang} {
		bytesPerToken, bandwidth := uint64(100_000), 0.001
		p := newPair(t, func(o *dynamo.Options) {
			o.Engine.Backend = backend
			o.Handoff.Timing = handoff.Timing{BytesPerToken: &bytesPerToken, BandwidthGBs: &bandwidth}
		})
		for _, word := range []string{`"kill"`, `"stop"`} {
			// Before or in the middle of a transfer that takes 40 s.
			first, second := p.both(400, 10)
			first.item()
			first.say(word)
			if got := first.all(); got[len(got)-1] != "cut" {
				t.Errorf("%s: the first half ends with %q", word, got)
			}
			// It ends in one way before it has been asked to make room, in another after.
			if got := second.all(); len(got) != 2 || !strings.Contains(got[0], `{"error":"destination handoff ended before completion"}`) && !strings.Contains(got[0], `{"error":"All output transmitters closed"}`) {
				t.Errorf("%s: the second half is %q", word, got)
			}
			first, second = p.both(400, 10)
			first.item()
			second.say(word)
			if got := second.all(); got[len(got)-1] != "cut" {
				t.Errorf("%s: the second half ends with %q", word, got)
			}
			if got := first.all(); len(got) != 2 || !strings.Contains(got[0], `{"error":"destination disconnected"}`) {
				t.Errorf("%s: the first half goes on with %q", word, got)
			}
		}
		// Prompts that need all of a cache are served.
		plain := `{"token_ids":[1` + strings.Repeat(",1", 3989) + `],"stop_conditions":{"max_tokens":2}}`
		p.decodes.ask(p.paths[1], plain)
		if got := p.decodes.accept().all(); len(got) != 4 {
			t.Errorf("the worker that decodes says %q", got)
		}
		p.prompts.ask(p.paths[0], plain)
		first := p.prompts.accept()
		if got := first.item(); !strings.Contains(got, "dummy") {
			t.Errorf("the worker that computes prompts says %s", got)
		}
		first.say(`"kill"`)
	}
}

// Halves that cannot be served say why, and do not take their worker with them.
func TestRefusedHalves(t *testing.T) {
	p := newPair(t, func(o *dynamo.Options) { o.Engine.MaxNumSeqs = 2 })
	const id = `"handoff_id":"00000000-0000-4000-8000-00000000000a"`
	ask := func(f *frontend, path, more string) {
		t.Helper()
		if r := f.ask(path, `{"token_ids":[1],"stop_conditions":{"max_tokens":2}`+more+`}`); r != "" {
			t.Fatal(r)
		}
	}
	for i, f := range []*frontend{p.prompts, p.decodes} {
		ask(f, p.paths[i], `,"bootstrap_info":{"bootstrap_host":"127.0.0.1","bootstrap_port":1,"bootstrap_room":1}`)
		if got := f.refused(); got != "disaggregated mocker requires a handoff ID" {
			t.Error(got)
		}
	}
	ask(p.decodes, p.paths[1], fmt.Sprintf(`,"bootstrap_info":{"bootstrap_host":"127.0.0.1","bootstrap_port":%d,"bootstrap_room":1,%s}`, stand.Port(t), id))
	if got := p.decodes.refused(); got != "bootstrap connection failed: Connection refused (os error 111)" {
		t.Error(got)
	}
	// A prompt larger than either cache.
	first, second := p.both(4100, 2)
	if got := first.all(); len(got) != 2 || !strings.Contains(got[0], "request rejected: request exceeds worker admission limits") {
		t.Errorf("%q", got)
	}
	if got := second.all(); len(got) != 2 || !strings.Contains(got[0], "All output transmitters closed") {
		t.Errorf("%q", got)
	}
	// The same handoff twice, and more than there may be.
	info := p.info()
	ask(p.prompts, p.paths[0], ","+info)
	one := p.prompts.accept()
	ask(p.prompts, p.paths[0], ","+info)
	if got := p.prompts.refused(); got != "handoff HandoffId(00000000-0000-4000-8000-000000000002) already has a lifecycle route" {
		t.Error(got)
	}
	ask(p.prompts, p.paths[0], ","+p.info())
	two := p.prompts.accept()
	ask(p.prompts, p.paths[0], ","+p.info())
	if got := p.prompts.refused(); got != "mocker handoff session limit reached for DP rank 0" {
		t.Error(got)
	}
	one.say(`"kill"`)
	two.say(`"kill"`)
	one.all()
	two.all()
	p.free()

	// Other kinds of workers.
	for _, c := range []struct {
		change func(*dynamo.Options)
		want   string
	}{
		{func(o *dynamo.Options) {}, "aggregated mocker request cannot carry handoff metadata"},
		{func(o *dynamo.Options) { prefill(o, 0) }, "source handoff manager is not initialized"},
		{func(o *dynamo.Options) { prefill(o, 0); o.Engine.Backend = config.TRTLLM }, "mocker handoff does not support TRT-LLM"},
	} {
		s, o := start(t, c.change)
		f := newFrontend(t, s.Address())
		ask(f, endpoint(t, o.Root, "generate"), `,"bootstrap_info":{"bootstrap_host":"h","bootstrap_port":1,"bootstrap_room":1,`+id+`}`)
		if got := f.refused(); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

// Requests that no engine takes are refused, as the reference refuses them.
func TestRefused(t *testing.T) {
	s, o := start(t, slow)
	f, path := newFrontend(t, s.Address()), endpoint(t, o.Root, "generate")
	f.ask(path, `{"token_ids":[1],"stop_conditions":{"max_tokens":0}}`)
	if got := f.refused(); got != "live requests must generate at least one output token" {
		t.Error(got)
	}
	f.ask(path, `{"token_ids":[1],"stop_conditions":{"max_tokens":1000}}`)
	first := f.accept()
	f.n--
	f.ask(path, `{"token_ids":[1],"stop_conditions":{"max_tokens":1000}}`)
	if got := f.refused(); got != "request 00000000-0000-4000-8000-000000000002 is already active" {
		t.Error(got)
	}
	first.say(`"kill"`)
	first.all()
	f.ask(path, `{"token_ids":[1],"stop_conditions":{"max_tokens":2},"bootstrap_info":{"bootstrap_host":"h","bootstrap_port":1,"bootstrap_room":1}}`)
	if got := f.accept().all(); len(got) != 4 {
		t.Errorf("%q", got)
	}
}

// What workers of each kind record.
func TestRolesRecords(t *testing.T) {
	for _, c := range []struct {
		change func(*dynamo.Options)
		want   map[string]int
	}{
		{func(o *dynamo.Options) { prefill(o, 0) }, map[string]int{"instances": 2, "mdc": 1, "event_channels": 3, "event_sources": 1}},
		{decode, map[string]int{"instances": 1, "mdc": 1, "event_channels": 3}},
	} {
		_, o := start(t, c.change)
		for bucket, want := range c.want {
			if got := records(t, o.Root, bucket); len(got) != want {
				t.Errorf("role %d, %s: %q", o.Engine.Role, bucket, got)
			}
		}
	}
}
