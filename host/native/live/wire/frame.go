// Package wire is the bytes of Dynamo's request plane: what a frontend asks of a
// worker, and what it is answered.
//
// It owns frames, control messages, requests and outputs, in both codecs,
// MessagePack and JSON. It does not own connections (live/plane) or what a
// request means.
//
// Invariants: reading allocates no more than has arrived, or than a limit; nothing
// that is read makes it panic; what is not known is skipped.
//
// Source: live notes §3; checked against its captures.
package wire

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// MaxMessage is the largest payload that is read, the reference's default.
const MaxMessage = 32 << 20

// Request is a frame of the request plane.
type Request struct {
	Path    string // of the endpoint
	Headers map[string]string
	Payload []byte // a two-part message
}

// ReadRequest reads a frame. The error is io.EOF if there is none any more.
func ReadRequest(r *bufio.Reader) (q Request, err error) {
	path, err := sized(r, 2)
	if err != nil {
		return q, err
	}
	headers, err := sized(r, 2)
	if err != nil {
		return q, cut(err)
	}
	if q.Payload, err = sized(r, 4); err != nil {
		return q, cut(err)
	}
	q.Path = string(path)
	if len(headers) > 0 {
		if err := json.Unmarshal(headers, &q.Headers); err != nil {
			return q, errors.New("the headers are no JSON object of strings")
		}
	}
	return q, nil
}

// AppendRequest appends a frame.
func AppendRequest(b []byte, q Request) ([]byte, error) {
	headers, err := json.Marshal(q.Headers)
	if err != nil {
		return b, err
	}
	if len(q.Path) > 1<<16-1 || len(headers) > 1<<16-1 {
		return b, errors.New("the path or the headers have more than 65535 bytes")
	}
	b = binary.BigEndian.AppendUint16(b, uint16(len(q.Path)))
	b = append(b, q.Path...)
	b = binary.BigEndian.AppendUint16(b, uint16(len(headers)))
	b = append(b, headers...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(q.Payload)))
	return append(b, q.Payload...), nil
}

// AppendReply appends the answer to a frame: empty for success.
func AppendReply(b []byte, text string) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(text)))
	return append(b, text...)
}

// cut is the error of a frame that ends early.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// sized reads bytes behind their number in so many bytes.
func sized(r io.Reader, width int) ([]byte, error) {
	var head [8]byte
	if n, err := io.ReadFull(r, head[8-width:]); err != nil {
		if n == 0 {
			return nil, err
		}
		return nil, io.ErrUnexpectedEOF
	}
	return exactly(r, binary.BigEndian.Uint64(head[:]))
}

// exactly reads so many bytes, growing as they come.
func exactly(r io.Reader, n uint64) ([]byte, error) {
	if n > MaxMessage {
		return nil, fmt.Errorf("a part of %d bytes is announced; %d at most are accepted", n, MaxMessage)
	}
	const step = 64 << 10
	b := make([]byte, min(n, step))
	for have := uint64(0); ; {
		m, err := io.ReadFull(r, b[have:])
		if have += uint64(m); err != nil {
			return nil, cut(err)
		}
		if have == n {
			return b, nil
		}
		b = append(b, make([]byte, min(n-have, have))...)
	}
}

// twoPartHead is the lengths of both parts and a checksum that nobody looks at.
const twoPartHead = 24

// AppendTwoPart appends a two-part message.
func AppendTwoPart(b, header, data []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(len(header)))
	b = binary.BigEndian.AppendUint64(b, uint64(len(data)))
	b = binary.BigEndian.AppendUint64(b, 0)
	return append(append(b, header...), data...)
}

// ReadTwoPart reads a two-part message from a stream.
func ReadTwoPart(r io.Reader) (header, data []byte, err error) {
	var head [twoPartHead]byte
	if n, err := io.ReadFull(r, head[:]); err != nil {
		if n == 0 {
			return nil, nil, err
		}
		return nil, nil, io.ErrUnexpectedEOF
	}
	if header, err = exactly(r, binary.BigEndian.Uint64(head[:])); err != nil {
		return nil, nil, err
	}
	data, err = exactly(r, binary.BigEndian.Uint64(head[8:]))
	return header, data, err
}

// SplitTwoPart is ReadTwoPart for a payload, which it must fill.
func SplitTwoPart(payload []byte) (header, data []byte, err error) {
	if len(payload) < twoPartHead {
		return nil, nil, fmt.Errorf("a two-part message has %d bytes; %d at least are accepted", len(payload), twoPartHead)
	}
	h, d := binary.BigEndian.Uint64(payload), binary.BigEndian.Uint64(payload[8:])
	rest := payload[twoPartHead:]
	if h > uint64(len(rest)) || d != uint64(len(rest))-h {
		return nil, nil, fmt.Errorf("a two-part message announces %d and %d bytes and has %d", h, d, len(rest))
	}
	return rest[:h], rest[h:], nil
}

// Codec is how the bodies of messages are written.
type Codec string

// The codecs. Control messages are JSON in any case; without a word bodies are
// JSON, too.
const (
	MessagePack Codec = "msgpack"
	JSON        Codec = "json"
)

// Control says who asks and where the answer goes.
type Control struct {
	ID      string
	Codec   Codec
	Address string // host:port to call
	Subject string // which of its streams
	Context string
	SentNs  int64 // since 1970, by the frontend's clock; 0: it does not say
}

// SentHeader is the header with the time at which a frontend sent a request.
const SentHeader = "x-frontend-send-ts-ns"

// ParseControl reads the header of a request's payload.
func ParseControl(text []byte) (c Control, err error) {
	var m struct {
		ID         string `json:"id"`
		Codec      string `json:"payload_codec"`
		Connection struct {
			Transport string `json:"transport"`
			Info      string `json:"info"`
		} `json:"connection_info"`
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return c, errors.New("the control message is no JSON object of its form")
	}
	var info struct {
		Address string `json:"address"`
		Subject string `json:"subject"`
		Context string `json:"context"`
	}
	if err := json.Unmarshal([]byte(m.Connection.Info), &info); err != nil || info.Address == "" || info.Subject == "" {
		return c, fmt.Errorf("the control message asks for transport %q without an address and a subject; tcp_server with both is accepted", m.Connection.Transport)
	}
	c = Control{ID: m.ID, Codec: Codec(m.Codec), Address: info.Address, Subject: info.Subject, Context: info.Context}
	if m.Codec == "" {
		c.Codec = JSON
	}
	if m.Connection.Transport != "tcp_server" {
		return c, fmt.Errorf("the control message asks for transport %q; tcp_server is accepted", m.Connection.Transport)
	}
	if c.Codec != JSON && c.Codec != MessagePack {
		return c, fmt.Errorf("the control message asks for codec %q; msgpack or json is accepted", m.Codec)
	}
	return c, nil
}
