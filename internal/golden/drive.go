package golden

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/core/group"
	"github.com/dryserve/dryserve/core/sglang"
)

// driver runs one scenario and writes down what the engine says, in the form
// of the scenario's expected events.
type driver struct {
	group  *group.Group
	tokens bool // events carry token ids
	size   int  // tokens per block
	events []any

	transfer         config.Transfer
	sources, targets map[uint64]engine.Handle // by handoff
}

// scheduler is a rank of either kind.
type scheduler interface {
	UUID(engine.Handle) [16]byte
	Find(uuid [16]byte) (engine.Handle, bool)
	Submit(engine.Request) (engine.Handle, engine.Code)
	SubmitPrefill(engine.Request) (engine.Handle, engine.Code)
	Reserve(engine.Request) (engine.Handle, engine.Code)
	Activate(engine.Handle) engine.Code
	ReleaseSource(engine.Handle) engine.Code
	Cancel(engine.Handle) engine.Code
	Effects() *engine.Effects
	Metrics() engine.Metrics
	Out() *engine.Out
}

func (d *driver) rank(i int) scheduler {
	if r := d.group.SGLang(i); r != nil {
		return r
	}
	return d.group.Rank(i)
}

// Run drives a fresh engine through the scenario and returns one line for each
// difference from what is expected.
func Run(s *Scenario) ([]string, error) {
	d := &driver{
		group:  group.New(s.Engine, s.WorkerID),
		tokens: s.Engine.EmitKVTokenIDs,
		size:   s.Engine.BlockSize,

		transfer: s.Engine.Transfer,
		sources:  map[uint64]engine.Handle{},
		targets:  map[uint64]engine.Handle{},
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
		d.internal(now)
		next := math.Inf(1)
		if at, ok := d.group.NextInternalMs(); ok {
			next = at
		}
		if len(steps) > 0 {
			next = min(next, steps[0].AtMs)
		}
		switch {
		case s.MaxPasses > 0 && passes == s.MaxPasses:
			d.note("max_passes", nil)
			d.note("drained", object{"value": false})
			return nil
		case d.group.Ready():
			now = d.runPass(passes, now)
			passes++
		case !math.IsInf(next, 1):
			now = next
		default:
			d.note("drained", object{"value": true})
			return nil
		}
	}
}

// internal lets the ranks do what is due between passes.
func (d *driver) internal(now float64) {
	for i := range d.group.Ranks() {
		e := d.group.Rank(i) // nil for SGLang, which has nothing to do between passes
		if e != nil && e.Internal(now) {
			said := e.Effects()
			d.note("internal", object{
				"at_ms": now, "rank": i, "kv_events": d.kvEvents(i, said.KVEvents, said.KVBlocks, said.KVTokens),
			})
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

func id(e scheduler, h engine.Handle) uint64 {
	u := e.UUID(h)
	return binary.BigEndian.Uint64(u[8:])
}

func (d *driver) command(s Step, now float64) error {
	e := d.rank(s.Rank)
	result, code, err := d.apply(e, s)
	if err != nil {
		return err
	}
	said := &engine.Effects{}
	if code == engine.Applied {
		said = e.Effects()
	}
	retired := []any{}
	for _, h := range said.Retired {
		retired = append(retired, id(e, h))
	}
	d.note("command", object{
		"at_ms": now, "rank": s.Rank, "op": s.Op, "result": result, "lifecycle": d.lifecycle(e, said.Lifecycle),
		"kv_events": d.kvEvents(s.Rank, said.KVEvents, said.KVBlocks, said.KVTokens),
		"retired":   retired, "metrics": metrics(e.Metrics()),
	})
	return nil
}

// apply gives the engine the step's command and words its result.
func (d *driver) apply(e scheduler, s Step) (result string, code engine.Code, err error) {
	q := engine.Request{
		UUID: uuid(s.ID), Tokens: s.prompt(), MaxOutput: s.MaxOutput, OutputIDs: s.OutputIDs, Handoff: s.Handoff,
	}
	var h engine.Handle
	switch s.Op {
	case "submit":
		_, code = e.Submit(q)
		result = fmt.Sprintf("Submitted(%d)", s.ID)
	case "prefill":
		h, code = e.SubmitPrefill(q)
		result = fmt.Sprintf("Submitted(%d)", s.ID)
		d.sources[s.Handoff] = h
	case "reserve":
		h, code = e.Reserve(q)
		result = fmt.Sprintf("DestinationAccepted { request_id: %d }", s.ID)
		d.targets[s.Handoff] = h
	case "activate":
		code = e.Activate(d.targets[s.Handoff])
	case "release":
		code = e.ReleaseSource(d.sources[s.Handoff])
	case "cancel":
		if h, ok := e.Find(uuid(s.ID)); ok {
			code = e.Cancel(h)
		} else {
			code = engine.Noop
		}
	default:
		return "", 0, fmt.Errorf("unknown op %q", s.Op)
	}
	switch {
	case code == engine.Noop:
		result = "Noop"
	case code != engine.Applied:
		return "", 0, fmt.Errorf("%s of request %d: code %d", s.Op, s.ID, code)
	case result == "":
		result = "Applied"
	}
	return result, code, nil
}

// lifecycle words facts about handed-off requests.
func (d *driver) lifecycle(e scheduler, facts []engine.Lifecycle) []any {
	list := []any{}
	for _, f := range facts {
		if f.Kind == engine.DestinationReserved {
			list = append(list, fmt.Sprintf("DestinationReserved { handoff_id: %d, request_id: %d, transferable_prompt_tokens: %d }",
				f.Handoff, id(e, f.Req), f.Tokens))
			continue
		}
		mode, bytes, bandwidth := "FullPrompt", "None", "None"
		if d.transfer.Timing == config.DestinationMissing {
			mode = "DestinationMissing"
		}
		if d.transfer.BytesPerToken > 0 {
			bytes = fmt.Sprintf("Some(%d)", d.transfer.BytesPerToken)
		}
		if d.transfer.BandwidthGBs > 0 {
			bandwidth = fmt.Sprintf("Some(%.1f)", d.transfer.BandwidthGBs)
		}
		list = append(list, fmt.Sprintf("SourceHeld { handoff_id: %d, request_id: %d, transfer_timing: HandoffTransferTiming { mode: %s, "+
			"full_prompt_tokens: %d, kv_bytes_per_token: %s, bandwidth_gb_s: %s } }", f.Handoff, id(e, f.Req), mode, f.Tokens, bytes, bandwidth))
	}
	return list
}

// start is what a rank says at the start of a pass.
func (d *driver) start(rank int) object {
	e := d.rank(rank)
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
	e := d.rank(rank)
	out := e.Out()
	outputs := []any{}
	for _, o := range out.Outputs {
		outputs = append(outputs, output(e, o))
	}
	to["outputs"] = outputs
	to["kv_events"] = d.kvEvents(rank, out.KVEvents, out.KVBlocks, out.KVTokens)
	to["lifecycle"] = d.lifecycle(e, out.Lifecycle)
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

func pressureText(e scheduler, p engine.Pressure) string {
	if _, ok := e.(*sglang.Rank); ok {
		return fmt.Sprintf("SglangRetraction req%d (%d, None, %d)->(%d, None, %d) own=%d lab=Some(%d) rb=Some(%d)", id(e, p.Req),
			p.Before.Running, p.Before.ActiveBlocks, p.After.Running, p.After.ActiveBlocks, p.OwnBlocks, p.AvailableBlocks, p.RequiredBlocks)
	}
	return fmt.Sprintf("VllmPreemption req%d (%d, Some(%d), %d)->(%d, Some(%d), %d) own=%d lab=None rb=None", id(e, p.Req),
		p.Before.Running, p.Before.Waiting, p.Before.ActiveBlocks,
		p.After.Running, p.After.Waiting, p.After.ActiveBlocks, p.OwnBlocks)
}

func output(e scheduler, o engine.Output) object {
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
			stored := object{"parent_hash": parent, "blocks": blocks}
			if e.Host {
				stored["start_position"] = e.Start
			}
			data = object{"stored": stored}
		}
		event := object{"dp_rank": rank, "event_id": e.ID, "data": data}
		if e.Host {
			event["tier"] = "host_pinned"
		}
		list = append(list, event)
	}
	return list
}

func metrics(m engine.Metrics) object {
	return object{
		"act": m.ActiveBlocks, "inact": m.InactiveBlocks, "tot": m.TotalBlocks, "run": m.RunningRequests,
		"wait": m.WaitingRequests, "preempt": m.Preemptions, "hit": m.CacheHitTokens, "hit_tot": m.CacheTotalTokens,
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
