package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/cliutil"
	"github.com/dryserve/dryserve/host/native/engineargs"
	"github.com/dryserve/dryserve/host/native/gridfind"
	"github.com/spf13/pflag"
)

// estimator is the part of the command line that says for what the KV router
// predicts how long prompts take. As in the reference it says nothing of the
// engines' own passes; engine arguments and other flags do.
//
// Source: replay notes §1.1 and §1.2, and release 1.4.2's own help.
type estimator struct {
	identity gridfind.Identity
	types    [5]string
	config   string
	used     bool // somebody predicts
}

// numberTypes are the flags of the types of numbers, which grids do not tell
// apart.
var numberTypes = [5]string{"aic-gemm-dtype", "aic-moe-dtype", "aic-fmha-dtype", "aic-kv-cache-dtype", "aic-comm-dtype"}

func (e *estimator) flags() *pflag.FlagSet {
	f := newFlagSet()
	id := &e.identity
	f.StringVar(&id.Model, "aic-model-path", "", "the model, by the `name` in the grid, such as Qwen/Qwen3-32B")
	f.StringVar(&id.System, "aic-system", "", "the GPU, by its `name` in AIConfigurator, such as h200_sxm")
	f.StringVar(&id.Backend, "aic-backend", "", "the `engine`: "+strings.Join(engineargs.Backends(), ", "))
	f.StringVar(&id.BackendVersion, "aic-backend-version", "", "its `version` (default: any)")
	whole(f, &id.TP, "aic-tp-size", 1, "`n` GPUs of a rank")
	for _, size := range []struct {
		n     *int
		name  string
		usage string
	}{
		{&id.MoETP, "aic-moe-tp-size", "`n` GPUs share an expert (default: any)"},
		{&id.MoEEP, "aic-moe-ep-size", "`n` groups share the experts (default: any)"},
		{&id.AttentionDP, "aic-attention-dp-size", "`n` ranks share the experts (default: 1)"},
	} {
		whole(f, size.n, size.name, 0, size.usage)
		f.Lookup(size.name).DefValue = "0"
	}
	for i, name := range numberTypes {
		f.StringVar(&e.types[i], name, "", "only auto, the `type` that the model has")
	}
	f.StringVar(&e.config, "ais-perf-config", "", "all this as `json` text or the path of a JSON file: {\"backend\": ..., \"system\": ..., \"model\": ..., \"tp\": ...}")
	return f
}

// older are the flags that have two spellings in the reference.
func older(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if rest, ok := strings.CutPrefix(name, "ais-"); ok && name != "ais-perf-config" {
		name = "aic-" + rest
	}
	return pflag.NormalizedName(name)
}

// prefillModel is what the router's predictions are to be for, nil if no flag
// says it.
func (o *options) prefillModel() (*gridfind.Identity, error) {
	for i, name := range numberTypes {
		if word := o.predict.types[i]; !gridfind.UsualType(word) {
			return nil, valueError(name, cliutil.Quote(word), `"auto", the model's own type, which grids are for,`)
		}
	}
	first := o.firstOfIdentity()
	if o.given("ais-perf-config") {
		if first != "" {
			return nil, usagef("--ais-perf-config and --%s are given; one of the two ways is accepted", first)
		}
		id, err := engineargs.Identity("--ais-perf-config", o.predict.config)
		return &id, err
	}
	if first == "" {
		return nil, nil
	}
	var missing []string
	for _, name := range needed {
		if !o.given(name) {
			missing = append(missing, "--"+name)
		}
	}
	if len(missing) > 0 {
		return nil, usagef("--%s is given without %s; --aic-backend, --aic-system and --aic-model-path together are accepted", first, strings.Join(missing, ", "))
	}
	id := &o.predict.identity
	if !slices.Contains(engineargs.Backends(), id.Backend) {
		return nil, valueError("aic-backend", cliutil.Quote(id.Backend), strings.Join(engineargs.Backends(), " or "))
	}
	for _, text := range []struct{ name, value string }{{"aic-system", id.System}, {"aic-model-path", id.Model}} {
		if strings.TrimSpace(text.value) == "" {
			return nil, errors.New("--" + text.name + " is empty; a name is accepted")
		}
	}
	for _, size := range []struct {
		name string
		n    int
	}{{"aic-tp-size", id.TP}, {"aic-moe-tp-size", id.MoETP}, {"aic-moe-ep-size", id.MoEEP}, {"aic-attention-dp-size", id.AttentionDP}} {
		if o.given(size.name) && size.n < 1 {
			return nil, valueError(size.name, strconv.Itoa(size.n), "a whole number of at least 1")
		}
	}
	return id, nil
}

// needed are the flags without which there is no identity.
var needed = []string{"aic-backend", "aic-system", "aic-model-path"}

// firstOfIdentity is the first flag that is given and belongs to an identity.
func (o *options) firstOfIdentity() string {
	for _, name := range append(slices.Clone(needed), "aic-backend-version", "aic-tp-size", "aic-moe-tp-size", "aic-moe-ep-size", "aic-attention-dp-size") {
		if o.given(name) {
			return name
		}
	}
	return ""
}

// loadGrid is where a router that predicts reads how long prompts take; nil: from
// the engines' own grid, or from whoever says how long passes take.
func (o *options) loadGrid(model *gridfind.Identity, args engineargs.Args) (*config.GridTable, error) {
	switch {
	case model != nil:
		o.predict.used = true
		f, err := o.grids.Find(*model)
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", o.estimatorFlag(), err)
		}
		return f.Grid.Table, nil
	case args.Engine.Timing.Kind == config.Grid, args.Engine.Timing.Kind == config.External:
		return nil, nil
	}
	return nil, errors.New("router_prefill_load_model predicts how long prompts take, which only a grid tells; \"none\", --perf-grid, or --aic-backend, --aic-system and --aic-model-path, are accepted")
}

// estimatorFlag is the flag that stands for all of the identity.
func (o *options) estimatorFlag() string {
	if o.given("ais-perf-config") {
		return "ais-perf-config"
	}
	return needed[0]
}

// warnGrids tells of an identity that nobody asks about, and of a directory in
// which nobody has looked.
func (o *options) warnGrids(say func(text string)) {
	if !o.predict.used && (o.firstOfIdentity() != "" || o.given("ais-perf-config")) {
		say(fmt.Sprintf("warning: --%s has no effect without router_prefill_load_model and --router-mode kv_router; how long passes take is said by --perf-grid or engine arguments", o.estimatorFlag()))
	}
	if o.given("grid-dir") && !o.grids.Used {
		say("warning: --grid-dir has no effect: nothing asks for a grid by model and GPU")
	}
}
