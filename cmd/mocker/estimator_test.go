package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// Durations by model and GPU are those of the grid of both, in every way to say
// so.
func TestGridOfIdentity(t *testing.T) {
	model := filepath.Join(t.TempDir(), "70b")
	if err := os.Mkdir(model, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ais.json")
	const object = `{"backend":"vllm","system":"example_gpu","model":"example/70b","tp":4}`
	if err := os.WriteFile(file, []byte(object), 0o600); err != nil {
		t.Fatal(err)
	}
	engine := func(args string) any {
		t.Helper()
		o, err := parse(append([]string{"--http", ":0"}, strings.Fields(args)...))
		if err != nil {
			t.Fatal(err)
		}
		a, err := o.engine()
		if err != nil || len(o.warnings) > 0 {
			t.Fatalf("%s: %v %v", args, err, o.warnings)
		}
		return a.Engine
	}
	want := engine("--perf-grid ../../examples/grid-example-gpu.json --block-size 32")
	for _, args := range []string{
		"--ais-perf-model --model-path example/70b --ais-system example_gpu --ais-tp-size 4",
		"--aic-perf-model --model-path " + model + " --aic-system example_gpu --aic-tp-size 4 --aic-backend vllm --aic-backend-version example --data-parallel-size 1",
		"--ais-perf-model --model-path example/70b --ais-system example_gpu --ais-tp-size 4 --grid-dir ../../examples",
		"--ais-perf-config " + object,
		"--ais-perf-config " + file,
	} {
		if got := engine(args + " --block-size 32"); !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", args, got, want)
		}
	}
	o, err := parse(strings.Fields("--http :0 --ais-tp-size 4"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.engine(); err != nil || len(o.warnings) != 1 || o.warnings[0] != "--ais-tp-size is ignored without --ais-perf-model" {
		t.Errorf("%v %q", err, o.warnings)
	}
}
