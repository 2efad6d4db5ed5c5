package tokenizer_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dryserve/dryserve/host/native/live/tokenizer"
)

// Pipelines as usual models have them, beside the tokenizers package
// (testdata/make.py).
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.cases.json")
	if err != nil || len(files) != 9 {
		t.Fatalf("%v, %d files", err, len(files))
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".cases.json")
		k, err := tokenizer.Load("testdata/" + name + ".json")
		if err != nil {
			t.Error(err)
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var cases []struct {
			Text, Decoded string
			IDs           []uint32
		}
		if err := json.Unmarshal(text, &cases); err != nil || len(cases) != 59 {
			t.Fatalf("%v, %d cases", err, len(cases))
		}
		for _, c := range cases {
			if got := k.Encode(nil, c.Text); !slices.Equal(got, c.IDs) {
				t.Errorf("%s: %.60q is %v, want %v", name, c.Text, got, c.IDs)
			}
			// A decoder of a whole text takes the first space away.
			got := k.Decode(c.IDs)
			if got != c.Decoded && strings.TrimPrefix(got, " ") != c.Decoded {
				t.Errorf("%s: %v is %.60q, want %.60q", name, c.IDs, got, c.Decoded)
			}
		}
	}
}

func TestBuiltin(t *testing.T) {
	k := tokenizer.Builtin()
	for text, want := range map[string][]uint32{
		"":                       nil,
		"Hé\n":                   {'H', 0xc3, 0xa9, '\n'},
		" badefi badefx bababa":  {1012, ' ', 'b', 'a', 'd', 'e', 'f', 'x', 1000},
		"<|im_start|>a<|im_end|": {257, 'a', '<', '|', 'i', 'm', '_', 'e', 'n', 'd', '|'},
		"<|endoftext|>":          {256},
		"x susupo susupox":       {'x', 1998, 1998, 'x'},
	} {
		got := k.Encode(nil, text)
		if !slices.Equal(got, want) {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
		if back := k.Decode(got); back != strings.NewReplacer("<|im_start|>", "", "<|endoftext|>", "").Replace(text) {
			t.Errorf("%q comes back as %q", text, back)
		}
	}
	if w := k.Words(); len(w) != 1000 || w[0] != 1000 || k.Size() != 2000 {
		t.Errorf("%d words", len(w))
	}
	if id, ok := k.Special("<|im_end|>"); id != 258 || !ok {
		t.Errorf("<|im_end|> is %d, %v", id, ok)
	}
	for _, id := range []uint32{256, 500, 2000, 1 << 31} {
		if p := k.Piece(id); p != "" {
			t.Errorf("%d is %q", id, p)
		}
	}
}

// A decoder gives whole characters, whatever the tokens.
func TestDecoder(t *testing.T) {
	k := tokenizer.Builtin()
	for text, want := range map[string][]string{
		"é🎉!":        {"", "é", "", "", "", "🎉", "!", ""},
		"\xc3x":      {"", "\uFFFDx", ""},
		"\xff":       {"\uFFFD", ""},
		"\xf0\x9f":   {"", "", "\uFFFD"},
		"\x80\xc3":   {"\uFFFD", "", "\uFFFD"},
		"\xf0\x9fab": {"", "", "\uFFFDa", "b", ""},
	} {
		d := k.Decoder()
		var got []string
		for i := range len(text) {
			got = append(got, d.Add(uint32(text[i])))
		}
		if got = append(got, d.Flush()); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestBadFiles(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		`{`:                                 `it is not JSON; a tokenizer.json is accepted`,
		`[]`:                                `the whole is of the JSON type array; what a tokenizer.json has there is accepted`,
		`{}`:                                `model is missing; a tokenizer.json is accepted`,
		`{"model":{"type":"Unigram"}}`:      `model.type is "Unigram"; BPE is accepted`,
		`{"model":{"dropout":0.1}}`:         `model.dropout is set; null is accepted`,
		`{"model":{"vocab":{}}}`:            `model.vocab is not a vocabulary; an object of tokens and their ids is accepted`,
		`{"model":{"vocab":{"a":9e9}}}`:     `model.vocab is not a vocabulary; an object of tokens and their ids is accepted`,
		`{"model":{"vocab":{"a":5e6}}}`:     `model.vocab is not a vocabulary; an object of tokens and their ids is accepted`,
		`{"model":{"vocab":{"a":5000000}}}`: `model.vocab: the id of "a" is 5000000; 4194304 at most is accepted`,
		`{"model":{"vocab":{"a":0},"unk_token":"b"}}`:                                                                              `model.unk_token is "b", which model.vocab lacks`,
		`{"model":{"vocab":{"a":0},"merges":["a b"]}}`:                                                                             `model.merges[0] is "\"a b\""; two tokens of model.vocab that are one there as well are accepted`,
		`{"model":{"vocab":{"a":0}},"normalizer":{"type":"BertNormalizer"}}`:                                                       `normalizer: type is "BertNormalizer"; Sequence, NFC, NFD, NFKC, NFKD, Lowercase, Prepend or Replace is accepted`,
		`{"model":{"vocab":{"a":0}},"normalizer":{"type":"Replace","pattern":{"Regex":"a"}}}`:                                      `normalizer: Replace has a pattern that is no text; a text is accepted`,
		`{"model":{"vocab":{"a":0}},"pre_tokenizer":{"type":"Whitespace"}}`:                                                        `pre_tokenizer: type is "Whitespace"; Sequence, ByteLevel, Split, Digits or Metaspace is accepted`,
		`{"model":{"vocab":{"a":0}},"pre_tokenizer":{"type":"Split","pattern":{"Regex":"("},"behavior":"Isolated"}}`:               `pre_tokenizer: the expression "(" cannot be read`,
		`{"model":{"vocab":{"a":0}},"pre_tokenizer":{"type":"Split","behavior":"MergedWithNext"}}`:                                 `pre_tokenizer: Split has the behavior "MergedWithNext"; Isolated, or Removed with invert, is accepted`,
		`{"model":{"vocab":{"a":0}},"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"ByteLevel"},{"type":"Digits"}]}}`: `pre_tokenizer: "Digits" stands behind ByteLevel; ByteLevel at the end is accepted`,
		`{"model":{"vocab":{"a":0}},"post_processor":{"type":"BertProcessing"}}`:                                                   `post_processor: type is "BertProcessing"; Sequence, ByteLevel or TemplateProcessing is accepted`,
		`{"model":{"vocab":{"a":0}},"added_tokens":[{"id":3,"content":""}]}`:                                                       `added_tokens: the content of id 3 is empty; a text is accepted`,
	} {
		path := filepath.Join(dir, "tokenizer.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := tokenizer.Load(dir); err == nil || err.Error() != path+": "+want {
			t.Errorf("%s\ngot  %v\nwant %s: %s", text, err, path, want)
		}
	}
	if _, err := tokenizer.Load(dir + "/none"); err == nil || err.Error() != dir+"/none: no such file or directory; a directory of a model on this machine is accepted" {
		t.Error(err)
	}
	empty := t.TempDir()
	if _, err := tokenizer.Load(empty); err == nil || err.Error() != empty+"/tokenizer.json: no such file or directory; a model's tokenizer.json is accepted" {
		t.Error(err)
	}
}

// No file and no text makes it panic; ids stay in the vocabulary.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"letters", "first"} {
		text, err := os.ReadFile("testdata/" + name + ".json")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text[:min(len(text), 3000)], "a b")
	}
	f.Add([]byte(`{"model":{"vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]},"added_tokens":[{"id":3,"content":"<s>","lstrip":true}]}`), "ab <s>ba")
	f.Add([]byte(`{"model":{"vocab":{"a":0,"b":1,"ab":2},"merges":[["a","b"]]},"pre_tokenizer":{"type":"Metaspace"}}`), "ab ab")
	f.Fuzz(func(t *testing.T, file []byte, text string) {
		k, err := tokenizer.Parse("t", file)
		if err != nil || len(text) > 1000 {
			return
		}
		for _, id := range k.Encode(nil, text) {
			if int(id) >= k.Size() && len(k.Encode(nil, "")) == 0 {
				t.Fatalf("id %d of %d", id, k.Size())
			}
		}
	})
}

// The built-in tokenizer loses nothing but special tokens.
func FuzzBuiltin(f *testing.F) {
	f.Add("a badefi é🎉 <|im_end")
	k := tokenizer.Builtin()
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) || strings.Contains(text, "<|") {
			return
		}
		if got := k.Decode(k.Encode(nil, text)); got != text {
			t.Errorf("%q comes back as %q", text, got)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	text, err := os.ReadFile("tokenizer.go")
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"letters", "spaces"} {
		k, err := tokenizer.Load("testdata/" + name + ".json")
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			var ids []uint32
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				ids = k.Encode(ids[:0], string(text))
			}
		})
	}
}
