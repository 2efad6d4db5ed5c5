package tracestat

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/dryserve/dryserve/host/native/cliutil"
)

// WriteText writes the description for people.
func (s *Stats) WriteText(w io.Writer) error {
	var b strings.Builder
	lines := func(list [][2]string) {
		for _, line := range list {
			fmt.Fprintf(&b, "%-16s %s\n", line[0], line[1])
		}
	}
	lines(s.head())
	b.WriteString("\n" + cliutil.Columns([][]string{
		{"Tokens", "total", "mean", "min", "p50", "p75", "p90", "p95", "p99", "max"},
		lengthRow("Prompts", s.Prompt), lengthRow("Answers", s.Output),
	}) + "\n")
	lines(s.reuseLines())
	lines(s.timeLines())
	_, err := io.WriteString(w, b.String())
	return err
}

func whole(n int64) string { return cliutil.Grouped(float64(n), 0) }

func lengthRow(name string, l Lengths) []string {
	row := []string{name, whole(l.Total), cliutil.Grouped(l.Mean, 1)}
	for _, v := range []int64{l.Min, l.P50, l.P75, l.P90, l.P95, l.P99, l.Max} {
		row = append(row, whole(v))
	}
	return row
}

// head is the first lines: what there is.
func (s *Stats) head() [][2]string {
	sessions := whole(s.Sessions) + ", of one request each"
	if s.MaxTurns > 1 {
		sessions = fmt.Sprintf("%s, of %s requests on average, %s at most", whole(s.Sessions),
			cliutil.Grouped(float64(s.Requests)/float64(max(s.Sessions, 1)), 2), whole(s.MaxTurns))
	}
	size := whole(s.BlockSize) + " tokens a hash id"
	if s.Given {
		size += ", as the trace does not say it"
	}
	rows := [][2]string{{"Format", s.Format}, {"Requests", whole(s.Requests)}, {"Sessions", sessions}}
	if s.BadRows > 0 {
		rows = append(rows, [2]string{"Bad rows", whole(s.BadRows) + ", left out of all that follows"})
	}
	if s.LeftOut > 0 {
		rows = append(rows, [2]string{"Left out", whole(s.LeftOut) + " requests without tokens, as those that failed"})
	}
	if s.Plays > 0 {
		rows = append(rows, [2]string{"Plays of agents", fmt.Sprintf("%s, in which requests wait for %s others", whole(s.Plays), whole(s.Dependencies))},
			[2]string{"Models", strings.Join(s.Models, ", ")})
	}
	if s.Planned > 0 {
		rows = append(rows, [2]string{"Planned answers", whole(s.Planned) + ", given as token ids"})
	}
	return append(rows, [2]string{"Block size", size})
}

func (s *Stats) reuseLines() [][2]string {
	different := whole(s.UniqueBlocks) + " different ones"
	if s.Sampled {
		different = "about " + whole(s.UniqueBlocks) + " different ones, by a sample"
	}
	blocks, tokens := s.Reuse()
	reuse := fmt.Sprintf("%.2f %% of the prompt blocks, %.2f %% of the tokens, came before: an infinite cache has them", 100*blocks, 100*tokens)
	if s.MadeUp {
		reuse = fmt.Sprintf("%.2f %% by the blocks of a replay; the trace does not say what prompts have in common", 100*blocks)
	}
	return [][2]string{
		{"Prompt blocks", whole(s.Blocks) + ", " + different},
		{"Reuse potential", reuse},
	}
}

func (s *Stats) timeLines() [][2]string {
	a := &s.Arrivals
	var lines [][2]string
	switch {
	case a.N == 0:
		lines = append(lines, [2]string{"Arrivals", "the trace has no start times"})
	case a.N == 1:
		lines = append(lines, [2]string{"Arrivals", "one start"})
	default:
		lines = append(lines, [2]string{"Duration", cliutil.Grouped(a.DurationMs/1000, 3) + " s from the first start to the last"})
		rate := cliutil.Grouped(a.RatePerS, 3) + " starts a second on average"
		if a.WindowMs == 1000 {
			rate += ", " + cliutil.Grouped(a.PeakPerS, 0) + " in the busiest second"
		} else {
			rate += ", " + cliutil.Grouped(a.PeakPerS, 3) + " in the busiest " + cliutil.Grouped(a.WindowMs/1000, 0) + " s"
		}
		lines = append(lines, [2]string{"Arrivals", rate})
		if a.Late > 0 {
			lines = append(lines, [2]string{"Burstiness", fmt.Sprintf("%s (variance of the starts in a window over their mean; 1 at random, 0 even); %s starts are not in order",
				cliutil.Grouped(a.Dispersion, 2), whole(a.Late))})
		} else if a.N > 2 {
			lines = append(lines, [2]string{"Burstiness", cliutil.Grouped(a.Burstiness, 2) + " (deviation of the gaps between starts over their mean; 1 at random, 0 even)"})
		}
	}
	if s.ThinkMs.N > 0 {
		lines = append(lines, [2]string{"Delays", fmt.Sprintf("%s ms on average between one request and the next, %s at most", cliutil.Grouped(s.ThinkMs.Mean, 1), cliutil.Grouped(s.ThinkMs.Max, 1))})
	}
	if needs := s.Needs(); needs != nil {
		lines = append(lines, [2]string{"To replay", strings.Join(needs, " ") + " is needed"})
	}
	return lines
}

type lengthsJSON struct {
	Total int64   `json:"total"`
	Mean  float64 `json:"mean"`
	Min   int64   `json:"min"`
	P50   int64   `json:"p50"`
	P75   int64   `json:"p75"`
	P90   int64   `json:"p90"`
	P95   int64   `json:"p95"`
	P99   int64   `json:"p99"`
	Max   int64   `json:"max"`
}

type arrivalsJSON struct {
	Starts     int64    `json:"starts"`
	DurationMs float64  `json:"duration_ms"`
	RatePerS   float64  `json:"rate_per_s"`
	WindowMs   float64  `json:"window_ms"`
	PeakPerS   float64  `json:"peak_per_s"`
	Dispersion float64  `json:"dispersion"`
	Burstiness *float64 `json:"burstiness"`
	OutOfOrder int64    `json:"out_of_order"`
}

// statsJSON is a description as JSON; its names are documented in
// docs/traces.md.
type statsJSON struct {
	Trace        []string      `json:"trace"`
	Valid        bool          `json:"valid"`
	Format       string        `json:"format"`
	Requests     int64         `json:"requests"`
	Sessions     int64         `json:"sessions"`
	MaxTurns     int64         `json:"max_turns"`
	BadRows      int64         `json:"bad_rows"`
	LeftOut      int64         `json:"left_out"`
	Plays        int64         `json:"plays"`
	Dependencies int64         `json:"dependencies"`
	Models       []string      `json:"models"`
	Planned      int64         `json:"planned_answers"`
	BlockSize    int64         `json:"block_size"`
	SizeAssumed  bool          `json:"block_size_assumed"`
	MadeUp       bool          `json:"prompts_made_up"`
	FitsSize     *int64        `json:"fitting_block_size"`
	Prompt       lengthsJSON   `json:"prompt_tokens"`
	Output       lengthsJSON   `json:"output_tokens"`
	Blocks       int64         `json:"prompt_blocks"`
	Unique       int64         `json:"unique_blocks"`
	Sampled      bool          `json:"unique_blocks_sampled"`
	Reuse        float64       `json:"reuse_potential"`
	ReuseTokens  float64       `json:"reuse_potential_tokens"`
	Arrivals     *arrivalsJSON `json:"arrivals"`
	DelayMeanMs  *float64      `json:"delay_mean_ms"`
	DelayMaxMs   *float64      `json:"delay_max_ms"`
	Needs        []string      `json:"needs"`
}

// WriteJSON writes the description as a JSON object of the trace at paths.
func (s *Stats) WriteJSON(w io.Writer, paths []string) error {
	j := statsJSON{
		Trace: paths, Valid: s.BadRows == 0, Format: s.Format, Requests: s.Requests, Sessions: s.Sessions, MaxTurns: s.MaxTurns,
		BadRows: s.BadRows, LeftOut: s.LeftOut, Plays: s.Plays, Dependencies: s.Dependencies, Models: append([]string{}, s.Models...), Planned: s.Planned,
		BlockSize: s.BlockSize, SizeAssumed: s.Given, MadeUp: s.MadeUp, Prompt: lengthsJSON(s.Prompt), Output: lengthsJSON(s.Output), Blocks: s.Blocks, Unique: s.UniqueBlocks,
		Sampled: s.Sampled, Needs: append([]string{}, s.Needs()...),
	}
	j.Reuse, j.ReuseTokens = s.Reuse()
	if s.Fits > 0 {
		j.FitsSize = &s.Fits
	}
	if a := &s.Arrivals; a.N > 0 {
		j.Arrivals = &arrivalsJSON{a.N, a.DurationMs, a.RatePerS, a.WindowMs, a.PeakPerS, a.Dispersion, nil, a.Late}
		if a.Late == 0 && a.N > 2 {
			j.Arrivals.Burstiness = &a.Burstiness
		}
	}
	if s.ThinkMs.N > 0 {
		j.DelayMeanMs, j.DelayMaxMs = &s.ThinkMs.Mean, &s.ThinkMs.Max
	}
	text, err := json.MarshalIndent(j, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}
