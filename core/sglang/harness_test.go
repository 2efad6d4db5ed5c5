package sglang_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/core/sglang"
)

func uuid(id uint64) (u [16]byte) {
	binary.BigEndian.PutUint64(u[8:], id)
	return u
}

// span is the prompt start, start+1, …
func span(start, n uint32) []uint32 {
	ids := make([]uint32, n)
	for i := range ids {
		ids[i] = start + uint32(i)
	}
	return ids
}

// small is a small rank: pages of 4 tokens, fixed times of 10 and 2 ms.
func small(pages int, change ...func(*config.Engine)) config.Engine {
	cfg := config.Defaults(config.SGLang)
	cfg.BlockSize = 4
	cfg.NumGPUBlocks = pages
	cfg.Timing = config.Timing{Kind: config.Fixed, PrefillMs: 10, DecodeMs: 2}
	for _, c := range change {
		c(&cfg)
	}
	return cfg
}

// story is what became of one request.
type story struct {
	arrivalMs float64
	tokenMs   []float64
	tokens    []uint32
	reused    []int // at each admission
	endMs     float64
	outcome   string
}

// lab runs requests on an engine until nothing is left to do, and gives up on
// heads of the queue that can never be served.
type lab struct {
	t       *testing.T
	e       *sglang.Rank
	now     float64
	next    uint64
	stories []*story // by Tag
	passes  []string // one line per pass
}

func newLab(t *testing.T, cfg config.Engine) *lab {
	return &lab{t: t, e: sglang.New(cfg, 0)}
}

// submit queues a prompt; the request's UUID counts from 1, its tag from 0.
func (l *lab) submit(tokens []uint32, out int) engine.Handle {
	l.t.Helper()
	return l.submitRequest(engine.Request{Tokens: tokens, MaxOutput: out})
}

func (l *lab) submitRequest(q engine.Request) engine.Handle {
	l.t.Helper()
	l.next++
	q.UUID = uuid(l.next)
	q.Tag = uint32(len(l.stories))
	h, code := l.e.Submit(q)
	if code != engine.Applied {
		l.t.Fatalf("submit: code %d", code)
	}
	l.stories = append(l.stories, &story{arrivalMs: l.now})
	return h
}

// step runs one pass.
func (l *lab) step() *engine.Out {
	l.t.Helper()
	end, ok := l.e.Begin(l.now)
	if !ok {
		l.t.Fatal("not ready")
	}
	out := l.e.Out()
	for _, a := range out.Admissions {
		l.stories[a.Tag].reused = append(l.stories[a.Tag].reused, a.Reused)
	}
	l.e.Complete(end)
	l.now = end
	var said []string
	for _, o := range out.Outputs {
		s := l.stories[o.Tag]
		mark := ""
		if o.HasToken {
			s.tokenMs, s.tokens = append(s.tokenMs, end), append(s.tokens, o.Token)
		} else {
			mark = "-"
		}
		if o.Completed {
			s.outcome, s.endMs = "completed", end
			mark += "."
		}
		if o.Rejected {
			s.outcome = "rejected"
			mark = "!"
		}
		said = append(said, fmt.Sprint(o.Tag, mark))
	}
	l.passes = append(l.passes, fmt.Sprint(end, " ", said))
	return out
}

// run steps until the rank is idle or what is left waits for a command.
func (l *lab) run() *lab {
	l.t.Helper()
	for l.e.Ready() {
		before := l.now
		out, round := l.step(), l.e.Round()
		if l.now > before || out.Effect && !out.Stuck || round.Deferred || round.RatioChanged {
			continue
		}
		_, tag, ok := l.e.FailHead()
		if !ok {
			l.t.Fatal("a pass without effect and nobody to give up on")
		}
		l.stories[tag].outcome, l.stories[tag].endMs = "failed", l.now
	}
	return l
}

func (l *lab) wantPasses(want ...string) {
	l.t.Helper()
	if !slices.Equal(l.passes, want) {
		l.t.Errorf("passes\n got %q\nwant %q", l.passes, want)
	}
}
