package main

import (
	"encoding/json"
	"strings"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/seq"
	"github.com/dryserve/dryserve/host/native/live/fleet"
	"github.com/dryserve/dryserve/host/native/routerconfig"
)

// router reads how requests are spread over the workers.
func (o *options) router(model string, e config.Engine) (mode fleet.Mode, c config.Router, t seq.Hashing, err error) {
	word := o.text("router-mode")
	for i, name := range fleet.Modes() {
		if name == word {
			mode = fleet.Mode(i)
		}
	}
	if mode != fleet.KV {
		for _, s := range routerFlags() {
			if v := o.values[s.name]; s.name != "router-mode" && v.given && s.later == "" && strings.HasPrefix(v.by, "--") {
				return mode, c, t, usagef("%s is for --router-mode kv; with another mode, leave it out", v.by)
			}
		}
		return mode, config.DefaultRouter(), t, nil
	}
	full, err := o.routerConfig(model, false)
	if err != nil {
		return mode, c, t, err
	}
	if err := full.Replayable(); err != nil {
		return mode, c, t, usageError{err.Error()}
	}
	if !full.Router.UseKVEvents {
		return mode, c, t, usagef("--router-policy-config asks for routing without KV events, which is not built yet; leave it out")
	}
	if full.Router.LoadModel != config.NoLoadModel && e.Timing.Kind != config.Grid {
		return mode, c, t, usagef("--router-prefill-load-model predicts how long prompts take, which only a grid tells; none, or --perf-grid, --ais-perf-model or --ais-perf-config with it, is accepted")
	}
	t, err = full.Tracking(routerconfig.Subject{Model: model, Group: "default", BlockSize: e.BlockSize})
	if err != nil {
		return mode, c, t, usageError{o.rewordRouter(err)}
	}
	return mode, full.Router, t, nil
}

// routerConfig is the router that the flags describe; all: also what is not
// built here, but a frontend has.
func (o *options) routerConfig(model string, all bool) (routerconfig.Config, error) {
	doc := map[string]any{}
	for _, s := range routerFlags() {
		v := o.values[s.name]
		if s.field == "" || !v.given || s.later != "" && !all {
			continue
		}
		switch s.kind {
		case whole, real, toggle:
			doc[s.field] = json.RawMessage(number(v.text))
		default:
			doc[s.field] = v.text
		}
	}
	if o.is("load-aware") { // the reference's preset
		for name, v := range map[string]any{
			"overlap_score_credit": 0, "router_assume_kv_reuse": false, "router_track_active_blocks": true, "router_track_prefill_tokens": true,
		} {
			doc[name] = v
		}
		if all { // here events change nothing without credit for what is cached
			doc["use_kv_events"], doc["shared_cache_multiplier"] = false, 0
		}
	}
	text, err := json.Marshal(doc)
	if err != nil {
		return routerconfig.Config{}, err
	}
	c, err := routerconfig.Parse(flagSource, text, routerconfig.Options{Model: model})
	if err != nil {
		return c, usageError{o.rewordRouter(err)}
	}
	return c, nil
}

// routerWords are the modes as cards have them.
var routerWords = map[string]string{
	"round-robin": "round_robin", "random": "random", "power-of-two": "power_of_two_choices", "kv": "k_v", "direct": "direct",
	"least-loaded": "least_loaded", "device-aware-weighted": "device_aware_weighted",
}

// advertised is the router that the card tells a frontend of, nil if none is
// asked for (live notes §1).
func (o *options) advertised(model string) (json.RawMessage, error) {
	mode := o.text("router-mode")
	if mode == "" {
		return nil, nil
	}
	c, err := o.routerConfig(model, true)
	if err != nil {
		return nil, err
	}
	kv, err := c.Marshal()
	if err != nil {
		return nil, err
	}
	type thresholds struct {
		Blocks *json.RawMessage `json:"active_decode_blocks_threshold,omitempty"`
		Tokens *json.RawMessage `json:"active_prefill_tokens_threshold,omitempty"`
		Share  *json.RawMessage `json:"active_prefill_tokens_threshold_frac,omitempty"`
	}
	optional := func(name string) *json.RawMessage {
		if !o.given(name) {
			return nil
		}
		raw := json.RawMessage(number(o.text(name)))
		return &raw
	}
	return json.Marshal(struct {
		Mode     string           `json:"router_mode"`
		KV       json.RawMessage  `json:"kv_router_config"`
		Limits   thresholds       `json:"load_threshold_config"`
		Disagg   bool             `json:"enforce_disagg"`
		Affinity *json.RawMessage `json:"session_affinity_ttl_secs"`
		Hardness string           `json:"session_affinity_mode"`
	}{
		routerWords[mode], kv, thresholds{optional("active-decode-blocks-threshold"), optional("active-prefill-tokens-threshold"), optional("active-prefill-tokens-threshold-frac")},
		false, optional("router-session-affinity-ttl-secs"), o.text("router-session-affinity-mode"),
	})
}

// rewordRouter puts flags in the place of fields.
func (o *options) rewordRouter(err error) string {
	s := strings.TrimPrefix(strings.TrimPrefix(err.Error(), flagSource+": "), "line 1: ")
	for _, f := range routerFlags() {
		if f.field == "" {
			continue
		}
		if rest, ok := strings.CutPrefix(s, f.field); ok && (rest[:1] == " " || rest[:1] == ":") {
			return "--" + f.name + rest
		}
	}
	return s
}
