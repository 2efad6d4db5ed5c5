package main

import (
	"fmt"
	"time"

	"github.com/dryserve/dryserve/host/native/engineargs"
	"github.com/dryserve/dryserve/host/native/live/books"
	"github.com/dryserve/dryserve/host/native/report"
)

// reporter writes what became of the requests, at the end. A nil one writes
// nothing.
type reporter struct {
	books   *books.Books
	files   report.Files
	file    *report.File
	began   time.Time
	workers int
	gpus    int // of a worker
}

// reporter begins the file of --report-json, so that a path that cannot be
// written is known before anything is served.
func (o *options) reporter(args engineargs.Args) (*reporter, error) {
	if !o.given("report-json") {
		return nil, nil
	}
	if o.text("report-json") == "" {
		return nil, o.wrong("report-json", "a path")
	}
	r := &reporter{books: new(books.Books), began: time.Now(), workers: o.whole("num-workers"), gpus: args.Engine.DPSize * args.Engine.TensorParallelSize}
	var err error
	if r.file, err = r.files.Create(report.ResolveJSONPath(o.text("report-json"), r.began)); err != nil {
		return nil, fmt.Errorf("--report-json: %w", err)
	}
	return r, nil
}

// write writes the report.
func (r *reporter) write() error {
	if r == nil {
		return nil
	}
	s := report.Report{Summary: r.books.Summary(r.workers, r.gpus), WallMs: float64(time.Since(r.began)) / 1e6}
	if err := s.WriteJSON(r.file); err != nil {
		r.files.Abort()
		return err
	}
	return r.files.Commit()
}

// abandon leaves no file behind.
func (r *reporter) abandon() {
	if r != nil {
		r.files.Abort()
	}
}
