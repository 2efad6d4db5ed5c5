// Package dynamo is live workers behind a Dynamo frontend: each is found by its
// records, takes requests for tokens and tells routers what its cache holds.
//
// It owns what a worker registers and in which order, what a request for tokens
// is answered with, and how workers leave. It does not own the bytes (live/wire,
// live/card, live/events), connections (live/plane, live/zmtp) or the engine
// (live/worker).
//
// Invariants: a worker is recorded only once it can be asked; records are gone
// before anything that they speak of; blocks are published before the tokens of
// their pass are sent.
//
// Source: live notes §0, §2, §3.6, §8.
package dynamo

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/live/answer"
	"github.com/dryserve/dryserve/host/native/live/card"
	"github.com/dryserve/dryserve/host/native/live/clock"
	"github.com/dryserve/dryserve/host/native/live/discovery"
	"github.com/dryserve/dryserve/host/native/live/events"
	"github.com/dryserve/dryserve/host/native/live/meter"
	"github.com/dryserve/dryserve/host/native/live/plane"
	"github.com/dryserve/dryserve/host/native/live/worker"
)

// Options describe the workers of a process.
type Options struct {
	Engine    config.Engine // checked; whether it tells of its cache is decided here
	Workers   int
	StaggerMs func(i int) float64 // when worker i is launched
	StartupMs float64             // from its launch until it works

	Namespace, Component, Endpoint string
	Model                          card.Model // what does not follow from the engine
	Handoff                        Handoff
	Native                         Native
	Style                          answer.Style
	Recorded                       answer.Recorded

	// Where workers are recorded, take requests and publish events. The site closes
	// them. nil: in files under Root, by TCP at Host and Port, by ZeroMQ at EventHost.
	Store    discovery.Store
	Requests plane.Plane
	Events   events.Plane
	Codec    string // of requests and answers; "": msgpack

	Root       string // of the records
	Host, Port string // where requests are taken; "0": any port
	EventHost  string // where events are published
	Meter      *meter.Meter
	System     string // where the system server listens; "": there is none
	Health     Health
	Clock      clock.Clock
	Seed       uint64
	Log        *slog.Logger
}

// Site is the workers. Take it from Start.
type Site struct {
	o      Options
	store  discovery.Store
	plane  plane.Plane
	events events.Plane
	calls  *meter.Calls
	http   *http.Server
	system string

	count   atomic.Uint64 // of requests
	loops   sync.WaitGroup
	stop    context.CancelFunc
	ctx     context.Context
	mu      sync.Mutex
	workers []*unit
	leaving bool
	same    json.RawMessage // card of all workers, once it is made
}

// Start listens and launches the first worker; the others follow.
func Start(o Options) (*Site, error) {
	s := &Site{o: o}
	var err error
	if err = s.open(); err != nil {
		s.discard()
		return nil, err
	}
	s.calls = o.Meter.Calls()
	if server, ok := s.plane.(*plane.Server); ok {
		s.calls.Crowd(func() (running, mayRun, waiting, mayWait int, refused int64) {
			c := server.Crowd()
			return c.Running, c.MayRun, c.Waiting, c.MayWait, c.Refused
		})
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.loops.Go(s.plane.Serve)
	if err := s.serveSystem(); err != nil {
		s.Close()
		return nil, err
	}
	for i := range o.Workers {
		if d := o.StaggerMs(i); d > 0 {
			s.loops.Go(func() { s.launchLater(i, d) })
			continue
		}
		if err := s.launch(i); err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

// open opens what is not given.
func (s *Site) open() (err error) {
	o := &s.o
	s.store, s.plane, s.events = o.Store, o.Requests, o.Events
	if s.plane == nil {
		if s.plane, err = plane.Listen(net.JoinHostPort(o.Host, o.Port), "", o.Log); err != nil {
			s.plane = nil // not a nil *plane.Server
			return fmt.Errorf("requests cannot be taken at %s: %w", net.JoinHostPort(o.Host, o.Port), err)
		}
	}
	if s.events == nil {
		s.events = events.ZMQ{Bind: o.EventHost}
	}
	if s.store == nil {
		if s.store, err = discovery.Open(o.Root, o.Log.Warn); err != nil {
			s.store = nil // not a nil *discovery.Files
			return fmt.Errorf("the records at %s cannot be used: %w", o.Root, err)
		}
	}
	return nil
}

// publishes reports whether the workers tell what their caches hold. Those that
// decode do not: nobody sends them a prompt for what they hold.
func (s *Site) publishes() bool {
	return s.o.Engine.EnablePrefixCaching && s.o.Engine.Role != config.Decode
}

// card describes worker number i. The model's files are read once if all workers
// have the same card.
func (s *Site) card(i int) (c json.RawMessage, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.same != nil {
		return s.same, nil
	}
	m, e := s.o.Model, &s.o.Engine
	m.BlockSize, m.Context, m.Blocks = e.BlockSize, e.MaxModelLen, e.NumGPUBlocks
	m.MaxSeqs, m.MaxTokens, m.Ranks, m.Publishes, m.Role = e.MaxNumSeqs, e.MaxNumBatchedTokens, e.DPSize, e.EnablePrefixCaching, e.Role
	if i < len(s.o.Handoff.Ports) {
		m.Bootstrap = card.Bootstrap{Host: s.o.Handoff.Host, Port: s.o.Handoff.Ports[i]}
	}
	if c, err = m.Card(); err == nil && len(s.o.Handoff.Ports) == 0 {
		s.same = c
	}
	return c, err
}

// discard closes what has been opened for a site that does not come to be.
func (s *Site) discard() {
	if s.store != nil {
		s.store.Close()
	}
	if s.plane != nil {
		s.plane.Close()
	}
	if s.events != nil {
		s.events.Close()
	}
}

// launchLater launches a worker when its time has come; if that fails, again and
// again.
func (s *Site) launchLater(i int, afterMs float64) {
	t := time.NewTimer(time.Duration(afterMs * 1e6))
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-s.ctx.Done():
			return
		}
		err := s.launch(i)
		if err == nil || s.gone() {
			return
		}
		s.o.Log.Error("a worker cannot be launched; it is tried again", "worker", i, "error", err)
		t.Reset(relaunch)
	}
}

// relaunch is how long after a failure a worker is launched again.
const relaunch = time.Second

// gone reports whether the workers leave.
func (s *Site) gone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leaving || s.ctx.Err() != nil
}

// Address is where requests are taken.
func (s *Site) Address() string { return s.plane.Address() }

// Drain takes the records away and waits for what is under way, or for ctx.
func (s *Site) Drain(ctx context.Context) error {
	s.mu.Lock()
	s.leaving = true
	s.mu.Unlock()
	s.store.Close()
	return s.plane.Drain(ctx)
}

// Close ends everything.
func (s *Site) Close() {
	s.store.Close()
	s.stop()
	s.plane.Close()
	if s.http != nil {
		_ = s.http.Close()
	}
	s.mu.Lock()
	s.leaving = true
	workers := s.workers
	s.mu.Unlock()
	for _, w := range workers {
		w.close()
	}
	s.events.Close()
	s.loops.Wait()
}

// random is an id that nobody else has.
func random(bits int) uint64 {
	for {
		var b [8]byte
		_, _ = rand.Read(b[:]) // never fails
		if id := binary.BigEndian.Uint64(b[:]) >> (64 - bits); id != 0 {
			return id
		}
	}
}

// launch brings up worker number i, whole or not at all.
func (s *Site) launch(i int) error {
	w, err := newUnit(s, i)
	if err != nil {
		return err
	}
	e := s.o.Engine
	e.EmitKVEvents = s.publishes()
	e.EmitKVTokenIDs = len(w.natives) > 0
	engine := worker.New(e, uint64(i), worker.Options{ReadyMs: s.o.Clock.NowMs() + s.o.StartupMs, Observer: w})
	w.loop = worker.NewLoop(engine, s.o.Clock)
	var ctx context.Context
	ctx, w.stop = context.WithCancel(s.ctx)
	s.loops.Go(func() { w.loop.Run(ctx) })
	if err = w.handle(w.endpoint, w.generate); err == nil {
		err = w.register()
	}
	s.mu.Lock()
	if err == nil && s.leaving {
		err = context.Canceled
	}
	if err == nil {
		s.workers = append(s.workers, w)
	}
	s.mu.Unlock()
	if err != nil {
		w.close()
		return err
	}
	s.calls.Uptime(card.Hex(w.endpoint.Instance))
	if len(w.tells) > 0 {
		s.calls.Publisher(w.endpoint.Namespace, w.endpoint.Component, card.Hex(w.endpoint.Instance))
	}
	s.o.Log.Info("worker", "instance", card.Hex(w.endpoint.Instance), "address", s.plane.Address(), "endpoint", s.o.Namespace+"."+s.o.Component+"."+s.o.Endpoint)
	return nil
}

// decimal is an id as messages have it.
func decimal(id uint64) string { return strconv.FormatUint(id, 10) }
