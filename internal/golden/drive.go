package golden

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dryserve/dryserve/core/engine"
)

// driver runs one scenario and writes down what the engine says, in the form
// of the scenario's expected events.
type driver struct {
	engine *engine.Engine
	tokens bool // events carry token ids
	size   int  // tokens per block
	events []any
}

// Run drives a fresh engine through the scenario and returns one line for each
// difference from what is expected.
func Run(s *Scenario) ([]string, error) {
	d := &driver{
		engine: engine.New(s.Engine, s.WorkerID),
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
		case d.engine.Ready():
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

func (d *driver) id(h engine.Handle) uint64 {
	u := d.engine.UUID(h)
	return binary.BigEndian.Uint64(u[8:])
}

func (d *driver) command(s Step, now float64) error {
	result := ""
	retired := []any{}
	switch s.Op {
	case "submit":
		_, code := d.engine.Submit(engine.Request{
			UUID: uuid(s.ID), Tokens: s.prompt(), MaxOutput: s.MaxOutput, OutputIDs: s.OutputIDs,
		})
		if code != engine.Applied {
			return fmt.Errorf("submit of request %d: code %d", s.ID, code)
		}
		result = fmt.Sprintf("Submitted(%d)", s.ID)
	case "cancel":
		result = "Noop"
		if h, ok := d.engine.Find(uuid(s.ID)); ok && d.engine.Cancel(h) == engine.Applied {
			result = "Applied"
			retired = append(retired, s.ID)
		}
	default:
		return fmt.Errorf("unknown op %q", s.Op)
	}
	d.note("command", object{
		"at_ms": now, "rank": s.Rank, "op": s.Op, "result": result, "lifecycle": []any{},
		"kv_events": []any{}, "retired": retired, "metrics": metrics(d.engine.Metrics()),
	})
	return nil
}

func (d *driver) runPass(number int, now float64) (end float64) {
	end, _ = d.engine.Begin(now)
	out := d.engine.Out()
	committed := []uint64{}
	for _, h := range out.Committed {
		committed = append(committed, d.id(h))
	}
	slices.Sort(committed) // the reference lists them by UUID
	admissions := []any{}
	for _, a := range out.Admissions {
		admissions = append(admissions, object{"id": d.id(a.Req), "reused_tokens": a.Reused})
	}
	pressure := []any{}
	for _, p := range out.Pressure {
		pressure = append(pressure, d.pressure(p))
	}
	d.engine.Complete(end)
	outputs := []any{}
	for _, o := range out.Outputs {
		outputs = append(outputs, d.output(o))
	}
	d.note("pass", object{
		"pass": number, "start_ms": now, "end_ms": end, "same_timestamp": "NotApplicable",
		"ranks": object{"0": object{
			"rank_end_ms": end,
			"committed":   committed,
			"admissions":  admissions,
			"pressure":    pressure,
			"outputs":     outputs,
			"kv_events":   d.kvEvents(out),
			"lifecycle":   []any{},
			"metrics":     metrics(out.Metrics),
			"decode_acceptance": object{
				"accepted_tokens": out.Acceptance.AcceptedTokens, "forwards": out.Acceptance.Forwards,
			},
			"fpm": forward(out.Forward),
		}},
	})
	return end
}

func (d *driver) pressure(p engine.Pressure) string {
	return fmt.Sprintf("VllmPreemption req%d (%d, Some(%d), %d)->(%d, Some(%d), %d) own=%d lab=None rb=None", d.id(p.Req),
		p.Before.Running, p.Before.Waiting, p.Before.ActiveBlocks,
		p.After.Running, p.After.Waiting, p.After.ActiveBlocks, p.OwnBlocks)
}

func (d *driver) output(o engine.Output) object {
	var token, cached any
	if o.HasToken {
		token = o.Token
	}
	if o.HasCached {
		cached = o.CachedTokens
	}
	return object{
		"id": d.id(o.Req), "token": token, "completed": o.Completed, "rejected": o.Rejected, "cached_tokens": cached,
	}
}

func (d *driver) kvEvents(out *engine.Out) []any {
	list := []any{}
	for _, e := range out.KVEvents {
		blocks := []any{}
		hashes := []uint64{}
		for _, b := range out.KVBlocks[e.First : e.First+e.Count] {
			block := object{"block_hash": b.Hash, "tokens_hash": b.Local}
			if d.tokens && e.Kind == engine.Stored {
				block["token_ids"] = slices.Clone(out.KVTokens[b.Tokens : b.Tokens+d.size])
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
		list = append(list, object{"dp_rank": 0, "event_id": e.ID, "data": data})
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
