package profile

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/timing"
)

const gridText = `{"backend": "vllm", "backend_version": "0.24.0", "system": "h100_sxm", "model": "a/b", "tp": 2, "aiconfigurator_core": "0.12.0",
 "prefill": {"batch": [1, 2], "isl": [1, 16, 64], "prefix": [0, 512],
  "ms": [[[1, 2], [3, 4], [5, 6]], [[7, 8], [9, 10], [11, 12]]]},
 "decode": {"batch": [1, 8], "context": [1, 64, 128], "ms": [[1, 2, 3], [4, 5, 6.5]]},
 "num_gpu_blocks": 4715}
`

func TestLoadGrid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "g.json")
	write(t, path, []byte(gridText))
	g, err := LoadGrid(path)
	if err != nil {
		t.Fatal(err)
	}
	if g.Backend != "vllm" || g.BackendVersion != "0.24.0" || g.System != "h100_sxm" || g.Model != "a/b" || g.TP != 2 || g.NumGPUBlocks != 4715 || g.BlockSize != 64 {
		t.Errorf("%+v", g)
	}
	if !slices.Equal(g.Table.PrefillMs, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}) || !slices.Equal(g.Table.DecodeMs, []float64{1, 2, 3, 4, 5, 6.5}) {
		t.Errorf("%+v", g.Table)
	}
	e := config.Defaults(config.VLLM)
	e.Timing = config.Timing{Kind: config.Grid, Grid: g.Table}
	m := timing.New(e)
	if got := []float64{m.Prefill(2, 2*(64+512), 2*512), m.Decode(8, 8*128)}; !slices.Equal(got, []float64{12, 6.5}) {
		t.Errorf("looked up %v", got)
	}
}

func TestGridBlocks(t *testing.T) {
	for _, c := range []struct {
		from, to  string
		size      int
		want      int
		blockSize int
	}{
		{"", "", 64, 4715, 64},
		{"", "", 16, 18860, 64},
		{"", "", 100, 3017, 64}, // 301760 tokens
		{"", "", 301761, 0, 64},
		{"", "", 0, 0, 64},
		{`"vllm"`, `"sglang"`, 16, 294, 1},
		{`"vllm"`, `"trtllm"`, 32, 4715, 32},
		{`"vllm"`, `null, "block_size": 128`, 64, 9430, 128},
		{"4715", "null", 64, 0, 0},
		{"4715", "2147483647", 1, 2147483647, 64},
		{`,
 "num_gpu_blocks": 4715`, "", 64, 0, 0},
	} {
		g, err := ParseGrid("g.json", []byte(strings.Replace(gridText, c.from, c.to, 1)))
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		if got := g.Blocks(c.size); got != c.want || g.BlockSize != c.blockSize {
			t.Errorf("%+v: %d blocks, %+v", c, got, g)
		}
	}
}

func TestBadGrids(t *testing.T) {
	deep := strings.Repeat("[", 40) + strings.Repeat("]", 40)
	cases := []struct {
		name, from, to string
		want           string // after "g.json: "
	}{
		{"truncated", gridText[200:], "", `line 3: the text ends too early; one JSON object is accepted`},
		{"nan", "6.5", "NaN", `line 4: invalid character 'N' looking for beginning of value; one JSON object is accepted`},
		{"two objects", "4715}", "4715} {}", `line 5: something follows the object; one JSON object is accepted`},
		{"twice", `"tp": 2`, `"tp": 2, "tp": 4`, `line 1: field "tp" stands twice; one JSON object is accepted`},
		{"twice inside", `"context": [1, 64, 128]`, `"batch": []`, `line 4: field "decode.batch" stands twice; one JSON object is accepted`},
		{"deep", "6.5", deep, `line 4: values are nested more than 16 deep; one JSON object is accepted`},
		{"unknown", `"tp"`, `"tpp"`, `unknown field "tpp" (did you mean tp?); backend, backend_version, system, model, tp, num_gpu_blocks, block_size, prefill, decode, pp, moe_tp, moe_ep, attention_dp, precision, aiconfigurator_core, exporter and source are accepted`},
		{"unknown inside", `"isl"`, `"ISL_"`, `unknown field "prefill.ISL_" (did you mean isl?); batch, isl, prefix and ms are accepted`},
		{"no prefill", `"prefill": {"batch"`, `"source": {"batch"`, `has no field prefill; an object with batch, isl, prefix and ms is accepted`},
		{"no axis", `"context": [1, 64, 128], `, ``, `has no field decode.context; an object with batch, context and ms is accepted`},
		{"no durations", `, "ms": [[1, 2, 3], [4, 5, 6.5]]`, ``, `has no field decode.ms; an object with batch, context and ms is accepted`},
		{"another backend", `"vllm"`, `"tgi"`, `backend is "tgi"; "vllm", "sglang" or "trtllm" is accepted`},
		{"a backend that is no text", `"vllm"`, `7`, `backend is 7; a text is accepted`},
		{"no model name", `"a/b"`, `["a/b"]`, `model is an array; a text is accepted`},
		{"tp", `"tp": 2`, `"tp": 0`, `tp is 0; a whole number from 1 to 4294967295 is accepted`},
		{"blocks", `4715`, `-1`, `num_gpu_blocks is -1; a whole number from 1 to 2147483647 is accepted`},
		{"part of a block", `4715`, `4715.5`, `num_gpu_blocks is 4715.5; a whole number from 1 to 2147483647 is accepted`},
		{"blocks of no size", `"backend": "vllm", `, ``, `num_gpu_blocks is 4715 blocks of unknown size; block_size or backend is accepted beside it`},
		{"block size", `4715`, `4715, "block_size": "16"`, `block_size is "16"; a whole number from 1 to 2147483647 is accepted`},
		{"tokens", `4715`, `2147483647, "block_size": 2147483647`, `num_gpu_blocks is 2147483647 blocks of 2147483647 tokens; at most 9007199254740991 tokens are accepted`},
		{"a plane that is a list", `{"batch": [1, 8], "context": [1, 64, 128], "ms": [[1, 2, 3], [4, 5, 6.5]]}`, `[]`, `decode is an array; an object is accepted`},
		{"an axis that is a number", `[1, 64, 128]`, `128`, `decode.context is 128; an array of numbers is accepted`},
		{"a text in an axis", `[1, 64, 128]`, `[1, "64", 128]`, `decode.context[1] is "64"; a number is accepted`},
		{"null in an axis", `[1, 16, 64]`, `[1, null, 64]`, `prefill.isl[1] is null; a number is accepted`},
		{"beyond float64", `6.5`, `1e999`, `decode.ms[1][2] is 1e999; a number within the range of float64 is accepted`},
		{"long", `6.5`, strings.Repeat("9", 400), `decode.ms[1][2] is a number of 400 digits; a number within the range of float64 is accepted`},
		{"a row missing", `, [4, 5, 6.5]`, ``, `decode.ms has 1 value; 2 are accepted, one for each of decode.batch`},
		{"a value missing", `[3, 4]`, `[3]`, `prefill.ms[0][1] has 1 value; 2 are accepted, one for each of prefill.prefix`},
		{"a value too many", `[4, 5, 6.5]`, `[4, 5, 6.5, 7]`, `decode.ms[1] has 4 values; 3 are accepted, one for each of decode.context`},
		{"a number for a row", `[5, 6]`, `5`, `prefill.ms[0][2] is 5; an array is accepted`},
		{"one batch", `[1, 8], "context": [1, 64, 128], "ms": [[1, 2, 3], [4, 5, 6.5]]`, `[1], "context": [1, 64, 128], "ms": [[1, 2, 3]]`, `array decode.batch has 1 value; two or more are accepted`},
		{"unsorted", `[1, 16, 64]`, `[1, 64, 16]`, `array prefill.isl has 16 at index 2 after 64; strictly rising values are accepted`},
		{"a negative axis", `[0, 512]`, `[-1, 512]`, `array prefill.prefix is -1 at index 0; numbers of at least 0 are accepted`},
		{"a negative duration", `[11, 12]`, `[11, -12]`, `array prefill.ms is -12 at index [1, 2, 1]; numbers of at least 0 are accepted`},
	}
	for _, c := range cases {
		if !strings.Contains(gridText, c.from) {
			t.Fatalf("%s: nothing to edit", c.name)
		}
		_, err := ParseGrid("g.json", []byte(strings.Replace(gridText, c.from, c.to, 1)))
		if err == nil || err.Error() != "g.json: "+c.want {
			t.Errorf("%s: %v\nwant g.json: %s", c.name, err, c.want)
		}
	}
}

func TestBadGridFiles(t *testing.T) {
	dir := t.TempDir()
	big := filepath.Join(dir, "big.json")
	write(t, big, []byte("{"))
	if err := os.Truncate(big, 10<<30); err != nil { // sparse: takes no room
		t.Skip(err)
	}
	profiled := filepath.Join(dir, "p.npz")
	write(t, profiled, archive(t, e18()))
	for path, want := range map[string]string{
		profiled:                          ": is a ZIP archive, as profiles are; a grid in JSON is accepted",
		dir:                               ": cannot be read: is a directory",
		big:                               ": is larger than 16 MiB; a smaller JSON file is accepted",
		filepath.Join(dir, "absent.json"): ": no such file; a JSON file is accepted",
	} {
		if _, err := LoadGrid(path); err == nil || err.Error() != path+want {
			t.Errorf("%v\nwant %s", err, path+want)
		}
	}
}

// TestOthersFiles loads grids and profilers' results made by others, if there
// is a directory of them: DRYSERVE_DATA with aic/*.json and dynamo/npz.
func TestOthersFiles(t *testing.T) {
	data := os.Getenv("DRYSERVE_DATA")
	if data == "" {
		t.Skip("DRYSERVE_DATA is not set")
	}
	grids, err := filepath.Glob(filepath.Join(data, "aic", "*.json"))
	if err != nil || len(grids) == 0 {
		t.Fatalf("no grids: %v", err)
	}
	for _, path := range grids {
		g, err := LoadGrid(path)
		if err != nil {
			t.Error(err)
			continue
		}
		if tokens := g.Blocks(1); tokens < 100_000 || g.Model == "" || g.TP == 0 {
			t.Errorf("%s: %d tokens, %+v", path, tokens, g)
		}
	}
	dir := t.TempDir()
	for from, to := range map[string]string{"H200_TP1P_TP1D-prefill-raw_data.npz": prefillNPZ, "H200_TP1P_TP1D-decode-raw_data.npz": decodeNPZ} {
		b, err := os.ReadFile(filepath.Join(data, "dynamo", "npz", from))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, to), b)
	}
	if _, err := LoadProfile(dir); err != nil {
		t.Error(err)
	}
	// Files of several configurations are refused by name, alone and paired.
	archives, err := filepath.Glob(filepath.Join(data, "dynamo", "npz", "*.npz"))
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, path := range archives {
		if _, err := LoadProfile(path); err == nil || !strings.Contains(err.Error(), "one half of a profiler's results") {
			t.Errorf("%s: %v", path, err)
		}
		if strings.Contains(path, "H200_TP1P") {
			continue
		}
		for _, half := range []string{prefillNPZ, decodeNPZ} {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, half), b)
		}
		if _, err := LoadProfile(dir); err == nil || !strings.Contains(err.Error(), "a one-dimensional array is accepted") && !strings.Contains(err.Error(), "has no array") {
			t.Errorf("%s as results: %v", path, err)
		}
	}
}

// checkTimed asks a table that was accepted for a few durations.
func checkTimed(t *testing.T, timed config.Timing) {
	e := config.Defaults(config.VLLM)
	e.Timing = timed
	if fault := e.Check(); !fault.OK() {
		t.Fatalf("%+v", fault)
	}
	m := timing.New(e)
	for _, n := range []int{1, 100, 1 << 40} {
		if ms := m.Prefill(1, n, 0) + m.Decode(1, n); !(ms >= 0) {
			t.Fatalf("%d tokens take %v", n, ms)
		}
	}
}

func checkSentence(t *testing.T, err error) {
	if !strings.HasPrefix(err.Error(), "f: ") || strings.ContainsAny(err.Error(), "\n\x1b") {
		t.Fatalf("no sentence: %q", err)
	}
}

// FuzzGrid: whatever is given, the answer is a checked table or a sentence.
func FuzzGrid(f *testing.F) {
	f.Add([]byte(gridText))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := ParseGrid("f", data)
		if err != nil {
			checkSentence(t, err)
			return
		}
		checkTimed(t, config.Timing{Kind: config.Grid, Grid: g.Table})
		if g.Blocks(16) < 0 {
			t.Fatalf("%d blocks", g.Blocks(16))
		}
	})
}

// FuzzProfile does the same for archives.
func FuzzProfile(f *testing.F) {
	f.Add(archive(f, e18()))
	f.Add(archive(f, rawEntries()))
	f.Add([]byte("PK"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ParseProfile("f", data)
		if err != nil {
			checkSentence(t, err)
			return
		}
		checkTimed(t, config.Timing{Kind: config.Profile, Profile: p})
	})
}

// FuzzResults does the same for a profiler's results in JSON.
func FuzzResults(f *testing.F) {
	f.Add([]byte(rawText))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := parseJSON("f", data)
		if err != nil {
			checkSentence(t, err)
			return
		}
		top, err := d.object(d.root, wholeFile, nil)
		if err != nil {
			checkSentence(t, err)
			return
		}
		var m measurements
		for _, read := range []func(raw) error{m.readPrefill, m.readDecode} {
			if err := read(rawJSON{d, top}); err != nil {
				checkSentence(t, err)
				return
			}
		}
		p, err := m.fit()
		if err != nil {
			checkSentence(t, err)
			return
		}
		checkTimed(t, config.Timing{Kind: config.Profile, Profile: p})
	})
}
