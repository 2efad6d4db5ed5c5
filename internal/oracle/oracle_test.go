package oracle

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/dryserve/dryserve/internal/gen"
)

// TestMain lets the test binary play the reference's worker.
func TestMain(m *testing.M) {
	if os.Getenv("ORACLE_TEST_WORKER") != "" {
		playWorker()
		return
	}
	os.Exit(m.Run())
}

// playWorker answers each question by what its kwargs ask for.
func playWorker() {
	fmt.Println(`{"ready": true}`)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var q question
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			panic(err)
		}
		if say, ok := q.Kwargs["say"].(string); ok {
			fmt.Println(say)
		} else {
			fmt.Fprintln(os.Stderr, "the worker's last words")
			os.Exit(3)
		}
	}
}

func fakeReference(t *testing.T) *Reference {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "ORACLE_TEST_WORKER=1")
	r, err := startWorker(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func ask(t *testing.T, r *Reference, kwargs map[string]any) (Answer, error) {
	t.Helper()
	return r.Ask(t.TempDir(), &gen.ReplayCase{Kwargs: kwargs}, time.Second)
}

func TestReferenceProtocol(t *testing.T) {
	r := fakeReference(t)
	for _, c := range []struct {
		say  string
		want Answer
	}{
		{`{"report": {"a": 1}, "requests": [{"b": null}]}`,
			Answer{Report: map[string]any{"a": 1.0}, Requests: []map[string]any{{"b": nil}}}},
		{`{"error": "ValueError: no"}`, Answer{Outcome: Refused, Error: "ValueError: no"}},
		{`{"error": "Exception: an effect-free zero-duration pass with 3 in-flight requests"}`,
			Answer{Outcome: DeadEnd, Error: "Exception: an effect-free zero-duration pass with 3 in-flight requests"}},
		{`{"timeout": true}`, Answer{Outcome: NoEnd}},
		{`{"died": "exit code -6"}`, Answer{Outcome: Crash, Error: "exit code -6"}},
	} {
		got, err := ask(t, r, map[string]any{"say": c.say})
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s gives %+v, want %+v", c.say, got, c.want)
		}
	}
	if _, err := ask(t, r, map[string]any{"say": `{}`}); err == nil {
		t.Error("an empty answer was accepted")
	}
	if _, err := ask(t, r, map[string]any{"say": `no JSON`}); err == nil {
		t.Error("an answer that is no JSON was accepted")
	}
	if _, err := ask(t, r, nil); err == nil || !strings.Contains(err.Error(), "the worker's last words") {
		t.Errorf("the worker's end gives the error %v", err)
	}
}

func TestReferenceThatDoesNotLoad(t *testing.T) {
	_, err := startWorker(exec.Command("sh", "-c", "echo no module named dynamo >&2; exit 1"))
	if err == nil || !strings.Contains(err.Error(), "no module named dynamo") {
		t.Errorf("the error is %v", err)
	}
}

// report is a small report that is consistent with itself.
func sampleReport() map[string]any {
	return map[string]any{
		"num_requests": 2.0, "completed_requests": 1.0, "rejected_requests": 1.0, "failed_requests": 0.0,
		"cancelled_requests": 0.0, "unfinished_requests": 0.0,
		"mean_ttft_ms": 10.0, "std_ttft_ms": 3.0, "num_ttft_samples": 1.0,
		"std_itl_ms": 3.0, "duration_ms": 99.25, "power_w": nil,
	}
}

// theirs is the report as the reference writes it.
func theirs() map[string]any {
	r := sampleReport()
	for _, key := range ownFields {
		delete(r, key)
	}
	return r
}

func TestCompareReports(t *testing.T) {
	up := func(x float64) float64 { return x + x*0x1p-52 }
	for _, c := range []struct {
		name   string
		change func(reference, ours map[string]any)
		equal  bool
	}{
		{"same", func(r, o map[string]any) {}, true},
		{"last bit", func(r, o map[string]any) { o["duration_ms"] = up(99.25) }, false},
		{"negative zero", func(r, o map[string]any) { r["x"], o["x"] = 0.0, 1/negativeInfinity() }, false},
		{"missing field", func(r, o map[string]any) { delete(o, "power_w") }, false},
		{"null is not zero", func(r, o map[string]any) { o["power_w"] = 0.0 }, false},
		{"field of ours", func(r, o map[string]any) { o["novelty"] = 1.0 }, false},
		{"wall clock", func(r, o map[string]any) { r["wall_time_ms"], o["wall_time_ms"] = 1.0, 2.0 }, true},
		{"wall clock of one side", func(r, o map[string]any) { o["wall_time_ms"] = 2.0 }, true},
		{"std of permuted samples", func(r, o map[string]any) { o["std_ttft_ms"] = up(3) }, true},
		{"std of permuted samples, too far", func(r, o map[string]any) { o["std_ttft_ms"] = 3.0 + 1e-11 }, false},
		{"std of many samples", func(r, o map[string]any) {
			r["num_ttft_samples"], o["num_ttft_samples"], o["std_ttft_ms"] = 4097.0, 4097.0, up(3)
		}, false},
		{"std of rounding noise", func(r, o map[string]any) { r["std_ttft_ms"], o["std_ttft_ms"] = 0.0, 1e-15 }, true},
		{"std of a running sum", func(r, o map[string]any) { o["std_itl_ms"] = up(3) }, false},
		{"a request lost", func(r, o map[string]any) { o["rejected_requests"] = 0.0 }, false},
		{"a counter missing", func(r, o map[string]any) { delete(o, "failed_requests") }, false},
	} {
		reference, ours := theirs(), sampleReport()
		c.change(reference, ours)
		if diffs := CompareReports(reference, ours); (diffs == nil) != c.equal {
			t.Errorf("%s: differences %q", c.name, diffs)
		}
	}
}

func negativeInfinity() float64 { zero := 0.0; return -1 / zero }

func TestCompareRequests(t *testing.T) {
	record := func(uuid string, end float64, more ...any) map[string]any {
		r := map[string]any{"uuid": uuid, "terminal_time_ms": end, "session_id": nil, "pressure_record_ordinals": []any{}}
		for i := 0; i < len(more); i += 2 {
			r[more[i].(string)] = more[i+1]
		}
		return r
	}
	type list = []map[string]any
	for _, c := range []struct {
		name            string
		reference, ours list
		equal           bool
	}{
		{"other order and other names", list{record("a", 1), record("b", 2)}, list{record("c", 2), record("d", 1)}, true},
		{"null is absent", list{record("a", 1)}, list{{"terminal_time_ms": 1.0}}, true},
		{"a time's last bit", list{record("a", 1)}, list{record("a", 1+0x1p-52)}, false},
		{"one too few", list{record("a", 1), record("b", 1)}, list{record("a", 1)}, false},
		{"one too many", list{record("a", 1)}, list{record("a", 1), record("b", 1)}, false},
		{"duplicates count", list{record("a", 1), record("b", 1), record("c", 2)}, list{record("a", 1), record("b", 2), record("c", 2)}, false},
		{"inner lists", list{record("a", 1, "h", []any{1.0})}, list{record("a", 1, "h", []any{2.0})}, false},
	} {
		if diffs := compareRequests(c.reference, c.ours); (diffs == nil) != c.equal {
			t.Errorf("%s: differences %q", c.name, diffs)
		}
	}
}

func TestCompareOutcomes(t *testing.T) {
	dead := func(n int) Answer {
		return Answer{Outcome: DeadEnd, Error: fmt.Sprintf("a dead end with %d in-flight requests", n)}
	}
	finished := Answer{Report: sampleReport()}
	for _, c := range []struct {
		name            string
		reference, ours Answer
		equal           bool
	}{
		{"both refuse", Answer{Outcome: Refused, Error: "no"}, Answer{Outcome: Refused, Error: "never"}, true},
		{"one refuses", Answer{Outcome: Refused}, finished, false},
		{"the other refuses", finished, Answer{Outcome: Refused}, false},
		{"dead ends", dead(2), dead(2), true},
		{"dead ends with other requests", dead(2), dead(3), false},
		{"a dead end is no refusal", dead(2), Answer{Outcome: Refused}, false},
		{"neither ends", Answer{Outcome: NoEnd}, Answer{Outcome: NoEnd}, true},
		{"ours ends", Answer{Outcome: NoEnd}, finished, false},
		{"both crash", Answer{Outcome: Crash}, Answer{Outcome: Crash}, false},
	} {
		if diffs := Compare(c.reference, c.ours); (diffs == nil) != c.equal {
			t.Errorf("%s: differences %q", c.name, diffs)
		}
	}
}

// A case that differs because of one row and one setting shrinks to them.
func TestShrinkFindsTheCause(t *testing.T) {
	shrunk := 0
	for seed := range uint64(60) {
		c := gen.Case(seed)
		if len(c.Rows) < 4 || c.Engine()["preemption_mode"] != "fifo" || c.Rows[2].OutputLength == nil || *c.Rows[2].OutputLength < 2 {
			continue
		}
		shrunk++
		before := string(c.Trace())
		guilty := c.Rows[2].HashIDs[0]
		small, minimal := Shrink(c, func(c *gen.ReplayCase) bool {
			for _, row := range c.Rows {
				if row.OutputLength != nil && *row.OutputLength >= 2 && row.HashIDs[0] == guilty {
					return c.Engine()["preemption_mode"] == "fifo"
				}
			}
			return false
		}, 2000)
		if !minimal {
			t.Errorf("seed %d: shrinking did not come to an end", seed)
		}
		if len(small.Rows) != 1 || len(small.Rows[0].HashIDs) != 1 || *small.Rows[0].OutputLength > 3 || small.Rows[0].SessionID != nil {
			t.Errorf("seed %d: the rows are still\n%s", seed, small.Trace())
		}
		want := map[string]any{"backend": "vllm", "preemption_mode": "fifo", "timing_model": small.Engine()["timing_model"]}
		if !reflect.DeepEqual(small.Engine(), want) || len(small.Kwargs) != 1 {
			t.Errorf("seed %d: the settings are still %v", seed, small.Kwargs)
		}
		if string(c.Trace()) != before {
			t.Errorf("seed %d: shrinking changed the original", seed)
		}
	}
	if shrunk < 3 {
		t.Errorf("only %d cases were shrunk", shrunk)
	}
}

func TestShrinkKeepsToItsBudget(t *testing.T) {
	asked := 0
	_, minimal := Shrink(gen.Case(1), func(*gen.ReplayCase) bool { asked++; return asked%2 == 0 }, 5)
	if asked != 5 || minimal {
		t.Errorf("asked %d times, minimal %v", asked, minimal)
	}
}

func TestRecordedCasesSurviveTheDisk(t *testing.T) {
	c := gen.Case(3)
	for name, answer := range map[string]Answer{ // one of them with a profile
		"finished": {Report: map[string]any{"a": 0.1, "b": nil}, Requests: []map[string]any{{"t": 1e-7}, {"t": 3.0}}},
		"refused":  {Outcome: Refused, Error: "ValueError: no"},
		"deadend":  {Outcome: DeadEnd, Error: "reached a dead end with 1 in-flight requests remaining"},
	} {
		c.Name = name
		c.Profile = nil
		if name == "finished" {
			c.Profile = []byte("PK\x00")
		}
		recorded, err := NewRecorded(c, answer)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := recorded.Save(dir); err != nil {
			t.Fatal(err)
		}
		loaded, err := Load(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(loaded.Answer(), answer) {
			t.Errorf("%s: saved %+v, loaded %+v", name, answer, loaded.Answer())
		}
		if loaded.Trace != string(c.Trace()) || !bytes.Equal(loaded.Profile, c.Profile) || show(loaded.Case.Kwargs) != show(c.Kwargs) {
			t.Errorf("%s: the case changed on disk", name)
		}
	}
	for _, outcome := range []Outcome{NoEnd, Crash} {
		if _, err := NewRecorded(c, Answer{Outcome: outcome}); err == nil {
			t.Errorf("an answer that %s was recorded", outcome)
		}
	}
}

// checkRecorded compares ours with a recorded answer.
func checkRecorded(t *testing.T, r *Recorded) {
	t.Helper()
	dir := t.TempDir()
	if err := r.WriteInputs(dir); err != nil {
		t.Fatal(err)
	}
	if diffs := Compare(r.Answer(), Ours(dir, &r.Case, r.Answer())); diffs != nil {
		t.Errorf("%s %s\n%s%s", r.Case.Name, show(r.Case.Kwargs), r.Trace, strings.Join(diffs, "\n"))
	}
}

// TestRegressions replays every case that once differed.
func TestRegressions(t *testing.T) {
	cases, err := filepath.Glob("../../testdata/oracle/regressions/*/" + answerDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range cases {
		top := filepath.Dir(dir)
		t.Run(filepath.Base(top), func(t *testing.T) {
			r, err := Load(top)
			if err != nil {
				t.Fatal(err)
			}
			checkRecorded(t, &r)
		})
	}
}

// TestKnownDifferences keeps the cases that are known to differ
// (docs/deviations.md, "Known differences"): one that does so no more belongs
// to the regressions.
func TestKnownDifferences(t *testing.T) {
	cases, err := filepath.Glob("../../testdata/oracle/known/*/" + answerDir)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/deviations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range cases {
		top := filepath.Dir(dir)
		name := filepath.Base(top)
		r, err := Load(top)
		if err != nil {
			t.Fatal(err)
		}
		at := t.TempDir()
		if err := r.WriteInputs(at); err != nil {
			t.Fatal(err)
		}
		if Compare(r.Answer(), Ours(at, &r.Case, r.Answer())) == nil {
			t.Errorf("%s differs no more; move it to testdata/oracle/regressions", name)
		}
		if !bytes.Contains(page, []byte("`"+name+"`")) {
			t.Errorf("docs/deviations.md does not name %s", name)
		}
	}
}

// TestCorpus compares ours with the reference's recorded answers to random
// cases.
func TestCorpus(t *testing.T) {
	for name, want := range map[string]map[Outcome]int{
		"corpus":         {Finished: 200, Refused: 5, DeadEnd: 10},
		"corpus-dp":      {Finished: 100, Refused: 5, DeadEnd: 5},
		"corpus-g2":      {Finished: 100, Refused: 5, DeadEnd: 10},
		"corpus-g3":      {Finished: 100, Refused: 2, DeadEnd: 10},
		"corpus-mtp":     {Finished: 100, Refused: 5, DeadEnd: 5},
		"corpus-npz":     {Finished: 75, Refused: 5, DeadEnd: 5},
		"corpus-syn":     {Finished: 100, Refused: 3, DeadEnd: 3},
		"corpus-kv":      {Finished: 80, Refused: 3, DeadEnd: 5},
		"corpus-kvg2":    {Finished: 40, DeadEnd: 5},
		"corpus-formats": {Finished: 150, Refused: 20, DeadEnd: 20},
		"corpus-pd":      {Finished: 180, Refused: 15, DeadEnd: 20},

		"corpus-scale":     {Finished: 80, Refused: 5, DeadEnd: 5, Nobody: 2},
		"corpus-telemetry": {Finished: 70, Refused: 3, DeadEnd: 5},
		"corpus-scalepd":   {Finished: 60, Refused: 3, DeadEnd: 5},
	} {
		text, err := os.ReadFile("../../testdata/oracle/" + name + ".jsonl.gz")
		if err != nil {
			t.Fatal(err)
		}
		outcomes := map[Outcome]int{}
		err = ReadCorpus(bytes.NewReader(text), func(r *Recorded) error {
			outcomes[r.Answer().Outcome]++
			checkRecorded(t, r)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for outcome, least := range want {
			if outcomes[outcome] < least {
				t.Errorf("%s has %d cases that %s, want at least %d", name, outcomes[outcome], outcome, least)
			}
		}
	}
}

// A recorded answer with one bit changed must be noticed.
func TestRecordedAnswersAreCompared(t *testing.T) {
	dir := t.TempDir()
	c := gen.Case(2)
	if err := c.WriteInputs(dir); err != nil {
		t.Fatal(err)
	}
	ours := Ours(dir, c, Answer{})
	if ours.Outcome != Finished || len(ours.Requests) == 0 {
		t.Fatalf("seed 2 %s; this test needs a case that finishes", outcomeText(ours))
	}
	reference := Answer{Report: maps.Clone(ours.Report), Requests: ours.Requests}
	for _, key := range ownFields {
		delete(reference.Report, key)
	}
	if diffs := Compare(reference, ours); diffs != nil {
		t.Fatalf("an answer differs from itself: %q", diffs)
	}
	reference.Report["duration_ms"] = ours.Report["duration_ms"].(float64) * (1 + 0x1p-52)
	if diffs := Compare(reference, ours); len(diffs) != 1 {
		t.Errorf("one changed bit gives %q", diffs)
	}
}

func TestCorpusReaderReportsDamage(t *testing.T) {
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	fmt.Fprintln(zip, `{"case": {"name": "x"}}`)
	fmt.Fprintln(zip, `{"case": `)
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	seen := 0
	err := ReadCorpus(&b, func(*Recorded) error { seen++; return nil })
	if err == nil || seen != 1 {
		t.Errorf("read %d cases with the error %v", seen, err)
	}
}
