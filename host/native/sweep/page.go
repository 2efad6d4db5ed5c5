package sweep

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/dryserve/dryserve/host/native/cliutil"
	"github.com/dryserve/dryserve/host/native/picture"
)

// Page is the table as a page. About are what stands at its end: the scenario.
func (t *Table) Page(name string, v View, about []picture.PairGroup) *picture.Document {
	d := &picture.Document{Title: "Sweep of " + name, Subtitle: t.subtitle(), Cards: t.cards(v)}
	d.Figures = append(d.Figures, t.scatter(), t.table(v))
	if groups := t.failures(); groups != nil {
		d.Figures = append(d.Figures, picture.Figure{Kind: "pairs", ID: "failed", Title: "Points that failed", Groups: groups})
	}
	d.Figures = append(d.Figures, picture.Figure{Kind: "pairs", ID: "scenario", Title: "Scenario", Groups: about})
	d.Notes = []string{
		"Throughput per GPU is the output tokens of completed requests by the time of the run and the GPUs of all workers. Where requests come at given times it cannot be more than they ask for.",
		"A front has the points that no other one beats in both values. Points outside are on none: they miss the SLA, or leave requests unserved (rejected or failed), whose latencies nobody knows.",
		"Numbers in figures are written with five digits; the file of results has all.",
	}
	return d
}

// counts are the points with a report, and all others.
func (t *Table) counts() (done, failed int) {
	for i := range t.Points {
		if t.done(i) {
			done++
		} else {
			failed++
		}
	}
	return done, failed
}

func (t *Table) subtitle() string {
	text := cliutil.Grouped(float64(len(t.Points)), 0) + " points"
	if names := t.Columns(); len(names) > 0 {
		text += " over " + strings.Join(short(names), ", ")
	}
	if len(t.SLA) > 0 {
		text += "; SLA: " + t.slaText()
	}
	return text
}

func (t *Table) cards(v View) []picture.Card {
	done, failed := t.counts()
	cards := []picture.Card{{Label: "Points", Value: cliutil.Grouped(float64(done), 0), Detail: fmt.Sprintf("%d failed", failed), Alarm: failed > 0}}
	if len(t.SLA) > 0 {
		meet := 0
		for i := range t.Points {
			if t.Meets(i) {
				meet++
			}
		}
		cards = append(cards, picture.Card{Label: "Points that meet the SLA", Value: strconv.Itoa(meet), Alarm: meet == 0})
	}
	best := func(label, unit string, value func(o *Outcome) float64, sign float64) {
		at, least := -1, math.Inf(1)
		for i := range t.Points {
			if t.Meets(i) && sign*value(t.Outcomes[i]) < least {
				at, least = i, sign*value(t.Outcomes[i])
			}
		}
		if at >= 0 {
			cards = append(cards, picture.Card{Label: label, Value: digits(sign * least), Unit: unit, Detail: fmt.Sprintf("point %d: %s", at+1, t.label(at))})
		}
	}
	if i := t.Best(); i >= 0 {
		cards = append(cards, picture.Card{Label: "Best under the SLA", Value: digits(t.Outcomes[i].PerGPU()), Unit: "tokens/s per GPU",
			Detail: fmt.Sprintf("point %d, %s: %s", i+1, gpus(t.Outcomes[i].GPUs), t.label(i))})
	} else {
		best("Highest throughput", "tokens/s per GPU", (*Outcome).PerGPU, -1)
	}
	best("Lowest TTFT, "+v.Statistic, "ms", func(o *Outcome) float64 { return o.Number(v.key("ttft")) }, 1)
	best("Lowest ITL, "+v.Statistic, "ms", func(o *Outcome) float64 { return o.Number(v.key("itl")) }, 1)
	return cards
}

func gpus(n float64) string {
	if n == 1 {
		return "1 GPU"
	}
	return count(n) + " GPUs"
}

// scatter is the figure with the fronts.
func (t *Table) scatter() picture.Figure {
	s := &picture.Scatter{Name: "output tokens/s per GPU", Unit: "tokens/s", Legend: [3]string{"on the Pareto front", "not on it", "leaves requests unserved"}}
	if len(t.SLA) > 0 {
		s.Legend[2] = "misses the SLA"
	}
	columns := t.Columns()
	names := short(columns)
	var at []int // by place in the figure: the point
	place := map[int]int{}
	for i := range t.Points {
		if !t.done(i) {
			continue
		}
		o := t.Outcomes[i]
		p := picture.Point{Name: fmt.Sprintf("Point %d", i+1), Outside: !t.Meets(i), Rows: [][2]string{}}
		for k, n := range columns {
			if text := t.setting(i, n); text != "" {
				p.Rows = append(p.Rows, [2]string{names[k], text})
			}
		}
		p.Rows = append(p.Rows, [2]string{"GPUs", count(o.GPUs)})
		place[i] = len(at)
		at = append(at, i)
		s.Points, s.Values = append(s.Points, p), append(s.Values, o.PerGPU())
	}
	for _, l := range []struct{ key, name string }{{"ttft", "TTFT"}, {"itl", "ITL"}, {"e2e_latency", "Request latency"}} {
		for _, stat := range Statistics {
			m := picture.Measure{Name: l.name + ", " + stat.Word, Front: []int{}}
			key := stat.Key + "_" + l.key + "_ms"
			front := t.Front(key)
			for _, i := range at {
				m.Values = append(m.Values, t.Outcomes[i].Number(key))
			}
			for _, i := range t.byLatency(front, key) {
				m.Front = append(m.Front, place[i])
			}
			for _, b := range t.SLA {
				if b.Key == key {
					m.Limit = b.Most
				}
			}
			s.Measures = append(s.Measures, m)
		}
	}
	return picture.Figure{Kind: "scatter", ID: "pareto", Title: "Pareto front", Scatter: s,
		About: "Output tokens/s per GPU by latency; up and to the left is better. The line is what is possible within a latency."}
}

// table is the figure with all points.
func (t *Table) table(v View) picture.Figure {
	f := picture.Figure{Kind: "table", ID: "points", Title: "Points", About: "Latencies in ms."}
	names := t.Columns()
	f.Columns = append(f.Columns, picture.Column{Name: "Point", Text: true})
	numeric := make([]bool, len(names))
	for k, n := range short(names) {
		numeric[k] = t.numeric(names[k])
		f.Columns = append(f.Columns, picture.Column{Name: n, Text: !numeric[k]})
	}
	f.Columns = append(f.Columns, picture.Column{Name: "GPUs"}, picture.Column{Name: "Tokens/s per GPU", Bar: true})
	latencies := []struct{ name, key string }{
		{"TTFT p50", "median_ttft_ms"}, {"TTFT p99", "p99_ttft_ms"}, {"ITL p50", "median_itl_ms"}, {"ITL p99", "p99_itl_ms"}, {"Latency p50", "median_e2e_latency_ms"},
	}
	for _, l := range latencies {
		f.Columns = append(f.Columns, picture.Column{Name: l.name})
	}
	f.Columns = append(f.Columns, picture.Column{Name: "Prefix hits", Unit: "%"}, picture.Column{Name: "Unserved"}, picture.Column{Name: "SLA", Text: true}, picture.Column{Name: "Front, " + v.Statistic, Text: true})
	ttft, itl := t.Front(v.key("ttft")), t.Front(v.key("itl"))
	f.Body = [][]any{}
	for _, i := range t.rows(v) {
		if !t.done(i) {
			continue
		}
		o := t.Outcomes[i]
		row := []any{strconv.Itoa(i + 1)}
		for k, n := range names {
			text := t.setting(i, n)
			if x, err := strconv.ParseFloat(text, 64); numeric[k] {
				if err != nil {
					x = math.NaN()
				}
				row = append(row, number(x))
				continue
			}
			row = append(row, text)
		}
		row = append(row, o.GPUs, number(o.PerGPU()))
		for _, l := range latencies {
			row = append(row, number(o.Number(l.key)))
		}
		meets := "–"
		if len(t.SLA) > 0 {
			meets = map[bool]string{true: "meets", false: "misses"}[t.Meets(i)]
		}
		row = append(row, number(100*o.Number("prefix_cache_reused_ratio")), number(o.Number("rejected_requests")+o.Number("failed_requests")), meets, front(ttft[i], itl[i]))
		f.Body = append(f.Body, row)
	}
	return f
}

// numeric reports whether all points that have a setting have a number there.
func (t *Table) numeric(name string) bool {
	for _, p := range t.Points {
		for _, s := range p {
			var x float64
			if s.Name == name && (json.Unmarshal(s.Value, &x) != nil || string(s.Value) == "null") {
				return false
			}
		}
	}
	return true
}

// number is x as JSON may have it.
func number(x float64) any {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return x
}

func (t *Table) failures() []picture.PairGroup {
	g := picture.PairGroup{Title: "Why"}
	for i, o := range t.Outcomes {
		if o != nil && o.Error != "" {
			g.Pairs = append(g.Pairs, [2]string{fmt.Sprintf("%d: %s", i+1, t.label(i)), o.Error})
		}
	}
	if g.Pairs == nil {
		return nil
	}
	return []picture.PairGroup{g}
}
