package bench

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test binary play both programs.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv("BENCH_TEST") == "":
		os.Exit(m.Run())
	case slices.Contains(os.Args, "fail.jsonl"):
		fmt.Fprintln(os.Stderr, "no such trace")
		os.Exit(1)
	case os.Args[1] == "-c":
		playReference()
	default:
		playOurs()
	}
}

// fakeReport is consistent with itself; more is added to it.
func fakeReport(more map[string]any) map[string]any {
	report := map[string]any{"num_requests": 7, "completed_requests": 7, "duration_ms": 5.5}
	for key, value := range more {
		report[key] = value
	}
	return report
}

func playReference() {
	text, err := json.Marshal(map[string]any{"wall_s": 1.5, "report": fakeReport(map[string]any{"wall_time_ms": 1500.0})})
	if err != nil {
		panic(err)
	}
	fmt.Println(string(text))
}

func playOurs() {
	ends := map[string]any{"rejected_requests": 0, "failed_requests": 0, "cancelled_requests": 0, "unfinished_requests": 0}
	if slices.Contains(os.Args, "wrong.jsonl") {
		ends["duration_ms"] = 5.6
	}
	text, err := json.Marshal(fakeReport(ends))
	if err != nil {
		panic(err)
	}
	path := os.Args[slices.Index(os.Args, "--report-json")+1]
	if err := os.WriteFile(path, text, 0o644); err != nil {
		panic(err)
	}
}

func TestMeasure(t *testing.T) {
	t.Setenv("BENCH_TEST", "1")
	both := Programs{Ours: os.Args[0], Python: os.Args[0]}
	r, err := both.Measure(Job{Name: "x", Trace: "x.jsonl", Workers: 4}, 3)
	if err != nil {
		t.Fatal(err)
	}
	if r.Requests != 7 || len(r.Ours) != 3 || len(r.Reference) != 3 || r.Differences != nil {
		t.Errorf("measured %+v", r)
	}
	if r.Reference[0].Wall != 1500*time.Millisecond {
		t.Errorf("the reference's time is %v, not that of its call", r.Reference[0].Wall)
	}
	for _, s := range append(r.Ours, r.Reference...) {
		if s.PeakMB < 1 || s.PeakMB > 1000 || s.Wall <= 0 {
			t.Errorf("a run took %v and %v MB", s.Wall, s.PeakMB)
		}
	}
	if r, err = both.Measure(Job{Trace: "wrong.jsonl"}, 1); err != nil || len(r.Differences) != 1 {
		t.Errorf("a wrong answer gives the differences %q and the error %v", r.Differences, err)
	}
	if r, err = both.Measure(Job{Trace: "wrong.jsonl", Router: "kv_router"}, 1); err != nil || r.Differences != nil {
		t.Errorf("a duration that lots may change gives the differences %q and the error %v", r.Differences, err)
	}
	if r, err = both.Measure(Job{Trace: "x.jsonl", Cache: "wasm"}, 2); err != nil || len(r.Ours) != 2 {
		t.Errorf("in WebAssembly: %+v, %v", r, err)
	}
	alone := Programs{Ours: os.Args[0]}
	if r, err = alone.Measure(Job{Trace: "wrong.jsonl"}, 2); err != nil || len(r.Reference) != 0 || len(r.Ours) != 2 {
		t.Errorf("alone: %+v, %v", r, err)
	}
	if _, err = alone.Measure(Job{Trace: "fail.jsonl"}, 1); err == nil || !strings.Contains(err.Error(), "no such trace") {
		t.Errorf("a failing run gives the error %v", err)
	}
}

// The peak is that of the process measured, in megabytes.
func TestPeakMemory(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("needs python3")
	}
	peak := func(program string) float64 {
		s, _, err := timed(exec.Command("python3", "-c", program))
		if err != nil {
			t.Fatal(err)
		}
		if s.AtMost {
			t.Errorf("%s: %.1f MB are said to be hidden by this process", program, s.PeakMB)
		}
		return s.PeakMB
	}
	extra := peak("x = bytearray(300 << 20)") - peak("x = bytearray(200 << 20)")
	if math.Abs(extra-100) > 10 {
		t.Errorf("100 MB more show as %.1f MB", extra)
	}
}

// A process smaller than this one cannot be measured, and says so.
func TestHiddenPeak(t *testing.T) {
	ballast := make([]byte, 200<<20)
	for i := 0; i < len(ballast); i += 512 {
		ballast[i] = 1
	}
	s, _, err := timed(exec.Command("true"))
	runtime.KeepAlive(ballast)
	if err != nil {
		t.Fatal(err)
	}
	if !s.AtMost {
		t.Errorf("%.1f MB are taken for the peak of a process that needs hardly any", s.PeakMB)
	}
}

func samples(seconds ...float64) []Sample {
	var list []Sample
	for i, s := range seconds {
		list = append(list, Sample{Wall: time.Duration(s * 1e9), PeakMB: float64(10 * (i + 1))})
	}
	return list
}

func TestSummarise(t *testing.T) {
	for _, c := range []struct {
		samples []Sample
		want    span
	}{
		{samples(3, 1, 2), span{1, 2, 30, false}},
		{samples(4, 1, 2, 3), span{1, 2.5, 40, false}},
		{samples(5), span{5, 5, 10, false}},
	} {
		if got := summarise(c.samples); got != c.want {
			t.Errorf("%v gives %v, want %v", c.samples, got, c.want)
		}
	}
}

func TestTable(t *testing.T) {
	results := []Result{
		{Job: Job{Name: "a", Workers: 4}, Requests: 1000, Ours: samples(1, 2), Reference: samples(30, 15)},
		{Job: Job{Name: "b", Workers: 1}, Requests: 10_000, Ours: samples(3), Reference: samples(60), Differences: []string{"x", "y"}},
		{Job: Job{Name: "c", Workers: 1}, Requests: 5, Ours: samples(3)},
	}
	var out strings.Builder
	if err := WriteTable(&out, results); err != nil {
		t.Fatal(err)
	}
	WriteGrowth(&out, results[0], results[1])
	WriteSandbox(&out, append(results, Result{Job: Job{Name: "a in wasm", Workers: 4, Cache: "x"}, Ours: samples(4, 8)}))
	var lines []string
	for line := range strings.Lines(out.String()) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	for i, want := range []string{
		"trace workers requests ours min median MB reference min median MB time ratio memory ratio answers",
		"a 4 1000 1.000 1.500 20 15.000 22.500 20 15.0 1.0 equal",
		"b 1 10000 3.000 3.000 10 60.000 60.000 10 20.0 1.0 2 DIFFER",
		"c 1 5 3.000 3.000 10 - - - - - -",
		"ours: 1500.00 us per request on a with 4 workers, 300.00 on b with 1: x 0.20",
		"reference: 22500.00 us per request on a with 4 workers, 6000.00 on b with 1: x 0.27",
		"WebAssembly: a with 4 workers takes 4.0 times as long as natively (best of each: 4.0)",
	} {
		if i >= len(lines) || lines[i] != want {
			t.Errorf("line %d is not %q in\n%s", i, want, out.String())
		}
	}
}
