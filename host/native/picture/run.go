package picture

import (
	"fmt"
	"math"
	"strconv"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/stats"
)

// Run is what a page is made from.
type Run struct {
	Name      string // of the workload
	Config    config.Replay
	Settings  []PairGroup // of the run, beside what Config says
	Summary   *replay.Summary
	Collector *Collector // finished
}

// cells that a heat map has at most before its columns are joined.
const mostCells = 200_000

// Document makes the page.
func (r *Run) Document() *Document {
	c := r.Collector
	d := &Document{Title: "Replay of " + r.Name, Subtitle: r.subtitle(), Cards: r.cards()}
	d.Figures = append(d.Figures, c.cdf(r.Config.SLA))
	d.Figures = append(d.Figures, c.latencies(r.Config.SLA)...)
	d.Figures = append(d.Figures, c.throughput()...)
	d.Figures = append(d.Figures, c.queue())
	d.Figures = append(d.Figures, c.hits(r.Summary, r.Config))
	d.Figures = append(d.Figures, c.usage()...)
	d.Figures = append(d.Figures, c.loads(), Figure{
		Kind: "pairs", ID: "configuration", Title: "Configuration", Groups: append(r.Settings, Describe(r.Config)...),
	})
	d.pair()
	d.Notes = c.notes()
	return d
}

// pair makes the queue wide where figures that stand in pairs would leave a hole.
func (d *Document) pair() {
	n := 0
	for _, f := range d.Figures {
		if f.Kind == "lines" {
			n++
		}
	}
	for i := range d.Figures {
		if f := &d.Figures[i]; n%2 == 1 && f.ID == "queue-depth" {
			f.Wide = true
		}
	}
}

func (r *Run) subtitle() string {
	s := ""
	for i := range r.Collector.all.Pools {
		p := &r.Collector.all.Pools[i]
		noun := backendName(p.Engine.Backend) + " worker"
		if name := p.Name(); name != "" {
			noun = backendName(p.Engine.Backend) + " " + name + " worker"
		}
		if i > 0 {
			s += " and "
		}
		if s += plural(p.Workers, noun); p.Engine.DPSize > 1 {
			s += fmt.Sprintf(" of %d ranks", p.Engine.DPSize)
		}
	}
	return s + ", " + routing(r.Config) + "; " + plural(int(r.Summary.NumRequests), "request") + " in " + clock(r.Collector.endMs)
}

// cards are the numbers one looks for first.
func (r *Run) cards() []Card {
	s, c := r.Summary, r.Collector
	gpus := float64(c.all.GPUs())
	cards := []Card{
		{Label: "Completed requests", Value: whole(s.CompletedRequests), Detail: "of " + whole(s.NumRequests) + " that arrived"},
		latencyCard("TTFT", s.TTFT), latencyCard("ITL", s.ITL), latencyCard("Request latency", s.E2E),
		{Label: "Output throughput", Value: number(s.OutputThroughputTokS), Unit: "tokens/s", Detail: number(s.OutputThroughputTokS/gpus) + " per GPU, on " + plural(int(gpus), "GPU")},
		{Label: "Requests served", Value: number(s.RequestThroughputRPS), Unit: "/s", Detail: "over " + clock(s.DurationMs) + ", " + number(s.GPUHours) + " GPU hours"},
	}
	if s.HasSLA {
		share := math.NaN()
		if s.CompletedRequests > 0 {
			share = float64(s.GoodputCompleted) / float64(s.CompletedRequests)
		}
		cards = append(cards, Card{
			Label: "Within the goals", Value: percent(share), Detail: number(s.GoodputRequestRPS) + " requests/s, " + number(s.GoodputOutputTokS) + " tokens/s",
		})
	}
	mean, most := c.usageTotals()
	cards = append(cards,
		Card{Label: "Prefix hits", Value: percent(s.FirstAdmissionReused), Detail: "of prompt tokens, at first admission"},
		Card{Label: "KV blocks in use, peak", Value: percent(most), Detail: percent(mean) + " on average", Alarm: most > 0.95},
		Card{Label: "Waiting requests, peak", Value: whole(int64(c.waitMost)), Detail: plural(int(c.preempted), "preemption"), Alarm: c.preempted > 0},
	)
	if n := s.RejectedRequests + s.FailedRequests + s.UnfinishedRequests + s.CancelledRequests; n > 0 {
		cards = append(cards, Card{Label: "Not completed", Value: whole(n), Alarm: true,
			Detail: fmt.Sprintf("%s rejected, %s failed, %s unfinished", whole(s.RejectedRequests), whole(s.FailedRequests), whole(s.UnfinishedRequests))})
	}
	return cards
}

// latencyCard is a card in ms, or in seconds from ten on.
func latencyCard(name string, d stats.Dist) Card {
	unit, one := "ms", 1.0
	if d.Median >= 10_000 {
		unit, one = "s", 1000
	}
	return Card{Label: name + ", median", Value: number(d.Median / one), Unit: unit, Detail: "p90 " + number(d.P90/one) + ", p99 " + number(d.P99/one)}
}

// notes say how numbers were reduced.
func (c *Collector) notes() []string {
	notes := []string{
		fmt.Sprintf("Time is cut into %s of %s; the last may be cut short by the end of the run and counts as a whole one where something is counted per second.",
			plural(len(c.bins), "bin"), clock(c.widthMs)),
		"Distributions count values in classes at most 0.2 % wide and show the middle of a class. The cards are the exact numbers of the report.",
		"Curves of distributions have a point at every half per cent and at every tenth above 99 %.",
		"TTFT and inter-token latencies are those of all tokens that were given out; the report and the cards count completed requests only.",
		"Of the KV cache and in the table of workers, numbers are those that a rank has at the end of each of its passes; they hold until the next ends.",
		"Lines are written with five digits.",
	}
	if c.every > 1 {
		notes = append(notes, fmt.Sprintf("Lines over time join %d bins: %s a point.", c.every, clock(c.pointMs())))
	}
	if k := c.heatStep(c.all.Ranks); k > 1 {
		notes = append(notes, fmt.Sprintf("The map of KV usage joins %d bins: %s a column.", k, clock(float64(k)*c.widthMs)))
	}
	return notes
}

func backendName(b config.Backend) string {
	return [...]string{config.VLLM: "vLLM", config.SGLang: "SGLang", config.TRTLLM: "TensorRT-LLM"}[b]
}

// plural is a count with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return whole(int64(n)) + " " + noun + "s"
}

// whole writes digits in groups of three.
func whole(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// number writes a number for people: whole ones from a hundred up, else three
// digits.
func number(x float64) string {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return "–"
	case math.Abs(x) >= 100:
		return whole(int64(math.Round(x)))
	case math.Abs(x) >= 10:
		return strconv.FormatFloat(x, 'f', 1, 64)
	case math.Abs(x) >= 1 || x == 0:
		return strconv.FormatFloat(x, 'f', 2, 64)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

func percent(x float64) string {
	if math.IsNaN(x) {
		return "–"
	}
	return strconv.FormatFloat(100*x, 'f', 1, 64) + " %"
}

// clock writes a time in the largest unit of which there is one.
func clock(ms float64) string {
	switch {
	case ms < 1000:
		return number3(ms) + " ms"
	case ms < 120_000:
		return number3(ms/1000) + " s"
	case ms < 7_200_000:
		return number3(ms/60_000) + " min"
	}
	return number3(ms/3_600_000) + " h"
}

func number3(x float64) string { return strconv.FormatFloat(x, 'g', 3, 64) }
