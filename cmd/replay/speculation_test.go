package main

import (
	"maps"
	"path/filepath"
	"testing"
)

// Peers notes T1: speculation asked for by a flag does what it does inside the
// engine arguments, and not nothing; where both are given the argument counts.
func TestSpeculationByFlag(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "t.jsonl", row(`"timestamp":0,"input_length":40,"output_length":60,"hash_ids":[1]`)+
		row(`"timestamp":5,"input_length":20,"output_length":40,"hash_ids":[2]`))
	run := func(speculation string, flags ...string) map[string]any {
		engine := `{"engine": {"block_size": 4, "num_gpu_blocks": 200` + speculation + `, "timing_model": {"type": "fixed", "prefill_ms": 10, "decode_ms": 2}}}`
		got := invoke(t, dir, append([]string{"t.jsonl", "--extra-engine-args", engine, "--report-json", "r.json"}, flags...)...)
		warning := ""
		if len(flags) > 0 && speculation != "" {
			warning = "replay: warning: --aic-nextn and --aic-nextn-accept-rates have no effect: the engine arguments have aic_nextn\n"
		}
		if got.status != 0 || got.stderr != warning {
			t.Errorf("%+v", got)
		}
		m := readJSON(t, filepath.Join(dir, "r.json"))
		for _, key := range []string{"wall_time_ms", "processed_tokens_per_s", "processed_output_tokens_per_s"} {
			delete(m, key)
		}
		return m
	}
	without := run("")
	inside := run(`, "aic_nextn": 3, "aic_nextn_accept_rates": "0.9,0.5,0.2"`)
	if got := run("", "--aic-nextn", "3", "--aic-nextn-accept-rates", "0.9,0.5,0.2"); !maps.Equal(got, inside) {
		t.Errorf("by flags %v, inside %v", got, inside)
	}
	if without["min_itl_ms"] != 2.0 || inside["min_itl_ms"] != 0.0 || inside["duration_ms"].(float64) >= without["duration_ms"].(float64) {
		t.Errorf("without speculation %v, with it %v", without, inside)
	}
	if got := run(`, "aic_nextn": 3, "aic_nextn_accept_rates": "0.9,0.5,0.2"`, "--aic-nextn", "1", "--aic-nextn-accept-rates", "0.1"); !maps.Equal(got, inside) {
		t.Errorf("both: %v, inside %v", got, inside)
	}
}
