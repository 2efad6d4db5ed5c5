// Package plane is the worker's side of Dynamo's request plane: requests come
// over TCP or NATS, and for each answer the frontend is called over TCP.
//
// It owns connections, their frames' order, and cancellation as it comes over
// the wire. It does not own the frames' bytes (live/wire), the connection to NATS
// (live/bus) or what endpoints answer.
//
// Invariants:
//   - every request is replied to before it is served, those on a connection in
//     order.
//   - a handler's context ends when the frontend cancels the request, or cannot
//     be written to any more.
//   - a complete answer ends with a final item and a sentinel; a cancelled one with
//     neither.
//
// Source: live notes §3.1 to §3.3, §3.7.
package plane

import (
	"bufio"
	"context"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/dryserve/dryserve/host/native/live/card"
	"github.com/dryserve/dryserve/host/native/live/wire"
)

// Plane takes requests for endpoints.
type Plane interface {
	// Handle lets an endpoint answer.
	Handle(e card.Endpoint, h Handler) error
	// Transport is how its requests travel.
	Transport() card.Transport
	// Address is where requests are taken.
	Address() string
	// Serve takes requests until Close.
	Serve()
	// Drain waits for the requests under way, or for ctx.
	Drain(ctx context.Context) error
	// Close ends everything, requests under way too.
	Close()
}

// Handler answers a request. It returns whether the answer is complete; what it
// leaves unsaid when ctx has ended is nobody's loss.
type Handler func(ctx context.Context, c wire.Control, body []byte, to *Stream) (complete bool)

// desk serves requests, however they have come.
type desk struct {
	log      *slog.Logger
	requests sync.WaitGroup
	ctx      context.Context
	stop     context.CancelFunc
}

func newDesk(log *slog.Logger) *desk {
	d := &desk{log: log}
	d.ctx, d.stop = context.WithCancel(context.Background())
	return d
}

// Drain waits for the requests under way, or for ctx.
func (d *desk) Drain(ctx context.Context) error {
	done := make(chan struct{})
	go func() { d.requests.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// understand reads a two-part message. begin serves it.
func (d *desk) understand(h Handler, payload []byte) (begin func(), err error) {
	header, body, err := wire.SplitTwoPart(payload)
	if err != nil {
		return nil, err
	}
	c, err := wire.ParseControl(header)
	if err != nil {
		return nil, err
	}
	return func() { d.requests.Go(func() { d.answer(h, c, body) }) }, nil
}

// Times that a frontend is given.
const (
	dialTime = 10 * time.Second
	byeTime  = 10 * time.Second
)

// answer calls the frontend and lets the handler speak.
func (d *desk) answer(h Handler, c wire.Control, body []byte) {
	ctx, cancel := context.WithCancel(d.ctx)
	defer cancel()
	dialer := net.Dialer{Timeout: dialTime}
	conn, err := dialer.DialContext(ctx, "tcp", c.Address)
	if err != nil {
		d.log.Warn("the frontend cannot be reached for an answer", "address", c.Address, "error", err)
		return
	}
	defer conn.Close()
	to := &Stream{Codec: c.Codec, conn: conn, cancel: cancel}
	to.buf = wire.AppendPrologue(wire.AppendHandshake(to.buf, c.Subject), "")
	gone := make(chan struct{})
	go func() {
		listen(conn, cancel)
		close(gone)
	}()
	defer func() {
		_ = conn.Close()
		<-gone
	}()
	// A cancelled answer may be stuck in a write that nobody reads.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })
	defer stop()
	if !to.Flush() || !h(ctx, c, body, to) || ctx.Err() != nil {
		return
	}
	to.buf = wire.AppendSentinel(wire.AppendFinal(to.buf, c.Codec))
	if !to.Flush() {
		return
	}
	// The frontend closes when it has read to the end.
	t := time.NewTimer(byeTime)
	defer t.Stop()
	select {
	case <-gone:
	case <-t.C:
	}
}

// listen hears what the frontend says on the connection of an answer. Its end
// alone is no cancellation: writes fail then, if there is more to say.
func listen(conn net.Conn, cancel context.CancelFunc) {
	r := bufio.NewReader(conn)
	for {
		header, data, err := wire.ReadTwoPart(r)
		if err != nil {
			return
		}
		if len(data) > 0 || wire.ParseWord(header) != wire.Other || len(header) > 0 {
			cancel() // stopped, killed, or nothing that belongs here
		}
	}
}

// Stream is an answer under way. Its methods are for the handler's goroutine.
type Stream struct {
	Codec  wire.Codec
	Sent   int64 // bytes
	conn   net.Conn
	cancel context.CancelFunc
	buf    []byte
}

// Output says one frame, at the next Flush.
func (t *Stream) Output(o wire.Output) { t.buf = wire.AppendOutput(t.buf, t.Codec, o) }

// Invalid says what is wrong with the request.
func (t *Stream) Invalid(message, public string) {
	t.buf = wire.AppendInvalid(t.buf, t.Codec, message, public)
}

// Item says something whose body is written in the codec already.
func (t *Stream) Item(body []byte) { t.buf = wire.AppendItem(t.buf, t.Codec, body) }

// Flush writes what has been said. It is false if the frontend has gone.
func (t *Stream) Flush() bool {
	n, err := t.conn.Write(t.buf)
	t.Sent += int64(n)
	t.buf = t.buf[:0]
	if err != nil {
		t.cancel()
	}
	return err == nil
}
