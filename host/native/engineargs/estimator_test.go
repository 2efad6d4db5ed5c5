package engineargs

import (
	"errors"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/gridfind"
	"github.com/dryserve/dryserve/host/native/profile"
)

// asked parses with a finder that notes what it is asked for.
func asked(t *testing.T, role config.Role, doc string) (Args, *gridfind.Identity, error) {
	t.Helper()
	var id *gridfind.Identity
	o := Options{Role: role, FindGrid: func(want gridfind.Identity) (gridfind.File, error) {
		id = &want
		if want.Model == "none" {
			return gridfind.File{}, errors.New("no grid")
		}
		return gridfind.File{Path: "g.json", Grid: &profile.Grid{Table: &config.GridTable{}, TP: want.TP, NumGPUBlocks: 100, BlockSize: 64}}, nil
	}}
	args, err := o.Parse("x", []byte(doc))
	return args, id, err
}

func TestIdentities(t *testing.T) {
	nested := func(config, rest string) string {
		return `{"engine": {"timing_model": {"type": "external", "provider": "ais", "config": {"backend": "vllm", "system": "s", "model": "m"` + config + `}}` + rest
	}
	base := gridfind.Identity{System: "s", Model: "m", Backend: "vllm", TP: 1}
	all := gridfind.Identity{System: "s", Model: "m", Backend: "sglang", BackendVersion: "1", TP: 2, MoETP: 3, MoEEP: 4, AttentionDP: 6}
	preset := base
	preset.System = "h200_sxm"
	ranked := base
	ranked.AttentionDP = 2
	for _, c := range []struct {
		doc                       string
		want                      gridfind.Identity
		blocks, ranks, gpus, next int
	}{
		{`{"aic_backend": "vllm", "aic_model_path": "m"}`, preset, 100, 1, 1, 0},
		{`{"aic_backend": "vllm", "aic_model_path": "m", "block_size": 16, "aic_gemm_dtype": "auto", "aic_comm_dtype": null}`, preset, 400, 1, 1, 0},
		{`{"aic_backend": "vllm", "aic_model_path": "m", "num_gpu_blocks": 7}`, preset, 7, 1, 1, 0},
		{`{"aic_backend": "sglang", "aic_model_path": "m", "aic_system": "s", "aic_backend_version": "1", "aic_tp_size": 2, "aic_moe_tp_size": 3,
			"aic_moe_ep_size": 4, "aic_attention_dp_size": 6, "aic_nextn": 2}`, all, 100, 6, 2, 2},
		{`{"aic_backend": "vllm", "aic_model_path": "m", "aic_system": "s", "aic_attention_dp_size": 2, "dp_size": 2}`, ranked, 100, 2, 1, 0},
		{nested("", `}}`), base, 100, 1, 1, 0},
		{nested(`, "tp": null, "nextn": 0, "pp": 1, "worker_type": "aggregated", "estimation_mode": "auto", "fallback_policy": "deny"`, `}}`), base, 100, 1, 1, 0},
		{strings.Replace(nested(`, "backend_version": "1", "tp": 2, "moe_tp_size": 3, "moe_ep_size": 4, "attention_dp": 6, "nextn": 2`, `}, "tensor_parallel_size": 2}`), `"vllm"`, `"sglang"`, 1), all, 100, 6, 2, 2},
		{nested(`, "attention_dp": 2`, `, "block_size": 32}, "dp_size": 2}`), ranked, 200, 2, 1, 0},
		{nested(`, "nextn": 3`, `, "aic_nextn": 3}}`), base, 100, 1, 1, 3},
	} {
		args, id, err := asked(t, config.Aggregated, c.doc)
		if err != nil || id == nil {
			t.Errorf("%s: %v", c.doc, err)
			continue
		}
		e := args.Engine
		if *id != c.want || e.NumGPUBlocks != c.blocks || e.DPSize != c.ranks || e.TensorParallelSize != c.gpus || e.MTP.Drafts != c.next || e.Timing.Kind != config.Grid {
			t.Errorf("%s: %+v, %+v", c.doc, *id, e)
		}
		if (args.Timing != TimingFile{GridProvider, "g.json"}) || c.next > 0 && e.MTP.AcceptRates[0] != 0.85 {
			t.Errorf("%s: %+v %+v", c.doc, args.Timing, e.MTP)
		}
	}
	if _, id, err := asked(t, config.Prefill, nested(`, "worker_type": "prefill"`, `, "worker_type": "prefill"}}`)); err != nil || id == nil {
		t.Error(err)
	}
	// null asks for nothing.
	args, id, err := asked(t, config.Aggregated, `{"aic_backend": null, "aic_system": null, "aic_model_path": null, "aic_tp_size": null, "aic_gemm_dtype": null}`)
	if err != nil || id != nil || args.Engine != config.Defaults(config.VLLM) {
		t.Errorf("%+v %+v %v", args, id, err)
	}
}

func TestBadIdentities(t *testing.T) {
	nested := func(config, rest string) string {
		return `{"engine":{"timing_model":{"type":"external","provider":"aic","config":{` + config + `}}` + rest
	}
	const three = `"backend":"vllm","system":"s","model":"m"`
	const config_ = "engine.timing_model.config"
	for _, c := range []struct{ doc, want string }{
		{`{"aic_system":"s"}`, `x:1:15: aic_system is the text "s"; null is accepted without aic_backend`},
		{`{"aic_attention_dp_size":2}`, `x:1:26: aic_attention_dp_size is the number 2; null is accepted without aic_backend`},
		{`{"aic_backend":"vllm"}`, `x:1:16: aic_backend is the text "vllm"; it is accepted with aic_model_path, the model's name`},
		{`{"aic_backend":"vllm","aic_model_path":" "}`, `x:1:40: aic_model_path is the text " "; a text or null is accepted`},
		{`{"aic_backend":"tgi"}`, `x:1:16: aic_backend is the text "tgi"; "vllm", "sglang", "trtllm" or null is accepted`},
		{`{"aic_backend":"vllm","aic_model_path":"m","aic_tp_size":0}`, `x:1:58: aic_tp_size is the number 0; a whole number of at least 1 or null is accepted`},
		{`{"aic_backend":"vllm","aic_model_path":"m","aic_moe_dtype":"fp8"}`, `x:1:60: aic_moe_dtype is the text "fp8"; "auto" or null (the model's own type; grids do not tell others apart) is accepted`},
		{`{"aic_backend":"vllm","aic_model_path":"m","dp_size":2}`, `x:1:54: dp_size is the number 2; 1 is accepted, as aic_attention_dp_size says`},
		{`{"aic_backend":"vllm","aic_model_path":"m","planner_profile_data":"p.npz"}`, `x:1:67: planner_profile_data says how long passes take, and so does aic_backend; one is accepted`},
		{`{"aic_backend":"vllm","aic_model_path":"none"}`, `x:1:16: aic_backend: no grid`},
		{nested(`"backend":"vllm","system":"s"`, `}}`), `x:1:72: ` + config_ + ` has no model; a text is accepted`},
		{nested(`"backend":null,"system":"s","model":"m"`, `}}`), `x:1:83: ` + config_ + `.backend is null; "vllm", "sglang" or "trtllm" is accepted`},
		{nested(three+`,"worker_type":"prefill"`, `}}`), `x:1:129: ` + config_ + `.worker_type is the text "prefill"; "aggregated" is accepted`},
		{nested(three+`,"pp":2`, `}}`), `x:1:120: ` + config_ + `.pp is the number 2; 1 or null is accepted`},
		{nested(three+`,"nextn":6`, `}}`), `x:1:123: ` + config_ + `.nextn is the number 6; a whole number from 0 to 5 or null is accepted`},
		{nested(three+`,"fallback_policy":"allow"`, `}}`), `x:1:133: ` + config_ + `.fallback_policy is the text "allow"; "deny" is accepted`},
		{nested(three+`,"estimator_config":{}`, `}}`), `x:1:115: unknown field "` + config_ + `.estimator_config"; known fields here are backend, system, model, backend_version, tp, moe_tp_size, moe_ep_size, attention_dp, worker_type, pp, nextn, estimation_mode, fallback_policy`},
		{nested(three+`,"attention_dp":2`, `},"dp_size":4}`), `x:1:145: dp_size is the number 4; 2 is accepted, as ` + config_ + `.attention_dp says`},
		{nested(three+`,"nextn":2`, `,"aic_nextn":3}}`), `x:1:139: engine.aic_nextn is the number 3; 2 is accepted, as ` + config_ + `.nextn says`},
		{nested(three+`,"tp":2`, `},"tensor_parallel_size":4}`), `x:1:148: tensor_parallel_size is the number 4, but g.json is for 2; 2 is accepted`},
		{nested(strings.Replace(three, `"m"`, `"none"`, 1), `}}`), `x:1:72: ` + config_ + `: no grid`},
		{`{"engine":{"timing_model":{"type":"external","provider":"ais"}}}`, `x:1:27: engine.timing_model has no config; an object with backend, system and model is accepted`},
		{`{"engine":{"timing_model":{"type":"external","provider":"ais","config":"x"}}}`, `x:1:72: ` + config_ + ` is the text "x"; an object with backend, system and model is accepted`},
	} {
		if _, _, err := asked(t, config.Aggregated, c.doc); err == nil || err.Error() != c.want {
			t.Errorf("%s\ngot  %v\nwant %s", c.doc, err, c.want)
		}
	}
	o := Options{Timing: TimingFile{ProfileProvider, "p"}, TimingFlag: "--flag"}
	if _, err := o.Parse("x", []byte(`{"aic_backend":"vllm","aic_model_path":"m"}`)); err == nil || err.Error() != "x:1:16: aic_backend says how long passes take, and so does --flag; one is accepted" {
		t.Error(err)
	}
}

func TestIdentity(t *testing.T) {
	id, err := Identity("--f", `{"backend":"trtllm","system":"s","model":"m","worker_type":"prefill","nextn":2,"attention_dp":4}`)
	if want := (gridfind.Identity{System: "s", Model: "m", Backend: "trtllm", TP: 1, AttentionDP: 4}); err != nil || id != want {
		t.Errorf("%+v %v", id, err)
	}
	for text, want := range map[string]string{
		"":                   "--f is empty; JSON or the path of a JSON file is accepted",
		"none.json":          "--f: cannot open none.json: no such file or directory; JSON or the path of a JSON file is accepted",
		"[]":                 "--f:1:1: a performance model is an array; a JSON object with backend, system and model is accepted",
		`{"backend":"vllm"}`: "--f:1:1: the object has no system; a text is accepted",
		`{"model":5}`:        `--f:1:10: model is the number 5; a text or null is accepted`,
		"{":                  "--f:1:2: not JSON: unexpected end of JSON input",
	} {
		if _, err := Identity("--f", text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
