package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/kvindex"
	"github.com/dryserve/dryserve/core/queue"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/router"
	"github.com/dryserve/dryserve/host/native/cliutil"
	"github.com/dryserve/dryserve/host/native/engineargs"
	"github.com/dryserve/dryserve/host/native/routerconfig"
	"github.com/spf13/pflag"
)

// policyVariable names the policy file where no flag does, as in the reference.
const policyVariable = "DYN_ROUTER_POLICY_CONFIG"

// routing is the part of the command line that says where requests go.
type routing struct {
	mode   string
	config string
	policy string
	seed   uint64
	lagMs  float64
	direct string
}

// routerModes are the words of --router-mode in the order of their values.
var routerModes = []string{
	config.RoundRobin: "round_robin", config.KVRouter: "kv_router", config.Random: "random",
	config.PowerOfTwo: "power-of-two", config.LeastLoaded: "least-loaded", config.Direct: "direct",
}

func (r *routing) declare(f *pflag.FlagSet) {
	choice(f, &r.mode, "router-mode", "round_robin", routerModes, "how requests are spread over workers: round_robin, kv_router (by cached prefixes and load), random, power-of-two (the less busy of two drawn), least-loaded, or direct")
	f.StringVar(&r.config, "router-config", "", "the KV router as `json` text or the path of a JSON file, with the reference's fields (docs/router.md)")
	f.StringVar(&r.policy, "router-policy-config", "", "the YAML `file` with classes of requests for the KV router's queue (default: $"+policyVariable+")")
	seed(f, &r.seed, "router-seed", config.CanonicalSeed, "of the lots that are drawn among workers")
	real(f, &r.lagMs, "kv-event-lag-ms", 0, "the KV router hears of stored and removed blocks `ms` late")
	f.Lookup("kv-event-lag-ms").DefValue = "0"
	f.StringVar(&r.direct, "direct-workers", "", "for direct: `file` with the worker, from 0, of each request of the trace, one a line")
}

// routing turns the flags into the routing of a run. What belongs to another
// mode is checked as well.
func (o *options) routing(args engineargs.Args) (config.Routing, error) {
	r := config.Routing{Seed: o.route.seed}
	for mode, word := range routerModes {
		if word == o.route.mode {
			r.Mode = config.RouterMode(mode)
		}
	}
	if o.given("kv-event-lag-ms") {
		if r.Mode != config.KVRouter {
			return r, fmt.Errorf("--kv-event-lag-ms is for --router-mode kv_router, and it is %s", o.route.mode)
		}
		r.EventLagMs = o.route.lagMs
	}
	if given := o.given("direct-workers"); given != (r.Mode == config.Direct) {
		if given {
			return r, fmt.Errorf("--direct-workers is for --router-mode direct, and it is %s", o.route.mode)
		}
		return r, errors.New("--router-mode direct needs the worker of each request; a file of --direct-workers is accepted")
	}
	model, err := o.prefillModel()
	if err != nil {
		return r, err
	}
	if r.Mode != config.KVRouter && !o.given("router-config") && !o.given("router-policy-config") {
		return r, nil
	}
	c, err := o.router()
	if err != nil {
		return r, err
	}
	if r.Mode != config.KVRouter {
		return r, nil
	}
	if p := args.Dynamo.RouterQueuePolicy; p.Set {
		c.OverrideQueuePolicy(p.V)
	}
	if err := c.Replayable(); err != nil {
		return r, err
	}
	if c.LoadModel != config.NoLoadModel {
		if r.LoadGrid, err = o.loadGrid(model, args); err != nil {
			return r, err
		}
	}
	tracking, err := c.Tracking(routerconfig.Subject{Model: "replay", Group: "default", BlockSize: args.Engine.BlockSize})
	if err != nil {
		return r, err
	}
	r.Router, r.Tracking = &c.Router, config.Seeds{Block: tracking.BlockSeed, Chain: tracking.ChainSeed}
	return r, nil
}

// router reads the configuration of the KV router.
func (o *options) router() (routerconfig.Config, error) {
	beside := routerconfig.Options{Model: o.modelName}
	if o.given("router-policy-config") {
		if beside.PolicyPath = o.route.policy; beside.PolicyPath == "" {
			return routerconfig.Config{}, errors.New("--router-policy-config is empty; a path is accepted")
		}
	} else {
		beside.PolicyPath = os.Getenv(policyVariable)
	}
	text := "{}"
	if o.given("router-config") {
		text = o.route.config
	}
	return routerconfig.Load("--router-config", text, beside)
}

// warnRouting tells of flags that another mode of routing would need.
func (o *options) warnRouting(say func(text string)) {
	for _, f := range []struct {
		flag  string
		modes []string
	}{
		{"router-config", []string{"kv_router"}},
		{"router-policy-config", []string{"kv_router"}},
		{"router-seed", []string{"kv_router", "random", "power-of-two", "least-loaded"}},
	} {
		used := false
		for _, m := range f.modes {
			used = used || o.route.mode == m
		}
		if o.given(f.flag) && !used {
			say(fmt.Sprintf("warning: --%s has no effect with --router-mode %s", f.flag, o.route.mode))
		}
	}
}

// maxTargetsBytes bounds the file of --direct-workers.
const maxTargetsBytes = 1 << 30

// targets reads the workers of --direct-workers for so many requests; nil: the
// routing is another.
func (o *options) targets(requests int) ([]int32, error) {
	if !o.given("direct-workers") {
		return nil, nil
	}
	path := o.route.direct
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--direct-workers: cannot open %s: %w; a file with a worker for each request is accepted", path, cliutil.Reason(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxTargetsBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("--direct-workers: cannot read %s: %w", path, cliutil.Reason(err))
	case len(data) > maxTargetsBytes:
		return nil, fmt.Errorf("--direct-workers: %s is larger than %d MiB; a worker for each request is accepted", path, maxTargetsBytes>>20)
	}
	targets := make([]int32, 0, requests)
	line := 0
	for text := range bytes.Lines(data) {
		line++
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		w, err := strconv.Atoi(string(text))
		if err != nil || w < 0 || w >= o.numWorkers {
			return nil, fmt.Errorf("%s:%d: found %s, want a worker from 0 to %d", path, line, cliutil.Quote(string(text)), o.numWorkers-1)
		}
		targets = append(targets, int32(w))
	}
	if len(targets) != requests {
		return nil, fmt.Errorf("%s: has %d workers for the %d requests of the trace; one for each is accepted", path, len(targets), requests)
	}
	return targets, nil
}

// routerFault words why the KV router could not go on; the reference aborts on
// each. class is the name of the class that is full, if one is.
func routerFault(f replay.Fault, class string) error {
	r := f.Router
	switch r.Code {
	case router.QueueFull:
		kind := map[queue.Limit]string{queue.Requests: "requests", queue.Tokens: "raw_isl_tokens", queue.Cached: "cached_tokens"}[r.Full.Limit]
		return fmt.Errorf("at %g ms: router policy class %q queue %s limit reached (current=%d, limit=%d)",
			f.NowMs, class, kind, r.Full.Have, r.Full.Most)
	case router.NotFinite:
		return fmt.Errorf("at %g ms: the cost of a worker is not a finite number; smaller weights in --router-config are accepted", f.NowMs)
	case router.EventRefused, router.UnknownWorker:
		e := r.Event
		data := "cleared"
		switch e.Kind {
		case router.Stored:
			parent := "none"
			if e.HasParent {
				parent = strconv.FormatUint(e.Parent, 10)
			}
			data = fmt.Sprintf("stored parent=%s count=%d first=%d last=%d", parent, e.Count, e.First, e.Last)
		case router.Removed:
			data = fmt.Sprintf("removed count=%d first=%d last=%d", e.Count, e.First, e.Last)
		}
		why := map[kvindex.Code]string{kvindex.ParentNotFound: "its parent is not known", kvindex.InvalidSequence: "it continues itself", kvindex.BlockNotFound: "a block is not known"}[e.Why]
		return fmt.Errorf("at %g ms: failed to apply replay KV event worker=%d dp_rank=%d event_id=%d data=%s: %s", f.NowMs, e.Worker, e.Rank, e.ID, data, why)
	}
	return fmt.Errorf("at %g ms: no endpoints available to route work", f.NowMs)
}
