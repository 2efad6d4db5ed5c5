package handoff

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Conn is a connection between two workers.
type Conn struct {
	conn     net.Conn
	identity Identity
	lonely   *time.Timer // of a destination that waits for its source

	in    chan Heard
	close sync.Once
	done  chan struct{}
}

// Heard is a message, or why there are no more. Lost: nothing can be said any
// more either.
type Heard struct {
	Message Message
	Err     error
	Lost    bool
}

// ahead is how many messages are heard before anybody asks for them.
const ahead = 4

func newConn(c net.Conn) *Conn {
	return &Conn{conn: c, in: make(chan Heard, ahead), done: make(chan struct{})}
}

// Dial looks for the worker that computes a prompt and registers for it. Failing
// that, the error is in the reference's words.
func Dial(ctx context.Context, address string, id Identity, rank uint32, engine string, order Order) (*Conn, error) {
	d := net.Dialer{Timeout: dialTime}
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		var late net.Error
		if errors.As(err, &late) && late.Timeout() {
			return nil, fmt.Errorf("bootstrap connect timeout to %s", address)
		}
		return nil, fmt.Errorf("bootstrap connection failed: %s", reason(err))
	}
	c := newConn(conn)
	c.identity = id
	if err := c.register(Message{Kind: Register, Rank: rank, Order: order, Engine: engine}); err != nil {
		c.Close()
		return nil, fmt.Errorf("bootstrap connection failed: %s", reason(err))
	}
	_ = conn.SetReadDeadline(time.Now().Add(meetTime))
	go c.read()
	return c, nil
}

// register says who speaks.
func (c *Conn) register(m Message) error {
	_ = c.conn.SetDeadline(time.Now().Add(writeTime))
	if _, err := c.conn.Write([]byte(Hello)); err != nil {
		return err
	}
	return c.Send(m)
}

// reason is what is at the bottom of an error, with the system's number as the
// reference has it.
func reason(err error) string {
	var number syscall.Errno
	if errors.As(err, &number) {
		text := number.Error()
		return fmt.Sprintf("%s%s (os error %d)", strings.ToUpper(text[:1]), text[1:], int(number))
	}
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return err.Error()
}

// Met: the other worker is there, and may take its time.
func (c *Conn) Met() { _ = c.conn.SetReadDeadline(time.Time{}) }

// Heard is what the other worker says, to its end.
func (c *Conn) Heard() <-chan Heard { return c.in }

// Send says something.
func (c *Conn) Send(list ...Message) error {
	var b []byte
	for _, m := range list {
		b = AppendFrame(b, c.identity, m)
	}
	_ = c.conn.SetWriteDeadline(time.Now().Add(writeTime))
	_, err := c.conn.Write(b)
	return err
}

// Close ends it.
func (c *Conn) Close() {
	c.close.Do(func() { close(c.done); _ = c.conn.Close() })
}

// read hears the other worker until either has gone.
func (c *Conn) read() {
	for {
		id, m, err := ReadFrame(c.conn)
		switch {
		case err == nil && id != c.identity:
			err = errIdentity
		case err == io.ErrUnexpectedEOF:
			err = errCut
		case err != nil && err != errMalformed && err != errEmpty && err != errSize:
			err = errGone
		}
		select {
		case c.in <- Heard{m, err, err == errGone || err == errCut || err == errSize}:
		case <-c.done:
			return
		}
		if err != nil {
			return
		}
	}
}
