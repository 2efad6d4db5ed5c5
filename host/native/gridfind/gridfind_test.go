package gridfind

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dryserve/dryserve/host/native/profile"
)

var update = flag.Bool("update", false, "pack the grids of the examples again")

// The program carries the grids of the examples.
func TestShippedAreTheExamples(t *testing.T) {
	examples, err := filepath.Glob("../../../examples/grid-*.json")
	if err != nil || len(examples) < 4 {
		t.Fatal(examples, err)
	}
	if *update {
		pack(t, examples)
	}
	if got := names(); len(got) != len(examples) {
		t.Errorf("%v are carried, the examples have %v; go test -update packs them", got, examples)
	}
	for _, example := range examples {
		want, err := profile.LoadGrid(example)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Load(Shipped + filepath.Base(example))
		if err != nil {
			t.Errorf("%v; go test -update packs the examples", err)
		} else if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s differs; go test -update packs the examples\n%s", example, d)
		}
	}
}

func pack(t *testing.T, examples []string) {
	t.Helper()
	if err := os.RemoveAll("shipped"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir("shipped", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, example := range examples {
		data, err := os.ReadFile(example)
		if err != nil {
			t.Fatal(err)
		}
		var packed bytes.Buffer
		z, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		if _, err := z.Write(data); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join("shipped", filepath.Base(example)+".gz"), packed.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// tables end every grid of the tests.
const tables = `"prefill": {"batch": [1, 4], "isl": [16, 64], "prefix": [0, 512], "ms": [[[10, 11], [20, 22]], [[16, 18], [60, 66]]]},
 "decode": {"batch": [1, 16], "context": [64, 1024], "ms": [[8, 9], [12, 18]]}}`

// grids is a directory with a grid for each identity, and what is none.
func grids(t *testing.T, identities map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, identity := range identities {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("{"+identity+", "+tables), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"broken.json": "{", "other.json": `{"a": 1}`, "notes.txt": "x"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFind(t *testing.T) {
	const dense = `"model": "o/m", "system": "gpu", "backend": "vllm"`
	dir := grids(t, map[string]string{
		"a.json": dense + `, "tp": 2, "backend_version": "1"`,
		"b.json": dense + `, "tp": 2, "backend_version": "2"`,
		"c.json": dense + `, "tp": 4`,
		"d.json": dense + `, "tp": 4, "pp": 2`,
		"e.json": dense + `, "tp": 1, "moe_tp": 1, "moe_ep": 8, "attention_dp": 8`,
		"f.json": dense, // for no tp
		"g.json": `"model": "example/70b", "system": "example_gpu", "backend": "vllm", "tp": 4`,
	})
	base := Identity{System: "gpu", Model: "o/m", Backend: "vllm", TP: 2}
	with := func(change func(*Identity)) Identity { id := base; change(&id); return id }
	for _, c := range []struct {
		name string
		id   Identity
		want string // a file of the directory, a shipped one, or the beginning of a sentence
	}{
		{"by version", with(func(id *Identity) { id.BackendVersion = "2" }), "b.json"},
		{"another version", with(func(id *Identity) { id.BackendVersion = "3" }), "no grid is for o/m on gpu with vllm 3, tp 2; there are "},
		{"any version", with(func(id *Identity) { id.BackendVersion = "current" }), "several grids are for o/m on gpu with vllm, tp 2: " +
			"DIR/a.json (o/m on gpu with vllm 1, tp 2), DIR/b.json (o/m on gpu with vllm 2, tp 2); an identity that only one of them has is accepted, or its path with --perf-grid"},
		{"no pipeline", with(func(id *Identity) { id.TP = 4 }), "c.json"},
		{"sizes that are not said are 1", with(func(id *Identity) { id.TP, id.MoETP, id.MoEEP, id.AttentionDP = 4, 1, 1, 1 }), "c.json"},
		{"experts", with(func(id *Identity) { id.TP, id.MoEEP, id.AttentionDP = 1, 8, 8 }), "e.json"},
		{"any experts", with(func(id *Identity) { id.TP, id.AttentionDP = 1, 8 }), "e.json"},
		{"one rank", with(func(id *Identity) { id.TP = 1 }), "no grid is for o/m on gpu with vllm, tp 1; there are "},
		{"fewer experts", with(func(id *Identity) { id.TP, id.MoEEP, id.AttentionDP = 1, 4, 8 }), "no grid is for o/m on gpu with vllm, tp 1, moe_ep 4, attention_dp 8; there are "},
		{"by a path", with(func(id *Identity) { id.Model, id.TP = "./models/m", 4 }), "c.json"},
		{"another owner", with(func(id *Identity) { id.Model, id.TP = "p/m", 4 }), "no grid is for p/m on gpu with vllm, tp 4; there are "},
		{"another backend", with(func(id *Identity) { id.Backend = "sglang" }), "no grid is for o/m on gpu with sglang, tp 2; there are "},
		{"the directory goes before", Identity{System: "example_gpu", Model: "example/70b", Backend: "vllm", TP: 4}, "g.json"},
		{"of the program", Identity{System: "h200_sxm", Model: "Qwen/Qwen3-32B", Backend: "sglang", TP: 2}, "shipped:grid-h200_sxm-sglang-Qwen3-32B-tp2.json"},
	} {
		f := Finder{Dir: dir}
		got, err := f.Find(c.id)
		if !f.Used {
			t.Errorf("%s: it has not looked", c.name)
		}
		if err != nil {
			if said := strings.ReplaceAll(err.Error(), dir, "DIR"); !strings.HasPrefix(said, c.want) {
				t.Errorf("%s: %s", c.name, said)
			}
			continue
		}
		if where := strings.TrimPrefix(got.Path, dir+string(filepath.Separator)); where != c.want || got.Grid == nil {
			t.Errorf("%s: %s, want %s", c.name, where, c.want)
		}
	}
}

// The sentence about none has what there is, and a command that makes it.
func TestNone(t *testing.T) {
	dir := grids(t, map[string]string{"a.json": `"model": "o/m", "system": "gpu", "backend": "vllm", "tp": 2, "pp": 3, "moe_ep": 4`, "b.json": `"source": "x"`})
	f := Finder{Dir: dir}
	_, err := f.Find(Identity{System: "gpu", Model: "o/m", Backend: "vllm", BackendVersion: "7", TP: 8, MoETP: 2})
	const want = `no grid is for o/m on gpu with vllm 7, tp 8, moe_tp 2; there are DIR/a.json (o/m on gpu with vllm, tp 2, pp 3, moe_ep 4), DIR/b.json (no model on no system with no backend), ` +
		`shipped:grid-b200_sxm-trtllm-Qwen3-32B-tp4.json (Qwen/Qwen3-32B on b200_sxm with trtllm 1.3.0rc20, tp 4), shipped:grid-example-gpu.json (example/70b on example_gpu with vllm example, tp 4), ` +
		`shipped:grid-h200_sxm-sglang-Qwen3-32B-tp2.json (Qwen/Qwen3-32B on h200_sxm with sglang 0.5.14, tp 2), ` +
		`shipped:grid-h200_sxm-vllm-Llama-3.1-8B-tp1.json (meta-llama/Meta-Llama-3.1-8B on h200_sxm with vllm 0.24.0, tp 1), and what is no grid: DIR/broken.json, DIR/other.json; ` +
		`python -m dryserve.export_grid --model o/m --system gpu --backend vllm --backend-version 7 --tp 8 --out DIR/grid.json makes one for --grid-dir DIR, but none that says its moe_tp`
	if got := strings.ReplaceAll(err.Error(), dir, "DIR"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	f = Finder{Dir: filepath.Join(dir, "nothing")}
	if _, err := f.Find(Identity{TP: 1}); err == nil || err.Error() != "--grid-dir: cannot open "+f.Dir+": no such file or directory; a directory with grids is accepted" {
		t.Error(err)
	}
	if _, err := Load(Shipped + "x"); err == nil || !strings.HasPrefix(err.Error(), "shipped:x: the program carries no such grid; shipped:grid-b200_sxm-") {
		t.Error(err)
	}
}

// A sentence does not grow with the directory.
func TestManyGrids(t *testing.T) {
	identities := map[string]string{}
	for i := range 20 {
		identities[fmt.Sprintf("%02d.json", i)] = `"model": "o/m", "system": "gpu", "backend": "vllm", "tp": 1`
	}
	f := Finder{Dir: grids(t, identities)}
	_, err := f.Find(Identity{System: "gpu", Model: "o/m", Backend: "vllm", TP: 1})
	if err == nil || strings.Count(err.Error(), "o/m on gpu with vllm, tp 1)") != maxListed || !strings.Contains(err.Error(), ", 12 more; an identity") {
		t.Error(err)
	}
}

func TestUsualType(t *testing.T) {
	for word, want := range map[string]bool{"": true, "auto": true, " Auto ": true, "NONE": true, "null": true, "fp8": false, "bfloat16": false} {
		if UsualType(word) != want {
			t.Errorf("%q: %v", word, !want)
		}
	}
}
