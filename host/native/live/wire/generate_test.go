package wire_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dryserve/dryserve/host/native/live/wire"
)

// The reference's own frames of SGLang's /generate, byte for byte.
func TestGoldenGenerate(t *testing.T) {
	text, err := os.ReadFile("testdata/generate.json")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	if err := json.Unmarshal(text, &want); err != nil || len(want) != 5 {
		t.Fatalf("%v, %d frames", err, len(want))
	}
	native := func(n int) *wire.Native {
		return &wire.Native{Ask: &wire.Generate{Logprobs: true, Top: 1, Start: 1}, ID: "x", Prompt: []uint32{5, 6, 7}, Answer: n}
	}
	first := wire.Output{Token: 1943, HasToken: true, Usage: &wire.Usage{Prompt: 3, Answer: 1}, Native: native(1)}
	last := wire.Output{Token: 1487, HasToken: true, Finish: "length", Usage: &wire.Usage{Prompt: 3, Answer: 2}, Native: native(2)}
	for i, got := range [][]byte{
		wire.AppendOutput(nil, wire.MessagePack, first), wire.AppendOutput(nil, wire.MessagePack, last), wire.AppendFinal(nil, wire.MessagePack),
		wire.AppendInvalid(nil, wire.MessagePack, "top_logprobs_num must be between 0 and 20", ""), wire.AppendFinal(nil, wire.MessagePack),
	} {
		if got := hex.EncodeToString(got[24:]); got != want[i] {
			t.Errorf("frame %d (-reference +ours):\n%s", i, cmp.Diff(want[i], got))
		}
	}
}

// The same as JSON: alternatives, a request that is refused, a prompt without.
func TestGenerateJSON(t *testing.T) {
	body := func(o wire.Output) string {
		_, data, err := wire.SplitTwoPart(wire.AppendOutput(nil, wire.JSON, o))
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(data, &v); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		_, rest, _ := strings.Cut(string(data), `"engine_data":`)
		return strings.TrimSuffix(rest, `}},"complete_final":false}`)
	}
	prompt := []uint32{5, 6, 7}
	for want, o := range map[string]wire.Output{
		`{"sglang_response":{"output_ids":[1722],"meta_info":{"id":"a","finish_reason":null,"prompt_tokens":3,"completion_tokens":1,"output_token_logprobs":[[-0.30000000000000004,1722,null]],"output_top_logprobs":[[[-0.30000000000000004,1722,null],[-0.41000000000000003,1723,null],[-0.52,1724,null]]]}}}`: {Token: 1722, HasToken: true, Native: &wire.Native{Ask: &wire.Generate{Logprobs: true, Top: 3, Start: -1}, ID: "a", Prompt: prompt, Answer: 1}},
		`{"sglang_response":{"output_ids":[],"meta_info":{"id":"b","finish_reason":{"type":"abort","message":"no"},"prompt_tokens":3,"completion_tokens":0,"output_token_logprobs":[]}}}`:                                                                                                                        {Failure: "no", Native: &wire.Native{Ask: &wire.Generate{Logprobs: true, Start: -1}, ID: "b", Prompt: prompt}},
		`{"sglang_response":{"output_ids":[9],"meta_info":{"id":"c","finish_reason":{"type":"length"},"prompt_tokens":3,"completion_tokens":4}}}`:                                                                                                                                                                {Token: 9, HasToken: true, Finish: "length", Native: &wire.Native{Ask: &wire.Generate{Top: 3, Start: 0}, ID: "c", Prompt: prompt, Answer: 4}},
		`{"sglang_response":{"output_ids":[9],"meta_info":{"id":"d","finish_reason":{"type":"length"},"prompt_tokens":3,"completion_tokens":4,"output_token_logprobs":[[-1.0,9,null]],"input_token_logprobs":[]}}}`:                                                                                              {Token: 9, HasToken: true, Finish: "length", Native: &wire.Native{Ask: &wire.Generate{Logprobs: true, Start: 9}, ID: "d", Prompt: prompt, Answer: 4}},
	} {
		if got := body(o); got != want {
			t.Errorf("(-want +got):\n%s", cmp.Diff(want, got))
		}
	}
}

// What requests ask for, and how they can be wrong.
func TestParseGenerate(t *testing.T) {
	for text, want := range map[string]wire.Generate{
		`{}`: {Start: -1}, `{"rid":"x","future":[1]}`: {ID: "x", Start: -1}, `{"rid":null,"return_logprob":null}`: {Start: -1},
		`{"return_logprob":true,"top_logprobs_num":20,"logprob_start_len":3}`: {Logprobs: true, Top: 20, Start: 3},
	} {
		p, err := wire.DecodePreprocessed(wire.JSON, []byte(`{"token_ids":[1],"extra_args":{"sglang_tito":`+text+`}}`))
		if err != nil || p.Generate == nil || *p.Generate != want {
			t.Errorf("%s: %v, %+v", text, err, p.Generate)
		}
	}
	for text, want := range map[string]string{
		`"text"`: "invalid extra_args.sglang_tito: ", `{"return_logprob":"x"}`: "invalid extra_args.sglang_tito: ",
		`{"top_logprobs_num":21}`: "top_logprobs_num must be between 0 and 20", `{"top_logprobs_num":-1}`: "top_logprobs_num must be between 0 and 20", `{"logprob_start_len":-2}`: "logprob_start_len must be -1 or greater",
	} {
		var unusable wire.Unusable
		if _, err := wire.DecodePreprocessed(wire.JSON, []byte(`{"token_ids":[1],"extra_args":{"sglang_tito":`+text+`}}`)); !errors.As(err, &unusable) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	const head = "\x82\xa9token_ids\x90\xaaextra_args"
	for text, want := range map[string]string{
		"\xc0": "none", "\x80": "none", "\x81\xa1x\x01": "none", "\x81\xabsglang_tito\xc0": "none", "\x81\xabsglang_tito\x81\xa3rid\xa1y": "y", "\x81\xabsglang_tito\x01": "wrong",
	} {
		p, err := wire.DecodePreprocessed(wire.MessagePack, []byte(head+text))
		got := "none"
		switch {
		case err != nil:
			got = "wrong"
		case p.Generate != nil:
			got = p.Generate.ID
		}
		if got != want {
			t.Errorf("%q: %v, %+v", text, err, p.Generate)
		}
	}
}
