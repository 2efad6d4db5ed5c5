package engineargs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/gridfind"
)

// Where the reference asks AIConfigurator how long passes take, a grid is looked
// for by the same identity: flat fields, or the config of an external timing
// model with the provider ais or aic.
//
// Source: reference behaviour notes, replay §1.2 and engine §2.1 and §2.5.

// estimatorWords are the reference's providers of predicted durations.
var estimatorWords = []string{"ais", "aic"}

// defaultSystem is the GPU of flat arguments that do not say one.
const defaultSystem = "h200_sxm"

// estimator is the identity that arguments ask for.
type estimator struct {
	asked    bool
	at       value // where they ask
	identity gridfind.Identity
	drafts   int // nextn of the config; -1: it does not say
}

const wantSize = wantPositive + " or null"

// wantType: a grid's numbers have the types that the model has by default.
const wantType = `"auto" or null (the model's own type; grids do not tell others apart)`

// identityText is a field of an identity that is a text.
func identityText(at func(*gridfind.Identity) *string) setter {
	return func(d *decoder, v value) error {
		if v.kind == null {
			return nil
		}
		if v.kind != text || strings.TrimSpace(v.text) == "" {
			return errUnaccepted
		}
		*at(&d.estimator.identity) = v.text
		return nil
	}
}

// identitySize is one that is a number of GPUs.
func identitySize(at func(*gridfind.Identity) *int) setter {
	return func(d *decoder, v value) error {
		if v.kind == null {
			return nil
		}
		n, err := v.within(1, config.MaxTensorSize)
		*at(&d.estimator.identity) = int(n)
		return err
	}
}

// identityType takes the type that a grid has anyway, in all its spellings.
func identityType(_ *decoder, v value) error {
	if v.kind == null || v.kind == text && gridfind.UsualType(v.text) {
		return nil
	}
	return errUnaccepted
}

// identityFields are the fields that both forms have, by the names of the flat
// form and those of the config.
func identityFields() []struct {
	flat, nested string
	accepts      string
	set          setter
} {
	type id = gridfind.Identity
	return []struct {
		flat, nested string
		accepts      string
		set          setter
	}{
		{"backend", "backend", oneOf(backendWords), func(d *decoder, v value) error {
			if v.kind == text && !slices.Contains(backendWords, v.text) {
				return errUnaccepted
			}
			return identityText(func(i *id) *string { return &i.Backend })(d, v)
		}},
		{"system", "system", wantText, identityText(func(i *id) *string { return &i.System })},
		{"model_path", "model", wantText, identityText(func(i *id) *string { return &i.Model })},
		{"backend_version", "backend_version", wantText, identityText(func(i *id) *string { return &i.BackendVersion })},
		{"tp_size", "tp", wantSize, identitySize(func(i *id) *int { return &i.TP })},
		{"moe_tp_size", "moe_tp_size", wantSize, identitySize(func(i *id) *int { return &i.MoETP })},
		{"moe_ep_size", "moe_ep_size", wantSize, identitySize(func(i *id) *int { return &i.MoEEP })},
		{"attention_dp_size", "attention_dp", wantSize, identitySize(func(i *id) *int { return &i.AttentionDP })},
	}
}

// flatEstimatorFields are the aic_ names of the flat form.
func flatEstimatorFields() []field {
	var fields []field
	for _, f := range identityFields() {
		accepts := f.accepts
		if f.flat == "backend" {
			accepts = oneOf(backendWords, "null")
		}
		fields = append(fields, field{"aic_" + f.flat, "aic_" + f.flat, accepts, f.set})
	}
	for _, name := range []string{"gemm_dtype", "moe_dtype", "fmha_dtype", "kv_cache_dtype", "comm_dtype"} {
		fields = append(fields, field{"aic_" + name, "aic_" + name, wantType, identityType})
	}
	return fields
}

// flatEstimator judges the aic_ names together: aic_backend asks, the others say
// what for.
func (d *decoder) flatEstimator() error {
	e := &d.estimator
	given := func(name string) bool { v, ok := d.at["aic_"+name]; return ok && v.kind != null }
	if !given("backend") {
		for _, f := range identityFields() {
			if given(f.flat) {
				return d.only("aic_"+f.flat, "null is accepted without aic_backend")
			}
		}
		return nil
	}
	e.asked, e.at, e.drafts = true, d.at["aic_backend"], -1
	if e.identity.Model == "" {
		return d.only("aic_backend", "it is accepted with aic_model_path, the model's name")
	}
	if e.identity.System == "" {
		e.identity.System = defaultSystem
	}
	ranks := &d.args.Engine.DPSize
	if n := max(e.identity.AttentionDP, 1); *ranks > 1 && *ranks != n {
		return d.only("dp_size", fmt.Sprintf("%d is accepted, as aic_attention_dp_size says", n))
	} else {
		*ranks = n
	}
	return nil
}

// Identity reads the argument of a flag that is such a config, JSON or a path as
// for Load: the identity of a performance model, of workers of any role.
func Identity(flag, argument string) (gridfind.Identity, error) {
	d := decoder{options: Options{Flag: flag}}
	var err error
	if d.source, d.data, err = d.options.read(argument); err != nil {
		return gridfind.Identity{}, err
	}
	v, err := d.document()
	switch {
	case err != nil:
	case v.kind != object:
		err = d.errorf(v, "a performance model is %s; a JSON object with backend, system and model is accepted", v.found())
	default:
		err = d.nestedEstimator(v, roleWords)
	}
	d.estimator.identity.TP = max(d.estimator.identity.TP, 1)
	return d.estimator.identity, err
}

// nestedEstimator reads the config of a timing model that asks, of workers with
// one of some roles.
func (d *decoder) nestedEstimator(v value, roles []string) error {
	e := &d.estimator
	e.asked, e.at, e.drafts = true, v, -1
	key := func(name string) string { return settingsKey + "." + name }
	one := func(d *decoder, v value) error {
		if v.kind == null {
			return nil
		}
		_, err := v.within(1, 1)
		return err
	}
	among := func(words ...string) setter {
		return func(_ *decoder, v value) error {
			if v.kind != null && (v.kind != text || !slices.Contains(words, v.text)) {
				return errUnaccepted
			}
			return nil
		}
	}
	var fields []field
	for _, f := range identityFields() {
		fields = append(fields, field{f.nested, key(f.nested), f.accepts, f.set})
	}
	fields = append(fields,
		field{"worker_type", key("worker_type"), oneOf(roles), among(roles...)},
		field{"pp", key("pp"), "1 or null", one},
		field{"nextn", key("nextn"), "a whole number from 0 to 5 or null", func(d *decoder, v value) error {
			if v.kind == null {
				return nil
			}
			n, err := v.within(0, config.MaxDrafts)
			d.estimator.drafts = int(n)
			return err
		}},
		field{"estimation_mode", key("estimation_mode"), `"auto"`, among("auto")},
		field{"fallback_policy", key("fallback_policy"), `"deny"`, among("deny")},
	)
	if err := d.walk(v, fields); err != nil {
		return err
	}
	for i := range fields[:3] { // backend, system, model
		f := &fields[i]
		f.accepts = strings.TrimSuffix(f.accepts, " or null")
		if at, ok := d.at[f.key]; ok && at.kind == null {
			return d.errorf(at, "%s is null; %s is accepted", at.path, f.accepts)
		}
	}
	return d.require(v, fields[:3])
}

// agree lets what the identity says of the engine, and what the canonical
// arguments say, be one: ranks and drafts. (GPUs of a rank are the grid's.)
func (d *decoder) agree() error {
	e := &d.estimator
	if !e.asked || d.older {
		return nil
	}
	ranks := max(e.identity.AttentionDP, 1)
	if _, said := d.at["dp_size"]; said && d.args.Engine.DPSize != ranks {
		return d.only("dp_size", fmt.Sprintf("%d is accepted, as engine.timing_model.config.attention_dp says", ranks))
	}
	d.args.Engine.DPSize = ranks
	if e.drafts < 0 {
		return nil
	}
	drafts := &d.args.Engine.MTP.Drafts
	if v, said := d.at["engine.aic_nextn"]; said && v.kind != null && *drafts != e.drafts {
		return d.only("engine.aic_nextn", fmt.Sprintf("%d is accepted, as engine.timing_model.config.nextn says", e.drafts))
	}
	*drafts = e.drafts
	return nil
}

// findGrid looks for the grid of the identity that the arguments ask for.
func (d *decoder) findGrid() error {
	find := d.options.FindGrid
	if find == nil {
		find = new(gridfind.Finder).Find
	}
	id := d.estimator.identity
	id.TP = max(id.TP, 1)
	f, err := find(id)
	if err != nil {
		return d.errorf(d.estimator.at, "%s: %v", d.estimator.at.path, err)
	}
	d.args.Timing = TimingFile{GridProvider, f.Path}
	return d.useGrid(f.Grid)
}

// Backends are the words of the engines that can be simulated.
func Backends() []string { return slices.Clone(backendWords) }
