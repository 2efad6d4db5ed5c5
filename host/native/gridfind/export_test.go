package gridfind

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// player is a Python of our own: body is what its exporter does with the file
// $out.
func player(t *testing.T, installed bool, body string) (*Exporter, *[]string) {
	t.Helper()
	said := &[]string{}
	path := filepath.Join(t.TempDir(), "python")
	known := "exit 1"
	if installed {
		known = "exit 0"
	}
	script := "#!/bin/sh\n[ \"$1\" = -c ] && " + known + "\nwhile [ $# -gt 1 ]; do [ \"$1\" = --out ] && out=$2; shift; done\n" + body + "\n"
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return &Exporter{path, filepath.Join(t.TempDir(), "grids"), func(text string) { *said = append(*said, text) }}, said
}

var sought = Identity{Model: "other/new model", System: "example_gpu", Backend: "vllm", TP: 4}

// What is nowhere found is made, and kept.
func TestMade(t *testing.T) {
	example, err := filepath.Abs("../../../examples/grid-example-gpu.json")
	if err != nil {
		t.Fatal(err)
	}
	e, said := player(t, true, `sed 's#example/70b#other/new model#' `+example+` > "$out"`)
	f := Finder{Make: e}
	made, err := f.Find(sought)
	if err != nil || made.Grid.Model != sought.Model || made.Path != filepath.Join(e.Dir, "new_model-example_gpu-vllm-tp4.json") {
		t.Fatalf("%v, %v", made, err)
	}
	if len(*said) != 1 || !strings.HasPrefix((*said)[0], "no grid is for other/new model on example_gpu with vllm, tp 4: ") {
		t.Errorf("%q", *said)
	}
	e.Python = "/no/such/python"
	if again, err := f.Find(sought); err != nil || again.Path != made.Path || len(*said) != 1 {
		t.Errorf("%v, %v, %q", again, err, *said)
	}
}

func TestNotMade(t *testing.T) {
	kinds := sought
	kinds.MoETP = 2
	for name, c := range map[string]struct {
		installed bool
		body      string
		id        Identity
		want      string
	}{
		"no exporter":       {false, "", sought, "--out grids/grid.json makes one for --grid-dir grids"},
		"sizes it has not":  {true, "exit 3", kinds, "but none that says its moe_tp"},
		"an unknown model":  {true, "echo first >&2; echo 'export_grid: there is no such model' >&2; exit 1", sought, "tp 4, and dryserve.export_grid makes none: there is no such model"},
		"silence":           {true, "exit 1", sought, "makes none: exit status 1"},
		"nothing":           {true, "true", sought, "no such file"},
		"what is no grid":   {true, `echo '{}' > "$out"`, sought, "new_model-example_gpu-vllm-tp4.json"},
		"for another model": {true, `cp ../../../examples/grid-example-gpu.json "$out"`, sought, "which is not for other/new model"},
	} {
		e, _ := player(t, c.installed, c.body)
		f := Finder{Make: e}
		if found, err := f.Find(c.id); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, %v", name, found.Path, err)
		}
	}
}
