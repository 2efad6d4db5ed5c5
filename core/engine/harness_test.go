package engine_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/engine"
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

// vllm is a small engine: blocks of 4 tokens, fixed times of 10 and 2 ms.
func vllm(blocks int, change ...func(*config.Engine)) config.Engine {
	cfg := config.Defaults(config.VLLM)
	cfg.BlockSize = 4
	cfg.NumGPUBlocks = blocks
	cfg.Timing = config.Timing{Kind: config.Fixed, PrefillMs: 10, DecodeMs: 2}
	for _, c := range change {
		c(&cfg)
	}
	return cfg
}

// trtllm makes it a TensorRT-LLM engine.
func trtllm(c *config.Engine) { c.Backend = config.TRTLLM }

// drafts adds speculation with two drafts per step.
func drafts(c *config.Engine) {
	c.MTP.Drafts = 2
	c.MTP.AcceptRates = config.DefaultAcceptRates()
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
	e       *engine.Engine
	now     float64
	next    uint64
	stories []*story // by Tag
	passes  []string // one line per pass
}

func newLab(t *testing.T, cfg config.Engine) *lab {
	return &lab{t: t, e: engine.New(cfg, 0)}
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

// run steps until the engine is idle.
func (l *lab) run() *lab {
	l.t.Helper()
	for l.e.Ready() {
		if l.step().Effect {
			continue
		}
		_, tag, ok := l.e.FailHead()
		if !ok {
			l.t.Fatal("a pass without effect and an empty queue")
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
