package engineargs

import (
	"errors"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/profile"
)

// files are files that stand nowhere: p is a profile, g a grid of 3 blocks of
// 64 tokens for 2 GPUs, h one that says nothing else, all others have a fault.
func files() Options {
	table := &config.ProfileTable{
		PrefillISL: []float64{1, 2}, PrefillTTFTMs: []float64{1, 2},
		DecodeActiveKVTokens: []float64{1, 2}, DecodeContextLength: []float64{1, 2}, DecodeITLMs: []float64{1, 2, 3, 4},
	}
	grid := &profile.Grid{Table: &config.GridTable{
		PrefillBatch: []float64{1, 2}, PrefillISL: []float64{1, 2}, PrefillPrefix: []float64{0, 1}, PrefillMs: make([]float64, 8),
		DecodeBatch: []float64{1, 2}, DecodeContext: []float64{1, 2}, DecodeMs: make([]float64, 4),
	}, TP: 2, NumGPUBlocks: 3, BlockSize: 64}
	bare := &profile.Grid{Table: grid.Table}
	fault := errors.New("file: has a fault; none is accepted")
	return Options{
		LoadProfile: func(path string) (*config.ProfileTable, error) {
			if path == "p" {
				return table, nil
			}
			return nil, fault
		},
		LoadGrid: func(path string) (*profile.Grid, error) {
			switch path {
			case "g":
				return grid, nil
			case "h":
				return bare, nil
			}
			return nil, fault
		},
	}
}

func external(provider, path string) string {
	return `{"engine": {"timing_model": {"type": "external", "provider": "` + provider + `", "config": {"path": "` + path + `"}}}}`
}

func TestProfile(t *testing.T) {
	o := files()
	canonical, err := o.Parse("args", []byte(external("dynamo_profile", "p")))
	if err != nil {
		t.Fatal(err)
	}
	timing := canonical.Engine.Timing
	if timing.Kind != config.Profile || timing.Profile == nil || (canonical.Timing != TimingFile{ProfileProvider, "p"}) {
		t.Errorf("%+v", canonical)
	}
	// As the reference's normalisation has it.
	const want = `"timing_model":{"type":"external","provider":"dynamo_profile","config":{"path":"p"}}`
	if text := string(canonical.Marshal()); !strings.Contains(text, want) {
		t.Error(text)
	}
	flat, err := o.Parse("flat", []byte(`{"planner_profile_data": "p"}`))
	if err != nil || flat != canonical {
		t.Errorf("the flat form gives %+v, %v", flat, err)
	}
	if flat, err = o.Parse("flat", []byte(`{"planner_profile_data": null, "block_size": 64}`)); err != nil || flat != Default() {
		t.Errorf("null gives %+v, %v", flat, err)
	}
	o.Timing, o.TimingFlag = TimingFile{ProfileProvider, "p"}, "--flag"
	for _, in := range []string{`{}`, `{"engine": {"timing_model": {"type": "polynomial"}}}`, `{"block_size": 64}`} {
		if flagged, err := o.Parse("args", []byte(in)); err != nil || flagged != canonical {
			t.Errorf("a flag beside %s gives %+v, %v", in, flagged, err)
		}
	}
}

func TestGrid(t *testing.T) {
	o := files()
	for _, c := range []struct {
		in         string
		blocks, tp int
	}{
		{external("grid", "g"), 3, 2},
		{external("grid", "h"), 16384, 1},
		{strings.Replace(external("grid", "g"), `"timing_model"`, `"block_size": 16, "timing_model"`, 1), 12, 2},
		{strings.Replace(external("grid", "g"), `"timing_model"`, `"num_gpu_blocks": 7, "timing_model"`, 1), 7, 2},
		{strings.Replace(external("grid", "g"), `{"engine"`, `{"tensor_parallel_size": 2, "engine"`, 1), 3, 2},
		{strings.Replace(external("grid", "h"), `{"engine"`, `{"tensor_parallel_size": 5, "engine"`, 1), 16384, 5},
	} {
		args, err := o.Parse("args", []byte(c.in))
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		e := args.Engine
		if e.Timing.Kind != config.Grid || e.Timing.Grid != args.Grid.Table || e.NumGPUBlocks != c.blocks || e.TensorParallelSize != c.tp {
			t.Errorf("%s: %d blocks, %d GPUs, %+v", c.in, e.NumGPUBlocks, e.TensorParallelSize, e.Timing)
		}
		if again, err := o.Parse("again", args.Marshal()); err != nil || again != args {
			t.Errorf("%s\nbecame %s\nthen %s, %v", c.in, args.Marshal(), again.Marshal(), err)
		}
	}
}

func TestTimingSentences(t *testing.T) {
	flagged := files()
	flagged.Timing, flagged.TimingFlag = TimingFile{ProfileProvider, "q"}, "--flag"
	fixed := `{"engine": {"timing_model": {"type": "fixed", "prefill_ms": 1, "decode_ms": 2}}}`
	for _, c := range []struct {
		o        Options
		in, want string
	}{
		{files(), external("dynamo_profile", "q"), "args:1:99: engine.timing_model.config.path: file: has a fault; none is accepted"},
		{files(), `{"planner_profile_data": "q"}`, "args:1:26: planner_profile_data: file: has a fault; none is accepted"},
		{files(), `{"planner_profile_data": " "}`, `args:1:26: planner_profile_data is the text " "; the path of a file or null is accepted`},
		{files(), external("dynamo_profile", `a\nb`), `args:1:99: engine.timing_model.config.path is the text "a\nb"; the path of a file is accepted`},
		{flagged, `{}`, "--flag: file: has a fault; none is accepted"},
		{flagged, external("dynamo_profile", "p"), "args:1:99: engine.timing_model.config.path says how long passes take, and so does --flag; one is accepted"},
		{flagged, fixed, "args:1:29: engine.timing_model says how long passes take, and so does --flag; one is accepted"},
		{files(), external("grid", "q"), "args:1:89: engine.timing_model.config.path: file: has a fault; none is accepted"},
		{files(), external("grid", "p"), "args:1:89: engine.timing_model.config.path: file: has a fault; none is accepted"},
		// What is refused of the arguments alone needs no file.
		{files(), `{"planner_profile_data": "q", "block_size": 1}`, "args:1:45: block_size is the number 1; a whole number of at least 2 is accepted for backend vllm"},
	} {
		if _, err := c.o.Parse("args", []byte(c.in)); err == nil || err.Error() != c.want {
			t.Errorf("%s\ngot  %v\nwant %s", c.in, err, c.want)
		}
	}
}

func TestKVBytes(t *testing.T) {
	o := Options{KVBytes: 7, KVFlag: "--flag"}
	for _, in := range []string{`{}`, `{"engine": {"kv_transfer_bytes_per_token": 7}}`, `{"kv_bytes_per_token": 7}`, `{"engine": {"kv_cache_bytes_per_token": null}}`} {
		args, err := o.Parse("args", []byte(in))
		if err != nil || (args.KVTransferBytesPerToken != OptUint{true, 7}) || (args.KVCacheBytesPerToken != OptUint{true, 7}) {
			t.Errorf("%s: %+v, %+v, %v", in, args.KVTransferBytesPerToken, args.KVCacheBytesPerToken, err)
		}
	}
	for in, want := range map[string]string{
		`{"engine": {"kv_transfer_bytes_per_token": 8}}`: "args:1:44: engine.kv_transfer_bytes_per_token is the number 8, but --flag gives 7; one number is accepted",
		`{"kv_bytes_per_token": 8}`:                      "args:1:24: kv_bytes_per_token is the number 8, but --flag gives 7; one number is accepted",
		`{"engine": {"kv_cache_bytes_per_token": 8}}`:    "args:1:41: engine.kv_cache_bytes_per_token is the number 8, but --flag gives 7; one number is accepted",
	} {
		if _, err := o.Parse("args", []byte(in)); err == nil || err.Error() != want {
			t.Errorf("%s\ngot  %v\nwant %s", in, err, want)
		}
	}
}
