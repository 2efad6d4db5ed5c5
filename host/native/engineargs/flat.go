package engineargs

import (
	"math"
	"slices"
	"strings"

	"github.com/dryserve/dryserve/core/config"
)

// isFlat tells the flat form from the canonical one: it has a name that only
// the flat form knows and none that only the canonical one knows.
func isFlat(root value) bool {
	launch, flat := launchFields(), flatFields()
	flatOnly := false
	for _, m := range root.members {
		inLaunch, inFlat := has(launch, m.name), has(flat, m.name)
		if inLaunch && !inFlat {
			return false
		}
		flatOnly = flatOnly || inFlat && !inLaunch
	}
	return flatOnly
}

func has(fields []field, name string) bool {
	return slices.ContainsFunc(fields, func(f field) bool { return f.name == name })
}

// misplaced explains a top-level name that exists elsewhere.
func (d *decoder) misplaced(name string) string {
	engine, flat := has(engineFields(), name), has(flatFields(), name)
	switch {
	case d.older && engine:
		return "the canonical form accepts it as {\"engine\": {\"" + name + "\": …}}"
	case d.older && has(dynamoFields(), name), !d.older && has(dynamoFields(), name):
		return "the canonical form accepts it as {\"dynamo\": {\"" + name + "\": …}}"
	case !d.older && engine:
		return "it belongs into engine: {\"engine\": {\"" + name + "\": …}}"
	case !d.older && flat:
		return "it is a name of the flat form, which has no engine and no dynamo"
	}
	return ""
}

// otherNames are the top-level names of the form that was not recognised;
// a misspelt name may have hidden it.
func (d *decoder) otherNames() []string {
	fields := launchFields()
	if !d.older {
		fields = flatFields()
	}
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	return names
}

// flatForm reads the one-level form of the older releases.
//
// Source: reference behaviour notes, engine §2.5.
func (d *decoder) flatForm(root value) error {
	d.older = true
	d.args = Default()
	if err := d.walk(root, flatFields()); err != nil {
		return err
	}
	if err := d.flatBlockSize(); err != nil {
		return err
	}
	if err := d.flatRole(); err != nil {
		return err
	}
	e := &d.args.Engine
	if e.Backend != config.VLLM && e.MaxModelLen != 0 {
		return d.only("engine.max_model_len", "null is accepted for engine_type "+backendWords[e.Backend])
	}
	d.flatOffload()
	blocks, said := d.at["engine.num_gpu_blocks"]
	d.args.NumGPUBlocksExplicit = said && blocks.kind != null
	return nil
}

// flatBlockSize: absent, null and 0 stand for the page size of SGLang if
// given, else for the default of the backend. Both given must agree.
func (d *decoder) flatBlockSize() error {
	size := &d.args.Engine.BlockSize
	v, ok := d.at["engine.block_size"]
	said := ok && v.kind != null && *size != 0
	paged := d.pageSize != 0 && d.args.Engine.Backend == config.SGLang
	switch {
	case said && paged && *size != d.pageSize:
		page := d.at["sglang.page_size"]
		return d.errorf(page, "%s is %s and %s is %s; equal sizes are accepted", page.path, page.found(), v.path, v.found())
	case !said && paged:
		*size = d.pageSize
		d.at["engine.block_size"] = d.at["sglang.page_size"]
	case !said:
		*size = config.DefaultBlockSize(d.args.Engine.Backend)
	}
	return nil
}

// flatRole joins worker_type with the two older booleans.
func (d *decoder) flatRole() error {
	prefill, decode := d.at["is_prefill"], d.at["is_decode"]
	if workerType, ok := d.at["engine.worker_type"]; ok {
		for _, other := range []value{prefill, decode} {
			if other.path != "" {
				return d.errorf(other, "%s cannot be combined with %s; one is accepted", other.path, workerType.path)
			}
		}
	}
	switch {
	case prefill.yes && decode.yes:
		return d.errorf(decode, "is_prefill and is_decode are both true; one is accepted")
	case prefill.yes:
		d.args.Engine.Role, d.at["engine.worker_type"] = config.Prefill, prefill
	case decode.yes:
		d.args.Engine.Role, d.at["engine.worker_type"] = config.Decode, decode
	}
	return nil
}

// flatFields are the flat names. Fields without a canonical twin have their
// own key; those that cannot act without a refused field are only checked.
func flatFields() []field {
	fields := []field{
		{"engine_type", "engine.backend", oneOf(backendWords), flatBackend},
		{"g1_backend", "g1_backend", `"native"`, flatG1},
		{"is_prefill", "is_prefill", wantBool, checkBool},
		{"is_decode", "is_decode", wantBool, checkBool},
		{"has_perf_model", "has_perf_model", wantBool, checkBool},
		{"planner_profile_data", "planner_profile_data", wantPath + " or null", flatProfile},
		{"enable_g4_storage", "enable_g4_storage", wantBool, flatG4},
		{"offload_batch_size", "offload_batch_size", wantPositive + " or null", checkUint},
		{"sglang", "engine.sglang", wantObject + " or null", flatObject(flatSGLangFields)},
		{"trtllm", "engine.trtllm", wantObject + " or null", flatObject(trtllmFields)},
	}
	fields = append(fields, flatHostFields()...)
	for _, pair := range []string{"g2_to_g4", "g4_to_g2"} {
		name := "bandwidth_" + pair + "_gbps"
		fields = append(fields, field{name, name, wantNumber + " or null", checkReal})
	}
	for _, name := range []string{"backend", "system", "backend_version", "model_path", "gemm_dtype", "moe_dtype", "fmha_dtype", "kv_cache_dtype", "comm_dtype"} {
		fields = append(fields, field{"aic_" + name, "aic_" + name, wantText, setLater(text, "pass timing from AIConfigurator")})
	}
	for _, name := range []string{"tp_size", "moe_tp_size", "moe_ep_size", "attention_dp_size"} {
		fields = append(fields, field{"aic_" + name, "aic_" + name, wantPositive + " or null", setLater(number, "pass timing from AIConfigurator")})
	}
	return append(fields, flatTwins()...)
}

// flatTwins are the flat names that a canonical field has too.
func flatTwins() []field {
	// Names whose older form also accepts 0 or null.
	blocks := func(a *Args) *int { return &a.Engine.NumGPUBlocks }
	size := func(a *Args) *int { return &a.Engine.BlockSize }
	fields := []field{
		{"num_gpu_blocks", "engine.num_gpu_blocks", wantPositive + " or null", orNull(config.Defaults(config.VLLM).NumGPUBlocks, blocks, setCount(config.MaxGPUBlocks+1, blocks))},
		{"block_size", "engine.block_size", wantUint + " or null", orNull(0, size, setCount(config.MaxBlockSize+1, size))},
		{"kv_bytes_per_token", "engine.kv_transfer_bytes_per_token", wantPositive + " or null", setOptUint(1, math.MaxUint64, func(a *Args) *OptUint { return &a.KVTransferBytesPerToken })},
	}
	engine := []string{
		"max_model_len", "max_num_seqs", "max_num_batched_tokens", "enable_prefix_caching", "enable_chunked_prefill",
		"speedup_ratio", "decode_speedup_ratio", "worker_type", "aic_nextn", "aic_nextn_accept_rates", "aic_mtp_seed",
		"kv_transfer_bandwidth", "kv_transfer_timing_mode", "preemption_mode",
	}
	launch := []string{"dp_size", "startup_time", "gpu_memory_utilization", "mem_fraction_static", "free_gpu_memory_fraction"}
	for _, f := range engineFields() {
		if slices.Contains(engine, f.name) {
			fields = append(fields, f)
		}
	}
	for _, f := range launchFields() {
		if slices.Contains(launch, f.name) {
			fields = append(fields, f)
		}
	}
	return append(fields, dynamoFields()...)
}

func flatSGLangFields() []field {
	const key = "engine.sglang."
	words := []string{"fifo", "fcfs", "lpm"}
	return []field{
		{"schedule_policy", key + "schedule_policy", oneOf(words, "null"), nullable(setWord(words, func(a *Args, i int) { a.SGLang.LongestPrefixFirst = i == 2 }))},
		{"page_size", "sglang.page_size", wantPositive + " or null", flatPageSize},
		{"max_prefill_tokens", key + "max_prefill_tokens", wantPositive + " or null", nullable(setUint(1, math.MaxUint64, func(a *Args) *uint64 { return &a.SGLang.MaxPrefillTokens }))},
		{"chunked_prefill_size", key + "chunked_prefill_size", wantPositive + " or null", nullable(setUint(1, math.MaxUint64, func(a *Args) *uint64 { return &a.SGLang.ChunkedPrefillSize }))},
		{"clip_max_new_tokens", key + "clip_max_new_tokens", wantUint + " or null", nullable(setUint(0, math.MaxUint64, func(a *Args) *uint64 { return &a.SGLang.ClipMaxNewTokens }))},
		{"schedule_conservativeness", key + "schedule_conservativeness", wantFraction, nullable(flatConservativeness)},
	}
}

func flatBackend(d *decoder, v value) error {
	v.text = strings.ToLower(v.text)
	return setWord(backendWords, func(a *Args, i int) { a.Engine.Backend = config.Backend(i) })(d, v)
}

func flatG1(d *decoder, v value) error {
	switch {
	case v.kind == text && v.text == "kvbm":
		d.later(v, "the older eviction order of kvbm", `"native"`)
	case v.kind != null && (v.kind != text || v.text != "native"):
		return errUnaccepted
	}
	return nil
}

func flatG4(d *decoder, v value) error {
	if v.kind != boolean {
		return errUnaccepted
	}
	if v.yes {
		d.later(v, "G4 KV offload", "false")
	}
	return nil
}

func flatPageSize(d *decoder, v value) error {
	if v.kind == null {
		return nil
	}
	n, err := v.within(1, config.MaxBlockSize)
	if err != nil {
		return err
	}
	d.pageSize = int(n)
	return nil
}

func flatConservativeness(d *decoder, v value) error {
	x, err := v.real()
	if err != nil || x < 0 || x > 1 {
		return errUnaccepted
	}
	d.args.SGLang.Conservativeness = x
	return nil
}

func flatObject(fields func() []field) setter { return nullable(setObject(fields)) }

// nullable leaves the default in place for null.
func nullable(set setter) setter {
	return func(d *decoder, v value) error {
		if v.kind == null {
			return nil
		}
		return set(d, v)
	}
}

func checkBool(_ *decoder, v value) error {
	if v.kind != boolean {
		return errUnaccepted
	}
	return nil
}

func checkUint(_ *decoder, v value) error {
	if v.kind == null {
		return nil
	}
	_, err := v.within(1, math.MaxUint64)
	return err
}

func checkReal(_ *decoder, v value) error {
	if v.kind == null {
		return nil
	}
	if x, err := v.real(); err != nil || x < 0 {
		return errUnaccepted
	}
	return nil
}
