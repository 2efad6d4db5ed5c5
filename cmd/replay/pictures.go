package main

import (
	"compress/gzip"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/workload"
	"github.com/dryserve/dryserve/host/native/picture"
	"github.com/dryserve/dryserve/host/native/report"
	"github.com/dryserve/dryserve/host/native/timeline"
	"github.com/spf13/pflag"
)

// pictures are what is drawn of a run while it goes on: a page and a timeline,
// each if it is asked for.
type pictures struct {
	o   *options
	cfg config.Replay

	html  io.Writer // nil: no page
	page  *picture.Collector
	trace io.Writer // nil: no timeline
	zip   *gzip.Writer
	line  *timeline.Writer

	loads *report.Workers // nil: nobody asks
}

// pictures prepares what is asked for. Nil: nothing is.
func (o *options) pictures(cfg config.Replay, run prepared, files *files) (*pictures, error) {
	p := &pictures{o: o, cfg: cfg}
	if files.html != nil {
		p.html = files.html
	}
	if files.timeline != nil {
		p.trace = files.timeline
		if strings.HasSuffix(o.timeline, ".gz") {
			p.zip = gzip.NewWriter(files.timeline)
			p.trace = p.zip
		}
	}
	if o.perWorker {
		p.loads = report.NewWorkers(cfg.NumWorkers, cfg.Prefill.Workers)
	}
	if p.html == nil && p.trace == nil && p.loads == nil {
		return nil, nil
	}
	return p, run.picture(p)
}

// draws reports whether the run is to be recorded.
func (o *options) draws() bool {
	return o.given("report-html") || o.given("timeline") || o.perWorker
}

// of makes what is drawn of a workload.
func (p *pictures) of(w *workload.Workload) {
	if p.html != nil {
		p.page = picture.NewCollector(p.cfg, w)
	}
	if p.trace != nil {
		p.line = timeline.New(p.trace, p.cfg, w, requestName(w))
	}
}

// picture records the run.
func (n *native) picture(p *pictures) error {
	p.of(n.load)
	n.options.Record, n.record = true, p.add
	return nil
}

// picture takes the recording out of the guest.
func (s *sandboxed) picture(p *pictures) error {
	w, err := s.outline()
	if err != nil {
		return err
	}
	p.of(w)
	s.record = p.add
	return nil
}

// requestName names requests by the numbers that their ids have.
func requestName(w *workload.Workload) func(turn int32) string {
	ordinals := report.Ordinals(w)
	return func(turn int32) string {
		if w.Graph != nil {
			return string(w.Graph.Request(turn))
		}
		return fmt.Sprintf("request %d", report.Ordinal(ordinals, turn))
	}
}

func (p *pictures) add(r *replay.Recording) error {
	if p.page != nil {
		p.page.Add(r)
	}
	if p.loads != nil {
		p.loads.Add(r)
	}
	if p.line != nil {
		return p.line.Add(r)
	}
	return nil
}

// tell puts the loads of the workers into the report.
func (p *pictures) tell(out *finished) {
	if p != nil && p.loads != nil {
		out.Workers = p.loads.Finish(out.requests(), out.DurationMs)
	}
}

// write finishes what was begun.
func (p *pictures) write(out *finished) error {
	if p == nil {
		return nil
	}
	if p.line != nil {
		if err := p.line.Close(); err != nil {
			return err
		}
		if p.zip != nil {
			if err := p.zip.Close(); err != nil {
				return err
			}
		}
	}
	if p.page == nil {
		return nil
	}
	p.page.Finish()
	run := picture.Run{
		Name: p.o.workloadName(), Config: p.cfg, Settings: p.o.settings(), Summary: &out.Summary, Collector: p.page,
	}
	return run.Document().WriteHTML(p.html)
}

// workloadName is what a page calls the workload: file names without folders.
func (o *options) workloadName() string {
	switch n := len(o.traces); {
	case n == 0:
		return "a synthetic workload"
	case n > 1:
		return fmt.Sprintf("%s and %d more", filepath.Base(o.traces[0]), n-1)
	case o.traces[0] == "-":
		return "standard input"
	}
	return filepath.Base(o.traces[0])
}

// settings are what stood on the command line, but for the outputs and for where
// the simulation ran, which makes no difference.
func (o *options) settings() []picture.PairGroup {
	g := picture.PairGroup{Title: "Command line"}
	for _, t := range o.traces {
		g.Pairs = append(g.Pairs, [2]string{"TRACE", t})
	}
	for _, topic := range flagGroups(&options{}) {
		if topic.title == "Output" {
			continue
		}
		topic.flags.VisitAll(func(f *pflag.Flag) {
			if o.given(f.Name) && f.Name != "engine" && f.Name != "wasm-cache" {
				g.Pairs = append(g.Pairs, [2]string{"--" + f.Name, o.flags.Lookup(f.Name).Value.String()})
			}
		})
	}
	return []picture.PairGroup{g}
}
