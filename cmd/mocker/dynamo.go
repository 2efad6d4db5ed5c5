package main

import (
	"context"
	"io"
	"math"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/live/answer"
	"github.com/dryserve/dryserve/host/native/live/card"
	"github.com/dryserve/dryserve/host/native/live/clock"
	"github.com/dryserve/dryserve/host/native/live/dynamo"
	"github.com/dryserve/dryserve/host/native/live/fleet"
	"github.com/dryserve/dryserve/host/native/live/meter"
)

// behind describes the workers behind a Dynamo frontend.
func (o *options) behind(stderr io.Writer) (d dynamo.Options, err error) {
	if err := o.checkWorkers(); err != nil {
		return d, err
	}
	args, err := o.engine()
	if err != nil {
		return d, err
	}
	if err := o.checkTimes(args.Engine); err != nil {
		return d, err
	}
	workers, delay := o.whole("num-workers"), 1000*o.real("stagger-delay")
	d = dynamo.Options{
		Engine: args.Engine, Workers: workers, StartupMs: 1000 * o.real("startup-time"),
		StaggerMs: func(i int) float64 { return fleet.LaunchMs(i, workers, delay) },
		Model:     card.Model{Name: o.text("model-name"), Path: o.text("model-path"), Generates: o.is("sglang-generate")},
		Clock:     clock.NewWall(true), Seed: uint64(o.whole("seed")), Log: o.logger(stderr),
	}
	d.Meter = meter.New(d.Engine.Backend, workers, d.Engine.DPSize)
	if d.System, d.Health, err = systemServer(o.text("discovery-backend") == "etcd"); err != nil {
		return d, err
	}
	if d.Handoff, err = o.handoff(args); err != nil {
		return d, err
	}
	if d.Native, err = o.native(args); err != nil {
		return d, err
	}
	if d.Namespace, d.Component, d.Endpoint, err = o.endpoint(args.Engine.Role); err != nil {
		return d, err
	}
	if o.at, err = o.places(d.Namespace, d.Component); err != nil {
		return d, err
	}
	d.Native.Bind = o.at.eventBind
	if d.Style.Reasoning, err = o.reasoning(); err != nil {
		return d, err
	}
	if o.given("response-replay-trace-path") {
		if d.Recorded, err = answer.Load(o.text("response-replay-trace-path")); err != nil {
			return d, usagef("--response-replay-trace-path: %v", err)
		}
	}
	if d.Model.Router, err = o.advertised(d.Model.DisplayName()); err != nil {
		return d, err
	}
	if _, err := d.Model.Card(); err != nil {
		return d, usagef("--model-path: %v", err)
	}
	return d, nil
}

// setting is a variable, or what is usual.
func setting(name, usual string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return usual
}

// systemServer reads where metrics and health are served: nowhere without a port
// (live notes §7). open: everywhere, unless a variable names a host.
func systemServer(open bool) (address string, h dynamo.Health, err error) {
	h = dynamo.Health{
		Ready:      setting("DYN_SYSTEM_STARTING_HEALTH_STATUS", "notready") == "ready",
		HealthPath: setting("DYN_SYSTEM_HEALTH_PATH", "/health"), Living: setting("DYN_SYSTEM_LIVE_PATH", "/live"),
	}
	text := setting("DYN_SYSTEM_PORT", "-1")
	port, err := strconv.Atoi(text)
	if err != nil || port > math.MaxUint16 {
		return "", h, usagef("DYN_SYSTEM_PORT is %s; a port, or -1 for none, is accepted", quoted(text))
	}
	for _, path := range []string{h.HealthPath, h.Living} {
		if !strings.HasPrefix(path, "/") || strings.ContainsAny(path, "{} ") || path == "/" || path == "/metrics" || h.HealthPath == h.Living {
			return "", h, usagef("DYN_SYSTEM_HEALTH_PATH is %s and DYN_SYSTEM_LIVE_PATH is %s; two routes such as /health and /live are accepted", quoted(h.HealthPath), quoted(h.Living))
		}
	}
	if port < 1 {
		return "", h, nil
	}
	host := "127.0.0.1"
	if open {
		host = "0.0.0.0"
	}
	return net.JoinHostPort(setting("DYN_SYSTEM_HOST", host), text), h, nil
}

// endpoint reads where workers are found (live notes §1).
func (o *options) endpoint(role config.Role) (namespace, component, name string, err error) {
	namespace = setting("DYN_NAMESPACE", "dynamo")
	if suffix := os.Getenv("DYN_NAMESPACE_WORKER_SUFFIX"); suffix != "" {
		namespace += "-" + suffix
	}
	if !o.given("endpoint") {
		if strings.ContainsAny(namespace, "/ ") {
			return "", "", "", usagef("DYN_NAMESPACE and DYN_NAMESPACE_WORKER_SUFFIX make %s; a name without / and spaces is accepted", quoted(namespace))
		}
		component = "backend"
		if role == config.Prefill {
			component = "prefill"
		}
		return namespace, component, "generate", nil
	}
	parts := strings.Split(strings.TrimPrefix(o.text("endpoint"), "dyn://"), ".")
	for _, p := range parts {
		if p == "" || strings.ContainsAny(p, "/ ") {
			parts = nil
			break
		}
	}
	if len(parts) != 3 {
		return "", "", "", o.wrong("endpoint", "a text such as dyn://dynamo.backend.generate")
	}
	return parts[0], parts[1], parts[2], nil
}

// serveFrontend runs workers behind a frontend until a signal.
func serveFrontend(o *options, stderr io.Writer) error {
	d, err := o.behind(stderr)
	if err != nil {
		return err
	}
	for _, w := range o.warnings {
		d.Log.Warn(w)
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	defer signal.Stop(signals)
	site, done, err := open(o, &d)
	if err != nil {
		return err
	}
	defer done()
	if site == nil {
		return nil
	}
	return leave(o, d, site, signals)
}

// open starts the workers once the places are there. A signal in the meantime is
// no failure, and there is no site then.
func open(o *options, d *dynamo.Options) (site *dynamo.Site, done func(), err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	done, err = o.at.open(ctx, d)
	if interrupted(ctx) {
		d.Log.Info("stopped before there were workers")
		if err != nil {
			return nil, func() {}, nil
		}
	}
	if err != nil {
		return nil, nil, err
	}
	if site, err = dynamo.Start(*d); err != nil {
		done()
		return nil, nil, err
	}
	return site, done, nil
}

// leave waits for a signal and lets what is under way come to its end.
func leave(o *options, d dynamo.Options, site *dynamo.Site, signals <-chan os.Signal) error {
	drain := time.Duration(o.real("drain-timeout") * 1e9)
	d.Log.Info("draining", "signal", (<-signals).String(), "limit", drain.String())
	limit, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	go func() {
		select {
		case sig := <-signals:
			d.Log.Warn("a second signal; what is under way is given up", "signal", sig.String())
			cancel()
		case <-limit.Done():
		}
	}()
	err := site.Drain(limit)
	site.Close()
	if err != nil {
		d.Log.Warn("requests were given up", "reason", err.Error())
	} else {
		d.Log.Info("drained")
	}
	return nil
}
