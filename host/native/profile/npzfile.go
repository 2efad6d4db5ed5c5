package profile

import (
	"fmt"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/npz"
)

// The arrays of a profile.
const (
	prefillISL  = "prefill_isl"
	prefillTTFT = "prefill_ttft_ms"
	decodeKV    = "decode_active_kv_tokens"
	decodeCtx   = "decode_context_length"
	decodeITL   = "decode_itl"
)

// LoadNPZ loads a profile in the form that the reference's engine reads: five
// arrays of float64. Other arrays are not looked at.
func LoadNPZ(path string) (*config.ProfileTable, error) {
	a, err := npz.Open(path)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	return readProfile(a)
}

func readProfile(a *npz.Archive) (*config.ProfileTable, error) {
	if err := notRaw(a); err != nil {
		return nil, err
	}
	var p config.ProfileTable
	for _, axis := range []struct {
		name string
		into *[]float64
	}{{prefillISL, &p.PrefillISL}, {prefillTTFT, &p.PrefillTTFTMs}, {decodeKV, &p.DecodeActiveKVTokens}, {decodeCtx, &p.DecodeContextLength}} {
		got, err := a.Floats(axis.name, 1)
		if err != nil {
			return nil, err
		}
		*axis.into = got.Data
	}
	itl, err := a.Floats(decodeITL, 2)
	if err != nil {
		return nil, err
	}
	p.DecodeITLMs = itl.Data
	rows, cols := len(p.DecodeActiveKVTokens), len(p.DecodeContextLength)
	if itl.Shape[0] != rows || itl.Shape[1] != cols {
		return nil, fmt.Errorf("%s: array %s has shape %s; %s is accepted: a row for each value of %s, a column for each of %s",
			a.Path(), decodeITL, npz.ShapeText(itl.Shape), npz.ShapeText([]int{rows, cols}), decodeKV, decodeCtx)
	}
	if fault := p.Check(); !fault.OK() {
		return nil, profileFault(a.Path(), &p, fault)
	}
	return &p, nil
}

// notRaw refuses one half of a profiler's results by what it is.
func notRaw(a *npz.Archive) error {
	half := ""
	switch {
	case a.Has(rawTTFT) && !a.Has(prefillTTFT):
		half = rawTTFT
	case a.Has(rawITL) && !a.Has(decodeITL):
		half = rawITL
	default:
		return nil
	}
	return fmt.Errorf("%s: has array %s, so it is one half of a profiler's results; their directory is accepted, or a profile with arrays %s, %s, %s, %s and %s",
		a.Path(), half, prefillISL, prefillTTFT, decodeKV, decodeCtx, decodeITL)
}

// profileFault words a fault of a profile's table.
func profileFault(path string, p *config.ProfileTable, f config.TableFault) error {
	isl := array{name: prefillISL, data: p.PrefillISL}
	kv := array{name: decodeKV, data: p.DecodeActiveKVTokens}
	ctx := array{name: decodeCtx, data: p.DecodeContextLength}
	of := map[config.Field]array{
		config.FieldProfilePrefillISL:     isl,
		config.FieldProfilePrefillTTFT:    {name: prefillTTFT, data: p.PrefillTTFTMs, axes: []array{isl}},
		config.FieldProfileDecodeActiveKV: kv,
		config.FieldProfileDecodeContext:  ctx,
		config.FieldProfileDecodeITL:      {name: decodeITL, data: p.DecodeITLMs, axes: []array{kv, ctx}},
	}
	return of[f.Field].fault(path, f)
}
