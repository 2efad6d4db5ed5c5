package stand

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Frontend is Dynamo's, unchanged.
type Frontend struct {
	*Program
	URL string
}

// NewFrontend starts one that finds workers as variables say: DYN_DISCOVERY_BACKEND
// and those that belong to it.
func NewFrontend(t testing.TB, mode string, env ...string) *Frontend {
	t.Helper()
	port := strconv.Itoa(Port(t))
	env = append([]string{"DYN_LOG=error", "DYN_TCP_RPC_HOST=127.0.0.1", "DYN_TCP_RESPONSE_STREAM_HOST=127.0.0.1", "HOME=" + t.TempDir(), "HF_HUB_OFFLINE=1"}, env...)
	f := &Frontend{URL: "http://127.0.0.1:" + port}
	f.Program = Run(t, env, Python(t), "-m", "dynamo.frontend", "--http-host", "127.0.0.1", "--http-port", port, "--router-mode", mode)
	f.Name = "the frontend (" + mode + ")"
	return f
}

// client asks anew each time: a frontend may have been started again.
var client = http.Client{Timeout: Long, Transport: &http.Transport{DisableKeepAlives: true}}

// Model waits until a model is served, or is no more.
func (f *Frontend) Model(name string, there bool) {
	f.t.Helper()
	Until(f.t, fmt.Sprintf("the model %s is served: %v", name, there), func() bool {
		resp, err := client.Get(f.URL + "/v1/models")
		if err != nil {
			return false
		}
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		return strings.Contains(string(text), `"`+name+`"`) == there
	})
}

// Completion is what a frontend answers.
type Completion struct {
	Message string
	Choices []struct {
		Text   string
		Finish string `json:"finish_reason"`
	}
	Usage struct {
		Prompt  int `json:"prompt_tokens"`
		Answer  int `json:"completion_tokens"`
		Details struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	}
	NVExt struct {
		Worker struct {
			Prefill uint64 `json:"prefill_worker_id"`
			Decode  uint64 `json:"decode_worker_id"`
		} `json:"worker_id"`
	} `json:"nvext"`
}

// Ask asks for a whole completion. The status is 0 if there is no answer.
func (f *Frontend) Ask(body string) (int, Completion) {
	f.t.Helper()
	var c Completion
	resp, err := client.Post(f.URL+"/v1/completions", "application/json", strings.NewReader(body))
	if err != nil {
		c.Message = err.Error()
		return 0, c
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		c.Message = fmt.Sprintf("%v: %s", err, text)
	}
	return resp.StatusCode, c
}

// Stream asks for a completion in pieces. The answer is the caller's to close; ctx
// ends it, too.
func (f *Frontend) Stream(ctx context.Context, body string) io.ReadCloser {
	f.t.Helper()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, f.URL+"/v1/completions", strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(q)
	if err != nil {
		f.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		f.t.Fatalf("status %d: %s", resp.StatusCode, text)
	}
	return resp.Body
}

// Pieces reads a stream to its end: the number of pieces of text that begin as
// said, and whether it is complete.
func Pieces(t testing.TB, r io.ReadCloser, begin string) (n int, complete bool) {
	t.Helper()
	defer r.Close()
	text, err := io.ReadAll(r)
	return strings.Count(string(text), `"text":"`+begin), err == nil && bytes.HasSuffix(text, []byte("data: [DONE]\n\n"))
}

// Model writes a small model, with a visible word for each id that answers have,
// out of the one whose files are in a directory.
func Model(t testing.TB, from string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"config.json", "tokenizer.json", "tokenizer_config.json"} {
		text, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			t.Fatal(err)
		}
		if name == "tokenizer.json" {
			var doc map[string]any
			if err := json.Unmarshal(text, &doc); err != nil {
				t.Fatal(err)
			}
			vocab := doc["model"].(map[string]any)["vocab"].(map[string]any)
			for i := 259; i < 2048; i++ {
				vocab[fmt.Sprint("Ġw", i)] = i
			}
			if text, err = json.Marshal(doc); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Soon is a context that ends before a test does.
func Soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), Long)
	t.Cleanup(cancel)
	return ctx
}

// Pause is how long events need to arrive.
const Pause = 100 * time.Millisecond
