package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	core "github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/timing"
	"github.com/dryserve/dryserve/host/native/report"
	"github.com/dryserve/dryserve/host/wasm/frame"
	"github.com/dryserve/dryserve/host/wasm/runner"
)

// start begins a run, unless its id is taken.
func (s *server) start(q *request) error {
	ctx, cancel := context.WithCancel(context.Background())
	r := &serving{id: q.id, cancel: cancel, outputs: &report.Files{}, said: time.Now(), answers: make(chan answered, 1)}
	s.mu.Lock()
	_, taken := s.runs[q.id]
	if !taken {
		s.runs[q.id] = r
	}
	s.mu.Unlock()
	if taken {
		cancel()
		return s.answer(q.id, "error", text("kind", "frame"), text("text", fmt.Sprintf("a run with the id %d is under way; another id is accepted", q.id)))
	}
	go s.serveRun(ctx, r, q)
	return nil
}

// serveRun runs to the end and answers with the outcome, last of all. The id
// is free by then.
func (s *server) serveRun(ctx context.Context, r *serving, q *request) {
	answer := func() []frame.Field { return nil }
	err := s.guarded(func() (err error) {
		answer, err = s.replay(ctx, r, q)
		return err
	})
	cancelled := ctx.Err() != nil
	r.outputs.Abort() // does nothing after a commit
	s.mu.Lock()
	delete(s.runs, r.id)
	s.mu.Unlock()
	r.cancel()
	if err == nil {
		_ = s.answer(r.id, "done", answer()...) // nobody listens if it fails
		return
	}
	kind, status := "run", int64(exitFailed)
	var usage usageError
	switch {
	case errors.As(err, &usage):
		kind, status = "usage", exitUsage
	case cancelled:
		kind, err = "cancelled", errors.New("the run was cancelled")
	}
	_ = s.answer(r.id, "error", text("kind", kind), text("text", err.Error()), number("status", status))
}

// guarded turns a panic into an error, so that a fault of one run is not the
// end of the others.
func (s *server) guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the simulation has failed, which is a fault of this program: %v", p)
		}
	}()
	return f()
}

// replay does what the command line of a request says. It returns the fields of
// the last answer.
func (s *server) replay(ctx context.Context, r *serving, q *request) (func() []frame.Field, error) {
	var args []string
	if q.args != "" {
		args = strings.Split(q.args, "\x00")
	}
	o, err := parse(args)
	if err != nil {
		return nil, err
	}
	if o.help || o.version || o.printConfig {
		return nil, usagef("--help, --version and --print-config print; arguments of a replay are accepted")
	}
	o.capture, o.asks, o.ticks, o.firstMs = q.requests, q.asks, q.ticks, q.firstMs
	if q.samples {
		o.watching.tell = &lines{s, r.id, "samples"}
	}
	around := &surroundings{
		outputs:  r.outputs,
		warnings: func(t string) { _ = s.answer(r.id, "warning", text("text", strings.TrimPrefix(t, "warning: "))) },
		stdin:    bytes.NewReader(q.trace),
		progress: s.progress(r),
		warming:  s.warm,
	}
	if q.asks {
		around.timing = func(t timing.Query) (float64, error) { return s.ask(ctx, r, t) }
	}
	if q.ticks {
		around.policy = func(t *core.Tick) (core.Decision, error) { return s.askTarget(ctx, r, t) }
	}
	out, err := replayAll(ctx, o, around)
	if err != nil {
		return nil, err
	}
	if q.requests {
		if err := out.requests().WriteJSONL(&lines{s, r.id, "lines"}); err != nil {
			return nil, err
		}
	}
	var table, reportJSON, lifecycle bytes.Buffer
	if err := errors.Join(out.WriteJSON(&reportJSON), out.WriteTable(&table), report.WriteLifecycle(&lifecycle, out.lifecycle, out.load)); err != nil {
		return nil, err
	}
	return func() []frame.Field {
		fields := []frame.Field{text("report", reportJSON.String()), text("table", table.String()), text("path", out.jsonPath), text("engine", out.engine)}
		if q.ticks {
			fields = append(fields, text("lifecycle", lifecycle.String()))
		}
		return fields
	}, nil
}

// progress tells the client now and then how far a run is.
func (s *server) progress(r *serving) func(stage string, done, total int64) {
	return func(stage string, done, total int64) {
		if stage == "" || time.Since(r.said) < progressEvery {
			return
		}
		r.said = time.Now()
		_ = s.answer(r.id, "progress", text("stage", strings.ToLower(stage)), number("done", done), number("total", total))
	}
}

// warm begins to compile core.wasm, once for each cache it is to be kept in. A run
// that does not wait for that has a processor to itself.
func (s *server) warm(o *options, waits bool) (*runner.Warming, error) {
	dir := o.wasmDir()
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.runners[dir]
	if w != nil && w.Failed() {
		w = nil // what was in its way may have gone
	}
	if w == nil {
		how, err := o.wasmOptions()
		if err != nil {
			return nil, err
		}
		if !waits {
			how.Workers = max(runtime.GOMAXPROCS(0)-1, 1)
		}
		w = runner.Warm(how, func() (*runner.Runner, error) { return o.compile(how) })
		s.runners[dir] = w
	}
	return w, nil
}

// lines hands lines over as they are written, with an event for each call.
type lines struct {
	s     *server
	id    uint64
	event string
}

func (l *lines) Write(p []byte) (int, error) {
	if err := l.s.answer(l.id, l.event, frame.Field{Name: "lines", Var: &p}); err != nil {
		return 0, err
	}
	return len(p), nil
}
