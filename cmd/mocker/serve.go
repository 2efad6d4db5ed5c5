package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/cliutil"
	"github.com/dryserve/dryserve/host/native/live/answer"
	"github.com/dryserve/dryserve/host/native/live/clock"
	"github.com/dryserve/dryserve/host/native/live/fault"
	"github.com/dryserve/dryserve/host/native/live/fleet"
	"github.com/dryserve/dryserve/host/native/live/meter"
	"github.com/dryserve/dryserve/host/native/live/openai"
	"github.com/dryserve/dryserve/host/native/live/tokenizer"
)

// maxBody is the largest request, the reference's largest message.
const maxBody = 32 << 20

// maxContext bounds prompt and answer where the engine has no limit.
const maxContext = 1 << 24

// warn keeps a sentence for the log.
func (o *options) warn(format string, args ...any) {
	o.warnings = append(o.warnings, fmt.Sprintf(format, args...))
}

// service is what the command line describes, ready to run.
type service struct {
	fleet  *fleet.Fleet
	server *openai.Server
	log    *slog.Logger
	drain  time.Duration
	report *reporter
}

// build judges the command line and makes the service.
func (o *options) build(stderr io.Writer) (*service, error) {
	if err := o.checkWorkers(); err != nil {
		return nil, err
	}
	args, err := o.engine()
	if err != nil {
		return nil, err
	}
	e := args.Engine
	if err := o.checkTimes(e); err != nil {
		return nil, err
	}
	model := o.model()
	mode, rc, tracking, err := o.router(model, e)
	if err != nil {
		return nil, err
	}
	faults, err := o.faults()
	if err != nil {
		return nil, err
	}
	so := openai.Options{
		Clock: clock.NewWall(true), Model: model, Version: version + " (Dryserve, follows " + reference + ")", Faults: fault.New(faults),
		Seed: uint64(o.whole("seed")), MaxBodyBytes: maxBody, ContextTokens: contextTokens(e),
		Meter: meter.New(e.Backend, o.whole("num-workers"), e.DPSize), Log: o.logger(stderr),
	}
	if so.ChatTokens = o.whole("default-output-tokens"); so.ChatTokens < 1 {
		return nil, o.wrong("default-output-tokens", "a whole number of at least 1")
	}
	if err := o.answers(&so); err != nil {
		return nil, err
	}
	var prompts *config.GridTable
	if mode == fleet.KV && rc.LoadModel != config.NoLoadModel {
		prompts = e.Timing.Grid
	}
	f := fleet.New(fleet.Options{
		Prompts: prompts,
		Engine:  e, Workers: o.whole("num-workers"), StaggerMs: 1000 * o.real("stagger-delay"), StartupMs: 1000 * o.real("startup-time"),
		Mode: mode, Router: rc, Tracking: tracking, Seed: so.Seed, Clock: so.Clock, Observer: so.Meter.Observer, Warn: so.Log.Warn,
	})
	so.Backend = f
	r, err := o.reporter(args)
	if err != nil {
		return nil, err
	}
	if r != nil {
		so.Books = r.books
	}
	return &service{f, openai.New(so), so.Log, time.Duration(o.real("drain-timeout") * 1e9), r}, nil
}

// checkWorkers judges how many workers there are, and when.
func (o *options) checkWorkers() error {
	if n := o.whole("num-workers"); n < 1 || n > config.MaxWorkers {
		return o.wrong("num-workers", fmt.Sprintf("a whole number from 1 to %d", config.MaxWorkers))
	}
	if d := o.real("stagger-delay"); d < 0 && d != -1 {
		return o.wrong("stagger-delay", "-1, 0 or a positive number")
	}
	if d := o.real("drain-timeout"); !(d >= 0 && d <= 1e9) {
		return o.wrong("drain-timeout", "a number from 0 to 1e9")
	}
	return nil
}

// checkTimes judges what an engine says of time.
func (o *options) checkTimes(e config.Engine) error {
	if d := o.real("startup-time"); d < 0 {
		return o.wrong("startup-time", "a number of at least 0")
	}
	if e.SpeedupRatio == 0 {
		o.warn("a speedup ratio of 0 is real time, as in %s; 1e9 takes no time", reference)
	}
	return nil
}

// model is the name that requests ask for (live notes §1).
func (o *options) model() string {
	for _, name := range []string{"model-name", "model-path"} {
		if o.given(name) && o.text(name) != "" {
			return o.text(name)
		}
	}
	return "dynamo"
}

// contextTokens is the most that a prompt and its answer have together: the
// model's limit, else what the cache of a rank holds.
func contextTokens(e config.Engine) int {
	room := min(maxContext, e.NumGPUBlocks*e.BlockSize)
	if e.MaxModelLen > 0 {
		return min(room, e.MaxModelLen)
	}
	return room
}

// answers reads what answers consist of.
func (o *options) answers(so *openai.Options) (err error) {
	so.Tokenizer, so.Ends = tokenizer.Builtin(), []uint32{256, 258}
	if o.given("model-path") {
		dir := o.text("model-path")
		if so.Tokenizer, err = tokenizer.Load(dir); err != nil {
			return usagef("--model-path: %v", err)
		}
		if so.Ends, err = ends(dir); err != nil {
			return usagef("--model-path: %v", err)
		}
	}
	so.Style.IDs = so.Tokenizer.Words()
	if len(so.Style.IDs) == 0 {
		return usagef("--model-path: %s: no token of its vocabulary is text that can be read; one with such tokens is accepted", o.text("model-path"))
	}
	if so.Style.Reasoning, err = o.reasoning(); err != nil {
		return err
	}
	if o.given("response-replay-trace-path") {
		if so.Recorded, err = answer.Load(o.text("response-replay-trace-path")); err != nil {
			return usagef("--response-replay-trace-path: %v", err)
		}
	}
	return nil
}

// faults reads what is to go wrong.
func (o *options) faults() (f fault.Options, err error) {
	for _, name := range []string{"fault-error-rate", "fault-stall-rate", "fault-disconnect-rate"} {
		if x := o.real(name); !(x >= 0 && x <= 1) {
			return f, o.wrong(name, "a number from 0 to 1")
		}
	}
	for _, name := range []string{"fault-jitter-ms", "fault-stall-ms", "fault-rate-limit"} {
		if x := o.real(name); !(x >= 0 && x <= 1e9) {
			return f, o.wrong(name, "a number from 0 to 1e9")
		}
	}
	if s := o.whole("fault-error-status"); s < 400 || s > 599 {
		return f, o.wrong("fault-error-status", "a status from 400 to 599")
	}
	ms := func(name string) time.Duration { return time.Duration(o.real(name) * 1e6) }
	return fault.Options{
		Seed: uint64(o.whole("fault-seed")), Jitter: ms("fault-jitter-ms"), ErrorRate: o.real("fault-error-rate"), ErrorStatus: o.whole("fault-error-status"),
		StallRate: o.real("fault-stall-rate"), Stall: ms("fault-stall-ms"), DisconnectRate: o.real("fault-disconnect-rate"), RateLimit: o.real("fault-rate-limit"),
	}, nil
}

// logger writes structured lines.
func (o *options) logger(w io.Writer) *slog.Logger {
	level := map[string]slog.Level{
		"trace": slog.LevelDebug - 4, "debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError, "off": slog.LevelError + 4,
	}[o.text("log-level")]
	ho := &slog.HandlerOptions{Level: level}
	if o.text("log-format") == "json" {
		return slog.New(slog.NewJSONHandler(w, ho))
	}
	return slog.New(slog.NewTextHandler(w, ho))
}

// address is where to listen: a port alone is on the loopback interface.
func (o *options) address() (string, error) {
	a := o.text("http")
	if !strings.Contains(a, ":") {
		a = ":" + a
	}
	host, port, err := net.SplitHostPort(a)
	if err != nil || port == "" {
		return "", o.wrong("http", "an address such as 127.0.0.1:8000")
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return "", o.wrong("http", "an address such as 127.0.0.1:8000")
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}

// serve runs until a signal, then lets what is under way come to its end.
func serve(o *options, stderr io.Writer) error {
	if !o.given("http") {
		return serveFrontend(o, stderr)
	}
	address, err := o.address()
	if err != nil {
		return err
	}
	s, err := o.build(stderr)
	if err != nil {
		return err
	}
	for _, w := range o.warnings {
		s.log.Warn(w)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		s.report.abandon()
		return fmt.Errorf("--http %s: cannot listen there: %w", address, listenReason(err))
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	defer signal.Stop(signals)
	s.log.Info("listening", "address", l.Addr().String(), "model", s.server.Model, "workers", s.fleet.Workers(), "router", o.routerName(), "version", version)
	return s.run(l, signals)
}

func (o *options) routerName() string {
	if m := o.text("router-mode"); m != "" {
		return m
	}
	return fleet.Modes()[fleet.RoundRobin]
}

// listenReason is the bare reason of an error of net.
func listenReason(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return cliutil.Reason(err)
}

// run serves until a signal comes, then reports.
func (s *service) run(l net.Listener, signals <-chan os.Signal) error {
	if err := s.serve(l, signals); err != nil {
		s.report.abandon()
		return err
	}
	return s.report.write()
}

// serve serves until a signal comes and nothing is under way any more.
func (s *service) serve(l net.Listener, signals <-chan os.Signal) error {
	ctx, stop := context.WithCancel(context.Background())
	var workers sync.WaitGroup
	workers.Go(func() { s.fleet.Run(ctx) })
	defer workers.Wait()
	defer stop()
	h := &http.Server{Handler: s.server, ReadHeaderTimeout: 30 * time.Second, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug)}
	failed := make(chan error, 1)
	go func() { failed <- h.Serve(l) }()
	select {
	case err := <-failed:
		return fmt.Errorf("the server failed: %w", err)
	case sig := <-signals:
		s.log.Info("draining", "signal", sig.String(), "limit", s.drain.String())
	}
	s.server.Drain()
	limit, cancel := context.WithTimeout(context.Background(), s.drain)
	defer cancel()
	go func() {
		select {
		case sig := <-signals:
			s.log.Warn("a second signal; what is under way is given up", "signal", sig.String())
			cancel()
		case <-limit.Done():
		}
	}()
	select {
	case <-s.server.Drained(): // until then new requests hear why they are refused
	case <-limit.Done():
	}
	if err := h.Shutdown(limit); err != nil {
		stop() // ends every request
		_ = h.Close()
		s.log.Warn("requests were given up", "reason", err.Error())
		return nil
	}
	s.log.Info("drained")
	return nil
}
