package engineargs

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/cliutil"
)

// field is one name an object may have.
type field struct {
	name    string
	key     string // canonical path, also for the flat form
	accepts string // completes "x is 5, … is accepted"
	set     setter
}

// setter stores a value; errUnaccepted asks for the field's own sentence,
// errTooBig for that of a whole number above 64 bits.
type setter func(*decoder, value) error

var (
	errUnaccepted = errors.New("not accepted")
	errTooBig     = errors.New("above 64 bits")
)

// Phrases for the accepted values.
const (
	wantObject   = "an object"
	wantBool     = "true or false"
	wantText     = "a text or null"
	wantNumber   = "a finite number of at least 0"
	wantFraction = "a number from 0 to 1 or null"
	wantPort     = "a whole number from 0 to 65535 or null"
	wantPositive = "a whole number of at least 1"
	wantUint     = "a whole number of at least 0"
)

// walk hands every member of an object to its field.
func (d *decoder) walk(obj value, fields []field) error {
	for _, m := range obj.members {
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == m.name })
		if i < 0 {
			return d.unknown(obj, m, fields)
		}
		f := fields[i]
		if twin, ok := d.at[f.key]; ok && f.key != "" {
			return d.errorAt(m.offset, "%s and %s are two names of one field; one is accepted", m.value.path, twin.path)
		}
		d.at[f.key] = m.value
		d.accepts[f.key] = f.accepts
		if err := f.set(d, m.value); err == errUnaccepted {
			return d.unaccepted(f.key)
		} else if err == errTooBig {
			return d.errorf(m.value, "%s is %s; at most %d is accepted", m.value.path, m.value.found(), uint64(math.MaxUint64))
		} else if err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) unaccepted(key string) error {
	v := d.at[key]
	return d.errorf(v, "%s is %s; %s is accepted", v.path, v.found(), d.accepts[key])
}

// unknown words an unknown member with the nearest or all known names.
func (d *decoder) unknown(obj value, m member, fields []field) error {
	here := make([]string, len(fields))
	for i, f := range fields {
		here[i] = f.name
	}
	names := here
	shown := cliutil.Quote(join(obj.path, m.name))
	if obj.path == "" {
		if hint := d.misplaced(m.name); hint != "" {
			return d.errorAt(m.offset, "unknown field %s; %s", shown, hint)
		}
		names = append(slices.Clone(here), d.otherNames()...)
	}
	if near, ok := cliutil.Nearest(m.name, names); ok {
		return d.errorAt(m.offset, "unknown field %s; did you mean %s?", shown, near)
	}
	return d.errorAt(m.offset, "unknown field %s; known fields here are %s", shown, strings.Join(here, ", "))
}

// whole reads a whole number in plain digits, as the reference does: 8.0 and
// 1e3 are not whole numbers.
func (v value) whole() (uint64, error) {
	if v.kind != number {
		return 0, errUnaccepted
	}
	n, err := strconv.ParseUint(v.text, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return n, errTooBig
	case err != nil:
		return 0, errUnaccepted
	}
	return n, nil
}

// within reads a whole number from lo to hi.
func (v value) within(lo, hi uint64) (uint64, error) {
	n, err := v.whole()
	switch {
	case err == errTooBig && hi < math.MaxUint64:
		return 0, errUnaccepted
	case err != nil:
		return 0, err
	case n < lo || n > hi:
		return 0, errUnaccepted
	}
	return n, nil
}

// real reads a finite number.
func (v value) real() (float64, error) {
	if v.kind != number {
		return 0, errUnaccepted
	}
	x, err := strconv.ParseFloat(v.text, 64)
	if err != nil || math.IsInf(x, 0) || math.IsNaN(x) {
		return 0, errUnaccepted
	}
	return x, nil
}

func setBool(at func(*Args) *bool) setter {
	return func(d *decoder, v value) error {
		if v.kind != boolean {
			return errUnaccepted
		}
		*at(&d.args) = v.yes
		return nil
	}
}

func setUint(lo, hi uint64, at func(*Args) *uint64) setter {
	return func(d *decoder, v value) error {
		n, err := v.within(lo, hi)
		if err != nil {
			return err
		}
		*at(&d.args) = n
		return nil
	}
}

// setCount stores a number that core/config checks; beyond is what stands
// for everything an int cannot hold.
func setCount(beyond int, at func(*Args) *int) setter {
	return func(d *decoder, v value) error {
		n, err := v.whole()
		if err != nil && err != errTooBig {
			return err
		}
		*at(&d.args) = beyond
		if n < uint64(beyond) {
			*at(&d.args) = int(n)
		}
		return nil
	}
}

// orNull stores null as the given number.
func orNull(null_ int, at func(*Args) *int, set setter) setter {
	return func(d *decoder, v value) error {
		if v.kind == null {
			*at(&d.args) = null_
			return nil
		}
		return set(d, v)
	}
}

func setReal(at func(*Args) *float64) setter {
	return func(d *decoder, v value) error {
		x, err := v.real()
		if err != nil {
			return err
		}
		*at(&d.args) = x
		return nil
	}
}

func setOptUint(lo, hi uint64, at func(*Args) *OptUint) setter {
	return func(d *decoder, v value) error {
		if v.kind == null {
			*at(&d.args) = OptUint{}
			return nil
		}
		n, err := v.within(lo, hi)
		if err != nil {
			return err
		}
		*at(&d.args) = OptUint{true, n}
		return nil
	}
}

func setOptReal(lo, hi float64, at func(*Args) *OptFloat) setter {
	return func(d *decoder, v value) error {
		if v.kind == null {
			*at(&d.args) = OptFloat{}
			return nil
		}
		x, err := v.real()
		if err != nil || x < lo || x > hi {
			return errUnaccepted
		}
		*at(&d.args) = OptFloat{true, x}
		return nil
	}
}

func setOptText(at func(*Args) *OptString) setter {
	return func(d *decoder, v value) error {
		switch v.kind {
		case null:
			*at(&d.args) = OptString{}
		case text:
			*at(&d.args) = OptString{true, v.text}
		default:
			return errUnaccepted
		}
		return nil
	}
}

// setWord stores the position of a text among words.
func setWord(words []string, store func(*Args, int)) setter {
	return func(d *decoder, v value) error {
		if v.kind != text {
			return errUnaccepted
		}
		i := slices.Index(words, v.text)
		if i < 0 {
			return errUnaccepted
		}
		store(&d.args, i)
		return nil
	}
}

// setObject walks a nested object.
func setObject(fields func() []field) setter {
	return func(d *decoder, v value) error {
		if v.kind != object {
			return errUnaccepted
		}
		return d.walk(v, fields())
	}
}

// setLater accepts null and keeps any other value of the kind for
// checkBuilt, which refuses it.
func setLater(k kind, feature string) setter {
	return func(d *decoder, v value) error {
		if v.kind == null {
			return nil
		}
		if v.kind != k {
			return errUnaccepted
		}
		d.later(v, feature, "null")
		return nil
	}
}

// later notes the first feature that is asked for and not built.
func (d *decoder) later(v value, feature, accepted string) {
	if d.feature.feature == "" {
		d.feature = notBuilt{feature, v, accepted}
	}
}

// Names of the enumerations, in the order of their values.
var (
	backendWords    = []string{config.VLLM: "vllm", config.SGLang: "sglang", config.TRTLLM: "trtllm"}
	roleWords       = []string{config.Aggregated: "aggregated", config.Prefill: "prefill", config.Decode: "decode"}
	preemptionWords = []string{config.LIFO: "lifo", config.FIFO: "fifo"}
	timingWords     = []string{config.Polynomial: "polynomial", config.Fixed: "fixed"}
	providerWords   = []string{ProfileProvider, GridProvider}
	transferWords   = []string{"full_prompt", "destination_missing"}
	policyWords     = []string{"fifo", "lpm"}
	queueWords      = []string{"fcfs", "lcfs", "wspt"}
)
