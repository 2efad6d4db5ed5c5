package modelconfig

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// plain is a model of 4 layers, 2 KV heads and heads of 8: 128 numbers.
const plain = `{"num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2, "hidden_size": 64}`

// but edits plain.
func but(from, to string) string {
	if !strings.Contains(plain, from) {
		panic("nothing to edit")
	}
	return strings.Replace(plain, from, to, 1)
}

func typed(fields string) string { return but("{", "{"+fields+", ") }

func deeper(n string) string { return but(`"num_hidden_layers": 4`, `"num_hidden_layers": `+n) }

// TestRecorded holds answers of the reference for models it has no class of.
func TestRecorded(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       int
	}{
		{"plain", plain, 256},
		{"head_dim is not looked at", typed(`"head_dim": 128`), 256},
		{"no KV heads", but(`"num_key_value_heads": 2, `, ``), 1024},
		{"KV heads null", but(`"num_key_value_heads": 2`, `"num_key_value_heads": null`), 1024},
		{"indivisible", but(`64`, `70`), 256},
		{"bfloat16", typed(`"torch_dtype": "bfloat16"`), 256},
		{"float32", typed(`"torch_dtype": "float32"`), 512},
		{"torch.float32", typed(`"torch_dtype": "torch.float32"`), 512},
		{"dtype before torch_dtype", typed(`"torch_dtype": "float32", "dtype": "int8"`), 128},
		{"dtype null", typed(`"torch_dtype": "float32", "dtype": null`), 512},
		{"dtype empty", typed(`"torch_dtype": "float32", "dtype": ""`), 256},
		{"dtype a number", typed(`"dtype": 3`), 256},
		{"float8_e4m3fn", typed(`"dtype": "float8_e4m3fn"`), 128},
		{"float8_e5m2", typed(`"dtype": "torch.float8_e5m2"`), 128},
		{"float8_e4m3fnuz", typed(`"dtype": "float8_e4m3fnuz"`), 256},
		{"fp8", typed(`"dtype": "fp8"`), 128},
		{"FP8", typed(`"dtype": "FP8"`), 256},
		{"fp8_e5m2", typed(`"dtype": "fp8_e5m2"`), 256},
		{"float64", typed(`"dtype": "float64"`), 256},
		{"the example of docs/timing.md", `{"num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "hidden_size": 1024, "torch_dtype": "bfloat16"}`, 57344},
		{"in text_config", `{"text_config": ` + plain + `}`, 256},
		{"outer dtype does not count", `{"torch_dtype": "float32", "text_config": ` + plain + `}`, 256},
		{"inner dtype counts", `{"torch_dtype": "float32", "text_config": ` + typed(`"torch_dtype": "int8"`) + `}`, 128},
		{"three levels", `{"thinker_config": {"llm_config": {"text_config": ` + plain + `}}}`, 256},
		{"outer before inner", but("{", `{"text_config": `+deeper("40")+`, `), 256},
		{"outer without layers", `{"hidden_size": 64, "num_attention_heads": 8, "text_config": ` + deeper("40") + `}`, 2560},
		{"outer with a null", `{"hidden_size": null, "num_hidden_layers": 4, "num_attention_heads": 8, "text_config": ` + deeper("40") + `}`, 2560},
		{"text before llm", `{"llm_config": ` + deeper("10") + `, "text_config": ` + deeper("20") + `, "decoder": ` + deeper("30") + `}`, 1280},
		{"llm before decoder", `{"decoder": ` + deeper("30") + `, "llm_config": ` + deeper("10") + `}`, 640},
		{"language before decoder and thinker", `{"thinker_config": ` + deeper("30") + `, "decoder": ` + deeper("10") + `, "language_config": ` + deeper("20") + `}`, 1280},
		{"depth first", `{"text_config": {"decoder": ` + deeper("20") + `}, "llm_config": ` + deeper("10") + `}`, 1280},
		{"null inside", `{"text_config": null, "llm_config": ` + plain + `}`, 256},
	} {
		got, err := Options{}.Parse("config.json", []byte(c.text))
		if err != nil || got != c.want {
			t.Errorf("%s: %d, %v; want %d", c.name, got, err, c.want)
		}
	}
}

// TestConfigs compares with the reference's answers to random configurations:
// a number, or null where it has none. KV_CONFIGS names another file of them.
func TestConfigs(t *testing.T) {
	name := "testdata/configs.jsonl.gz"
	if other := os.Getenv("KV_CONFIGS"); other != "" {
		name = other
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	counted, refused := 0, 0
	for lines := bufio.NewScanner(z); lines.Scan(); {
		var c struct {
			Config json.RawMessage
			DType  string
			Want   *int
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		got, err := Options{CacheDType: c.DType}.Parse("config.json", c.Config)
		switch {
		case c.Want == nil && err != nil:
			refused++
		case c.Want != nil && err == nil && got == *c.Want:
			counted++
		default:
			t.Errorf("%s\ngot %d, %v", lines.Bytes(), got, err)
		}
	}
	if counted < 200 || refused < 50 {
		t.Errorf("%d counted, %d refused: too few", counted, refused)
	}
}

func TestOptions(t *testing.T) {
	wide := typed(`"head_dim": 128, "torch_dtype": "float32"`)
	for _, c := range []struct {
		name, text string
		o          Options
		want       int
	}{
		{"head_dim", wide, Options{UseHeadDim: true}, 8192},
		{"head_dim absent", plain, Options{UseHeadDim: true}, 256},
		{"head_dim null", typed(`"head_dim": null`), Options{UseHeadDim: true}, 256},
		{"cache auto", wide, Options{CacheDType: "auto"}, 512},
		{"cache bfloat16", wide, Options{CacheDType: "bfloat16"}, 256},
		{"cache fp8", wide, Options{CacheDType: "fp8"}, 128},
		{"cache fp8_e4m3", wide, Options{CacheDType: "fp8_e4m3"}, 128},
		{"cache fp8_ds_mla", wide, Options{CacheDType: "fp8_ds_mla"}, 128},
		{"cache fp8_inc", wide, Options{CacheDType: "fp8_inc"}, 128},
		{"cache fp8_e5m2, two bytes as in the reference", wide, Options{CacheDType: "fp8_e5m2"}, 256},
		{"both", wide, Options{UseHeadDim: true, CacheDType: "fp8"}, 2048},
	} {
		got, err := c.o.Parse("config.json", []byte(c.text))
		if err != nil || got != c.want {
			t.Errorf("%s: %d, %v; want %d", c.name, got, err, c.want)
		}
	}
}

func TestPaths(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, fileName)
	if err := os.WriteFile(file, []byte(typed(`"head_dim": 128`)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, file} {
		if got, err := (Options{}).KVBytesPerToken(path); err != nil || got != 256 {
			t.Errorf("%s: %d, %v", path, got, err)
		}
		if got, err := (Options{UseHeadDim: true}).KVBytesPerToken(path); err != nil || got != 4096 {
			t.Errorf("%s with head_dim: %d, %v", path, got, err)
		}
	}
	empty := t.TempDir()
	big := filepath.Join(empty, "big.json")
	if err := os.WriteFile(big, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(big, 10<<30); err != nil { // sparse: takes no room
		t.Skip(err)
	}
	for path, want := range map[string]string{
		empty: filepath.Join(empty, fileName) + ": no such file; a model's directory or its config.json is accepted",
		big:   big + ": is larger than 16 MiB; a model's config.json is accepted",
	} {
		if _, err := (Options{}).KVBytesPerToken(path); err == nil || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

func TestBad(t *testing.T) {
	const whole = "; a whole number of at least 1 is accepted"
	for _, c := range []struct{ name, text, want string }{
		{"empty", ``, "line 1: unexpected end of JSON input; a JSON object is accepted"},
		{"cut off", "{\n\"a\": ", "line 2: unexpected end of JSON input; a JSON object is accepted"},
		{"a list", `[1]`, "is a JSON array; a JSON object is accepted"},
		{"null", `null`, "is null; a JSON object is accepted"},
		{"nothing", `{}`, "has no object with num_hidden_layers, num_attention_heads and hidden_size; a model's config.json is accepted"},
		{"four levels", `{"thinker_config": {"llm_config": {"decoder": {"text_config": ` + plain + `}}}}`, "has no object with num_hidden_layers, num_attention_heads and hidden_size; a model's config.json is accepted"},
		{"a list of models", `{"text_config": [` + plain + `]}`, "has no object with num_hidden_layers, num_attention_heads and hidden_size; a model's config.json is accepted"},
		{"no layers", but(`"num_hidden_layers": 4`, `"n_layer": 4`), "has no object with num_hidden_layers, num_attention_heads and hidden_size; a model's config.json is accepted"},
		{"layers 0", deeper("0"), "num_hidden_layers is 0" + whole},
		{"layers negative", deeper("-4"), "num_hidden_layers is -4" + whole},
		{"layers a float", deeper("4.0"), "num_hidden_layers is 4.0" + whole},
		{"layers a text", deeper(`"4"`), `num_hidden_layers is "4"` + whole},
		{"layers a bool", deeper("true"), "num_hidden_layers is true" + whole},
		{"layers a list", deeper("[4]"), "num_hidden_layers is an array" + whole},
		{"layers huge", deeper(strings.Repeat("9", 50)), "num_hidden_layers is a number of 50 characters" + whole},
		{"heads 0", but(`"num_attention_heads": 8`, `"num_attention_heads": 0`), "num_attention_heads is 0" + whole},
		{"KV heads 0", `{"llm_config": ` + but(`"num_key_value_heads": 2`, `"num_key_value_heads": 0`) + `}`, "llm_config.num_key_value_heads is 0" + whole},
		{"small", but(`64`, `4`), "hidden_size is 4 for 8 attention heads; at least one per head is accepted"},
		{"overflow", deeper("9000000000000000000"), "9000000000000000000 layers, 2 KV heads of 8 take more bytes per token than can be counted; a model's config.json is accepted"},
	} {
		_, err := Options{}.Parse("config.json", []byte(c.text))
		if err == nil || err.Error() != "config.json: "+c.want {
			t.Errorf("%s: %v\nwant config.json: %s", c.name, err, c.want)
		}
	}
	if _, err := (Options{UseHeadDim: true}).Parse("config.json", []byte(typed(`"head_dim": 0.5`))); err == nil || err.Error() != "config.json: head_dim is 0.5"+whole {
		t.Error(err)
	}
}

// FuzzParse: whatever is given, the answer is a count or a sentence.
func FuzzParse(f *testing.F) {
	f.Add([]byte(plain), false, "auto")
	f.Add([]byte(`{"torch_dtype": "float32", "text_config": `+typed(`"head_dim": 128`)+`}`), true, "fp8")
	f.Fuzz(func(t *testing.T, data []byte, useHeadDim bool, dtype string) {
		n, err := Options{UseHeadDim: useHeadDim, CacheDType: dtype}.Parse("config.json", data)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "config.json: ") || strings.ContainsAny(err.Error(), "\n\r\x1b") {
				t.Fatalf("no sentence: %q", err)
			}
			return
		}
		if n <= 0 {
			t.Fatalf("%d bytes", n)
		}
	})
}
