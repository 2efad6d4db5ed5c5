package zmtp

import (
	"bufio"
	"errors"
	"net"
	"time"
)

// Limits of who asks.
const (
	mostParts  = 16 // of a message
	answerTime = 30 * time.Second
)

// Router is a ROUTER socket that answers. Take it from ListenRouter.
type Router struct {
	server
	answer func(parts [][]byte, send func(parts ...[]byte) bool)
}

// ListenRouter binds a socket to an address. Each message is given to answer with
// its parts; what answer sends goes to who has asked, in order, and send is false
// once that one has gone. Those who ask are answered beside each other.
func ListenRouter(address string, answer func(parts [][]byte, send func(parts ...[]byte) bool)) (*Router, error) {
	r := &Router{answer: answer}
	if err := r.listen(address, r.serve); err != nil {
		return nil, err
	}
	return r, nil
}

// serve answers one peer until it goes, or does not read what it has asked for.
func (r *Router) serve(conn net.Conn) {
	in := bufio.NewReader(conn)
	_ = conn.SetDeadline(time.Now().Add(greetingTime))
	if err := greet(conn, in, "ROUTER"); err != nil {
		return
	}
	_ = conn.SetDeadline(time.Time{})
	gone := false
	out := bufio.NewWriterSize(conn, 16<<10)
	write := func(b []byte) bool {
		_ = conn.SetWriteDeadline(time.Now().Add(answerTime))
		_, err := out.Write(b)
		gone = gone || err != nil
		return !gone
	}
	send := func(parts ...[]byte) bool {
		var b []byte
		for i, part := range parts {
			b = appendFrame(b, part, i < len(parts)-1)
		}
		return write(b)
	}
	for !gone {
		parts, err := readMessage(in, write)
		if err != nil {
			return
		}
		r.answer(parts, send)
		gone = gone || out.Flush() != nil
	}
}

// readMessage reads the parts of a message, and answers what is said between
// messages.
func readMessage(r *bufio.Reader, write func(b []byte) bool) (parts [][]byte, err error) {
	for {
		f, err := readFrame(r)
		if err != nil {
			return nil, err
		}
		if f.command {
			name, rest, ok := command(f.body)
			if !ok || len(parts) > 0 {
				return nil, errors.New("a command is malformed, or within a message")
			}
			if name == "PING" && len(rest) >= 2 {
				write(appendCommand(nil, "PONG", rest[2:]))
			}
			continue
		}
		if parts = append(parts, f.body); len(parts) > mostParts {
			return nil, errors.New("a message has too many parts")
		}
		if !f.more {
			return parts, nil
		}
	}
}
