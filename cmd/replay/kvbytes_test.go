package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// modelJSON is a model of 57,344 bytes of KV cache per token, and of 114,688
// with its head_dim.
const modelJSON = `{"num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "hidden_size": 1024, "head_dim": 128, "torch_dtype": "bfloat16"}`

// Engine arguments that say another number show which one a flag gives: an
// aggregated run has no use for it.
func TestKVBytesPerToken(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "t.jsonl", one)
	if err := os.Mkdir(filepath.Join(dir, "model"), 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "model/config.json", modelJSON)
	const says = `--extra-engine-args:1:43: engine.kv_transfer_bytes_per_token is the number 1, but `
	for flags, want := range map[string]string{
		"--model-path model":                                     "--model-path gives 57344; one number is accepted",
		"--model-path model/config.json":                         "--model-path gives 57344; one number is accepted",
		"--model-path model --use-head-dim":                      "--model-path gives 114688; one number is accepted",
		"--model-path model --kv-cache-dtype auto":               "--model-path gives 57344; one number is accepted",
		"--model-path model --kv-cache-dtype fp8":                "--model-path gives 28672; one number is accepted",
		"--model-path model --kv-cache-dtype fp8 --use-head-dim": "--model-path gives 57344; one number is accepted",
		"--model-path model --kv-cache-dtype fp8_e5m2":           "--model-path gives 57344; one number is accepted",
		"--kv-bytes-per-token 5":                                 "--kv-bytes-per-token gives 5; one number is accepted",
	} {
		args := append([]string{"t.jsonl"}, strings.Fields(flags)...)
		ok(t, invoke(t, dir, args...))
		expect(t, invoke(t, dir, append(args, "--extra-engine-args", `{"engine":{"kv_transfer_bytes_per_token": 1}}`)...), 1, says+want)
	}
	for flags, c := range map[string]struct {
		status int
		want   string
	}{
		"--model-path none":                         {1, "--model-path: none: no such file; a model's directory or its config.json is accepted"},
		"--model-path t.jsonl":                      {1, "--model-path: t.jsonl: has no object with num_hidden_layers, num_attention_heads and hidden_size; a model's config.json is accepted"},
		"--model-path=":                             {1, "--model-path is empty; a model's directory or its config.json is accepted"},
		"--kv-bytes-per-token 0":                    {1, "--kv-bytes-per-token is 0; a whole number of at least 1 is accepted"},
		"--kv-bytes-per-token x":                    {2, `--kv-bytes-per-token is "x"; a whole number is accepted`},
		"--kv-bytes-per-token 5 --model-path model": {1, "--kv-bytes-per-token and --model-path both give the bytes of KV cache per token; one is accepted"},
		"--kv-cache-dtype fp8":                      {1, "--kv-cache-dtype says how to count for --model-path, which is not given; both or neither are accepted"},
		"--use-head-dim":                            {1, "--use-head-dim says how to count for --model-path, which is not given; both or neither are accepted"},
		"--model-path model --kv-cache-dtype int8":  {2, `--kv-cache-dtype is "int8"; auto or bfloat16 or fp8 or fp8_ds_mla or fp8_e4m3 or fp8_e5m2 or fp8_inc is accepted`},
	} {
		expect(t, invoke(t, dir, append([]string{"t.jsonl"}, strings.Fields(flags)...)...), c.status, c.want)
	}
}
