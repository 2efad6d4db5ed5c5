package sweep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/host/native/scenario"
)

func axis(name string, values ...string) scenario.Axis {
	parts := strings.Split(name, ".")
	a := scenario.Axis{Key: parts[0], Path: parts[1:]}
	for _, v := range values {
		a.Values = append(a.Values, scenario.Value{Text: v, JSON: len(parts) > 1, Null: v == ""})
	}
	return a
}

func TestPoints(t *testing.T) {
	points, err := Points([][]scenario.Axis{
		{axis("a", "1", "x"), axis("b.c", "true", `{"d":1}`), axis("e", "")},
		{axis("a", "0017", "inf", "1e999")},
		{},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range points {
		text, err := json.Marshal(SettingsOf(p))
		if err != nil {
			t.Fatal(err)
		}
		var back Settings
		if err := json.Unmarshal(text, &back); err != nil || len(p) > 0 && !reflect.DeepEqual(back, SettingsOf(p)) {
			t.Errorf("%s is read back as %v, %v", text, back, err)
		}
		got = append(got, string(text))
	}
	want := []string{
		`{"a":1,"b.c":true,"e":null}`, `{"a":1,"b.c":{"d":1},"e":null}`, `{"a":"x","b.c":true,"e":null}`, `{"a":"x","b.c":{"d":1},"e":null}`,
		`{"a":"0017"}`, `{"a":"inf"}`, `{"a":"1e999"}`, `{}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	many := axis("a", make([]string, 1000)...)
	if _, err := Points([][]scenario.Axis{{many, many}}); err == nil || err.Error() != "the sweep has more than 100000 points; fewer values are accepted" {
		t.Error(err)
	}
}

func TestSplice(t *testing.T) {
	for _, c := range []struct{ text, path, value, want string }{
		{`{}`, "a", "1", `{"a":1}`},
		{`{}`, "a.b.c", "[1]", `{"a":{"b":{"c":[1]}}}`},
		{`{"a": 2 , "b":3}`, "a", "1", `{"a": 1 , "b":3}`},
		{"{\n \"x\": {\"y\": 1},\n \"b\": 3}", "x.z", `"t"`, "{\n \"x\": {\"z\":\"t\",\"y\": 1},\n \"b\": 3}"},
		{`{"x":{"y":{"z":1}},"y":{"z":2}}`, "y.z", "3", `{"x":{"y":{"z":1}},"y":{"z":3}}`},
		{`{"a":1,"a":2}`, "a", "3", `{"a":1,"a":3}`},
		{`{"a\"b":1}`, `a"b`, "3", `{"a\"b":3}`},
		{` [1]`, "a", "3", ` [1]`},
		{`{"a":`, "a", "3", `{"a":`},
		{`{"a":{"b":1}`, "a.b", "3", `{"a":{"b":3}`}, // its reader misses the brace, too
		{``, "a", "3", ``},
	} {
		got, err := Splice(c.text, strings.Split(c.path, "."), c.value)
		if err != nil || got != c.want {
			t.Errorf("%s: %s = %s gives %s, %v, want %s", c.text, c.path, c.value, got, err, c.want)
		}
	}
	if _, err := Splice(`{"a":[1,2]}`, []string{"a", "b"}, "1"); err == nil || err.Error() != `a is "[1,2]"; an object is accepted, as a.b is set in it` {
		t.Error(err)
	}
}

// Digests differ where anything does, also in what pointers lead to, and agree
// for copies.
func TestDigest(t *testing.T) {
	type inner struct{ x []float64 }
	type outer struct {
		A int
		B string
		C *inner
		D [2]bool
	}
	make1 := func() outer { return outer{A: 1, B: "b", C: &inner{[]float64{1, 2}}} }
	want := Digest(make1())
	if got := Digest(make1()); got != want || len(got) != 32 {
		t.Errorf("%s, %s", got, want)
	}
	seen := map[string]int{want: -1}
	for i, change := range []func(*outer){
		func(o *outer) { o.A = 2 }, func(o *outer) { o.B = "c" }, func(o *outer) { o.C = nil }, func(o *outer) { o.C.x[1] = math.NaN() },
		func(o *outer) { o.C.x = o.C.x[:1] }, func(o *outer) { o.D[1] = true }, func(o *outer) { o.C.x[0] = math.Copysign(0, -1) }, func(o *outer) { o.C.x[0] = 0 },
	} {
		o := make1()
		change(&o)
		d := Digest(o)
		if k, ok := seen[d]; ok {
			t.Errorf("changes %d and %d have one digest", i, k)
		}
		seen[d] = i
	}
	if Digest("a", "bc") == Digest("ab", "c") {
		t.Error("texts run into each other")
	}
}

func TestContent(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("d/x", "1")
	write("d/y", "2")
	write("f", "1")
	at := func(names ...string) string {
		for i := range names {
			names[i] = filepath.Join(dir, names[i])
		}
		c, err := Content(names...)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	one, two := at("d"), at("f", "d/y")
	if at("f") != at("d/x") || one == two || at("d/y", "f") == two {
		t.Error("contents are mixed up")
	}
	write("d/z", "")
	if at("d") == one {
		t.Error("another file makes no difference")
	}
	if _, err := Content(filepath.Join(dir, "none")); err == nil || !strings.HasSuffix(err.Error(), "none: cannot be read: no such file or directory") {
		t.Error(err)
	}
}

func outcome(digest string, gpus, tokens, ttft float64) *Outcome {
	return &Outcome{Digest: digest, Settings: Settings{{"num-workers", json.RawMessage("2")}}, GPUs: gpus,
		Report: fmt.Appendf(nil, `{"output_throughput_tok_s":%v,"median_ttft_ms":%v,"completed_requests":5,"rejected_requests":0,"failed_requests":0}`, tokens, ttft)}
}

func TestStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil || !strings.HasPrefix(err.Error(), "another sweep writes "+s.Path) {
		t.Errorf("opened twice: %v", err)
	}
	failed := &Outcome{Digest: "2", Settings: Settings{}, Error: "no"}
	for range 2 {
		if err := s.Add(outcome("1", 4, 8, 3), failed); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	want, _ := os.ReadFile(s.Path)
	if n := strings.Count(string(want), "\n"); n != 2 {
		t.Fatalf("%d lines:\n%s", n, want)
	}
	// What an interruption may leave at the end goes away, wherever it was cut.
	next, _ := json.Marshal(outcome("3", 1, 1, 1))
	for cut := range len(next) + 1 {
		if err := os.WriteFile(s.Path, slices.Concat(want, next[:cut]), 0o666); err != nil {
			t.Fatal(err)
		}
		s, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if s.Torn != cut || s.Outcome("1").PerGPU() != 2 || s.Outcome("2").Error != "no" || s.Outcome("3") != nil {
			t.Errorf("cut at %d: %+v", cut, s)
		}
		if err := s.Add(outcome("4", 1, 1, 1)); err != nil {
			t.Fatal(err)
		}
		s.Close()
		if got, _ := os.ReadFile(s.Path); !strings.HasPrefix(string(got), string(want)) || strings.Count(string(got), "\n") != 3 {
			t.Fatalf("cut at %d:\n%s", cut, got)
		}
	}
	for _, bad := range []string{"x", "{}", `{"digest":"1"}`, `{"digest":"1","error":"x","report":{}}`, `{"digest":"1","gpus":1,"report":[]}`, `{"digest":"1","report":{}}`} {
		os.WriteFile(s.Path, slices.Concat(want, []byte(bad+"\n")), 0o666)
		if s, err := Open(dir); err == nil || !strings.HasPrefix(err.Error(), filepath.Join(dir, ResultsFile)+":3: found ") {
			t.Errorf("%s: %v, %v", bad, s, err)
		}
	}
}

// Every result is kept once, whatever ends the run.
func TestRun(t *testing.T) {
	const n = 200
	do := func(_ context.Context, i int) (*Outcome, error) {
		switch i % 50 {
		case 7:
			panic("oh")
		case 8:
			return nil, errors.New("passing")
		}
		return &Outcome{Digest: fmt.Sprint(i)}, nil
	}
	for _, jobs := range []int{1, 3} {
		var kept []int
		broken := 0
		keep := func(rs []Result) error {
			for _, r := range rs {
				kept = append(kept, r.Task)
				if r.Err != nil {
					broken++
				} else if r.Outcome.Digest != fmt.Sprint(r.Task) {
					t.Errorf("task %d gave %v", r.Task, r.Outcome)
				}
			}
			return nil
		}
		if err := Run(context.Background(), n, jobs, do, keep); err != nil {
			t.Fatal(err)
		}
		if slices.Sort(kept); len(kept) != n || len(slices.Compact(kept)) != n || broken != 8 {
			t.Errorf("%d jobs: kept %v, %d broken", jobs, kept, broken)
		}
		full := errors.New("full")
		calls := 0
		if err := Run(context.Background(), n, jobs, do, func([]Result) error { calls++; return full }); err != full || calls != 1 {
			t.Errorf("%v after %d calls", err, calls)
		}
		ctx, cancel := context.WithCancel(context.Background())
		begun, ended := make([]bool, n), 0
		err := Run(ctx, n, jobs, func(ctx context.Context, i int) (*Outcome, error) {
			begun[i] = true
			if i == 20 {
				cancel()
				return nil, ctx.Err()
			}
			return &Outcome{Digest: "x"}, nil
		}, func(rs []Result) error { ended += len(rs); return nil })
		some := 0
		for _, b := range begun {
			if b {
				some++
			}
		}
		if err != context.Canceled || some == n || ended != some-1 {
			t.Errorf("%d jobs: %v, %d begun, %d kept", jobs, err, some, ended)
		}
	}
}

// The front is what its definition says, for random points with many ties.
func TestFront(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		table := &Table{SLA: []scenario.Bound{{Key: "median_ttft_ms", Most: 8}}}
		for range random.IntN(12) {
			o := outcome("", float64(1+random.IntN(2)), float64(random.IntN(6)), float64(random.IntN(10)))
			if random.IntN(8) == 0 {
				o = []*Outcome{nil, {Error: "x"}, {GPUs: 1, Report: json.RawMessage(`{"output_throughput_tok_s":99,"median_ttft_ms":0,"completed_requests":1,"rejected_requests":1,"failed_requests":0}`)},
					{GPUs: 1, Report: json.RawMessage(`{"output_throughput_tok_s":0,"median_ttft_ms":0,"completed_requests":0,"rejected_requests":0,"failed_requests":0}`)}}[random.IntN(4)]
			}
			table.Points, table.Outcomes = append(table.Points, nil), append(table.Outcomes, o)
		}
		front := table.Front("median_ttft_ms")
		for i, a := range table.Outcomes {
			want := table.Meets(i)
			if want != (a != nil && a.Report != nil && a.Number("completed_requests") == 5 && a.Number("median_ttft_ms") <= 8) {
				t.Fatalf("point %d meets: %v", i, want)
			}
			for k, b := range table.Outcomes {
				if !want || !table.Meets(k) {
					continue
				}
				x, y, u, v := a.PerGPU(), a.Number("median_ttft_ms"), b.PerGPU(), b.Number("median_ttft_ms")
				want = !(u >= x && v <= y && (u > x || v < y))
			}
			if front[i] != want {
				t.Fatalf("point %d of %+v: %v, want %v", i, table.Outcomes, front[i], want)
			}
		}
		best := table.Best()
		for i, o := range table.Outcomes {
			if table.Meets(i) && (best < 0 || !table.Meets(best) || o.PerGPU() > table.Outcomes[best].PerGPU()) {
				t.Fatalf("of %+v, %d is the best", table.Outcomes, best)
			}
		}
	}
}

func TestTable(t *testing.T) {
	settings := func(blocks string) Settings {
		return Settings{{"num-workers", json.RawMessage("2")}, {"extra-engine-args.engine.num_gpu_blocks", json.RawMessage(blocks)}}
	}
	table := &Table{
		Points:   []Settings{settings("10"), settings("20"), settings("null"), settings("30"), settings("40")},
		Outcomes: []*Outcome{outcome("a", 2, 100, 50), outcome("b", 2, 300, 9), {Digest: "c", Error: "it is too small"}, nil, outcome("e", 2, 200, 5)},
		SLA:      []scenario.Bound{{Key: "median_ttft_ms", Most: 20}},
	}
	var b strings.Builder
	if err := table.WriteTable(&b, View{Order: "throughput", Statistic: "p50"}); err != nil {
		t.Fatal(err)
	}
	want := `Point  num_gpu_blocks  GPUs  tok/s/GPU  TTFT p50  p99  ITL p50  p99  E2E p50  hits  unserved  SLA  front
2                  20     2      150.0      9.00    -        -    -        -     -         0  yes   ttft
5                  40     2      100.0      5.00    -        -    -        -     -         0  yes   ttft
1                  10     2      50.00     50.00    -        -    -        -     -         0   no      -

Latencies in ms. front: on the Pareto front of tok/s/GPU and TTFT or ITL (p50), among the points that meet the SLA.
Best under the SLA (median_ttft_ms at most 20): point 2 (num_gpu_blocks 20), 150.0 tok/s/GPU on 2 GPUs.
Point 3 (num_gpu_blocks -) failed: it is too small
`
	if b.String() != want {
		t.Errorf("got\n%s", b.String())
	}
	// What all points have is no column, nor an object that is the same wherever it
	// is; what only some have tells them apart.
	object := func(s Settings, value string) Settings { return append(s, Setting{"x", json.RawMessage(value)}) }
	apart := &Table{Points: []Settings{settings("1"), object(settings("2"), `{"a":1}`), append(settings("2"), Setting{"y", json.RawMessage("5")})}}
	if got := apart.Columns(); !slices.Equal(got, []string{"extra-engine-args.engine.num_gpu_blocks", "y"}) || apart.label(2) != "num_gpu_blocks 2, y 5" {
		t.Errorf("columns %q, label %s", got, apart.label(2))
	}
	apart = &Table{Points: []Settings{object(settings("1"), `{"a":2}`), apart.Points[1], apart.Points[2]}}
	if got := apart.Columns(); len(got) != 3 {
		t.Errorf("columns %q", got)
	}
	b.Reset()
	if err := table.WriteJSON(&b, View{Order: "ttft", Statistic: "p50"}); err != nil {
		t.Fatal(err)
	}
	var got struct {
		SLA    map[string]float64
		Best   int
		Points []struct {
			Point  int
			Error  string
			Report map[string]float64
			PerGPU float64 `json:"output_tok_s_per_gpu"`
			Meets  *bool   `json:"meets_sla"`
			TTFT   bool    `json:"ttft_front"`
		}
	}
	if err := json.Unmarshal([]byte(b.String()), &got); err != nil {
		t.Fatal(err)
	}
	if got.Best != 2 || got.SLA["median_ttft_ms"] != 20 || len(got.Points) != 4 || got.Points[0].Point != 5 || !*got.Points[0].Meets || !got.Points[0].TTFT ||
		got.Points[1].Report["median_ttft_ms"] != 9 || got.Points[1].PerGPU != 150 || *got.Points[2].Meets || got.Points[3].Error != "it is too small" || got.Points[3].Meets != nil {
		t.Errorf("got %s", b.String())
	}
	if names := short([]string{"prefill-engine-args.engine.n", "decode-engine-args.engine.n"}); names[0] == names[1] {
		t.Errorf("columns are called %q", names)
	}
}
