package parity

import (
	"encoding/json"
	"fmt"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/routerconfig"
)

// routerKeys are the arguments that say where requests go.
var routerKeys = map[string]bool{"router_mode": true, "router_config": true, "kv_event_lag_ms": true}

// routing reads those of keyword arguments as decoded from JSON, behind the
// engine's.
func routing(kwargs map[string]any, c *config.Replay) error {
	lag := kwargs["kv_event_lag_ms"]
	if mode := kwargs["router_mode"]; mode != "kv_router" {
		if mode != nil && mode != "round_robin" {
			return fmt.Errorf("router_mode: %v is not translated", mode)
		}
		if ms, _ := toFloat(lag); ms != 0 {
			return fmt.Errorf("kv_event_lag_ms: %v without a KV router", lag)
		}
		return nil
	}
	c.Routing.Mode = config.KVRouter
	if lag != nil {
		var err error
		if c.Routing.EventLagMs, err = toFloat(lag); err != nil {
			return fmt.Errorf("kv_event_lag_ms: %w", err)
		}
	}
	text := []byte("{}")
	if given := kwargs["router_config"]; given != nil {
		var err error
		if text, err = json.Marshal(given); err != nil {
			return err
		}
	}
	r, err := routerconfig.Parse("router_config", text, routerconfig.Options{})
	if err != nil {
		return err
	}
	if policy, ok := queuePolicy(kwargs); ok {
		r.OverrideQueuePolicy(policy)
	}
	c.Routing.Router = &r.Router
	return r.Replayable()
}

// queuePolicy is the router's policy that engine arguments give, if they do.
func queuePolicy(kwargs map[string]any) (string, bool) {
	args, _ := kwargs["extra_engine_args"].(map[string]any)
	if prefill, ok := kwargs["prefill_engine_args"].(map[string]any); ok {
		args = prefill
	}
	dynamo, _ := args["dynamo"].(map[string]any)
	policy, ok := dynamo["router_queue_policy"].(string)
	return policy, ok
}
