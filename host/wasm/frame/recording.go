package frame

import "github.com/dryserve/dryserve/core/replay"

// RecordingColumns are a replay.Recording as columns: its passes, its events and
// its gaps, each in order.
type RecordingColumns struct {
	passes, events, gaps []Field

	startMs, endMs, ownEndMs                                   []float64
	passWorker, passRank, passPool, prefills, prefillTokens    []int32
	decodes, passTokens, running, waiting, active, cached      []int32
	eventAtMs                                                  []float64
	turn, worker, rank, pool, kind, status, tokens, hostTokens []int32
	gapAtMs, gapMs                                             []float64
	gapN                                                       []int32
}

// Fields lists the columns.
func (c *RecordingColumns) Fields() []Field {
	if c.passes == nil {
		c.passes = below("pass.", []Field{
			{Name: "start_ms", Var: &c.startMs}, {Name: "end_ms", Var: &c.endMs}, {Name: "own_end_ms", Var: &c.ownEndMs},
			{Name: "worker", Var: &c.passWorker}, {Name: "rank", Var: &c.passRank}, {Name: "pool", Var: &c.passPool},
			{Name: "prefills", Var: &c.prefills}, {Name: "prefill_tokens", Var: &c.prefillTokens}, {Name: "decodes", Var: &c.decodes},
			{Name: "tokens", Var: &c.passTokens}, {Name: "running", Var: &c.running}, {Name: "waiting", Var: &c.waiting},
			{Name: "active_blocks", Var: &c.active}, {Name: "cached_blocks", Var: &c.cached},
		})
		c.events = below("event.", []Field{
			{Name: "at_ms", Var: &c.eventAtMs}, {Name: "turn", Var: &c.turn}, {Name: "worker", Var: &c.worker}, {Name: "rank", Var: &c.rank},
			{Name: "pool", Var: &c.pool}, {Name: "kind", Var: &c.kind}, {Name: "status", Var: &c.status}, {Name: "tokens", Var: &c.tokens},
			{Name: "host_tokens", Var: &c.hostTokens},
		})
		c.gaps = below("gap.", []Field{{Name: "at_ms", Var: &c.gapAtMs}, {Name: "ms", Var: &c.gapMs}, {Name: "n", Var: &c.gapN}})
	}
	return append(append(append([]Field(nil), c.passes...), c.events...), c.gaps...)
}

// Set makes the columns those of a recording.
func (c *RecordingColumns) Set(r *replay.Recording) {
	for _, f := range c.Fields() {
		switch p := f.Var.(type) {
		case *[]int32:
			*p = (*p)[:0]
		case *[]float64:
			*p = (*p)[:0]
		}
	}
	for i := range r.Passes {
		p := &r.Passes[i]
		note(&c.startMs, p.StartMs)
		note(&c.endMs, p.EndMs)
		note(&c.ownEndMs, p.OwnEndMs)
		push(&c.passWorker, p.Worker)
		push(&c.passRank, p.Rank)
		push(&c.passPool, int32(p.Pool))
		push(&c.prefills, p.Prefills)
		push(&c.prefillTokens, p.PrefillTokens)
		push(&c.decodes, p.Decodes)
		push(&c.passTokens, p.Tokens)
		push(&c.running, p.Running)
		push(&c.waiting, p.Waiting)
		push(&c.active, p.ActiveBlocks)
		push(&c.cached, p.CachedBlocks)
	}
	for i := range r.Events {
		e := &r.Events[i]
		note(&c.eventAtMs, e.AtMs)
		push(&c.turn, e.Turn)
		push(&c.worker, e.Worker)
		push(&c.rank, e.Rank)
		push(&c.pool, int32(e.Pool))
		push(&c.kind, int32(e.Kind))
		push(&c.status, int32(e.Status))
		push(&c.tokens, e.Tokens)
		push(&c.hostTokens, e.HostTokens)
	}
	for _, g := range r.Gaps {
		note(&c.gapAtMs, g.AtMs)
		note(&c.gapMs, g.Ms)
		push(&c.gapN, g.N)
	}
}

// Get makes r the recording of the columns; false: they do not belong together.
func (c *RecordingColumns) Get(r *replay.Recording) bool {
	passes, ok1 := even(c.passes)
	events, ok2 := even(c.events)
	gaps, ok3 := even(c.gaps)
	*r = replay.Recording{Passes: r.Passes[:0], Events: r.Events[:0], Gaps: r.Gaps[:0]}
	if !ok1 || !ok2 || !ok3 {
		return false
	}
	for i := range passes {
		r.Passes = append(r.Passes, replay.Pass{
			StartMs: c.startMs[i], EndMs: c.endMs[i], OwnEndMs: c.ownEndMs[i], Worker: c.passWorker[i], Rank: c.passRank[i], Pool: replay.PoolID(c.passPool[i]),
			Prefills: c.prefills[i], PrefillTokens: c.prefillTokens[i], Decodes: c.decodes[i], Tokens: c.passTokens[i],
			Running: c.running[i], Waiting: c.waiting[i], ActiveBlocks: c.active[i], CachedBlocks: c.cached[i],
		})
	}
	for i := range events {
		if c.kind[i] < 0 || c.kind[i] > int32(replay.Ended) || c.status[i] < 0 || c.status[i] > int32(replay.Failed) {
			return false
		}
		r.Events = append(r.Events, replay.Event{
			AtMs: c.eventAtMs[i], Turn: c.turn[i], Worker: c.worker[i], Rank: c.rank[i], Pool: replay.PoolID(c.pool[i]), Kind: replay.EventKind(c.kind[i]),
			Status: replay.TerminalStatus(c.status[i]), Tokens: c.tokens[i], HostTokens: c.hostTokens[i],
		})
	}
	for i := range gaps {
		r.Gaps = append(r.Gaps, replay.Gap{AtMs: c.gapAtMs[i], Ms: c.gapMs[i], N: c.gapN[i]})
	}
	return true
}
