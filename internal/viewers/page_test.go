package viewers_test

import (
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/internal/viewers"
)

// plots are the figures that are drawn, with the number of their lines.
var plots = map[string]int{
	"latency-cdf": 3, "ttft-over-time": 3, "itl-over-time": 3, "output-throughput": 1, "prefill-throughput": 1, "request-rate": 3,
	"queue-depth": 4, "cache-hits": 2, "kv-usage": 3, "kv-usage-by-worker": 0,
}

// TestPage looks at a page of a run that queues, preempts, rejects and has
// goals, with four ranks.
func TestPage(t *testing.T) {
	dir := t.TempDir()
	page, reportPath := filepath.Join(dir, "page.html"), filepath.Join(dir, "report.json")
	replay(t, "../../examples/conversation-2k.jsonl", "--num-workers", "2", "--arrival-speedup-ratio", "0.7", "--sla-ttft-ms", "500", "--sla-itl-ms", "40",
		"--extra-engine-args", `{"dp_size": 2, "engine": {"num_gpu_blocks": 1600, "max_model_len": 30000}}`,
		"--no-table", "--report-html", page, "--report-json", reportPath)
	seen, err := tools.Look(page, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(seen.Version)
	var report map[string]any
	text, err := os.ReadFile(reportPath)
	if err != nil || json.Unmarshal(text, &report) != nil {
		t.Fatalf("no report: %v", err)
	}
	if len(seen.Views) != 4 {
		t.Fatalf("%d views", len(seen.Views))
	}
	for _, v := range seen.Views {
		t.Run(fmt.Sprintf("%d %s", v.Width, v.Scheme), func(t *testing.T) {
			checkView(t, &v, plots, 4)
			checkCards(t, &v, report)
			checkPixels(t, &v)
		})
	}
	checkKeys(t, &seen.Keys, plots)
}

// TestPageOfPools looks at a page of a run in two pools, of one and two ranks.
func TestPageOfPools(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "page.html")
	replay(t, "../../examples/conversation-2k.jsonl", "--num-prefill-workers", "2", "--arrival-speedup-ratio", "0.5", "--no-table", "--report-html", page,
		"--prefill-engine-args", `{"engine": {"num_gpu_blocks": 2600, "worker_type": "prefill", "kv_transfer_bandwidth": 2, "kv_bytes_per_token": 131072}}`,
		"--decode-engine-args", `{"dp_size": 2, "engine": {"num_gpu_blocks": 2400, "worker_type": "decode"}}`)
	seen, err := tools.Look(page, dir)
	if err != nil {
		t.Fatal(err)
	}
	figures := maps.Clone(plots)
	delete(figures, "kv-usage")
	figures["kv-usage-prefill"], figures["kv-usage-decode"], figures["request-rate"] = 3, 3, 2
	for _, v := range seen.Views {
		checkView(t, &v, figures, 4)
		for _, f := range v.Figures {
			if f.ID == "queue-depth" && f.Box[2] < v.Width*9/10 {
				t.Errorf("%d px: the queue is %d px wide", v.Width, f.Box[2])
			}
		}
	}
	checkKeys(t, &seen.Keys, figures)
}

func checkView(t *testing.T, v *viewers.View, plots map[string]int, ranks int) {
	if len(v.Told) > 0 {
		t.Errorf("the browser tells: %s", strings.Join(v.Told, "; "))
	}
	if v.Title != "Replay of conversation-2k.jsonl" {
		t.Errorf("the title is %q", v.Title)
	}
	if v.PageWidth > v.Width {
		t.Errorf("the page is %d px wide", v.PageWidth)
	}
	ids := map[string]bool{}
	for _, f := range v.Figures {
		ids[f.ID] = true
		lines, isPlot := plots[f.ID]
		if len(f.Series) != lines {
			t.Errorf("%s: %d lines, want %d", f.ID, len(f.Series), lines)
		}
		looks := map[string]bool{}
		for i, s := range f.Series {
			if s.Length < 20 {
				t.Errorf("%s: line %d is %v px long", f.ID, i, s.Length)
			}
			looks[s.Dash] = true
		}
		if len(looks) != lines {
			t.Errorf("%s: lines are told apart by colour alone", f.ID)
		}
		if isPlot && (!strings.HasPrefix(f.Label, f.Title) || f.Stage[2] < v.Width/4) {
			t.Errorf("%s: label %q, stage %v", f.ID, f.Label, f.Stage)
		}
		if len(f.Overflow) > 0 {
			t.Errorf("%s: labels are cut off: %q", f.ID, f.Overflow)
		}
		if f.ID == "load-by-worker" && f.Rows != ranks {
			t.Errorf("the table has %d rows, want %d", f.Rows, ranks)
		}
	}
	for id := range plots {
		if !ids[id] {
			t.Errorf("there is no figure %s", id)
		}
	}
	if !ids["configuration"] || !ids["load-by-worker"] {
		t.Error("there is no configuration or no table of load")
	}
}

// checkCards compares cards with the report.
func checkCards(t *testing.T, v *viewers.View, report map[string]any) {
	for name, key := range map[string]string{"Completed requests": "completed_requests", "TTFT, median": "median_ttft_ms", "ITL, median": "median_itl_ms"} {
		want := report[key].(float64)
		found := false
		for _, c := range v.Cards {
			if c[0] != name {
				continue
			}
			found = true
			var got float64
			var unit string
			fmt.Sscan(strings.ReplaceAll(c[1], ",", ""), &got, &unit)
			if unit == "s" {
				got *= 1000
			}
			if math.Abs(got-want) > 0.01*want {
				t.Errorf("card %s shows %s, the report has %v", name, c[1], want)
			}
		}
		if !found {
			t.Errorf("there is no card %s", name)
		}
	}
}

// rgb reads a colour as a browser spells it.
func rgb(t *testing.T, s string) color.RGBA {
	t.Helper()
	c := color.RGBA{A: 255}
	if _, err := fmt.Sscanf(s, "rgb(%d, %d, %d)", &c.R, &c.G, &c.B); err != nil {
		t.Fatalf("colour %q: %v", s, err)
	}
	return c
}

// luminance is that of WCAG 2.
func luminance(c color.RGBA) float64 {
	part := func(b uint8) float64 {
		x := float64(b) / 255
		if x <= 0.04045 {
			return x / 12.92
		}
		return math.Pow((x+0.055)/1.055, 2.4)
	}
	return 0.2126*part(c.R) + 0.7152*part(c.G) + 0.0722*part(c.B)
}

func contrast(a, b color.RGBA) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// checkPixels looks at the screenshot: whether it is light or dark as asked, and
// whether each line is there in its colour.
func checkPixels(t *testing.T, v *viewers.View) {
	file, err := os.Open(v.Shot)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	shot, err := png.Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	paper, ink := rgb(t, v.Paper), rgb(t, v.Ink)
	if dark := luminance(paper) < 0.1; dark != (v.Scheme == "dark") {
		t.Errorf("the paper is %v", paper)
	}
	if c := contrast(paper, ink); c < 7 {
		t.Errorf("ink on paper has a contrast of %v, want 7", c)
	}
	if got := color.RGBAModel.Convert(shot.At(2, 2)); got != paper || shot.Bounds().Dx() != v.Width {
		t.Errorf("the picture is %v, its corner %v", shot.Bounds(), got)
	}
	for _, f := range v.Figures {
		if f.Stage == nil {
			continue
		}
		counts := colours(shot, *f.Stage)
		card := mostly(counts)
		for i, s := range f.Series {
			c := rgb(t, s.Colour)
			if n := counts[c]; n < 25 {
				t.Errorf("%s: %d pixels have the colour of line %d", f.ID, n, i)
			}
			if k := contrast(c, card); k < 3 {
				t.Errorf("%s: line %d has a contrast of %v, want 3", f.ID, i, k)
			}
		}
		if f.Canvas != nil {
			if n := len(colours(shot, *f.Canvas)); n < 20 {
				t.Errorf("%s: the map has %d colours", f.ID, n)
			}
		}
	}
}

func colours(shot image.Image, box [4]int) map[color.RGBA]int {
	counts := map[color.RGBA]int{}
	for y := box[1]; y < box[1]+box[3]; y++ {
		for x := box[0]; x < box[0]+box[2]; x++ {
			counts[color.RGBAModel.Convert(shot.At(x, y)).(color.RGBA)]++
		}
	}
	return counts
}

func mostly(counts map[color.RGBA]int) (most color.RGBA) {
	for c, n := range counts {
		if n > counts[most] {
			most = c
		}
	}
	return most
}

// checkKeys: every plot is reached by Tab, and its cursor tells something else
// at every place.
func checkKeys(t *testing.T, k *viewers.Keys, plots map[string]int) {
	if len(k.Told) > 0 {
		t.Errorf("the browser tells: %s", strings.Join(k.Told, "; "))
	}
	walked := map[string]bool{}
	for _, stop := range k.Stops {
		if stop[0] != "svg" {
			continue
		}
		id := stop[1].(string)
		said := stop[3].([]any) // on focus, Home, ArrowRight, End, Escape
		walked[id] = true
		if said[0] == nil || said[1] == nil || said[2] == nil || said[3] == nil || said[1] == said[2] || said[2] == said[3] || said[4] != nil {
			t.Errorf("%s: the cursor tells %q", id, said)
		}
	}
	for id := range plots {
		if !walked[id] {
			t.Errorf("%s is not reached by keys", id)
		}
	}
	reached := func(tag, figure string) bool {
		return slices.ContainsFunc(k.Stops, func(s []any) bool { return s[0] == tag && s[1] == figure })
	}
	if !reached("summary", "queue-depth") || !reached("button", "queue-depth") || !reached("button", "load-by-worker") || !reached("div", "load-by-worker") {
		t.Error("tables, legends or headings are not reached by keys")
	}
	if k.Numbers < 50 {
		t.Errorf("the table of numbers has %d rows", k.Numbers)
	}
	numeric := func(a, b string) int { return len(a) - len(b) + strings.Compare(a, b) }
	up := slices.Clone(k.Up)
	slices.Reverse(up)
	if len(k.Down) != 4 || !slices.IsSortedFunc(k.Up, numeric) || !slices.Equal(k.Down, up) {
		t.Errorf("sorted rows are %v and %v", k.Down, k.Up)
	}
	if k.Lines != [2]int{4, 3} {
		t.Errorf("a legend's button leaves %v lines", k.Lines)
	}
}

// TestFaultsAreSeen: a page that complains or asks the network is told of.
func TestFaultsAreSeen(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "page.html")
	replay(t, "--input-tokens", "64", "--output-tokens", "8", "--request-count", "9", "--request-rate", "5", "--no-table", "--report-html", page)
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	faults := map[string]string{
		`<img src="http://127.0.0.1:9/x.png">`:                 "127.0.0.1:9",
		`<script type="module">throw new Error("oh")</script>`: "error: oh",
		`<script type="module">console.warn("hm", 5)</script>`: "warn: hm 5",
		`<script>oops(</script>`:                               "error: Unexpected",
	}
	broken := strings.Replace(string(text), "default-src 'none'; ", "", 1)
	for fault := range faults {
		broken = strings.Replace(broken, "<noscript>", fault+"<noscript>", 1)
	}
	if err := os.WriteFile(page, []byte(broken), 0o644); err != nil {
		t.Fatal(err)
	}
	seen, err := tools.Look(page, dir)
	if err != nil {
		t.Fatal(err)
	}
	for fault, want := range faults {
		if told := strings.Join(seen.Views[0].Told, "; "); !strings.Contains(told, want) {
			t.Errorf("%s: the browser tells %q, want %s", fault, told, want)
		}
	}
}
