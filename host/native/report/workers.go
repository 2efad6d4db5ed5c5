package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/host/native/cliutil"
)

// WorkerLoad is what a worker has done in a run.
type WorkerLoad struct {
	Pool              string // agg, prefill or decode
	Worker            int
	Requests          int   // that came to their end
	Input, Output     int64 // tokens of these; prefill workers give out none
	MeanWaitMs        float64
	BusyMs, BusyShare float64 // time in passes, and its share of the run's duration

	waited   float64
	admitted int
}

// Workers adds up what workers do. Passes are told of while the run goes on.
type Workers struct {
	lists [2][]WorkerLoad // of the serving pool, of that of prompts
}

// NewWorkers knows the workers that are there from the start.
func NewWorkers(serving, prefill int) *Workers {
	w := &Workers{}
	for i := range serving {
		w.of(replay.ServingPool, i)
	}
	for i := range prefill {
		w.of(replay.PrefillPool, i)
	}
	return w
}

func (w *Workers) of(pool replay.PoolID, id int) *WorkerLoad {
	list := &w.lists[pool]
	for len(*list) <= id {
		*list = append(*list, WorkerLoad{Worker: len(*list)})
	}
	return &(*list)[id]
}

// Add takes the passes of a recording.
func (w *Workers) Add(r *replay.Recording) {
	for i := range r.Passes {
		if p := &r.Passes[i]; p.Rank == 0 {
			w.of(p.Pool, int(p.Worker)).BusyMs += p.EndMs - p.StartMs
		}
	}
}

// Finish takes the records of the run and gives the loads, those of prompts
// first.
func (w *Workers) Finish(r *Requests, durationMs float64) []WorkerLoad {
	for i := range r.Records {
		rec := &r.Records[i]
		admitMs := rec.FirstAdmitMs
		if len(r.Handoffs) > 0 {
			h := &r.Handoffs[i]
			if h.PrefillScheduler >= 0 {
				w.of(replay.PrefillPool, int(h.PrefillScheduler/max(r.PrefillRanks, 1))).add(rec.InputLength, 0, h.PrefillAdmitMs-rec.ArrivalMs)
			}
			admitMs = rec.ArrivalMs + (h.DecodeAdmitMs - h.ActivatedMs)
		}
		if rec.Worker >= 0 {
			w.of(replay.ServingPool, int(rec.Worker/max(r.Ranks, 1))).add(rec.InputLength, rec.OutputLength, admitMs-rec.ArrivalMs)
		}
	}
	names := [2]string{"agg", "prefill"}
	if len(w.lists[replay.PrefillPool]) > 0 {
		names[0] = "decode"
	}
	var all []WorkerLoad
	for _, pool := range []replay.PoolID{replay.PrefillPool, replay.ServingPool} {
		for _, l := range w.lists[pool] {
			l.Pool = names[pool]
			if l.admitted > 0 {
				l.MeanWaitMs = l.waited / float64(l.admitted)
			}
			if durationMs > 0 {
				l.BusyShare = l.BusyMs / durationMs
			}
			all = append(all, l)
		}
	}
	return all
}

// add takes a request; waitMs is NaN if it was never admitted.
func (l *WorkerLoad) add(input, output int32, waitMs float64) {
	l.Requests++
	l.Input += int64(input)
	l.Output += int64(output)
	if waitMs == waitMs {
		l.waited += waitMs
		l.admitted++
	}
}

// WriteWorkers writes loads as a table.
func WriteWorkers(out io.Writer, loads []WorkerLoad) error {
	rows := [][]string{{"Pool", "Worker", "Requests", "Input tokens", "Output tokens", "Mean waiting (ms)", "Busy"}}
	for _, l := range loads {
		rows = append(rows, []string{
			l.Pool, strconv.Itoa(l.Worker), cliutil.Grouped(float64(l.Requests), 0), cliutil.Grouped(float64(l.Input), 0), cliutil.Grouped(float64(l.Output), 0),
			grouped(l.MeanWaitMs), fmt.Sprintf("%.1f %%", 100*l.BusyShare),
		})
	}
	widths := make([]int, len(rows[0]))
	for _, cells := range rows {
		for i, c := range cells {
			widths[i] = max(widths[i], len(c))
		}
	}
	var b strings.Builder
	b.WriteString("Load per worker\n")
	for _, cells := range rows {
		fmt.Fprintf(&b, "%-*s", widths[0], cells[0])
		for i, c := range cells[1:] {
			fmt.Fprintf(&b, "  %*s", widths[i+1], c)
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// workers spells loads as the report's key per_worker.
func workers(loads []WorkerLoad) string {
	real := func(x float64) string { return string(cliutil.AppendPythonFloat(nil, x)) }
	var l list
	for _, w := range loads {
		l = append(l, object{
			{"busy_ms", real(w.BusyMs)}, {"busy_share", real(w.BusyShare)}, {"input_tokens", strconv.FormatInt(w.Input, 10)},
			{"mean_waiting_ms", real(w.MeanWaitMs)}, {"output_tokens", strconv.FormatInt(w.Output, 10)}, {"pool", text(w.Pool)},
			{"requests", strconv.Itoa(w.Requests)}, {"worker_id", strconv.Itoa(w.Worker)},
		}.json(2))
	}
	return l.json(1)
}
