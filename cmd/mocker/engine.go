package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/cliutil"
	"github.com/dryserve/dryserve/host/native/engineargs"
	"github.com/dryserve/dryserve/host/native/gridfind"
	"github.com/dryserve/dryserve/host/native/live/answer"
	"github.com/dryserve/dryserve/host/native/modelconfig"
)

// engine reads the engine that the flags, or --extra-engine-args, describe.
// Flags are written as the JSON that engine args are, and read as such, so both
// ways have the same rules.
func (o *options) engine() (engineargs.Args, error) {
	beside, err := o.beside()
	if err != nil {
		return engineargs.Args{}, err
	}
	if o.given("extra-engine-args") {
		for _, s := range describing() {
			if s.key != "" && o.given(s.name) {
				o.warn("%s is ignored: --extra-engine-args stands in the place of all flags of the engine", o.values[s.name].by)
			}
		}
		args, err := beside.Load(o.text("extra-engine-args"))
		if err != nil {
			return args, usageError{o.hintRole(err.Error())}
		}
		return args, o.fromDynamo(&args)
	}
	if err := o.pageSize(); err != nil {
		return engineargs.Args{}, err
	}
	if !o.given("num-host-blocks") {
		for _, name := range []string{"host-offload-d2h-bandwidth-gbps", "host-offload-h2d-bandwidth-gbps"} {
			if o.given(name) {
				return engineargs.Args{}, usagef("--%s is given without --num-host-blocks; both or neither are accepted", name)
			}
		}
	}
	doc, err := o.document(beside)
	if err != nil {
		return engineargs.Args{}, err
	}
	args, err := beside.Parse(flagSource, doc)
	if err != nil {
		return args, usageError{o.reword(err)}
	}
	return args, nil
}

// flagSource names the JSON made of flags in sentences, until they are reworded.
const flagSource = "flags"

// beside is what stands beside the engine args proper.
func (o *options) beside() (engineargs.Options, error) {
	finder := &gridfind.Finder{Dir: o.text("grid-dir")}
	if dir, err := os.UserCacheDir(); err == nil && o.say != nil {
		python := cmp.Or(os.Getenv("DRYSERVE_PYTHON"), "python3")
		finder.Make = &gridfind.Exporter{Python: python, Dir: filepath.Join(dir, "dryserve", "grids"), Say: o.say}
	}
	beside := engineargs.Options{FindGrid: finder.Find}
	var err error
	if beside.Role, err = o.role(); err != nil {
		return beside, err
	}
	if o.given("grid-dir") && finder.Dir == "" {
		return beside, o.wrong("grid-dir", "a path")
	}
	for _, file := range []struct{ flag, provider string }{
		{"planner-profile-data", engineargs.ProfileProvider}, {"perf-grid", engineargs.GridProvider},
	} {
		if !o.given(file.flag) {
			continue
		}
		if beside.TimingFlag != "" {
			return beside, usagef("--%s says how long passes take, and so does %s; one is accepted", file.flag, beside.TimingFlag)
		}
		if o.text(file.flag) == "" {
			return beside, o.wrong(file.flag, "a path")
		}
		beside.Timing, beside.TimingFlag = engineargs.TimingFile{Provider: file.provider, Path: o.text(file.flag)}, "--"+file.flag
	}
	return beside, nil
}

// kvBytes is how many bytes of KV cache a token takes: needed by host memory and
// by those who hand prompts over. 0: nobody says it.
func (o *options) kvBytes() (int, error) {
	if o.given("kv-bytes-per-token") {
		if o.whole("kv-bytes-per-token") < 1 {
			return 0, o.wrong("kv-bytes-per-token", "a whole number of at least 1")
		}
		return o.whole("kv-bytes-per-token"), nil
	}
	role, err := o.role()
	if err != nil || !o.given("model-path") || !o.given("num-host-blocks") && role != config.Prefill {
		return 0, err
	}
	n, err := modelconfig.Options{CacheDType: o.text("kv-cache-dtype")}.KVBytesPerToken(o.text("model-path"))
	switch {
	case err == nil:
		return n, nil
	case o.given("num-host-blocks"), o.given("kv-transfer-bandwidth"):
		return 0, usagef("--model-path: %v", err)
	}
	return 0, nil // as well: without a bandwidth nobody counts bytes
}

// pageSize takes the older name of SGLang's block size.
func (o *options) pageSize() error {
	if !o.given("sglang-page-size") {
		return nil
	}
	if o.text("engine-type") != "sglang" {
		o.warn("--sglang-page-size is ignored: the engine is %s", o.text("engine-type"))
		return nil
	}
	block := o.values["block-size"]
	if block.given && block.text != o.text("sglang-page-size") {
		return usagef("--sglang-page-size is %s and --block-size is %s; one of them, or the same, is accepted", o.text("sglang-page-size"), block.text)
	}
	return block.set(o.text("sglang-page-size"), "--sglang-page-size")
}

// document writes the flags as canonical engine args.
func (o *options) document(beside engineargs.Options) ([]byte, error) {
	root := map[string]any{}
	put := func(path string, v any) {
		at := root
		parts := strings.Split(path, ".")
		for _, p := range parts[:len(parts)-1] {
			next, ok := at[p].(map[string]any)
			if !ok {
				next = map[string]any{}
				at[p] = next
			}
			at = next
		}
		at[parts[len(parts)-1]] = v
	}
	for _, s := range describing() {
		v := o.values[s.name]
		if s.key == "" || !v.given || strings.HasPrefix(s.key, estimatorKey) && !o.is("ais-perf-model") {
			continue
		}
		switch word := v.text; s.kind {
		case whole, real, toggle:
			put(s.key, json.RawMessage(number(word)))
		default:
			if other, ok := s.words[word]; ok {
				o.warn("--%s %s is an older word for %s", s.name, word, other)
				word = other
			}
			put(s.key, word)
		}
	}
	if err := o.estimator(put, beside); err != nil {
		return nil, err
	}
	n, err := o.kvBytes()
	if err != nil {
		return nil, err
	}
	if n > 0 && o.given("num-host-blocks") {
		put("engine.kv_cache_bytes_per_token", n)
	}
	role, err := o.role()
	if err != nil {
		return nil, err
	}
	if role != config.Aggregated {
		put("engine.worker_type", roleWords[role])
		if n > 0 {
			put("engine.kv_transfer_bytes_per_token", n)
		}
	}
	return json.Marshal(root)
}

// number spells a number or a truth value as JSON does: flags also take +1 and
// .5.
func number(s string) string {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return strconv.FormatInt(n, 10)
	}
	if x, err := strconv.ParseFloat(s, 64); err == nil {
		return string(cliutil.AppendSerdeFloat(nil, x))
	}
	return s
}

// place is where the sentence of an engine args error begins.
var place = regexp.MustCompile(`^` + flagSource + `:\d+:\d+: `)

// reword puts flags in the place of fields of the JSON nobody has written.
func (o *options) reword(err error) string {
	s := place.ReplaceAllString(err.Error(), "")
	s = strings.TrimPrefix(s, flagSource+": ")
	s = strings.Replace(s, "as "+estimatorKey+"attention_dp says", "as --ais-attention-dp-size says", 1)
	for _, f := range describing() {
		if f.key == "" {
			continue
		}
		rest, ok := strings.CutPrefix(s, f.key+" ")
		if !ok {
			continue
		}
		for _, kind := range []string{"is the number ", "is the text ", "is the boolean "} {
			if value, ok := strings.CutPrefix(rest, kind); ok {
				rest = "is " + value
			}
		}
		by := o.values[f.name].by
		if by == "" {
			by = "--" + f.name
		}
		return by + " " + strings.Replace(rest, " or null", "", 1)
	}
	if rest, ok := strings.CutPrefix(s, strings.TrimSuffix(estimatorKey, ".")); ok {
		return "--" + o.estimatorFlag() + rest
	}
	if strings.HasPrefix(s, "engine.native_host_offload ") && strings.Contains(s, "kv_cache_bytes_per_token") {
		return "--num-host-blocks needs the bytes of KV cache per token; --kv-bytes-per-token, or --model-path with a config.json, is accepted"
	}
	return s
}

// reasoning reads --reasoning.
func (o *options) reasoning() (*answer.Reasoning, error) {
	if !o.given("reasoning") {
		return nil, nil
	}
	const accepted = `an object such as {"start_thinking_token_id": 123, "end_thinking_token_id": 456, "thinking_ratio": 0.6}`
	d := json.NewDecoder(strings.NewReader(o.text("reasoning")))
	d.DisallowUnknownFields()
	var r struct {
		Start *uint32  `json:"start_thinking_token_id"`
		End   *uint32  `json:"end_thinking_token_id"`
		Ratio *float64 `json:"thinking_ratio"`
	}
	if err := d.Decode(&r); err != nil || d.More() {
		return nil, o.wrong("reasoning", accepted)
	}
	for _, x := range []struct {
		missing bool
		name    string
	}{{r.Start == nil, "start_thinking_token_id"}, {r.End == nil, "end_thinking_token_id"}, {r.Ratio == nil, "thinking_ratio"}} {
		if x.missing {
			return nil, usagef("--reasoning: %s is missing; %s is accepted", x.name, accepted)
		}
	}
	if !(*r.Ratio >= 0 && *r.Ratio <= 1) {
		return nil, usagef("--reasoning: thinking_ratio is %v; a number from 0 to 1 is accepted", *r.Ratio)
	}
	return &answer.Reasoning{Start: *r.Start, End: *r.End, Ratio: *r.Ratio}, nil
}

// ends are the token ids that end an answer, out of the model's files.
func ends(dir string) ([]uint32, error) {
	for _, name := range []string{"generation_config.json", "config.json"} {
		path := filepath.Join(dir, name)
		text, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var c struct {
			IDs json.RawMessage `json:"eos_token_id"`
		}
		if err := json.Unmarshal(text, &c); err != nil {
			return nil, fmt.Errorf("%s: it is not a JSON object; a model's configuration is accepted", path)
		}
		if c.IDs == nil || string(c.IDs) == "null" {
			continue
		}
		var one uint32
		var list []uint32
		if json.Unmarshal(c.IDs, &one) == nil {
			return []uint32{one}, nil
		}
		if json.Unmarshal(c.IDs, &list) != nil {
			return nil, fmt.Errorf("%s: eos_token_id is %s; a token id or a list of them is accepted", path, quoted(string(c.IDs)))
		}
		return list, nil
	}
	return nil, nil
}
