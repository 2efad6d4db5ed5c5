// Package tracestat describes a trace without simulating it: how many requests
// and sessions of which lengths, how much of the prompts was there before, how
// requests arrive.
//
// It owns the counting and how the description looks. It does not read traces
// (tracefile does) and does not judge them (core/workload does).
//
// Invariants: memory does not grow with the number of Mooncake rows, but for
// those that begin a session with an id (workload.Checker). Lengths are
// counted exactly up to 131,071 tokens and to 2^-16 above; different blocks
// exactly up to 1.57 million, and by sampling to about 0.1 % above; see
// counts.go and distinct.go.
package tracestat

import (
	"slices"
	"strings"

	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/workload"
	"github.com/dryserve/dryserve/host/native/tracefile"
)

// Stats describes a trace.
type Stats struct {
	Format    string
	Requests  int64
	Sessions  int64
	MaxTurns  int64 // of a session
	BlockSize int64 // tokens of a hash id
	Given     bool  // the trace does not say the block size; the caller did, or it is the default
	MadeUp    bool  // the trace does not say what prompts have in common; blocks are those of a replay

	Plays        int64 // of agents; 0: no such trace
	Dependencies int64
	Models       []string // that requests of agents name

	Prompt, Output Lengths
	Blocks         int64 // of all prompts
	UniqueBlocks   int64 // different ones, each with all before it
	UniqueTokens   int64 // in them
	Sampled        bool  // UniqueBlocks and UniqueTokens are estimates
	Planned        int64 // requests that name the text they generate

	Started   int64 // sessions, or plays, that have a start
	Arrivals  Arrivals
	ThinkMs   Mean // delays of later turns
	LeftOut   int64
	Unsure    int64 // line of the first session id request_<line> of a row before, 0: none
	BadRows   int64
	Fits      int64 // block size to propose, 0: none
	Misfits   int64 // rows that have more hash ids than their prompt needs
	FirstMiss int64 // line of the first
}

// Reuse is the share of prompt blocks that an infinite cache would have had,
// and that of their tokens.
func (s *Stats) Reuse() (blocks, tokens float64) {
	if s.Blocks == 0 {
		return 0, 0
	}
	return float64(s.Blocks-s.UniqueBlocks) / float64(s.Blocks), float64(s.Prompt.Total-s.UniqueTokens) / float64(s.Prompt.Total)
}

// Needs are the flags without which replay would not run the trace.
func (s *Stats) Needs() []string {
	var needs []string
	if s.Plays > 0 {
		needs = append(needs, "--execution-model NAME")
	}
	if s.Plays == 0 && s.Started == 0 && s.Requests > 0 {
		needs = append(needs, "--replay-concurrency N")
	}
	if s.Format == tracefile.MooncakeDelta.String() {
		needs = append(needs, "--trace-format "+s.Format)
	}
	return needs
}

// Mean is a running mean.
type Mean struct {
	N    int64
	Mean float64
	Max  float64
}

func (m *Mean) add(x float64) {
	m.N++
	m.Mean += (x - m.Mean) / float64(m.N)
	m.Max = max(m.Max, x)
}

// Collector counts. It is the Survey of a trace.
type Collector struct {
	stats          Stats
	prompt, output counts
	unique         distinct
	more, tokens   int64 // unique blocks besides, which need no look, and all tokens in them
	starts         arrivals
	delta          bool
	blockSize      int64
	bad            func(e *tracefile.Error) bool
}

// New makes a collector for rows whose hash ids cover blockSize tokens where
// the trace does not say it. bad is told of every bad row, and says whether to
// go on.
func New(format tracefile.Format, blockSize int, bad func(e *tracefile.Error) bool) *Collector {
	return &Collector{delta: format == tracefile.MooncakeDelta, blockSize: int64(blockSize), bad: bad}
}

// Bad counts a bad row.
func (c *Collector) Bad(e *tracefile.Error) bool {
	c.stats.BadRows++
	return c.bad(e)
}

// Row counts a row.
func (c *Collector) Row(row *trace.Row, k workload.Checked) {
	if k.HasStart {
		c.stats.Started++
		c.starts.add(k.StartMs)
	}
	if row.HasOutputIDs {
		c.stats.Planned++
	}
	if k.Session < 0 {
		c.stats.Sessions++
		c.stats.MaxTurns = max(c.stats.MaxTurns, 1)
	}
	if k.Turn > 0 {
		c.stats.ThinkMs.add(k.DelayMs)
	}
	if c.delta && k.Turn > 0 {
		c.spoken(k.Said, k.Input, k.Output)
		return
	}
	c.request(row.HashIDs[:k.Blocks], k.Input, k.Output)
}

// request counts a request whose prompt is ids.
func (c *Collector) request(ids []uint64, input, output int64) {
	c.stats.Requests++
	c.prompt.add(input)
	c.output.add(output)
	c.stats.Blocks += int64(len(ids))
	c.unique.addPath(ids, int64(len(ids))*c.size()-input)
}

// size is the tokens of a whole block.
func (c *Collector) size() int64 {
	if c.stats.BlockSize > 0 {
		return c.stats.BlockSize
	}
	return c.blockSize
}

// spoken counts a request that goes on from what was said in its session: all
// whole blocks of that are there already, and nothing else is.
func (c *Collector) spoken(said, input, output int64) {
	c.stats.Requests++
	c.prompt.add(said + input)
	c.output.add(output)
	blocks := (said + input + c.blockSize - 1) / c.blockSize
	c.stats.Blocks += blocks
	c.more += blocks - said/c.blockSize
	c.tokens += said%c.blockSize + input
}

// Checked takes over what the checker counted.
func (c *Collector) Checked(k *workload.Checker) {
	s := &c.stats
	s.Sessions += int64(k.Sessions())
	for i := range k.Sessions() {
		s.MaxTurns = max(s.MaxTurns, int64(k.Turns(int32(i))))
	}
	s.Unsure, s.BlockSize, s.Given = k.Unsure, c.blockSize, true
	c.fit(&k.BlockSizes)
	if k.Started() {
		s.BadRows += k.Unstarted - int64(len(k.NoStarts)) // the others are told
	}
}

func (c *Collector) fit(b *workload.BlockSizes) {
	c.stats.Misfits, c.stats.FirstMiss = b.Rows, b.FirstLine
	if size, ok := b.Fit(); ok && b.Rows > 0 {
		c.stats.Fits = size
	}
}

// Finish describes the trace that was looked at.
func (c *Collector) Finish(t *tracefile.Trace) *Stats {
	s := &c.stats
	switch t.Format {
	case tracefile.AppliedCompute, tracefile.Azure, tracefile.BurstGPT:
		s.MadeUp, s.Given = true, true
	}
	if t.Workload != nil {
		c.workload(t.Workload)
	}
	s.Format, s.LeftOut = t.Format.String(), t.Info.Failed
	s.Prompt, s.Output = c.prompt.lengths(), c.output.lengths()
	different, lacks := c.unique.count()
	s.Sampled = c.unique.level > 0
	s.UniqueBlocks = min(different+c.more, s.Blocks)
	s.UniqueTokens = min(different*c.size()-lacks+c.tokens, s.Prompt.Total)
	s.Arrivals = c.starts.finish()
	return s
}

// workload counts a workload.
func (c *Collector) workload(w *workload.Workload) {
	s := &c.stats
	s.BlockSize = int64(w.TraceBlockSize)
	if w.Graph != nil {
		s.BlockSize = int64(w.Graph.BlockSize)
	}
	s.Sessions = int64(len(w.Sessions))
	var starts []float64
	for i := range w.Sessions {
		if w.Graph == nil && w.Sessions[i].HasStart {
			starts = append(starts, w.Sessions[i].StartMs)
		}
	}
	if w.Graph != nil {
		starts = c.graph(w)
	}
	slices.Sort(starts)
	for _, ms := range starts {
		c.starts.add(ms)
	}
	s.Started = int64(len(starts))
	var ids []uint64
	for i := range w.Turns {
		t := &w.Turns[i]
		need := int((int64(t.Input) + s.BlockSize - 1) / s.BlockSize)
		ids = w.Prompts.AppendIDs(ids[:0], t.Leaf, need)
		c.request(ids, int64(t.Input), int64(t.Output))
		if t.Planned >= 0 {
			s.Planned++
		}
		if w.Graph == nil {
			s.MaxTurns = max(s.MaxTurns, int64(t.Index)+1)
			if t.Index > 0 {
				s.ThinkMs.add(t.DelayMs)
			}
		}
	}
	c.fit(&w.BlockSizes)
}

// graph counts a workload of agents, and gives the starts of its plays.
func (c *Collector) graph(w *workload.Workload) (starts []float64) {
	s, g := &c.stats, w.Graph
	turns := map[string]int64{}
	for i := range w.Sessions {
		id := string(w.SessionID(int32(i)))
		turns[id]++
		s.MaxTurns = max(s.MaxTurns, turns[id])
	}
	s.Sessions, s.Plays, s.Dependencies = int64(len(turns)), int64(len(g.Plays)), int64(len(g.Deps))
	for i := range g.Plays {
		starts = append(starts, g.Plays[i].FirstMs)
	}
	for _, d := range g.Deps {
		s.ThinkMs.add(d.DelayMs)
	}
	for _, m := range g.Models {
		s.Models = append(s.Models, strings.ToValidUTF8(string(g.Texts.At(m)), "\ufffd"))
	}
	return starts
}
