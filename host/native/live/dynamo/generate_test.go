package dynamo_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/live/dynamo"
	"github.com/dryserve/dryserve/internal/stand"
)

// A request of SGLang's /generate is answered in SGLang's words beside Dynamo's,
// and its last token says that it is the last.
func TestGenerateNative(t *testing.T) {
	s, o := start(t, nil)
	f, path := newFrontend(t, s.Address()), endpoint(t, o.Root, "generate")
	f.ask(path, `{"token_ids":[1,2,3],"stop_conditions":{"max_tokens":2},"extra_args":{"sglang_tito":{}}}`)
	got := f.accept().all()
	if len(got) != 3 || !strings.Contains(got[0], `"finish_reason":null,"prompt_tokens":3,"completion_tokens":1}}}}`) ||
		!strings.Contains(got[1], `"finish_reason":{"type":"length"},"prompt_tokens":3,"completion_tokens":2}}}}`) || !strings.Contains(got[1], `"id":"00000000-0000-4000-8000-000000000001"`) {
		t.Errorf("%q", got)
	}
	f.ask(path, `{"token_ids":[1],"stop_conditions":{"max_tokens":2},"extra_args":{"sglang_tito":{"top_logprobs_num":77}}}`)
	if got := f.accept().all(); len(got) != 2 || !strings.HasSuffix(got[0], `"diagnostic":"top_logprobs_num must be between 0 and 20"}},"complete_final":false}`) {
		t.Errorf("%q", got)
	}
	f.ask(path, `{"token_ids":[`+strings.Repeat("1,", 5000)+`1],"stop_conditions":{"max_tokens":2},"extra_args":{"sglang_tito":{"rid":"x"}}}`)
	if got := f.accept().all(); len(got) != 2 || !strings.Contains(got[0], `"meta_info":{"id":"x","finish_reason":{"type":"abort","message":"request rejected: request exceeds worker admission limits"}`) {
		t.Errorf("%q", got)
	}
}

// An unchanged frontend offers /generate for workers that say they know it.
func TestFrontendGenerate(t *testing.T) {
	root := t.TempDir()
	front := stand.NewFrontend(t, "round-robin", "DYN_DISCOVERY_BACKEND=file", "DYN_FILE_KV="+root, "DYN_SGLANG_ENABLE_GENERATE=1")
	path := stand.Model(t, "../card/testdata/model")
	start(t, func(o *dynamo.Options) {
		o.Root, o.Model.Path, o.Model.Generates, o.Engine.Backend, o.Engine.BlockSize = root, path, true, config.SGLang, 16
	})
	front.Model("m1", true)
	resp, err := http.Post(front.URL+"/generate", "application/json", strings.NewReader(
		`{"input_ids":[1,2,3,4,5],"stream":true,"rid":"r","return_logprob":true,"top_logprobs_num":2,"logprob_start_len":3,"sampling_params":{"max_new_tokens":3}}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for line := range strings.Lines(string(text)) {
		if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok {
			list = append(list, data)
		}
	}
	if len(list) != 4 || list[3] != "[DONE]" {
		t.Fatalf("status %d: %q", resp.StatusCode, list)
	}
	var last struct {
		IDs  []uint32 `json:"output_ids"`
		Meta struct {
			ID         string
			Finish     struct{ Type string } `json:"finish_reason"`
			Prompt     int                   `json:"prompt_tokens"`
			Completion int                   `json:"completion_tokens"`
			Input      [][]any               `json:"input_token_logprobs"`
			Top        [][][]any             `json:"output_top_logprobs"`
		} `json:"meta_info"`
	}
	if err := json.Unmarshal([]byte(list[2]), &last); err != nil {
		t.Fatal(err)
	}
	m := last.Meta
	if len(last.IDs) != 1 || m.ID != "r" || m.Finish.Type != "length" || m.Prompt != 5 || m.Completion != 3 || len(m.Input) != 2 || m.Input[0][0] != nil || m.Input[1][0] != -0.6000000000000001 || len(m.Top) != 1 || len(m.Top[0]) != 2 {
		t.Errorf("%s", list[2])
	}
}
