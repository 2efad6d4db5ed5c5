package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/engineargs"
)

// linkSharings are the words of --transfer-sharing in the order of their values.
var linkSharings = []string{config.NotShared: "none", config.SharedByPair: "pair", config.SharedByNode: "node"}

// disaggregated reports whether workers are to be in two pools.
func (o *options) disaggregated() bool {
	return o.given("prefill-engine-args") || o.given("decode-engine-args")
}

// checkPools checks which flags of workers stand together, in the reference's
// order of complaints (replay notes §1.2).
func (o *options) checkPools() error {
	pools := o.disaggregated()
	for _, pair := range [][2]string{{"prefill-engine-args", "decode-engine-args"}, {"decode-engine-args", "prefill-engine-args"}} {
		switch {
		case o.given(pair[0]) && o.given("extra-engine-args"):
			return fmt.Errorf("--extra-engine-args and --%s are given; one engine, or two of pools, are accepted", pair[0])
		case o.given(pair[0]) && !o.given(pair[1]):
			return fmt.Errorf("--%s is given without --%s; both or neither are accepted", pair[0], pair[1])
		}
	}
	if pools && o.numWorkers != 1 {
		return fmt.Errorf("--num-workers is %d, but the workers are in two pools; --num-prefill-workers and --num-decode-workers are accepted", o.numWorkers)
	}
	for _, n := range []struct {
		flag  string
		count int
	}{{"num-prefill-workers", o.numPrefill}, {"num-decode-workers", o.numDecode}} {
		if !pools && n.count != 1 {
			return fmt.Errorf("--%s is %d, but there is no pool for it; --num-workers, or --prefill-engine-args and --decode-engine-args, are accepted", n.flag, n.count)
		}
		if pools && n.count < 1 {
			return valueError(n.flag, strconv.Itoa(n.count), "a whole number from 1 to "+strconv.Itoa(config.MaxWorkers))
		}
	}
	if !pools && (o.linkSharing != linkSharings[config.NotShared] || o.given("prefill-workers-per-node")) {
		return errors.New("--transfer-sharing and --prefill-workers-per-node are for workers in two pools; --prefill-engine-args and --decode-engine-args are accepted with them")
	}
	if byNode := o.linkSharing == linkSharings[config.SharedByNode]; o.given("prefill-workers-per-node") && !byNode {
		return fmt.Errorf("--prefill-workers-per-node is for --transfer-sharing node, and it is %s", o.linkSharing)
	}
	return nil
}

// engines reads the arguments of the workers' engines, and what other flags say
// of them, into the run: one, or that of prompts and that of decoding.
func (o *options) engines(r *config.Replay) ([]engineargs.Args, error) {
	if err := o.checkPools(); err != nil {
		return nil, err
	}
	beside, err := o.beside()
	if err != nil {
		return nil, err
	}
	if !o.disaggregated() {
		argument := "{}"
		if o.given("extra-engine-args") {
			argument = o.engineArgs
		}
		args, err := o.engine(beside, argument)
		if err != nil {
			return nil, err
		}
		r.Engine, r.NumWorkers, r.Scaling.StartupMs = args.Engine, o.numWorkers, startup(&args)
		r.Routing, err = o.routing(args)
		return []engineargs.Args{args}, err
	}
	beside.Flag, beside.Role = "--prefill-engine-args", config.Prefill
	prefill, err := o.engine(beside, o.prefillArgs)
	if err != nil {
		return nil, err
	}
	beside.Flag, beside.Role = "--decode-engine-args", config.Decode
	decode, err := o.engine(beside, o.decodeArgs)
	if err != nil {
		return nil, err
	}
	r.Engine, r.NumWorkers, r.Scaling.StartupMs = decode.Engine, o.numDecode, startup(&decode)
	r.Scaling.PrefillStartupMs = startup(&prefill)
	r.Prefill = config.Pool{Engine: prefill.Engine, Workers: o.numPrefill}
	r.Sharing, r.PrefillPerNode = config.LinkSharing(slices.Index(linkSharings, o.linkSharing)), o.prefillPerNode
	both := []engineargs.Args{prefill, decode}
	if a, b := prefill.Backend(), decode.Backend(); a != b {
		return both, fmt.Errorf("--prefill-engine-args have the backend %s and --decode-engine-args %s; the same backend is accepted", a, b)
	}
	if a, b := prefill.Engine.BlockSize, decode.Engine.BlockSize; a != b {
		return both, fmt.Errorf("--prefill-engine-args have the block size %d and --decode-engine-args %d; the same size is accepted", a, b)
	}
	if m := o.route.mode; m != routerModes[config.RoundRobin] && m != routerModes[config.KVRouter] {
		return both, usageError{"--router-mode " + m + " is for workers that serve whole requests; round_robin or kv_router is accepted with two pools (--prefill-engine-args)"}
	}
	r.Routing, err = o.routing(prefill)
	return both, err
}

// engine reads one engine.
func (o *options) engine(beside engineargs.Options, argument string) (engineargs.Args, error) {
	args, err := beside.Load(argument)
	if err == nil {
		err = o.speculate(&args)
	}
	if err != nil || !o.asks {
		return args, err
	}
	t := &args.Engine.Timing
	if t.Kind != config.Polynomial {
		return args, errors.New("the engine says how long passes take, and so does whoever started the run (ask_timing); one of them is accepted")
	}
	*t = config.Timing{Kind: config.External}
	return args, nil
}
