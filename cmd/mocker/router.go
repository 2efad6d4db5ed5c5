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
func (o *options) router(model string, blockSize int) (mode fleet.Mode, c config.Router, t seq.Hashing, err error) {
	word := o.text("router-mode")
	for i, name := range fleet.Modes() {
		if name == word {
			mode = fleet.Mode(i)
		}
	}
	doc := map[string]any{}
	for _, s := range routerFlags() {
		v := o.values[s.name]
		if s.name == "router-mode" || !v.given || s.later != "" {
			continue
		}
		if mode != fleet.KV {
			if strings.HasPrefix(v.by, "--") {
				return mode, c, t, usagef("%s is for --router-mode kv; with another mode, leave it out", v.by)
			}
			continue
		}
		if s.field == "" {
			continue
		}
		switch s.kind {
		case whole, real, toggle:
			doc[s.field] = json.RawMessage(number(v.text))
		default:
			doc[s.field] = v.text
		}
	}
	if mode != fleet.KV {
		return mode, config.DefaultRouter(), t, nil
	}
	if o.is("load-aware") {
		// The reference's preset, as far as it matters here: without credit for
		// what is cached, events change nothing.
		doc["overlap_score_credit"], doc["router_assume_kv_reuse"] = 0, false
		doc["router_track_active_blocks"], doc["router_track_prefill_tokens"] = true, true
	}
	text, err := json.Marshal(doc)
	if err != nil {
		return mode, c, t, err
	}
	full, err := routerconfig.Parse(flagSource, text, routerconfig.Options{Model: model})
	if err != nil {
		return mode, c, t, usageError{o.rewordRouter(err)}
	}
	if err := full.Replayable(); err != nil {
		return mode, c, t, usageError{err.Error()}
	}
	if full.Router.LoadModel != config.NoLoadModel || !full.Router.UseKVEvents {
		return mode, c, t, usagef("--router-policy-config asks for a prediction of prompt work, or for routing without KV events; neither is built yet, leave it out")
	}
	t, err = full.Tracking(routerconfig.Subject{Model: model, Group: "default", BlockSize: blockSize})
	if err != nil {
		return mode, c, t, usageError{o.rewordRouter(err)}
	}
	return mode, full.Router, t, nil
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
