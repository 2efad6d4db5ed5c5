package profile

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/timing"
)

// entry is an array as NumPy stores it.
type entry struct {
	name, descr, shape string
	data               []byte
}

func vector(name string, v ...float64) entry {
	return entry{name, "<f8", fmt.Sprintf("(%d,)", len(v)), bits(v)}
}

func bits(v []float64) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return b
}

func integers(name string, v ...int64) entry {
	e := entry{name, "<i8", fmt.Sprintf("(%d,)", len(v)), nil}
	for _, x := range v {
		e.data = binary.LittleEndian.AppendUint64(e.data, uint64(x))
	}
	return e
}

// e18 is the profile of engine notes §8.5.
func e18() []entry {
	return []entry{
		vector(prefillISL, 4, 8, 16), vector(prefillTTFT, 10, 14, 30),
		vector(decodeKV, 8, 16, 32), vector(decodeCtx, 4, 8, 16),
		{decodeITL, "<f8", "(3, 3)", bits([]float64{1, 2, 4, 3, 5, 9, 8, 12, 20})},
	}
}

// with replaces or adds arrays; a nil shape drops one.
func with(base []entry, edits ...entry) []entry {
	out := slices.Clone(base)
	for _, e := range edits {
		i := slices.IndexFunc(out, func(o entry) bool { return o.name == e.name })
		switch {
		case i < 0:
			out = append(out, e)
		case e.shape == "":
			out = slices.Delete(out, i, i+1)
		default:
			out[i] = e
		}
	}
	return out
}

func archive(t testing.TB, entries []entry) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, e := range entries {
		w, err := z.Create(e.name + ".npy")
		if err != nil {
			t.Fatal(err)
		}
		header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n", e.descr, e.shape)
		file := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(header)))
		if _, err := w.Write(append(append(file, header...), e.data...)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestLoadNPZ(t *testing.T) {
	path := filepath.Join(t.TempDir(), "no-suffix")
	more := with(e18(), entry{"gpu_type", "<U4", "(1,)", make([]byte, 16)}, integers("tp", 2), entry{"notes", "|O", "(1,)", []byte("pickle")})
	write(t, path, archive(t, more))
	p, err := LoadProfile(path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseProfile("memory", archive(t, more))
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range []*config.ProfileTable{p, again} {
		e := config.Defaults(config.VLLM)
		e.Timing = config.Timing{Kind: config.Profile, Profile: table}
		m := timing.New(e)
		if got := []float64{m.Prefill(1, 10, 0), m.Prefill(1, 2, 0), m.Decode(1, 11), m.Decode(2, 19)}; !slices.Equal(got, []float64{18, 8, 4.15625, 6.90625}) {
			t.Errorf("E18 is %v", got)
		}
	}
}

// rawEntries is one half or both of a profiler's results.
func rawEntries() []entry {
	return []entry{
		integers(prefillISL, 100, 200, 400), vector(rawTTFT, 5, 7, 11), vector("prefill_thpt_per_gpu", 1, 1, 1),
		vector(rawKVUsage, 0.1, 0.2, 0.4, 0.8), vector(rawContext, 100, 50, 200, 100), vector(rawITL, 5, 6, 8, 15),
		vector("z_thpt_per_gpu", 1, 1, 1, 1), integers(rawMaxTokens, 1000),
	}
}

const rawText = `{"prefill_isl": [100, 200, 400], "prefill_ttft": [5, 7, 11], "x_kv_usage": [0.1, 0.2, 0.4, 0.8],
"y_context_length": [100, 50, 200, 100], "z_itl": [5, 6, 8, 15], "max_kv_tokens": 1000, "prefill_thpt_per_gpu": null}`

// TestLoadResults: all ways to store the same measurements give the same
// profile, and archives go first.
func TestLoadResults(t *testing.T) {
	both := func(dir string) {
		write(t, filepath.Join(dir, prefillNPZ), archive(t, rawEntries()))
		write(t, filepath.Join(dir, decodeNPZ), archive(t, rawEntries()))
	}
	texts := func(dir string) {
		write(t, filepath.Join(dir, prefillJSON), []byte(rawText))
		write(t, filepath.Join(dir, decodeJSON), []byte(rawText))
	}
	var want *config.ProfileTable
	for name, fill := range map[string]func(dir string){
		"archives": both,
		"texts":    texts,
		"texts with a list": func(dir string) {
			texts(dir)
			write(t, filepath.Join(dir, decodeJSON), []byte(strings.Replace(rawText, "1000", "[1000.0]", 1)))
		},
		"archives and other texts": func(dir string) {
			both(dir)
			write(t, filepath.Join(dir, prefillJSON), []byte("{"))
			write(t, filepath.Join(dir, decodeJSON), []byte("{"))
		},
		"one of each": func(dir string) {
			write(t, filepath.Join(dir, prefillJSON), []byte(rawText))
			write(t, filepath.Join(dir, decodeNPZ), archive(t, rawEntries()))
		},
		"other number types": func(dir string) {
			half := entry{rawITL, "<i4", "(4,)", []byte{5, 0, 0, 0, 6, 0, 0, 0, 8, 0, 0, 0, 15, 0, 0, 0}}
			write(t, filepath.Join(dir, prefillNPZ), archive(t, with(rawEntries(), vector(prefillISL, 100.9, 200, 400))))
			write(t, filepath.Join(dir, decodeNPZ), archive(t, with(rawEntries(), half, entry{rawMaxTokens, "<u2", "()", []byte{0xe8, 3}})))
		},
	} {
		dir := t.TempDir()
		fill(dir)
		p, err := LoadProfile(dir)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if want == nil {
			want = p
		}
		if !slices.Equal(p.PrefillISL, want.PrefillISL) || !slices.Equal(p.PrefillTTFTMs, want.PrefillTTFTMs) || !slices.Equal(p.DecodeITLMs, want.DecodeITLMs) {
			t.Errorf("%s: another profile", name)
		}
	}
	// 3 + 0.02*isl fits exactly; the axes are those of the data.
	if want.PrefillTTFTMs[0] != 5 || want.PrefillTTFTMs[99] != 11 || want.DecodeActiveKVTokens[99] != 800 || want.DecodeContextLength[99] != 200 {
		t.Errorf("ends: %v, %v, %v, %v", want.PrefillTTFTMs[0], want.PrefillTTFTMs[99], want.DecodeActiveKVTokens[99], want.DecodeContextLength[99])
	}
}

func TestBadProfiles(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	npy := func(edits ...entry) []byte { return archive(t, with(e18(), edits...)) }
	drop := func(name string) entry { return entry{name: name} }
	cases := []struct {
		name string
		data []byte
		want string // after the path
	}{
		{"empty", nil, ": is empty; a .npz profile or a profiler's results directory is accepted"},
		{"a table of text", []byte("isl,ttft\n1,2\n"), `: starts with "isl,ttft\n1,2\n"; a .npz profile or a profiler's results directory is accepted`},
		{"a grid", []byte(gridText), `: is a JSON object, as grids are; a .npz profile or a profiler's results directory is accepted`},
		{"truncated", npy()[:300], ": is a damaged or truncated ZIP archive; a whole .npz file is accepted"},
		{"no isl", npy(drop(prefillISL)), ": has no array prefill_isl; found prefill_ttft_ms, decode_active_kv_tokens, decode_context_length, decode_itl"},
		{"no ttft", npy(drop(prefillTTFT)), ": has no array prefill_ttft_ms; found prefill_isl, decode_active_kv_tokens, decode_context_length, decode_itl"},
		{"no kv", npy(drop(decodeKV)), ": has no array decode_active_kv_tokens; found prefill_isl, prefill_ttft_ms, decode_context_length, decode_itl"},
		{"no context", npy(drop(decodeCtx)), ": has no array decode_context_length; found prefill_isl, prefill_ttft_ms, decode_active_kv_tokens, decode_itl"},
		{"no itl", npy(drop(decodeITL)), ": has no array decode_itl; found prefill_isl, prefill_ttft_ms, decode_active_kv_tokens, decode_context_length"},
		{"half of the results", archive(t, rawEntries()[:3]), ": has array prefill_ttft, so it is one half of a profiler's results; their directory is accepted, or a profile with arrays prefill_isl, prefill_ttft_ms, decode_active_kv_tokens, decode_context_length and decode_itl"},
		{"the other half", archive(t, rawEntries()[3:]), ": has array z_itl, so it is one half of a profiler's results; their directory is accepted, or a profile with arrays prefill_isl, prefill_ttft_ms, decode_active_kv_tokens, decode_context_length and decode_itl"},
		{"integers", npy(integers(prefillISL, 4, 8, 16)), ": array prefill_isl has dtype <i8; dtype <f8 (float64) is accepted"},
		{"texts", npy(entry{decodeKV, "<U4", "(3,)", make([]byte, 48)}), ": array decode_active_kv_tokens has dtype <U4; dtype <f8 (float64) is accepted"},
		{"a matrix axis", npy(entry{prefillISL, "<f8", "(1, 3)", bits([]float64{4, 8, 16})}), ": array prefill_isl has shape (1, 3); a one-dimensional array is accepted"},
		{"a flat plane", npy(vector(decodeITL, 1, 2, 4, 3, 5, 9, 8, 12, 20)), ": array decode_itl has shape (9,); a two-dimensional array is accepted"},
		{"a transposed plane", npy(vector(decodeCtx, 4, 8), entry{decodeITL, "<f8", "(2, 3)", bits([]float64{1, 2, 3, 4, 5, 6})}), ": array decode_itl has shape (2, 3); (3, 2) is accepted: a row for each value of decode_active_kv_tokens, a column for each of decode_context_length"},
		{"lengths", npy(vector(prefillTTFT, 10, 14)), ": array prefill_ttft_ms has 2 values, but prefill_isl has 3 values; one for each is accepted"},
		{"one point", npy(vector(prefillISL, 4), vector(prefillTTFT, 10)), ": array prefill_isl has 1 value; two or more are accepted"},
		{"no point", npy(vector(decodeKV), entry{decodeITL, "<f8", "(0, 3)", nil}), ": array decode_active_kv_tokens has 0 values; two or more are accepted"},
		{"unsorted", npy(vector(prefillISL, 8, 4, 16)), ": array prefill_isl has 4 at index 1 after 8; strictly rising values are accepted"},
		{"equal", npy(vector(decodeCtx, 4, 8, 8)), ": array decode_context_length has 8 at index 2 after 8; strictly rising values are accepted"},
		{"nan axis", npy(vector(decodeKV, 8, nan, 32)), ": array decode_active_kv_tokens is NaN at index 1; finite numbers are accepted"},
		{"nan value", npy(entry{decodeITL, "<f8", "(3, 3)", bits([]float64{1, 2, 4, 3, 5, nan, 8, 12, 20})}), ": array decode_itl is NaN at index [1, 2]; finite numbers are accepted"},
		{"infinite value", npy(vector(prefillTTFT, 10, inf, 30)), ": array prefill_ttft_ms is +Inf at index 1; finite numbers are accepted"},
		{"10 GB claimed", npy(entry{decodeITL, "<f8", "(35000, 35000)", nil}), ": array decode_itl has shape (35000, 35000); at most 4194304 values are accepted"},
		{"cut off", npy(entry{decodeITL, "<f8", "(3, 3)", bits([]float64{1, 2})}), ": array decode_itl ends before all its values are there; a whole array is accepted"},
	}
	path := filepath.Join(t.TempDir(), "p.npz")
	for _, c := range cases {
		write(t, path, c.data)
		if _, err := LoadProfile(path); err == nil || err.Error() != path+c.want {
			t.Errorf("%s: %v\nwant %s", c.name, err, path+c.want)
		}
		if _, err := ParseProfile(path, c.data); err == nil || err.Error() != path+c.want {
			t.Errorf("%s in memory: %v", c.name, err)
		}
	}
}

func TestBadResults(t *testing.T) {
	nan := math.NaN()
	cases := []struct {
		name         string
		edit         entry
		text, with   string // replacement in the JSON form, if there is one
		array, fault string // where %s is decode's or prefill's file
	}{
		{"several configurations", entry{prefillISL, "<i8", "(3, 1)", make([]byte, 24)}, "", "", "prefill", "array prefill_isl has shape (3, 1); a one-dimensional array is accepted"},
		{"texts", entry{rawContext, "<U2", "(4,)", make([]byte, 32)}, `[100, 50, 200, 100]`, `["a", 50, 200, 100]`, "decode", "array y_context_length has dtype <U2; an integer dtype, <f4 or <f8 is accepted|y_context_length[0] is \"a\"; a number is accepted"},
		{"nan", vector(rawITL, 5, nan, 8, 15), `[5, 6, 8, 15]`, `[5, null, 8, 15]`, "decode", "array z_itl is NaN at index 1; finite numbers are accepted|z_itl[1] is null; a number is accepted"},
		{"negative", vector(rawKVUsage, 0.1, 0.2, -0.4, 0.8), `0.4`, `-0.4`, "decode", "array x_kv_usage is -0.4 at index 2; numbers of at least 0 are accepted"},
		{"missing", entry{name: rawTTFT}, `"prefill_ttft"`, `"ttft"`, "prefill", "has no array prefill_ttft; found|has no field prefill_ttft; an array of numbers is accepted"},
		{"lengths", vector(rawTTFT, 5, 7), `[5, 7, 11]`, `[5, 7]`, "prefill", "array prefill_ttft has 2 values, but prefill_isl has 3 values; one for each is accepted"},
		{"empty", vector(prefillISL), `[100, 200, 400]`, `[]`, "prefill", "array prefill_isl has no values; one or more are accepted"},
		{"no context", vector(rawContext, 100, 50, 0, 100), `[100, 50, 200, 100]`, `[100, 50, 0, 100]`, "decode", "array y_context_length is 0 at index 2; numbers above 0 are accepted"},
		{"no tokens", integers(rawMaxTokens, 0), `1000`, `0`, "decode", "max_kv_tokens is 0; a whole number of tokens of at least 1 is accepted"},
		{"part of a token", vector(rawMaxTokens, 1000.5), `1000`, `1000.5`, "decode", "max_kv_tokens is 1000.5; a whole number of tokens of at least 1 is accepted"},
		{"two pools", integers(rawMaxTokens, 1000, 2000), `1000`, `[1000, 2000]`, "decode", "array max_kv_tokens has shape (2,); one value is accepted|max_kv_tokens is an array; a number is accepted"},
		{"no pool", entry{name: rawMaxTokens}, `"max_kv_tokens"`, `"tokens"`, "decode", "has no array max_kv_tokens; found|has no field max_kv_tokens; a number is accepted"},
		{"falling", vector(rawTTFT, 11, 7, 5), `[5, 7, 11]`, `[11, 7, 5]`, "prefill", "array prefill_ttft falls by 0.0185714285714285"},
		{"falling with the pool", vector(rawITL, 15, 8, 6, 5), `[5, 6, 8, 15]`, `[15, 8, 6, 5]`, "decode", "array z_itl falls by "},
		{"one length", integers(prefillISL, 100, 100, 100), `[100, 200, 400]`, `[100, 100, 100]`, "prefill", "array prefill_isl has 100 only; two different lengths or more are accepted"},
		{"nothing measured", vector(rawITL, 0, 0, 0, 0), `[5, 6, 8, 15]`, `[0, 0, 0, 0]`, "decode", "array z_itl has no value above 0; one or more are accepted"},
		{"an empty pool", vector(rawKVUsage, 0, 0, 0, 0), `[0.1, 0.2, 0.4, 0.8]`, `[0, 0, 0, 0]`, "decode", "array x_kv_usage gives 0 tokens per sequence at most; more than 1 is accepted"},
		{"a huge pool", vector(rawKVUsage, 1e300, 0.2, 0.4, 0.8), `0.1`, `1e300`, "decode", "array x_kv_usage is 1e+300 at index 0; at most 9007199254740991 tokens and sequences are accepted"},
		{"a huge prompt", vector(prefillISL, 1, 2, 1e300), `[100, 200, 400]`, `[1, 2, 1e300]`, "prefill", "array prefill_isl is 1e+300 at index 2; at most 9007199254740991 tokens and sequences are accepted"},
	}
	for _, c := range cases {
		want := strings.Split(c.fault, "|")
		dir := t.TempDir()
		write(t, filepath.Join(dir, prefillNPZ), archive(t, with(rawEntries(), c.edit)))
		write(t, filepath.Join(dir, decodeNPZ), archive(t, with(rawEntries(), c.edit)))
		file := map[string]string{"prefill": prefillNPZ, "decode": decodeNPZ}[c.array]
		if _, err := LoadProfile(dir); err == nil || !strings.HasPrefix(err.Error(), filepath.Join(dir, file)+": "+want[0]) {
			t.Errorf("%s: %v\nwant %s", c.name, err, want[0])
		}
		if c.text == "" {
			continue
		}
		text := strings.Replace(rawText, c.text, c.with, 1)
		dir = t.TempDir()
		write(t, filepath.Join(dir, prefillJSON), []byte(text))
		write(t, filepath.Join(dir, decodeJSON), []byte(text))
		file = map[string]string{"prefill": prefillJSON, "decode": decodeJSON}[c.array]
		if _, err := LoadProfile(dir); err == nil || !strings.HasPrefix(err.Error(), filepath.Join(dir, file)+": "+want[len(want)-1]) {
			t.Errorf("%s in JSON: %v\nwant %s", c.name, err, want[len(want)-1])
		}
	}
}

func TestBadPlaces(t *testing.T) {
	dir := t.TempDir()
	partial := filepath.Join(dir, "partial")
	write(t, filepath.Join(partial, prefillNPZ), archive(t, rawEntries()))
	for path, want := range map[string]string{
		filepath.Join(dir, "absent"): ": no such file or directory; a .npz profile or a profiler's results directory is accepted",
		dir:                          ": has no prefill results; a directory with selected_prefill_interpolation/raw_data.npz or prefill_raw_data.json is accepted",
		partial:                      ": has no decode results; a directory with selected_decode_interpolation/raw_data.npz or decode_raw_data.json is accepted",
		os.DevNull:                   ": is no regular file; a .npz profile or a profiler's results directory is accepted",
	} {
		if _, err := LoadProfile(path); err == nil || err.Error() != path+want {
			t.Errorf("%v\nwant %s", err, path+want)
		}
	}
}
