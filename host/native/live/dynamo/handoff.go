package dynamo

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/live/handoff"
	"github.com/dryserve/dryserve/host/native/live/plane"
	"github.com/dryserve/dryserve/host/native/live/wire"
	"github.com/dryserve/dryserve/host/native/live/worker"
)

// Handoff is how the workers of a site hand prompts over.
type Handoff struct {
	Ports     []int          // bootstrap port of each worker that computes prompts; none: they hand over directly
	Bind      string         // where these are opened
	Host      string         // where others find them
	Timing    handoff.Timing // of transfers, but for the prompt
	TimeoutMs float64        // of a whole dialogue, its transfer not counted
}

// desk is what a worker knows of the handoffs under way.
type desk struct {
	server *handoff.Server // nil: there is none

	mu    sync.Mutex
	ids   map[handoff.UUID]bool
	ranks []int // handoffs by rank
	turn  int   // rank of the next request that may have any
	live  map[[16]byte]bool
}

// openHandoff makes the desk of worker number i and its card.
func (w *unit) openHandoff(i int) (err error) {
	o := &w.site.o
	if w.card, err = w.site.card(i); err != nil {
		return err
	}
	w.desk.ids, w.desk.ranks, w.desk.live = map[handoff.UUID]bool{}, make([]int, o.Engine.DPSize), map[[16]byte]bool{}
	order, engine, ok := handoff.OrderOf(o.Engine.Backend)
	if o.Engine.Role != config.Prefill || i >= len(o.Handoff.Ports) || !ok {
		return nil
	}
	address := net.JoinHostPort(o.Handoff.Bind, strconv.Itoa(o.Handoff.Ports[i]))
	limit := min(o.Engine.MaxNumSeqs, mostHandoffs) * o.Engine.DPSize
	if w.desk.server, err = handoff.Listen(address, engine, order, limit, o.Log); err != nil {
		return fmt.Errorf("workers that decode cannot be taken at %s: %w", address, err)
	}
	return nil
}

// mostHandoffs bounds the handoffs of a rank whose engine has no limit.
const mostHandoffs = 1 << 16

// rank is where a request goes: where the router says, else to all in turn.
func (d *desk) rank(p *wire.Preprocessed) int {
	if p.Rank != nil {
		return int(*p.Rank)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.turn
	d.turn = (r + 1) % len(d.ranks)
	return r
}

// enter takes a request; it is refused if another has the same id.
func (d *desk) enter(id [16]byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.live[id] {
		return fmt.Errorf("request %s is already active", handoff.UUID(id))
	}
	d.live[id] = true
	return nil
}

func (d *desk) leave(id [16]byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.live, id)
}

// begin takes a handoff of a rank that may have so many.
func (d *desk) begin(id handoff.UUID, rank, most int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.ids[id]:
		return fmt.Errorf("handoff HandoffId(%s) already has a lifecycle route", id)
	case d.ranks[rank] >= most:
		return fmt.Errorf("mocker handoff session limit reached for DP rank %d", rank)
	}
	d.ids[id] = true
	d.ranks[rank]++
	return nil
}

func (d *desk) end(id handoff.UUID, rank int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.ids, id)
	d.ranks[rank]--
}

// Sentences of the reference about handoffs that clients see.
const (
	handoffHere   = "aggregated mocker request cannot carry handoff metadata"
	handoffNoID   = "disaggregated mocker requires a handoff ID"
	handoffTRTLLM = "mocker handoff does not support TRT-LLM"
	handoffNoPort = "source handoff manager is not initialized"
	handoffLate   = "handoff session timed out"
	handoffEnded  = "destination handoff ended before completion"
	outputsClosed = "All output transmitters closed"
	noTokens      = "live requests must generate at least one output token"
)

// misplaced is why a worker does not take a request of this kind, "" if it does.
func (w *unit) misplaced(p *wire.Preprocessed) string {
	b, e := p.Bootstrap, &w.site.o.Engine
	switch {
	case b == nil, b.Handoff == nil && e.Role == config.Aggregated:
		return ""
	case e.Role == config.Aggregated:
		return handoffHere
	case b.Handoff == nil:
		return handoffNoID
	case e.Backend == config.TRTLLM:
		return handoffTRTLLM
	case e.Role == config.Prefill && w.desk.server == nil:
		return handoffNoPort
	}
	return ""
}

// handOver answers a request that is one half of a handoff.
func (w *unit) handOver(ctx context.Context, a *reply, q worker.Request) bool {
	id := handoff.Identity{Handoff: handoff.UUID(*a.p.Bootstrap.Handoff), Room: a.p.Bootstrap.Room, Request: q.UUID}
	if err := w.desk.begin(id.Handoff, q.Rank, min(w.site.o.Engine.MaxNumSeqs, mostHandoffs)); err != nil {
		a.to.Refuse(err.Error())
		return true
	}
	defer w.desk.end(id.Handoff, q.Rank)
	if w.site.o.Engine.Role == config.Prefill {
		return w.source(ctx, a, q, id)
	}
	return w.target(ctx, a, q, id)
}

// timing is what the time of a request's transfer follows from.
func (w *unit) timing(a *reply) handoff.Timing {
	t := w.site.o.Handoff.Timing
	t.PromptTokens = uint64(len(a.p.TokenIDs))
	return t
}

// sleep waits as long as a transfer of the whole prompt takes; it is false if the
// request ends meanwhile.
func (w *unit) sleep(ctx context.Context, a *reply) bool {
	t := w.timing(a)
	t.Missing = false
	ms := t.TransferMs(0)
	if !(ms > 0) {
		return true
	}
	timer := time.NewTimer(duration(ms))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// duration is so many ms, within what there is.
func duration(ms float64) time.Duration { return time.Duration(min(ms, 1e12) * 1e6) }

// fail ends an answer with a sentence.
func fail(to *plane.Stream, why string) bool {
	to.Output(wire.Output{Failure: why})
	return true
}
