package engineargs

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/gridfind"
	"github.com/dryserve/dryserve/host/native/profile"
)

// Providers of durations from files.
const (
	// ProfileProvider is the reference's: a NumPy archive, and here also a
	// directory with a profiler's results.
	ProfileProvider = "dynamo_profile"
	// GridProvider is our own: a grid in JSON.
	GridProvider = "grid"
)

// TimingFile names where pass durations are read from; without a provider
// they come from no file.
type TimingFile struct {
	Provider string
	Path     string // as written; relative to the working directory, as in the reference
}

// timing reads the tagged object of engine.timing_model.
func (d *decoder) timing(v value) error {
	if v.kind != object {
		return errUnaccepted
	}
	kinds := append(slices.Clone(timingWords), "external")
	chosen := ""
	for _, m := range v.members {
		if m.name != "type" {
			continue
		}
		if m.value.kind != text || !slices.Contains(kinds, m.value.text) {
			return d.errorf(m.value, "%s is %s; %s is accepted", m.value.path, m.value.found(), oneOf(kinds))
		}
		chosen = m.value.text
	}
	tag := field{"type", "engine.timing_model.type", oneOf(kinds), func(*decoder, value) error { return nil }}
	switch chosen {
	case "":
		return d.errorf(v, "%s has no type; %s is accepted", v.path, oneOf(kinds))
	case "polynomial":
		d.args.Engine.Timing = config.Timing{Kind: config.Polynomial}
		return d.walk(v, []field{tag})
	case "fixed":
		return d.fixedTiming(v, tag)
	}
	return d.externalTiming(v, tag)
}

func (d *decoder) fixedTiming(v value, tag field) error {
	d.args.Engine.Timing = config.Timing{Kind: config.Fixed}
	fields := []field{
		tag,
		{"prefill_ms", "engine.timing_model.prefill_ms", wantNumber, setReal(func(a *Args) *float64 { return &a.Engine.Timing.PrefillMs })},
		{"decode_ms", "engine.timing_model.decode_ms", wantNumber, setReal(func(a *Args) *float64 { return &a.Engine.Timing.DecodeMs })},
	}
	if err := d.walk(v, fields); err != nil {
		return err
	}
	return d.require(v, fields)
}

// Keys of the fields of an external timing model.
const (
	providerKey = "engine.timing_model.provider"
	settingsKey = "engine.timing_model.config"
	pathKey     = "engine.timing_model.config.path"
)

// externalTiming reads which file durations come from: one that is named, or
// the grid of an identity.
func (d *decoder) externalTiming(v value, tag field) error {
	anything := func(*decoder, value) error { return nil }
	accepted := `an object such as {"path": "profile.npz"}`
	for _, m := range v.members {
		if m.name == "provider" && slices.Contains(estimatorWords, m.value.text) {
			accepted = "an object with backend, system and model"
		}
	}
	fields := []field{
		tag,
		{"provider", providerKey, oneOf(append(slices.Clone(providerWords), estimatorWords...)), func(_ *decoder, v value) error {
			if v.kind != text {
				return errUnaccepted
			}
			return nil
		}},
		{"config", settingsKey, accepted, anything},
	}
	if err := d.walk(v, fields); err != nil {
		return err
	}
	if err := d.require(v, fields[:2]); err != nil {
		return err
	}
	provider := d.at[providerKey]
	estimates := slices.Contains(estimatorWords, provider.text)
	if !estimates && !slices.Contains(providerWords, provider.text) {
		return d.unaccepted(providerKey)
	}
	if err := d.require(v, fields); err != nil {
		return err
	}
	settings := d.at[settingsKey]
	if settings.kind != object {
		return d.unaccepted(settingsKey)
	}
	if estimates {
		return d.nestedEstimator(settings, roleWords[d.options.Role:d.options.Role+1])
	}
	d.args.Timing.Provider = provider.text
	path := []field{{"path", pathKey, wantPath, timingPath}}
	if err := d.walk(settings, path); err != nil {
		return err
	}
	return d.require(settings, path)
}

const wantPath = "the path of a file"

// timingPath refuses paths that would break a sentence.
func timingPath(d *decoder, v value) error {
	if v.kind != text || strings.TrimSpace(v.text) == "" || strings.ContainsFunc(v.text, unicode.IsControl) {
		return errUnaccepted
	}
	d.args.Timing.Path = v.text
	return nil
}

// flatProfile is the flat form's profile, given by its path alone.
func flatProfile(d *decoder, v value) error {
	if v.kind == null {
		return nil
	}
	d.args.Timing.Provider = ProfileProvider
	return timingPath(d, v)
}

// loadTiming reads the file that durations come from.
func (d *decoder) loadTiming() error {
	if flag := d.options.Timing; flag.Provider != "" {
		if d.args.Timing.Provider != "" || d.estimator.asked || d.args.Engine.Timing.Kind != config.Polynomial {
			v := d.timingValue()
			return d.errorf(v, "%s says how long passes take, and so does %s; one is accepted", v.path, d.options.TimingFlag)
		}
		d.args.Timing = flag
	}
	if d.estimator.asked {
		if d.args.Timing.Provider != "" {
			v := d.at["planner_profile_data"]
			return d.errorf(v, "%s says how long passes take, and so does %s; one is accepted", v.path, d.estimator.at.path)
		}
		return d.findGrid()
	}
	if d.args.Timing.Provider == "" {
		return nil
	}
	if d.args.Timing.Provider == GridProvider {
		return d.loadGrid()
	}
	load := d.options.LoadProfile
	if load == nil {
		load = profile.LoadProfile
	}
	table, err := load(d.args.Timing.Path)
	if err != nil {
		return d.timingError(err)
	}
	d.args.Engine.Timing = config.Timing{Kind: config.Profile, Profile: table}
	return nil
}

// loadGrid reads a grid.
func (d *decoder) loadGrid() error {
	load := d.options.LoadGrid
	if load == nil {
		load = gridfind.Load
	}
	g, err := load(d.args.Timing.Path)
	if err != nil {
		return d.timingError(err)
	}
	return d.useGrid(g)
}

// useGrid takes a grid. What it says of the engine fills in what the arguments
// do not: the KV capacity, and the GPUs of a rank.
func (d *decoder) useGrid(g *profile.Grid) error {
	e := &d.args.Engine
	d.args.Grid, e.Timing = g, config.Timing{Kind: config.Grid, Grid: g.Table}
	if g.NumGPUBlocks > 0 && !d.args.NumGPUBlocksExplicit {
		if e.NumGPUBlocks = g.Blocks(e.BlockSize); e.NumGPUBlocks == 0 {
			return d.timingError(fmt.Errorf("%s: num_gpu_blocks is %d blocks of %d tokens, less than one block of %d; a smaller block_size or a num_gpu_blocks of the engine's own is accepted",
				d.args.Timing.Path, g.NumGPUBlocks, g.BlockSize, e.BlockSize))
		}
	}
	tp, said := d.at["tensor_parallel_size"]
	switch {
	case g.TP == 0:
	case !said:
		e.TensorParallelSize = g.TP
	case e.TensorParallelSize != g.TP:
		return d.errorf(tp, "%s is %s, but %s is for %d; %d is accepted", tp.path, tp.found(), d.args.Timing.Path, g.TP, g.TP)
	}
	return nil
}

// timingValue is where the arguments say how long passes take.
func (d *decoder) timingValue() value {
	for _, key := range []string{pathKey, "planner_profile_data", "aic_backend", "engine.timing_model"} {
		if v, ok := d.at[key]; ok && v.kind != null {
			return v
		}
	}
	return value{}
}

// timingError says where the file stands that has a fault.
func (d *decoder) timingError(err error) error {
	if d.options.Timing.Provider != "" {
		return fmt.Errorf("%s: %w", d.options.TimingFlag, err)
	}
	v := d.timingValue()
	return d.errorf(v, "%s: %v", v.path, err)
}
