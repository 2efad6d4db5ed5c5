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
//     neither; a refused request has no items.
//
// Source: live notes §3.1 to §3.3, §3.7.
package plane

import (
	"bufio"
	"context"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/dryserve/dryserve/host/native/live/card"
	"github.com/dryserve/dryserve/host/native/live/wire"
)

// Plane takes requests for endpoints.
type Plane interface {
	// Handle lets an endpoint answer.
	Handle(e card.Endpoint, h Handler) error
	// Forget takes an endpoint away; its requests under way go on.
	Forget(e card.Endpoint)
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

// understand reads a two-part message. sent is when it was sent, if the frontend
// says so. serve answers it.
func (d *desk) understand(h Handler, payload []byte, sent string) (serve func(), err error) {
	header, body, err := wire.SplitTwoPart(payload)
	if err != nil {
		return nil, err
	}
	c, err := wire.ParseControl(header)
	if err != nil {
		return nil, err
	}
	c.SentNs, _ = strconv.ParseInt(sent, 10, 64) // no number: it does not say
	return func() { d.answer(h, c, body) }, nil
}

// Times that a frontend is given.
const (
	dialTime = 10 * time.Second
	byeTime  = 10 * time.Second
)

// answer lets the handler speak, and ends the answer. The frontend is called at
// the first Flush, so a handler can set its engine to work before.
func (d *desk) answer(h Handler, c wire.Control, body []byte) {
	ctx, cancel := context.WithCancel(d.ctx)
	defer cancel()
	to := &Stream{Codec: c.Codec, log: d.log, ctx: ctx, cancel: cancel, address: c.Address}
	defer to.close()
	to.buf = wire.AppendHandshake(to.buf, c.Subject)
	if complete := h(ctx, c, body, to); !complete || ctx.Err() != nil {
		if to.conn == nil && ctx.Err() == nil {
			to.Flush() // the frontend must see that the answer is broken off
		}
		return
	}
	to.end()
	if !to.write() {
		return
	}
	// The frontend closes when it has read to the end.
	t := time.NewTimer(byeTime)
	defer t.Stop()
	select {
	case <-to.gone:
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
	Codec   wire.Codec
	Sent    int64     // bytes
	Began   time.Time // when the prologue was written; zero: not yet
	Broken  bool      // the frontend could not be reached, or not be written to
	log     *slog.Logger
	ctx     context.Context
	cancel  context.CancelFunc
	address string
	conn    net.Conn      // nil: the frontend has not been called
	gone    chan struct{} // closed when nothing comes from the frontend any more
	stop    func() bool
	buf     []byte
	begun   bool
	refused bool
}

// open calls the frontend.
func (t *Stream) open() bool {
	d := net.Dialer{Timeout: dialTime}
	conn, err := d.DialContext(t.ctx, "tcp", t.address)
	if err != nil {
		if t.ctx.Err() == nil {
			t.log.Warn("the frontend cannot be reached for an answer", "address", t.address, "error", err)
			t.Broken = true
		}
		t.cancel()
		return false
	}
	t.conn, t.gone = conn, make(chan struct{})
	// A cancelled answer may be stuck in a write that nobody reads.
	t.stop = context.AfterFunc(t.ctx, func() { _ = conn.SetDeadline(time.Now()) })
	go func() {
		listen(conn, t.cancel)
		close(t.gone)
	}()
	return true
}

func (t *Stream) close() {
	if t.conn == nil {
		return
	}
	t.stop()
	_ = t.conn.Close()
	<-t.gone
}

// Call opens the connection, so that the frontend can cancel the request before
// it is taken or refused. It is false if the frontend cannot be reached.
func (t *Stream) Call() bool { return t.write() }

// Begin says that the request is taken. It is said before anything else, if
// nobody has refused it.
func (t *Stream) Begin() {
	if !t.begun {
		t.begun = true
		t.buf = wire.AppendPrologue(t.buf, "")
	}
}

// Refuse says, instead of all else, that this worker does not take the request
// and why. The frontend asks another then.
func (t *Stream) Refuse(why string) {
	if !t.begun {
		t.begun, t.refused = true, true
		t.buf = wire.AppendPrologue(t.buf, why)
	}
}

// end says that the answer is complete.
func (t *Stream) end() {
	t.Begin()
	if !t.refused {
		t.buf = wire.AppendFinal(t.buf, t.Codec)
	}
	t.buf = wire.AppendSentinel(t.buf)
}

// Output says one frame, at the next Flush.
func (t *Stream) Output(o wire.Output) {
	t.Begin()
	t.buf = wire.AppendOutput(t.buf, t.Codec, o)
}

// Invalid says what is wrong with the request.
func (t *Stream) Invalid(message, public string) {
	t.Begin()
	t.buf = wire.AppendInvalid(t.buf, t.Codec, message, public)
}

// Item says something whose body is written in the codec already.
func (t *Stream) Item(body []byte) {
	t.Begin()
	t.buf = wire.AppendItem(t.buf, t.Codec, body)
}

// Flush writes what has been said; the first one calls the frontend before. It
// is false if the frontend has gone or cannot be reached.
func (t *Stream) Flush() bool {
	t.Begin()
	return t.write()
}

// write is Flush without a word more.
func (t *Stream) write() bool {
	if t.conn == nil && (t.ctx.Err() != nil || !t.open()) {
		return false
	}
	n, err := t.conn.Write(t.buf)
	t.Sent += int64(n)
	t.buf = t.buf[:0]
	if err != nil {
		t.Broken = true
		t.cancel()
	} else if t.Began.IsZero() {
		t.Began = time.Now()
	}
	return err == nil
}
