package sglang_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/internal/golden"
)

const scenarioDir = "../../testdata/engine"

// scenarios are the recorded runs that must be there, by the first word of
// their file names.
const scenarios = "g1 g2 g3 g4 g5 g6 g7 g8 g9 g10 g11 g12 g13 r1 r2 r8 t3"

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
