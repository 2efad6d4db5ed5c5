package main

import (
	"encoding/json"
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/engineargs"
	"github.com/dryserve/dryserve/host/native/live/dynamo"
	"github.com/dryserve/dryserve/host/native/live/handoff"
)

// roleWords are the roles as engine args have them.
var roleWords = map[config.Role]string{config.Aggregated: "aggregated", config.Prefill: "prefill", config.Decode: "decode"}

// role is what the workers do of a request.
func (o *options) role() (config.Role, error) {
	older := ""
	for _, name := range []string{"is-prefill-worker", "is-decode-worker"} {
		if !o.is(name) {
			continue
		}
		if older != "" {
			return 0, usagef("--is-prefill-worker and --is-decode-worker are given; one of the two is accepted")
		}
		older = name
	}
	mode := o.text("disaggregation-mode")
	if older != "" {
		if o.given("disaggregation-mode") {
			return 0, usagef("--%s and --disaggregation-mode are given; the latter alone is accepted", older)
		}
		mode = strings.TrimSuffix(strings.TrimPrefix(older, "is-"), "-worker")
	}
	return map[string]config.Role{"agg": config.Aggregated, "prefill": config.Prefill, "decode": config.Decode}[mode], nil
}

// hintRole says how a role is said where engine args have another.
func (o *options) hintRole(sentence string) string {
	if strings.Contains(sentence, "worker_type") || strings.Contains(sentence, "is_prefill") || strings.Contains(sentence, "is_decode") {
		return sentence + "; --disaggregation-mode says what the workers do"
	}
	return sentence
}

// fromDynamo takes the options of a live worker out of engine args, where no flag
// says otherwise, and what the reference takes from flags in any case.
func (o *options) fromDynamo(args *engineargs.Args) error {
	d := args.Dynamo
	take := func(name, text string) {
		if v := o.values[name]; !v.given {
			v.text, v.given = text, true
		}
	}
	if d.HasReasoning {
		text, err := json.Marshal(map[string]any{
			"start_thinking_token_id": d.Reasoning.StartTokenID, "end_thinking_token_id": d.Reasoning.EndTokenID, "thinking_ratio": d.Reasoning.ThinkingRatio,
		})
		if err != nil {
			return err
		}
		take("reasoning", string(text))
	}
	if d.ResponseReplayTracePath.Set {
		take("response-replay-trace-path", d.ResponseReplayTracePath.V)
	}
	if args.StartupTimeS.Set {
		take("startup-time", fmt.Sprint(args.StartupTimeS.V))
	}
	for _, port := range []struct {
		name string
		is   engineargs.OptUint
	}{{"bootstrap-ports", d.BootstrapPort}, {"zmq-kv-events-ports", d.ZMQKVEventsPort}, {"zmq-replay-ports", d.ZMQReplayPort}} {
		if !port.is.Set {
			continue
		}
		if o.given("http") {
			return usagef("--extra-engine-args: dynamo.%s is set, which is for workers behind a Dynamo frontend; with --http, null is accepted", strings.ReplaceAll(strings.TrimSuffix(port.name, "s"), "-", "_"))
		}
		take(port.name, strconv.FormatUint(port.is.V, 10))
	}
	n, err := o.kvBytes()
	if err == nil && n > 0 {
		args.KVTransferBytesPerToken = engineargs.OptUint{V: uint64(n), Set: true}
		args.Engine.Transfer.BytesPerToken = n
	}
	return err
}

// portList is a port for each worker; nil: none are given.
func (o *options) portList(name string) ([]int, error) {
	if !o.given(name) {
		return nil, nil
	}
	var list []int
	for p := range strings.SplitSeq(o.text(name), ",") {
		n, err := strconv.Atoi(strings.TrimSpace(p))
		if err != nil {
			return nil, err // parsing has seen to it
		}
		list = append(list, n)
	}
	if len(list) != o.whole("num-workers") {
		return nil, usagef("--%s names %d ports and --num-workers is %d; a port for each worker is accepted", name, len(list), o.whole("num-workers"))
	}
	return list, nil
}

// handoff reads how prompts are handed over (live notes §6).
func (o *options) handoff(args engineargs.Args) (h dynamo.Handoff, err error) {
	if h.Ports, err = o.portList("bootstrap-ports"); err != nil {
		return h, err
	}
	if h.Ports != nil && args.Engine.Role != config.Prefill {
		o.warn("--bootstrap-ports is ignored: the workers do not compute prompts for others")
		h.Ports = nil
	}
	usual := "127.0.0.1"
	if o.text("discovery-backend") == "etcd" {
		usual = ownAddress()
	}
	h.Host = setting("DYN_HTTP_RPC_HOST", usual)
	h.Bind = h.Host
	if ip := net.ParseIP(h.Host); h.Host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		h.Bind = "" // the name may be that of a proxy
	}
	h.TimeoutMs = float64(args.Dynamo.HandoffSessionTimeoutMs)
	h.Timing = handoff.Timing{Missing: args.DestinationMissing}
	if args.KVTransferBytesPerToken.Set {
		h.Timing.BytesPerToken = &args.KVTransferBytesPerToken.V
	}
	if args.KVTransferBandwidthGBs.Set {
		h.Timing.BandwidthGBs = &args.KVTransferBandwidthGBs.V
	}
	return h, nil
}

// native reads where workers tell of their caches as vLLM does (live notes §5).
func (o *options) native(args engineargs.Args) (n dynamo.Native, err error) {
	if n.Ports, err = o.portList("zmq-kv-events-ports"); err != nil {
		return n, err
	}
	if n.Replays, err = o.portList("zmq-replay-ports"); err != nil {
		return n, err
	}
	e := &args.Engine
	switch {
	case n.Replays != nil && n.Ports == nil:
		return n, usagef("--zmq-replay-ports is given without --zmq-kv-events-ports; both, or the latter alone, are accepted")
	case n.Ports != nil && (e.Role == config.Decode || !e.EnablePrefixCaching):
		o.warn("--zmq-kv-events-ports is ignored: the workers do not tell of their caches")
		return dynamo.Native{}, nil
	}
	used := map[int]bool{}
	for name, list := range map[string][]int{"zmq-kv-events-ports": n.Ports, "zmq-replay-ports": n.Replays} {
		for _, first := range list {
			for port := first; port < first+e.DPSize; port++ {
				if port > math.MaxUint16 {
					return n, usagef("--%s names %d, and each of the %d ranks needs a port from there on; %d at most is accepted", name, first, e.DPSize, math.MaxUint16+1-e.DPSize)
				}
				if used[port] {
					return n, usagef("--zmq-kv-events-ports and --zmq-replay-ports need port %d twice, as each of the %d ranks of a worker has one of its own; ports that far from each other are accepted", port, e.DPSize)
				}
				used[port] = true
			}
		}
	}
	return n, nil
}
