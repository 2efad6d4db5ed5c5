package dynamo_test

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/live/card"
	"github.com/dryserve/dryserve/host/native/live/dynamo"
	"github.com/dryserve/dryserve/host/native/live/handoff"
	"github.com/dryserve/dryserve/internal/stand"
)

// reference starts a worker of the reference's mocker.
func reference(t *testing.T, root, namespace, path, model string, args ...string) {
	t.Helper()
	env := []string{
		"DYN_FILE_KV=" + root, "DYN_NAMESPACE=" + namespace, "DYN_LOG=error", "DYN_TCP_RPC_HOST=127.0.0.1", "DYN_EVENT_PLANE_HOST=127.0.0.1",
		"DYN_HTTP_RPC_HOST=127.0.0.1", "DYN_SELF_HOST_METADATA=0", "HOME=" + t.TempDir(), "HF_HUB_OFFLINE=1",
	}
	stand.Run(t, env, stand.Python(t), append([]string{
		"-m", "dynamo.mocker", "--discovery-backend", "file", "--model-path", path, "--model-name", model, "--block-size", "16", "--num-gpu-blocks-override", "1000", "--speedup-ratio", "1e9",
	}, args...)...)
}

// fleet is a pair of workers behind a frontend.
type fleet struct {
	engine           config.Backend
	boot             bool
	prompts, decodes bool // ours; else the reference's
	first, second    *dynamo.Site
}

func (f *fleet) name() string {
	who := map[bool]string{true: "o", false: "r"}
	way := map[bool]string{true: "boot", false: "direct"}
	return []string{"vllm", "trtllm", "sglang"}[word(f.engine)] + "-" + way[f.boot] + "-" + who[f.prompts] + who[f.decodes]
}

func word(b config.Backend) int {
	return map[config.Backend]int{config.VLLM: 0, config.TRTLLM: 1, config.SGLang: 2}[b]
}

// launch starts the pair in a namespace of its own.
func (f *fleet) launch(t *testing.T, root, path string) {
	t.Helper()
	port := 0
	if f.boot {
		port = stand.Port(t)
	}
	kvBytes, bandwidth := uint64(1_000_000), 1e6
	common := func(o *dynamo.Options) {
		o.Root, o.Namespace, o.Model = root, f.name(), card.Model{Name: f.name(), Path: path}
		o.Engine.Backend, o.Engine.BlockSize = f.engine, 16
		o.System, o.Health = "127.0.0.1:0", dynamo.Health{Ready: true, HealthPath: "/health", Living: "/live"}
		o.Handoff.Timing = handoff.Timing{BytesPerToken: &kvBytes, BandwidthGBs: &bandwidth}
	}
	engine := []string{"--engine-type", strings.Split(f.name(), "-")[0], "--kv-transfer-bandwidth", "1e6", "--kv-bytes-per-token", "1000000"}
	if f.prompts {
		f.first, _ = start(t, func(o *dynamo.Options) { prefill(o, port); common(o) })
	} else {
		args := append([]string{"--disaggregation-mode", "prefill"}, engine...)
		if f.boot {
			args = append(args, "--bootstrap-ports", strconv.Itoa(port))
		}
		reference(t, root, f.name(), path, f.name(), args...)
	}
	if f.decodes {
		f.second, _ = start(t, func(o *dynamo.Options) { decode(o); common(o) })
	} else {
		reference(t, root, f.name(), path, f.name(), append([]string{"--disaggregation-mode", "decode"}, engine...)...)
	}
}

// served is how many requests a site of ours has served, 0 if it is not ours.
func served(t *testing.T, s *dynamo.Site) int {
	t.Helper()
	if s == nil {
		return 0
	}
	resp, err := http.Get("http://" + s.System() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "dynamo_component_requests_total{") && strings.Contains(line, `dynamo_endpoint="generate"`) {
			_, n, _ := strings.Cut(line, "} ")
			count, err := strconv.Atoi(strings.TrimSpace(n))
			if err != nil {
				t.Fatal(err)
			}
			return count
		}
	}
	return 0
}

// An unchanged frontend has prompts computed by one worker and decoded by
// another: both ours, or one the reference's, whichever way prompts are handed
// over.
func TestFrontendDisaggregated(t *testing.T) {
	root, path := t.TempDir(), stand.Model(t, "../card/testdata/model")
	front := stand.NewFrontend(t, "kv", "DYN_DISCOVERY_BACKEND=file", "DYN_FILE_KV="+root)
	for _, f := range []fleet{
		{boot: false, prompts: true, decodes: true}, {boot: false, prompts: true}, {boot: false, decodes: true},
		{boot: true, prompts: true, decodes: true}, {boot: true, prompts: true}, {boot: true, decodes: true},
		{engine: config.SGLang, prompts: true, decodes: true}, {engine: config.SGLang, boot: true, prompts: true, decodes: true},
		{engine: config.SGLang, boot: true, prompts: true}, {engine: config.SGLang, boot: true, decodes: true},
		{engine: config.TRTLLM, prompts: true, decodes: true},
	} {
		// One pair after the other: a frontend needs a watch of the file system
		// for everything it follows, and a machine has few.
		t.Run(f.name(), func(t *testing.T) {
			f.launch(t, root, path)
			hands(t, front, &f)
			first, second := served(t, f.first), served(t, f.second)
			for i := range 3 {
				// A prompt that begins as the one before did.
				prompt := strings.Repeat("Some prompt or other. ", 8+8*i)
				status, c := front.Ask(`{"model":"` + f.name() + `","max_tokens":5,"prompt":"` + prompt + `"}`)
				if status != 200 || len(c.Choices) != 1 || len(strings.Fields(c.Choices[0].Text)) != 5 || c.Choices[0].Finish != "length" || c.Usage.Prompt != len(prompt) || c.Usage.Answer != 5 {
					t.Fatalf("request %d: status %d, %+v", i, status, c)
				}
			}
			if n := served(t, f.first) - first; f.prompts && n != 3 {
				t.Errorf("the worker that computes prompts was asked %d times", n)
			}
			if n := served(t, f.second) - second; f.decodes && n != 3 {
				t.Errorf("the worker that decodes was asked %d times", n)
			}
		})
	}
}

// hands waits until the frontend knows of both workers: it has a prompt computed
// by the one and decoded by the other.
func hands(t *testing.T, front *stand.Frontend, pair *fleet) {
	t.Helper()
	front.Model(pair.name(), true)
	stand.Until(t, "a prompt that is handed over", func() bool {
		status, c := front.Ask(`{"model":"` + pair.name() + `","max_tokens":2,"prompt":"x"}`)
		return status == 200 && c.Usage.Answer == 2 && (!pair.prompts || served(t, pair.first) > 0)
	})
}
