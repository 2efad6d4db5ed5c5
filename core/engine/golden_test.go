package engine_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/internal/golden"
)

const scenarioDir = "../../testdata/engine"

// scenarios are the recorded runs that must be there, by the first word of
// their file names.
const scenarios = "f1 f2 f3 f4 r10 r11 r3 r5 t1 t2 t4 t5 t6 v10 v1 v2 v3 v3b v4 v4b v5 v5b v6 v7 v7b v8 v8b v9 " +
	"d1 r4 " +
	"m1 m2 m3 r6 r7 t7 " +
	"r9 v11 v12 " +
	"h1 h2"

// Every pass of the reference, field by field (engine notes §15 are excerpts
// of these runs).
func TestScenarios(t *testing.T) {
	for _, id := range strings.Fields(scenarios) {
		t.Run(id, func(t *testing.T) {
			paths, err := filepath.Glob(filepath.Join(scenarioDir, id+"_*.json"))
			if err != nil || len(paths) != 1 {
				t.Fatalf("found %v, want one file (%v)", paths, err)
			}
			s, err := golden.Load(paths[0])
			if err != nil {
				t.Fatal(err)
			}
			differences, err := golden.Run(s)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range differences {
				t.Error(d)
			}
		})
	}
}
