package golden

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/core/group"
)

// driver runs one scenario and writes down what the engine says, in the form
// of the scenario's expected events.
type driver struct {
	group  *group.Group
	tokens bool // events carry token ids
	size   int  // tokens per block
	events []any
}

// Run drives a fresh engine through the scenario and returns one line for each
// difference from what is expected.
func Run(s *Scenario) ([]string, error) {
	d := &driver{
		group:  group.New(s.Engine, s.WorkerID),
		tokens: s.Engine.EmitKVTokenIDs,
		size:   s.Engine.BlockSize,
	}
	if err := d.drive(s); err != nil {
		return nil, err
	}
	// A round trip through JSON brings what was seen into the form of what is
	// expected.
	data, err := json.Marshal(d.events)
	if err != nil {
		return nil, err
	}
	var got []any
	if err := strict(data, &got); err != nil {
		return nil, err
	}
	return compareEvents(got, s.Expect), nil
}

// drive applies the steps due, runs a pass if the engine is ready and jumps to
// the next step if it is not.
func (d *driver) drive(s *Scenario) error {
	now := 0.0
	steps := s.Steps
	for passes := 0; ; {
		for len(steps) > 0 && steps[0].AtMs <= now {
			if err := d.command(steps[0], now); err != nil {
				return err
			}
			steps = steps[1:]
		}
		switch {
		case s.MaxPasses > 0 && passes == s.MaxPasses:
			d.note("max_passes", nil)
			d.note("drained", object{"value": false})
			return nil
		case d.group.Ready():
			now = d.runPass(passes, now)
			passes++
		case len(steps) > 0:
			now = steps[0].AtMs
		default:
			d.note("drained", object{"value": true})
			return nil
		}
	}
}

type object = map[string]any

func (d *driver) note(event string, fields object) {
	o := object{"event": event}
	for k, v := range fields {
		o[k] = v
	}
	d.events = append(d.events, o)
}

func uuid(id uint64) (u [16]byte) {
	binary.BigEndian.PutUint64(u[8:], id)
	return u
}

func id(e *engine.Engine, h engine.Handle) uint64 {
	u := e.UUID(h)
	return binary.BigEndian.Uint64(u[8:])
}

func (d *driver) command(s Step, now float64) error {
	e := d.group.Rank(s.Rank)
	result := ""
	said := &engine.Effects{}
	switch s.Op {
	case "submit":
		_, code := e.Submit(engine.Request{
			UUID: uuid(s.ID), Tokens: s.prompt(), MaxOutput: s.MaxOutput, OutputIDs: s.OutputIDs,
		})
		if code != engine.Applied {
			return fmt.Errorf("submit of request %d: code %d", s.ID, code)
		}
		result = fmt.Sprintf("Submitted(%d)", s.ID)
		said = e.Effects()
	case "cancel":
		result = "Noop"
		if h, ok := e.Find(uuid(s.ID)); ok && e.Cancel(h) == engine.Applied {
			result = "Applied"
			said = e.Effects()
		}
	default:
		return fmt.Errorf("unknown op %q", s.Op)
	}
	retired := []any{}
	for _, h := range said.Retired {
		retired = append(retired, id(e, h))
	}
	d.note("command", object{
		"at_ms": now, "rank": s.Rank, "op": s.Op, "result": result, "lifecycle": []any{},
		"kv_events": d.kvEvents(s.Rank, said.KVEvents, said.KVBlocks, said.KVTokens),
		"retired":   retired, "metrics": metrics(e.Metrics()),
	})
	return nil
}

// start is what a rank says at the start of a pass.
func (d *driver) start(rank int) object {
	e := d.group.Rank(rank)
	out := e.Out()
	committed := []uint64{}
	for _, h := range out.Committed {
		committed = append(committed, id(e, h))
	}
	slices.Sort(committed) // the reference lists them by UUID
	admissions := []any{}
	for _, a := range out.Admissions {
		admissions = append(admissions, object{"id": id(e, a.Req), "reused_tokens": a.Reused})
	}
	pressure := []any{}
	for _, p := range out.Pressure {
		pressure = append(pressure, pressureText(e, p))
	}
	return object{
		"rank_end_ms": d.group.RankEndMs(rank), "committed": committed, "admissions": admissions, "pressure": pressure,
	}
}

// end adds what a rank says at the end of a pass.
func (d *driver) end(rank int, to object) {
	e := d.group.Rank(rank)
	out := e.Out()
	outputs := []any{}
	for _, o := range out.Outputs {
		outputs = append(outputs, output(e, o))
	}
	to["outputs"] = outputs
	to["kv_events"] = d.kvEvents(rank, out.KVEvents, out.KVBlocks, out.KVTokens)
	to["lifecycle"] = []any{}
	to["metrics"] = metrics(out.Metrics)
	to["decode_acceptance"] = object{
		"accepted_tokens": out.Acceptance.AcceptedTokens, "forwards": out.Acceptance.Forwards,
	}
	to["fpm"] = forward(out.Forward)
}

func (d *driver) runPass(number int, now float64) (endMs float64) {
	endMs, _ = d.group.Begin(now)
	ranks := object{}
	for i := range d.group.Ranks() {
		ranks[strconv.Itoa(i)] = d.start(i)
	}
	d.group.Complete(endMs)
	for i := range d.group.Ranks() {
		d.end(i, ranks[strconv.Itoa(i)].(object))
	}
	d.note("pass", object{
		"pass": number, "start_ms": now, "end_ms": endMs, "same_timestamp": convergence(d.group.Convergence()), "ranks": ranks,
	})
	return endMs
}

func convergence(c group.Convergence) string {
	switch c.Repeat {
	case group.Countdown:
		return fmt.Sprintf("Countdown { remaining: %d }", c.Remaining)
	case group.Retry:
		return "Retry"
	case group.Exhausted:
		return "Exhausted"
	}
	return "NotApplicable"
}

func pressureText(e *engine.Engine, p engine.Pressure) string {
	return fmt.Sprintf("VllmPreemption req%d (%d, Some(%d), %d)->(%d, Some(%d), %d) own=%d lab=None rb=None", id(e, p.Req),
		p.Before.Running, p.Before.Waiting, p.Before.ActiveBlocks,
		p.After.Running, p.After.Waiting, p.After.ActiveBlocks, p.OwnBlocks)
}

func output(e *engine.Engine, o engine.Output) object {
	var token, cached any
	if o.HasToken {
		token = o.Token
	}
	if o.HasCached {
		cached = o.CachedTokens
	}
	return object{
		"id": id(e, o.Req), "token": token, "completed": o.Completed, "rejected": o.Rejected, "cached_tokens": cached,
	}
}

func (d *driver) kvEvents(rank int, events []engine.KVEvent, kvBlocks []engine.KVBlock, kvTokens []uint32) []any {
	list := []any{}
	for _, e := range events {
		blocks := []any{}
		hashes := []uint64{}
		for _, b := range kvBlocks[e.First : e.First+e.Count] {
			block := object{"block_hash": b.Hash, "tokens_hash": b.Local}
			if d.tokens && e.Kind == engine.Stored {
				block["token_ids"] = slices.Clone(kvTokens[b.Tokens : b.Tokens+d.size])
			}
			blocks = append(blocks, block)
			hashes = append(hashes, b.Hash)
		}
		data := object{"removed": object{"block_hashes": hashes}}
		if e.Kind == engine.Stored {
			var parent any
			if e.HasParent {
				parent = e.Parent
			}
			data = object{"stored": object{"parent_hash": parent, "blocks": blocks}}
		}
		list = append(list, object{"dp_rank": rank, "event_id": e.ID, "data": data})
	}
	return list
}

func metrics(m engine.Metrics) object {
	return object{
		"act": m.ActiveBlocks, "inact": m.InactiveBlocks, "tot": m.TotalBlocks, "run": m.RunningRequests,
		"wait": m.WaitingRequests, "preempt": m.Preemptions, "hit": 0, "hit_tot": 0,
	}
}

func forward(f engine.Forward) object {
	return object{
		"np": f.Prefills, "sp": f.PrefillTokens, "vp": f.PrefillVariance, "spkv": f.PrefillKVTokens,
		"nd": f.Decodes, "sd": f.DecodeKVTokens, "vd": f.DecodeVariance,
		"nqp": f.QueuedPrefills, "sqp": f.QueuedPrefillLen, "vqp": f.QueuedPrefillVar,
		"nqd": f.QueuedDecodes, "sqd": f.QueuedDecodeLen, "vqd": f.QueuedDecodeVar, "dur": f.DurationMs,
	}
}
