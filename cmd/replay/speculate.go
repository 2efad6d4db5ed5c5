package main

import (
	"errors"
	"strconv"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/cliutil"
	"github.com/dryserve/dryserve/host/native/engineargs"
)

// speculate gives the engine what --aic-nextn and --aic-nextn-accept-rates say,
// unless its arguments have aic_nextn. (The reference's command line reads the
// two flags and forgets them.)
func (o *options) speculate(args *engineargs.Args) error {
	nextN, rates := o.given("aic-nextn"), o.given("aic-nextn-accept-rates")
	if !nextN && !rates {
		return nil
	}
	if nextN && (o.nextN < 1 || o.nextN > config.MaxDrafts) {
		return valueError("aic-nextn", strconv.Itoa(o.nextN), "a whole number from 1 to "+strconv.Itoa(config.MaxDrafts))
	}
	if rates && o.nextNRates == "" {
		return errors.New("--aic-nextn-accept-rates is empty; " + engineargs.WantRates + " is accepted")
	}
	chances, ok := engineargs.AcceptRates(o.nextNRates, o.nextN)
	if !ok {
		return valueError("aic-nextn-accept-rates", cliutil.Quote(o.nextNRates), engineargs.WantRates)
	}
	m := &args.Engine.MTP
	switch {
	case m.Drafts > 0:
		o.warnings = append(o.warnings, "--aic-nextn and --aic-nextn-accept-rates have no effect: the engine arguments have aic_nextn")
		return nil
	case !nextN:
		return errors.New("--aic-nextn-accept-rates is given without --aic-nextn; both or neither are accepted")
	}
	m.Drafts, m.AcceptRates = o.nextN, chances
	if f := args.Engine.Check(); f.Field == config.FieldMTPDrafts {
		return errors.New("--aic-nextn is given with engine arguments that have a decode_speedup_ratio other than 1; either is accepted alone")
	}
	return nil
}
