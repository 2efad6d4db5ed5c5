package dynamo_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/live/card"
	"github.com/dryserve/dryserve/host/native/live/dynamo"
)

// python is one that has ai-dynamo.
func python(t *testing.T) string {
	t.Helper()
	path := os.Getenv("ORACLE_PYTHON")
	if path == "" {
		path, _ = filepath.Abs("../../../../.oracle/bin/python")
	}
	if exec.Command(path, "-c", "import dynamo.frontend").Run() != nil {
		t.Skip("no Python with ai-dynamo: `internal/oracle/setup.sh .oracle` installs it, ORACLE_PYTHON names one; the frontend is not tested")
	}
	return path
}

// front is a running frontend of the reference.
type front struct {
	t    *testing.T
	url  string
	said *bytes.Buffer
}

// newFront starts a frontend that finds workers in a directory.
func newFront(t *testing.T, root, mode string) *front {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	cmd := exec.Command(python(t), "-m", "dynamo.frontend", "--http-host", "127.0.0.1", "--http-port", strconv.Itoa(port), "--router-mode", mode, "--discovery-backend", "file")
	cmd.Env = append(os.Environ(), "DYN_FILE_KV="+root, "DYN_LOG=error", "DYN_TCP_RPC_HOST=127.0.0.1", "DYN_TCP_RESPONSE_STREAM_HOST=127.0.0.1", "HOME="+t.TempDir(), "HF_HUB_OFFLINE=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	f := &front{t: t, url: "http://127.0.0.1:" + strconv.Itoa(port), said: &bytes.Buffer{}}
	cmd.Stdout, cmd.Stderr = f.said, f.said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the frontend (%s) said:\n%s", mode, f.said)
		}
	})
	return f
}

// model waits until the model is served, or is no more.
func (f *front) model(there bool) {
	f.t.Helper()
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		resp, err := http.Get(f.url + "/v1/models")
		if err != nil {
			continue
		}
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if strings.Contains(string(text), `"m1"`) == there {
			return
		}
	}
	f.t.Fatalf("the model does not become %v", there)
}

type completion struct {
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
}

// ask asks for a whole completion.
func (f *front) ask(body string) (int, completion) {
	f.t.Helper()
	client := http.Client{Timeout: 60 * time.Second}
	resp, err := client.Post(f.url+"/v1/completions", "application/json", strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	defer resp.Body.Close()
	var c completion
	if err := json.NewDecoder(resp.Body).Decode(&c); err != nil {
		f.t.Fatal(err)
	}
	return resp.StatusCode, c
}

// visible is the small model with words for the ids of answers.
func visible(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"config.json", "tokenizer.json", "tokenizer_config.json"} {
		text, err := os.ReadFile("../card/testdata/model/" + name)
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

// An unchanged frontend serves our workers: whole and streamed, with the KV
// router and in turn, two ranks each; what is cached is found; a client that
// goes frees its slot; workers that leave are not asked any more.
func TestFrontend(t *testing.T) {
	root := t.TempDir()
	kv, turn := newFront(t, root, "kv"), newFront(t, root, "round-robin")
	path := visible(t)
	site, _ := start(t, func(o *dynamo.Options) {
		o.Root, o.Workers, o.Engine.DPSize, o.Engine.BlockSize, o.Model.Path = root, 4, 2, 16, path
	})
	for _, f := range []*front{kv, turn} {
		f.model(true)
	}
	prompt := strings.Repeat("Some prompt or other. ", 20)
	body := `{"model":"m1","max_tokens":5,"prompt":"` + prompt + `"}`
	for i := range 6 {
		status, c := kv.ask(body)
		cached := 0
		if i > 0 {
			cached = len(prompt) / 16 * 16
		}
		if status != 200 || len(strings.Fields(c.Choices[0].Text)) != 5 || c.Choices[0].Finish != "length" || c.Usage.Prompt != len(prompt) || c.Usage.Answer != 5 || c.Usage.Details.Cached != cached {
			t.Fatalf("request %d: status %d, %+v", i, status, c)
		}
		time.Sleep(50 * time.Millisecond) // for the events
	}
	for range 8 {
		if status, c := turn.ask(body); status != 200 || c.Usage.Answer != 5 {
			t.Fatalf("in turn: status %d, %+v", status, c)
		}
	}
	if status, c := kv.ask(`{"model":"m1","prompt":"a"}`); status != 400 || !strings.Contains(c.Message, "is required by the mocker worker") {
		t.Errorf("without a length: status %d, %+v", status, c)
	}
	if status, _ := kv.ask(`{"model":"m1","max_tokens":5,"prompt":"` + strings.Repeat("a", 17_000) + `"}`); status != 500 {
		t.Errorf("a prompt that is too long: status %d", status)
	}
	resp, err := http.Post(turn.url+"/v1/completions", "application/json", strings.NewReader(`{"model":"m1","max_tokens":7,"prompt":"a","stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || strings.Count(string(text), `"text":" w`) != 7 || !strings.HasSuffix(string(text), "data: [DONE]\n\n") {
		t.Errorf("%v: %s", err, text)
	}
	site.Close()
	for _, f := range []*front{kv, turn} {
		f.model(false)
	}

	// One slot, in real time: a client that goes gives it back.
	site, _ = start(t, func(o *dynamo.Options) {
		slow(o)
		o.Root, o.Model = root, card.Model{Name: "m1", Path: path}
		o.Engine.Backend = config.TRTLLM
	})
	defer site.Close()
	kv.model(true)
	resp, err = http.Post(kv.url+"/v1/completions", "application/json", strings.NewReader(`{"model":"m1","max_tokens":100000,"prompt":"a","stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := resp.Body.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if status, c := kv.ask(`{"model":"m1","max_tokens":2,"prompt":"b"}`); status != 200 || c.Usage.Answer != 2 {
		t.Errorf("after a client has gone: status %d, %+v", status, c)
	}
}
