package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"sync"
	"time"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/host/native/cliutil"
	"github.com/dryserve/dryserve/host/native/report"
	"github.com/dryserve/dryserve/host/wasm/frame"
	"github.com/dryserve/dryserve/host/wasm/runner"
)

// server answers frames from standard input on standard output, as
// docs/serve.md says: replays run side by side, each under the id that its
// request gave it. It ends when its input does.
type server struct {
	out sync.Mutex // a frame is written as a whole
	w   io.Writer

	mu      sync.Mutex // guards what follows
	runs    map[uint64]*serving
	runners map[string]*runner.Warming // by where they are kept
}

// serving is a replay under way.
type serving struct {
	id      uint64
	cancel  context.CancelFunc
	outputs *report.Files
	said    time.Time // when progress was told last
	asked   question  // that has not been answered; guarded by mu
	answers chan answered
}

// question is what a run may ask its client.
type question uint8

const (
	nothing question = iota
	aDuration
	aTarget
)

// answered is an answer.
type answered struct {
	ms     float64
	target replay.Decision
	err    error
}

// maxRequest bounds a request: a trace may be in it.
const maxRequest = 1 << 30

// progressEvery is how often a client hears of a run.
const progressEvery = 100 * time.Millisecond

// serve runs until stdin ends. A request that cannot be read is answered; only
// a frame that is cut off ends the server early.
func serve(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		say(stderr, "serve takes no arguments, found %s; requests come as frames (a trace of this name: ./serve)", quoteAll(args))
		return exitUsage
	}
	s := &server{w: stdout, runs: map[uint64]*serving{}, runners: map[string]*runner.Warming{}}
	stop := onInterrupt(s.stopAll)
	defer stop()
	defer s.stopAll()
	in := bufio.NewReaderSize(stdin, 64<<10)
	for {
		request, err := readFrame(in)
		var large frameTooLarge
		switch {
		case err == io.EOF:
			s.keep()
			return exitOK
		case errors.As(err, &large):
			s.answer(0, "error", text("kind", "frame"), text("text", err.Error()))
			continue
		case err != nil:
			say(stderr, "standard input ends within a frame: %v", cliutil.Reason(err))
			return exitFailed
		}
		if err := s.dispatch(request); err != nil {
			say(stderr, "%v", err)
			return exitFailed
		}
	}
}

// frameTooLarge is a frame that was skipped.
type frameTooLarge uint32

func (n frameTooLarge) Error() string {
	return fmt.Sprintf("a frame of %d bytes was skipped; at most %d are accepted", uint32(n), maxRequest)
}

// readFrame reads a length, 4 bytes little-endian, and as many bytes. io.EOF
// means that the stream ends between two frames.
func readFrame(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n > maxRequest {
		if _, err := io.CopyN(io.Discard, r, int64(n)); err != nil {
			return nil, cutOff(err)
		}
		return nil, frameTooLarge(n)
	}
	// The length is a claim: memory grows with what really comes.
	var b []byte
	for left := int(n); left > 0; {
		part := make([]byte, min(left, 1<<20))
		if _, err := io.ReadFull(r, part); err != nil {
			return nil, cutOff(err)
		}
		b = append(b, part...)
		left -= len(part)
	}
	return b, nil
}

func cutOff(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

func text(key, value string) frame.Field { return frame.Field{Name: key, Var: &value} }
func number(key string, n int64) frame.Field {
	return frame.Field{Name: key, Var: &n}
}

// answer writes one frame. If it cannot be written nobody listens any more,
// and the end of standard input will be next.
func (s *server) answer(id uint64, event string, fields ...frame.Field) error {
	b, err := runner.Encode(append([]frame.Field{{Name: "id", Var: &id}, text("event", event)}, fields...))
	if err != nil {
		return err
	}
	s.out.Lock()
	defer s.out.Unlock()
	if _, err := s.w.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(b)))); err != nil {
		return fmt.Errorf("cannot write standard output: %w", cliutil.Reason(err))
	}
	if _, err := s.w.Write(b); err != nil {
		return fmt.Errorf("cannot write standard output: %w", cliutil.Reason(err))
	}
	return nil
}

// request is what a client asks for.
type request struct {
	id       uint64
	op       string
	args     string
	trace    []byte
	requests bool
	samples  bool
	asks     bool
	ms       float64 // NaN: not given
	fault    string
	ticks    bool
	firstMs  float64
	target   replay.Decision
}

func (q *request) fields() []frame.Field {
	return []frame.Field{
		{Name: "id", Var: &q.id}, {Name: "op", Var: &q.op, Need: true}, {Name: "args", Var: &q.args},
		{Name: "trace", Var: &q.trace}, {Name: "requests", Var: &q.requests}, {Name: "tell_samples", Var: &q.samples},
		{Name: "ask_timing", Var: &q.asks}, {Name: "answer_ms", Var: &q.ms}, {Name: "answer_error", Var: &q.fault},
		{Name: "ask_scaling", Var: &q.ticks}, {Name: "first_tick_ms", Var: &q.firstMs}, {Name: "answer_prefill", Var: &q.target.Prefill},
		{Name: "answer_decode", Var: &q.target.Decode}, {Name: "answer_next_ms", Var: &q.target.NextMs},
	}
}

// dispatch does what one request asks for. An error ends the server.
func (s *server) dispatch(b []byte) error {
	q := &request{ms: math.NaN(), target: replay.Decision{Prefill: config.KeepWorkers, Decode: config.KeepWorkers, NextMs: math.NaN()}}
	if f := frame.Decode(b, q.fields()); f.Code != frame.OK {
		return s.answer(q.id, "error", text("kind", "frame"), text("text", frameSentence(f)))
	}
	switch q.op {
	case "hello":
		return s.answer(q.id, "hello", text("version", version), text("reference", reference), number("abi", frame.ABI), number("pid", int64(os.Getpid())))
	case "run":
		return s.start(q)
	case "cancel":
		s.mu.Lock()
		r := s.runs[q.id]
		s.mu.Unlock()
		if r == nil {
			return s.answer(q.id, "error", text("kind", "frame"), text("text", fmt.Sprintf("no run has the id %d", q.id)))
		}
		r.cancel()
		return nil
	case "answer":
		if sentence := s.settle(q); sentence != "" {
			return s.answer(q.id, "error", text("kind", "frame"), text("text", sentence))
		}
		return nil
	}
	return s.answer(q.id, "error", text("kind", "frame"), text("text", fmt.Sprintf("the op is %s; hello, run, answer or cancel is accepted", cliutil.Quote(q.op))))
}

// frameSentence words a frame that cannot be read.
func frameSentence(f frame.Fault) string {
	name := cliutil.Quote(f.Name)
	switch f.Code {
	case frame.WrongVersion:
		return fmt.Sprintf("the frame is of version %d; %d is accepted", f.Found, frame.ABI)
	case frame.UnknownKey:
		return "the key " + name + " is not known; v, id, op, args, trace, requests, tell_samples, ask_timing, ask_scaling, first_tick_ms and those of answers are accepted"
	case frame.WrongType:
		return "the value of " + name + " is of another type"
	case frame.NotInRange:
		return "the value of " + name + " is out of range"
	case frame.MissingKey:
		return "the key " + name + " is missing"
	case frame.TwiceKey:
		return "the key " + name + " stands twice"
	}
	return fmt.Sprintf("the frame is no msgpack map of flat values at byte %d", f.At)
}

// keep waits until core.wasm is compiled, so that it is kept for the next process,
// unless somebody has left in the middle of a run.
func (s *server) keep() {
	s.mu.Lock()
	idle, runners := len(s.runs) == 0, maps.Clone(s.runners)
	s.mu.Unlock()
	for dir, w := range runners {
		if idle && dir != "" {
			<-w.Ready()
		}
	}
}

// stopAll leaves no run and no half-written file behind.
func (s *server) stopAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.runs {
		r.cancel()
		r.outputs.Abort()
	}
}
