package dynamo

import (
	"context"
	"encoding/json"
	"time"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/host/native/live/card"
	"github.com/dryserve/dryserve/host/native/live/discovery"
	"github.com/dryserve/dryserve/host/native/live/events"
	"github.com/dryserve/dryserve/host/native/live/meter"
	"github.com/dryserve/dryserve/host/native/live/plane"
	"github.com/dryserve/dryserve/host/native/live/wire"
	"github.com/dryserve/dryserve/host/native/live/worker"
	"github.com/dryserve/dryserve/host/native/routerwire"
)

// unit is one worker. It observes its engine.
type unit struct {
	site     *Site
	endpoint card.Endpoint
	card     json.RawMessage
	records  discovery.Records
	meter    worker.Observer
	loop     *worker.Loop
	stop     context.CancelFunc // of the loop
	desk     desk

	marks   *events.Marks // nil: of a worker that computes prompts
	load    *events.Load
	passes  *events.Passes
	caches  []*events.Cache // by rank
	tells   []*events.Publisher
	natives []*events.Native    // by rank; none: nobody wants them
	all     []*events.Publisher // those that are recorded, in this order

	handled []card.Endpoint
}

// newUnit joins as worker number i and opens its publishers.
func newUnit(s *Site, i int) (w *unit, err error) {
	o := &s.o
	w = &unit{site: s, meter: o.Meter.Observer(i), endpoint: card.Endpoint{Namespace: o.Namespace, Component: o.Component, Name: o.Endpoint, Codec: o.Codec}}
	if w.records, err = s.store.Join(s.ctx); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	if w.endpoint.Instance = w.records.Instance(); w.endpoint.Instance == 0 {
		w.endpoint.Instance = random(64)
	}
	open := func(topic string) (*events.Publisher, error) {
		p, err := s.events.Open(w.endpoint, topic, random(53))
		if err == nil {
			w.all = append(w.all, p)
		}
		return p, err
	}
	id := w.endpoint.Instance
	if err := w.openHandoff(i); err != nil {
		return nil, err
	}
	if o.Engine.Role != config.Prefill { // whose marks would be of nobody's interest
		requests, err := open(events.TopicRequests)
		if err != nil {
			return nil, err
		}
		w.marks = events.NewMarks(requests, id)
	}
	load, err := open(events.TopicLoad)
	if err != nil {
		return nil, err
	}
	passes, err := open(events.TopicPasses)
	if err != nil {
		return nil, err
	}
	w.load = events.NewLoad(load, id)
	w.passes = events.NewPasses(passes, decimal(id), o.Engine.DPSize)
	if !s.publishes() {
		return w, nil
	}
	for rank := range o.Engine.DPSize {
		p, err := open(events.TopicCache)
		if err != nil {
			return nil, err
		}
		w.tells = append(w.tells, p)
		w.caches = append(w.caches, events.NewCache(id, rank))
	}
	return w, w.openNative(i)
}

// Native is where workers tell of their caches as vLLM does, too.
type Native struct {
	Bind           string
	Ports, Replays []int // of the first rank of each worker; none: nowhere
}

// openNative opens the sockets of worker number i.
func (w *unit) openNative(i int) error {
	o := &w.site.o
	if i >= len(o.Native.Ports) {
		return nil
	}
	for rank := range o.Engine.DPSize {
		replay := 0
		if i < len(o.Native.Replays) {
			replay = o.Native.Replays[i] + rank
		}
		n, err := events.ListenNative(o.Native.Bind, o.Native.Ports[i]+rank, replay, rank, o.Engine.BlockSize)
		if err != nil {
			return err
		}
		w.natives = append(w.natives, n)
	}
	return nil
}

// close takes the worker away.
func (w *unit) close() {
	w.records.Leave()
	for _, e := range w.handled {
		w.site.plane.Forget(e)
	}
	if w.stop != nil {
		w.stop()
	}
	if w.passes != nil {
		w.passes.Stop()
	}
	for _, p := range w.all {
		p.Close()
	}
	for _, n := range w.natives {
		n.Close()
	}
	if w.desk.server != nil {
		w.desk.server.Close()
	}
}

// register records the worker: a channel of marks, the card, the endpoint, then
// the rest (live notes §0.4).
func (w *unit) register() error {
	s, e := w.site, w.endpoint
	by := s.plane.Transport()
	channel := func(p *events.Publisher) error {
		return w.records.Put(discovery.EventChannels, e.EventKey(p.Topic(), p.ID), e.ChannelRecord(p.Topic(), p.ID, p.Channel()))
	}
	rest := w.all
	if w.marks != nil {
		if err := channel(rest[0]); err != nil {
			return err
		}
		rest = rest[1:]
	}
	if err := w.records.Put(discovery.Cards, e.Key(), e.CardRecord(w.card)); err != nil {
		return err
	}
	if err := w.records.Put(discovery.Instances, e.Key(), e.Record(by)); err != nil {
		return err
	}
	for _, p := range rest {
		if err := channel(p); err != nil {
			return err
		}
	}
	for rank, p := range w.tells {
		query := e
		query.Name = card.QueryName(p.ID)
		if err := w.handle(query, w.query(rank)); err != nil {
			return err
		}
		if err := w.records.Put(discovery.Instances, query.Key(), query.Record(by)); err != nil {
			return err
		}
		if err := w.records.Put(discovery.EventSources, e.EventKey(events.TopicCache, p.ID), e.SourceRecord(events.TopicCache, p.ID, rank, by)); err != nil {
			return err
		}
	}
	return nil
}

// handle lets an endpoint answer, and counts its calls.
func (w *unit) handle(e card.Endpoint, h plane.Handler) error {
	w.handled = append(w.handled, e)
	return w.site.plane.Handle(e, w.counted(e.Name, h))
}

// counted counts the calls of an endpoint.
func (w *unit) counted(name string, h plane.Handler) plane.Handler {
	e := w.endpoint
	calls := w.site.calls.Endpoint(e.Namespace, e.Component, name, card.Hex(e.Instance))
	return func(ctx context.Context, c wire.Control, body []byte, to *plane.Stream) bool {
		came := time.Now()
		if c.SentNs > 0 {
			calls.Travelled(came.Sub(time.Unix(0, c.SentNs)))
		}
		end := calls.Begin(len(body))
		complete := h(ctx, c, body, to)
		end(to.Sent, ctx.Err() != nil)
		if !to.Began.IsZero() {
			calls.Answered(to.Began.Sub(came))
		}
		if to.Broken {
			calls.Failed(meter.PublishResponse)
		}
		return complete
	}
}

// query answers for what a rank's publisher has said.
func (w *unit) query(rank int) plane.Handler {
	return func(_ context.Context, c wire.Control, body []byte, to *plane.Stream) bool {
		q, err := wire.DecodeKVQuery(c.Codec, body)
		answer := map[string]any{}
		if err != nil {
			answer["Error"] = err.Error()
		} else {
			answer = w.caches[rank].Query(q)
		}
		var text []byte
		if c.Codec == wire.MessagePack {
			text, err = routerwire.Marshal(answer)
		} else {
			text, err = json.Marshal(answer)
		}
		if err != nil {
			w.site.o.Log.Error("an answer cannot be written", "error", err)
			return false
		}
		to.Item(text)
		return true
	}
}

// Passed publishes what a rank said of a pass.
func (w *unit) Passed(rank int, out *engine.Out, nowMs float64) {
	w.publish(rank, out.KVEvents, out.KVBlocks, out.KVTokens)
	w.load.Set(rank, out.Metrics.ActiveBlocks)
	w.passes.Passed(rank, &out.Forward)
	w.meter.Passed(rank, out, nowMs)
}

// Commanded publishes what a command did.
func (w *unit) Commanded(rank int, said *engine.Effects, m engine.Metrics, nowMs float64) {
	w.publish(rank, said.KVEvents, said.KVBlocks, said.KVTokens)
	w.load.Set(rank, m.ActiveBlocks)
	w.meter.Commanded(rank, said, m, nowMs)
}

func (w *unit) publish(rank int, raw []engine.KVEvent, blocks []engine.KVBlock, tokens []uint32) {
	if len(raw) == 0 {
		return
	}
	if len(w.natives) > 0 {
		if err := w.natives[rank].Tell(raw, blocks, tokens); err != nil {
			w.site.o.Log.Error("events cannot be written", "error", err)
		}
	}
	if list := w.caches[rank].Tell(raw, blocks); len(list) > 0 {
		if err := w.tells[rank].Send(list); err != nil {
			w.site.o.Log.Error("events cannot be written", "error", err)
		}
	}
}
