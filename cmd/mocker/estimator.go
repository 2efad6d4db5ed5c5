package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dryserve/dryserve/host/native/cliutil"
	"github.com/dryserve/dryserve/host/native/engineargs"
)

// describing are the flags that stand for engine args.
func describing() []spec { return slices.Concat(engineFlags(), aisFlags(), frontendFlags()) }

// estimatorFlag is the flag that asks for durations by model and GPU, "" if
// none does.
func (o *options) estimatorFlag() string {
	switch {
	case o.given("ais-perf-config"):
		return "ais-perf-config"
	case o.is("ais-perf-model"):
		return "ais-perf-model"
	}
	return ""
}

const wantEstimator = "a JSON object with backend, system and model, or the path of such a file,"

// estimator writes what a grid is found by: the flags, which document has put,
// with their defaults, or --ais-perf-config.
func (o *options) estimator(put func(path string, v any), beside engineargs.Options) error {
	first := ""
	for _, s := range aisFlags() {
		if v := o.values[s.name]; first == "" && v.given && (s.key != "" || s.name == "ais-perf-model" && o.is(s.name)) {
			first = v.by
		}
	}
	flag := o.estimatorFlag()
	switch {
	case flag == "" && first != "":
		o.warn("%s is ignored without --ais-perf-model", first)
		return nil
	case flag == "":
		return nil
	case beside.TimingFlag != "":
		return usagef("--%s says how long passes take, and so does %s; one is accepted", flag, beside.TimingFlag)
	case flag == "ais-perf-config" && first != "":
		return usagef("--%s and %s are given; one of the two ways is accepted", flag, first)
	}
	put("engine.timing_model.type", "external")
	put("engine.timing_model.provider", "ais")
	if flag == "ais-perf-config" {
		return o.estimatorConfig(put)
	}
	model := o.text("model-path")
	if model == "" {
		return usagef("--ais-perf-model needs the model; --model-path is accepted with it")
	}
	if _, err := os.Stat(model); err == nil { // on this machine: a path, not a model's name
		if model, err = filepath.Abs(model); err != nil {
			return err
		}
	}
	put(estimatorKey+"model", model)
	for name, usual := range map[string]string{"system": "h200_sxm", "backend": o.text("engine-type")} {
		if !o.given("ais-" + name) {
			put(estimatorKey+name, usual)
		}
	}
	return nil
}

// estimatorConfig takes the object of --ais-perf-config as it is.
func (o *options) estimatorConfig(put func(path string, v any)) error {
	text := []byte(o.text("ais-perf-config"))
	if !strings.HasPrefix(strings.TrimSpace(string(text)), "{") {
		var err error
		if text, err = os.ReadFile(string(text)); err != nil {
			var why *os.PathError
			if errors.As(err, &why) {
				return usagef("--ais-perf-config: %s: %v; %s is accepted", why.Path, cliutil.Reason(err), wantEstimator)
			}
			return err
		}
	}
	if !json.Valid(text) {
		return o.wrong("ais-perf-config", wantEstimator)
	}
	put(strings.TrimSuffix(estimatorKey, "."), json.RawMessage(text))
	return nil
}
