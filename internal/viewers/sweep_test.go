package viewers_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSweepPage looks at a page of a sweep with points on the front, beside it,
// outside, and failed ones: each kind has a shape of its own, and every latency
// that can be chosen has its own picture.
func TestSweepPage(t *testing.T) {
	dir := t.TempDir()
	trace, err := filepath.Abs("../../examples/conversation-2k.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	scenario, page := filepath.Join(dir, "fleet.yaml"), filepath.Join(dir, "page.html")
	file := "trace: " + trace + `
sweep:
  num-workers: [0, 1, 2, 4]
  extra-engine-args.engine.num_gpu_blocks: [4096, 16384]
  router-mode: [round_robin, power-of-two]
sla: {p99-ttft-ms: 2500}
`
	if err := os.WriteFile(scenario, []byte(file), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "sweep", scenario, "--output", filepath.Join(dir, "out"), "--report-html", page, "--json")
	text, err := cmd.Output()
	if cmd.ProcessState.ExitCode() != 1 { // four points failed
		t.Fatalf("%v: %s", err, text)
	}
	var results struct {
		Points []struct {
			Error  string
			Meets  bool `json:"meets_sla"`
			TTFT   bool `json:"ttft_front"`
			ITL    bool `json:"itl_front"`
			Report map[string]any
		}
	}
	if err := json.Unmarshal(text, &results); err != nil {
		t.Fatal(err)
	}
	points, outside, ttft, itl := 0, 0, 0, 0
	for _, p := range results.Points {
		switch {
		case p.Error != "":
			continue
		case !p.Meets:
			outside++
		}
		points++
		for on, n := range map[*int]bool{&ttft: p.TTFT, &itl: p.ITL} {
			if n {
				*on++
			}
		}
	}
	if points != 12 || outside == 0 || ttft == 0 || itl == 0 || ttft+outside == points {
		t.Fatalf("the sweep shows too little: %d points, %d outside, %d and %d on fronts", points, outside, ttft, itl)
	}

	seen, err := tools.Look(page, dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range seen.Views {
		t.Run(fmt.Sprintf("%d %s", v.Width, v.Scheme), func(t *testing.T) {
			if len(v.Told) > 0 || v.Title != "Sweep of fleet.yaml" || v.PageWidth > v.Width {
				t.Errorf("%q, %q, %d px", v.Told, v.Title, v.PageWidth)
			}
			checkPixels(t, &v)
			rows := map[string]int{}
			for _, f := range v.Figures {
				rows[f.ID] = f.Rows
				if len(f.Overflow) > 0 {
					t.Errorf("%s: labels are cut off: %q", f.ID, f.Overflow)
				}
				if f.ID == "pareto" && (len(f.Series) != 1 || f.Series[0].Length < 20 || !strings.HasPrefix(f.Label, "Pareto front: output tokens/s per GPU by TTFT, p50. ")) {
					t.Errorf("the front: %+v", f)
				}
			}
			if _, failed := rows["failed"]; rows["points"] != points || !failed {
				t.Errorf("figures with rows: %v", rows)
			}
		})
	}
	keys := &seen.Keys
	if len(keys.Told) > 0 {
		t.Errorf("the browser tells: %s", strings.Join(keys.Told, "; "))
	}
	reached := map[string]bool{}
	for _, stop := range keys.Stops {
		reached[fmt.Sprint(stop[0], " ", stop[1])] = true
		if stop[0] != "svg" {
			continue
		}
		said := stop[3].([]any) // on focus, Home, ArrowRight, End, Escape
		if said[0] == nil || !strings.Contains(said[0].(string), ", on the front") || said[1] == said[2] || said[2] == said[3] || said[4] != nil {
			t.Errorf("the cursor tells %q", said)
		}
	}
	for _, want := range []string{"select pareto", "svg pareto", "button points", "div points"} {
		if !reached[want] {
			t.Errorf("%s is not reached by keys", want)
		}
	}
	if len(keys.Choices) != 18 {
		t.Fatalf("%d latencies can be chosen", len(keys.Choices))
	}
	lines := map[string]string{}
	for _, c := range keys.Choices {
		if c.Points != points || c.Outside != outside {
			t.Errorf("%s: %d points, %d outside, want %d and %d", c.Name, c.Points, c.Outside, points, outside)
		}
		if limited := c.Name == "TTFT, p99"; (c.Marks == 1) != limited {
			t.Errorf("%s: %d limits", c.Name, c.Marks)
		}
		lines[c.Line] = c.Name
		if want, ok := map[string]int{"TTFT, p50": ttft, "ITL, p50": itl}[c.Name]; ok && c.Front != want {
			t.Errorf("%s: %d on the front, want %d", c.Name, c.Front, want)
		}
	}
	if len(lines) < 10 {
		t.Errorf("18 latencies have %d different fronts", len(lines))
	}
}
