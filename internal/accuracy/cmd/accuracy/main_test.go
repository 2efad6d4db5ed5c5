package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const grid = `{"backend": "vllm", "backend_version": "1", "system": "a100", "model": "m", "tp": 2, "num_gpu_blocks": 100,
 "prefill": {"batch": [1, 8], "isl": [1, 64], "prefix": [0, 64], "ms": [[[10, 10], [10, 10]], [[10, 10], [10, 10]]]},
 "decode": {"batch": [1, 8], "context": [1, 64], "ms": [[2, 2], [2, 2]]}}`

const benchmarks = `backend,backend_version,model_path,system,mode,isl,osl,batch_size,tp_size,pp_size,silicon_ttft_ms,silicon_tpot_ms
vllm,0.1,m,a100,agg,8,3,2,2,1,12.5,2.5
sglang,0.1,m,a100,agg,8,3,2,2,1,12.5,2.5
`

func TestRun(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	g, b := file("g.json", grid), file("b.csv", benchmarks)
	for _, c := range []struct {
		name          string
		args          []string
		code          int
		stdout, notes string
	}{
		{"a table", []string{"-grid", g, "-silicon", b}, 0, "| TTFT mean | 12.50 | 10.00 | -20.0 |", "no grid of m for sglang: m, 2 x a100, sglang 0.1, 8 in 3 out, 2 clients left out"},
		{"a filter", []string{"-grid", g, "-silicon", b, "-backend", "vllm", "-num-gpu-blocks", "50", "-block-size", "16"}, 0, "| TPOT mean | 2.50 | 2.00 | -20.0 |", ""},
		{"nothing left", []string{"-grid", g, "-silicon", b, "-tp", "7"}, 1, "", "no measurement fits"},
		{"no grid", []string{"-silicon", b}, 2, "", "want one -grid or more"},
		{"no measurements", []string{"-grid", g}, 2, "", "want one -grid or more"},
		{"a wide spread", []string{"-grid", g, "-silicon", b, "-spread", "1"}, 2, "", "a -spread from 0 to 0.9"},
		{"a bad grid", []string{"-grid", b, "-silicon", b}, 1, "", "b.csv: line 1:"},
		{"no such run", []string{"-grid", g, "-run", filepath.Join(dir, "absent")}, 1, "", "no such file"},
		{"an unknown flag", []string{"-girds", g}, 2, "", "not defined"},
	} {
		var out, notes strings.Builder
		if code := run(c.args, &out, &notes); code != c.code {
			t.Errorf("%s: exit code %d, want %d", c.name, code, c.code)
		}
		if !strings.Contains(out.String(), c.stdout) || c.stdout == "" && out.Len() > 0 {
			t.Errorf("%s: output %q", c.name, out.String())
		}
		if !strings.Contains(notes.String(), c.notes) || c.notes == "" && notes.Len() > 0 {
			t.Errorf("%s: notes %q", c.name, notes.String())
		}
	}
}
