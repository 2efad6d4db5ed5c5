package runner

import (
	"context"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/synth"
	"github.com/dryserve/dryserve/host/native/drive"
	"github.com/dryserve/dryserve/host/wasm/frame"
)

// stranger is a module with the exports of core.wasm whose functions give
// fixed numbers. A body is the code between the locals and the end.
func stranger(abi byte, mailbox, call []byte) []byte {
	section := func(id byte, content ...byte) []byte { return append([]byte{id, byte(len(content))}, content...) }
	body := func(code ...byte) []byte { return append([]byte{byte(len(code) + 2), 0}, append(code, 0x0B)...) }
	export := func(name string, kind, index byte) []byte {
		return append(append([]byte{byte(len(name))}, name...), kind, index)
	}
	b := []byte("\x00asm\x01\x00\x00\x00")
	b = append(b, section(1, 4, // types
		0x60, 0, 0,
		0x60, 0, 1, 0x7F,
		0x60, 1, 0x7F, 1, 0x7F,
		0x60, 3, 0x7F, 0x7F, 0x7F, 1, 0x7F)...)
	b = append(b, section(3, 5, 0, 1, 1, 2, 3)...) // _initialize, abi, open, mailbox, call
	b = append(b, section(5, 1, 0, 1)...)          // one page of memory
	exports := []byte{6}
	for i, name := range []string{"_initialize", "abi", "open", "mailbox", "call"} {
		exports = append(exports, export(name, 0, byte(i))...)
	}
	b = append(b, section(7, append(exports, export("memory", 2, 0)...)...)...)
	code := []byte{5}
	for _, f := range [][]byte{body(), body(0x41, abi), body(0x41, 1), body(mailbox...), body(call...)} {
		code = append(code, f...)
	}
	return append(b, section(10, code...)...)
}

// A guest that misbehaves gives an error, now and from then on, and no more.
func TestStrangers(t *testing.T) {
	ctx := context.Background()
	at := []byte{0x41, 8}         // i32.const 8
	nowhere := []byte{0x41, 0x7F} // i32.const -1
	for name, c := range map[string]struct {
		core []byte
		want string
	}{
		"another version": {stranger(2, at, at), "core.wasm speaks version 2 of the frames, this program version 1"},
		"a trap":          {stranger(1, at, []byte{0x00}), "the simulation inside core.wasm has stopped: wasm error: unreachable"},
		"no frame":        {stranger(1, at, []byte{0x41, 0}), "core.wasm has answered operation 1 with a bad frame: at byte 0 it is no map of flat values"},
		"no room":         {stranger(1, []byte{0x41, 0}, at), "a frame of 2"},
		"out of memory":   {stranger(1, nowhere, at), "a frame of 2"},
		"too long":        {stranger(1, at, nowhere), "core.wasm has answered with 4294967295 bytes beyond its memory"},
		"exports missing": {[]byte("\x00asm\x01\x00\x00\x00"), "core.wasm has no function "},
	} {
		r, err := New(ctx, Options{Core: c.core})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := r.Open(ctx, frame.Run{Replay: config.DefaultReplay(config.VLLM)}); err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s:\ngot  %v\nwant %s", name, err, c.want)
		}
		if err := r.Close(ctx); err != nil {
			t.Error(err)
		}
	}
}

// After a trap the instance stays dead.
func TestDeadStaysDead(t *testing.T) {
	ctx := context.Background()
	r, err := New(ctx, Options{Core: stranger(1, []byte{0x41, 8}, []byte{0x00})})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(ctx)
	g, err := r.instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	g.said.WriteString("panic: why\n\ngoroutine 1\n")
	for range 2 {
		if _, err := g.exchange(ctx, frame.Progress, nil); err == nil || err.Error() != "the simulation inside core.wasm has stopped: panic: why" {
			t.Errorf("%v", err)
		}
	}
}

// canned answers every call with the same bytes.
type canned []byte

func (c canned) exchange(context.Context, frame.Op, []byte) ([]byte, error) { return c, nil }
func (c canned) close(context.Context) error                                { return nil }

// Whatever a guest answers, the host reads it or says what is wrong.
func FuzzAnswers(f *testing.F) {
	ctx := context.Background()
	for _, calls := range dialogues() {
		p := newNativePort()
		for _, s := range calls {
			request := s.raw
			if request == nil {
				request = frame.Append(nil, s.fields)
			}
			answer, _ := p.exchange(ctx, s.op, request)
			f.Add(append([]byte(nil), answer...))
		}
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		s := &Sim{ctx: ctx, guest: canned(answer)}
		s.fed.Turns, s.fed.Sessions = 2, 1
		s.Feed(nil, true, false)
		if s.fed.Turns < 0 || s.fed.Turns > 100 || s.fed.Sessions < 0 || s.fed.Sessions > 100 {
			s.fed.Turns, s.fed.Sessions = 2, 1
		}
		s.Feed(nil, false, false)
		s.Synthesize(synth.Spec{})
		s.Step(1)
		s.Progress()
		s.Summary()
		s.Records()
		s.Unservable()
		s.Handoffs()
		s.Routes()
		s.Direct(nil)
		s.Lifecycle()
		s.decide(drive.Options{})
		s.tell(drive.Options{Samples: func([]replay.Sample) error { return nil }})
		s.Outcomes(&replay.AgentsSummary{Plays: 2})
		s.takeRecording(func(*replay.Recording) error { return nil })
		s.Outline()
		s.do(frame.Configure, nil, nil)
	})
}

// Whatever a host sends, the guest answers with one frame, and a simulation
// beside goes on as if nothing had been.
func FuzzRequests(f *testing.F) {
	ctx := context.Background()
	for _, calls := range dialogues() {
		for _, s := range calls {
			f.Add(uint32(s.op), frame.Append(nil, s.fields))
		}
	}
	f.Fuzz(func(t *testing.T, op uint32, request []byte) {
		p := newNativePort()
		other := p.guest.Open()
		for range 2 {
			answer, _ := p.exchange(ctx, frame.Op(op), request)
			if _, err := Pairs(answer); err != nil {
				t.Fatalf("%x: %v", answer, err)
			}
		}
		if p.guest.Status(other) != frame.Opened || p.guest.Status(0) != frame.NoSimulation || p.guest.Status(3) != frame.NoSimulation {
			t.Fatal("another simulation has changed")
		}
	})
}
