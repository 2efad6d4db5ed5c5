package engineargs

import (
	"errors"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/core/config"
)

// files are two files that stand nowhere: p is a profile, all others have a
// fault.
func files() Options {
	table := &config.ProfileTable{
		PrefillISL: []float64{1, 2}, PrefillTTFTMs: []float64{1, 2},
		DecodeActiveKVTokens: []float64{1, 2}, DecodeContextLength: []float64{1, 2}, DecodeITLMs: []float64{1, 2, 3, 4},
	}
	return Options{LoadProfile: func(path string) (*config.ProfileTable, error) {
		if path == "p" {
			return table, nil
		}
		return nil, errors.New("file: has a fault; none is accepted")
	}}
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
		// What is refused of the arguments alone needs no file.
		{files(), `{"planner_profile_data": "q", "block_size": 1}`, "args:1:45: block_size is the number 1; a whole number of at least 2 is accepted for backend vllm"},
	} {
		if _, err := c.o.Parse("args", []byte(c.in)); err == nil || err.Error() != c.want {
			t.Errorf("%s\ngot  %v\nwant %s", c.in, err, c.want)
		}
	}
}
