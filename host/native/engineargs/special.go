package engineargs

import (
	"slices"
	"strconv"
	"strings"

	"github.com/dryserve/dryserve/core/config"
)

// WantRates says what AcceptRates takes.
const WantRates = "a list of chances from 0 to 1 separated by commas, such as \"0.85,0.3\","

// positive refuses 0 where 0 has a meaning of its own in core/config.
func positive(set setter) setter {
	return func(d *decoder, v value) error {
		if n, err := v.whole(); err == nil && n == 0 {
			return errUnaccepted
		}
		return set(d, v)
	}
}

func queuePolicy(d *decoder, v value) error {
	if v.kind == text && !slices.Contains(queueWords, v.text) {
		return errUnaccepted
	}
	return setOptText(func(a *Args) *OptString { return &a.Dynamo.RouterQueuePolicy })(d, v)
}

func (d *decoder) nextN(v value) error {
	if v.kind == null {
		return nil
	}
	n, err := v.within(1, config.MaxDrafts)
	d.args.Engine.MTP.Drafts = int(n)
	return err
}

func (d *decoder) acceptRates(v value) error {
	if v.kind == text {
		d.rates = OptString{true, v.text}
		return nil
	}
	if v.kind != null {
		return errUnaccepted
	}
	return nil
}

// AcceptRates reads the chances of a number of drafts: blank text stands for
// the default's, missing ones are 0, surplus ones dropped. ok is false for text
// that is no list of chances.
func AcceptRates(text string, drafts int) (rates [config.MaxDrafts]float64, ok bool) {
	rates = config.DefaultAcceptRates()
	if strings.TrimSpace(text) != "" {
		rates = [config.MaxDrafts]float64{}
		for i, word := range strings.Split(text, ",") {
			p, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
			if err != nil || !(p >= 0 && p <= 1) {
				return rates, false
			}
			if i < drafts {
				rates[i] = p
			}
		}
	}
	clear(rates[drafts:])
	return rates, true
}

// speculation puts the accept rates and the seed where they belong.
func (d *decoder) speculation() error {
	m := &d.args.Engine.MTP
	m.Seed = d.args.MTPSeed
	if m.Drafts == 0 {
		if d.rates.Set {
			return d.only("engine.aic_nextn_accept_rates", "null is accepted without aic_nextn")
		}
		return nil
	}
	rates, ok := AcceptRates(d.rates.V, m.Drafts)
	if !ok {
		return d.only("engine.aic_nextn_accept_rates", WantRates+" is accepted")
	}
	m.AcceptRates = rates
	return nil
}

// kvBytes fills in the bytes of KV cache per token that a flag names, for
// transfers and for host offload; the arguments may not say otherwise.
func (d *decoder) kvBytes() error {
	n := d.options.KVBytes
	if n == 0 {
		return nil
	}
	for _, f := range []struct {
		key string
		to  *OptUint
	}{{"engine.kv_transfer_bytes_per_token", &d.args.KVTransferBytesPerToken}, {"engine.kv_cache_bytes_per_token", &d.args.KVCacheBytesPerToken}} {
		if f.to.Set && f.to.V != n {
			v := d.at[f.key]
			return d.errorf(v, "%s is %s, but %s gives %d; one number is accepted", v.path, v.found(), d.options.KVFlag, n)
		}
		*f.to = OptUint{true, n}
	}
	return nil
}

// evictionPolicy: the reference has the field in its run specification only.
func evictionPolicy(d *decoder, v value) error {
	switch {
	case v.kind == null || v.kind == text && v.text == "lru":
		return nil
	case v.kind == text && v.text == "belady":
		d.later(v, "Belady's eviction", `"lru"`)
		return nil
	}
	return errUnaccepted
}

func (d *decoder) cacheGroups(v value) error {
	if v.kind != array {
		return errUnaccepted
	}
	if len(v.elems) > 0 {
		d.later(v, "a KV cache split in groups", "[]")
	}
	return nil
}

func (d *decoder) reasoning(v value) error {
	d.args.Dynamo.HasReasoning, d.args.Dynamo.Reasoning = false, Reasoning{}
	if v.kind == null {
		return nil
	}
	if v.kind != object {
		return errUnaccepted
	}
	d.args.Dynamo.HasReasoning = true
	if err := d.walk(v, reasoningFields()); err != nil {
		return err
	}
	return d.require(v, reasoningFields())
}

func (d *decoder) thinkingRatio(v value) error {
	x, err := v.real()
	if err != nil || x < 0 || x > 1 {
		return errUnaccepted
	}
	d.args.Dynamo.Reasoning.ThinkingRatio = x
	return nil
}

// require refuses an object that lacks one of the fields.
func (d *decoder) require(obj value, fields []field) error {
	for _, f := range fields {
		if _, ok := d.at[f.key]; !ok {
			path := obj.path
			if path == "" {
				path = "the object"
			}
			return d.errorf(obj, "%s has no %s; %s is accepted", path, f.name, f.accepts)
		}
	}
	return nil
}
