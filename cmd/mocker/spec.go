package main

import (
	"errors"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// kind is what a flag takes.
type kind uint8

const (
	freeText kind = iota
	whole         // a whole number
	real          // a number
	choice        // one of a few words
	on            // nothing: the flag switches something on
	toggle        // nothing: --x switches on, --no-x off
	ports         // whole numbers separated by commas
)

// spec describes a flag. The tables of specs are the whole command line.
type spec struct {
	name    string
	aliases []string
	legacy  string // another spelling that may not be mixed with the name
	env     string // variable that stands in for the flag
	kind    kind
	choices []string
	def     string // "": not set
	arg     string // what the help calls the argument
	usage   string

	key   string            // where the engine args have it
	field string            // where the router's JSON has it
	words map[string]string // choices by what the engine args call them
	later string            // the feature that is not built yet
	ready []string          // choices that are built, if not all are
	front bool              // for workers behind a Dynamo frontend
	alone bool              // for --http
	told  bool              // a frontend can be told of it, whatever is built here
}

// value is what a flag is set to.
type value struct {
	spec  *spec
	text  string
	given bool   // by a flag or a variable
	by    string // how it was spelt: --flag or VARIABLE
}

// set takes a text, or says what is accepted.
func (v *value) set(s, by string) error {
	switch v.spec.kind {
	case whole:
		if _, err := strconv.ParseInt(s, 10, 64); err != nil {
			return errors.New(v.accepts())
		}
	case real:
		if x, err := strconv.ParseFloat(s, 64); err != nil || math.IsInf(x, 0) || math.IsNaN(x) {
			return errors.New(v.accepts())
		}
	case choice:
		known := false
		for _, c := range v.spec.choices {
			known = known || c == s
		}
		if !known {
			return errors.New(v.accepts())
		}
	case on, toggle:
		b, err := truth(s)
		if err != nil {
			return err
		}
		s = strconv.FormatBool(b)
	case ports:
		for p := range strings.SplitSeq(s, ",") {
			if n, err := strconv.Atoi(strings.TrimSpace(p)); err != nil || n < 1 || n > math.MaxUint16 {
				return errors.New(v.accepts())
			}
		}
	}
	v.text, v.given, v.by = s, true, by
	return nil
}

// truth reads a switch.
func truth(s string) (bool, error) {
	switch strings.ToLower(s) {
	case "true", "1", "yes", "on", "y", "t":
		return true, nil
	case "false", "0", "no", "off", "n", "f", "":
		return false, nil
	}
	return false, errors.New("true or false")
}

// accepts says what the flag takes.
func (v *value) accepts() string {
	switch v.spec.kind {
	case whole:
		return "a whole number"
	case real:
		return "a finite number"
	case choice:
		return strings.Join(v.spec.choices, " or ")
	case on, toggle:
		return "true or false"
	case ports:
		return "whole numbers from 1 to 65535 separated by commas"
	}
	if strings.ContainsRune("aeiou", rune(v.spec.arg[0])) {
		return "an " + v.spec.arg
	}
	return "a " + v.spec.arg
}

// spelling is one way to write a flag; it is a pflag.Value.
type spelling struct {
	value  *value
	name   string
	negate bool
}

func (s *spelling) Set(text string) error {
	if s.negate {
		b, err := truth(text)
		if err != nil {
			return err
		}
		text = strconv.FormatBool(!b)
	}
	if legacy := s.value.spec.legacy; legacy != "" && s.value.given && s.value.by != "--"+s.name {
		return errMixed
	}
	return s.value.set(text, "--"+s.name)
}

// errMixed: two spellings of one flag that exclude each other.
var errMixed = errors.New("it is given in both spellings")

func (s *spelling) String() string { return "" }

func (s *spelling) Type() string { return s.value.spec.arg }

// declare adds every spelling of the flags of a table.
func declare(f *pflag.FlagSet, values map[string]*value, table []spec) {
	for i := range table {
		t := &table[i]
		v := &value{spec: t, text: t.def}
		values[t.name] = v
		names := append([]string{t.name}, t.aliases...)
		if t.legacy != "" {
			names = append(names, t.legacy)
		}
		for _, name := range names {
			f.Var(&spelling{value: v, name: name}, name, "")
			if t.kind == on || t.kind == toggle {
				f.Lookup(name).NoOptDefVal = "true"
			}
			if t.kind == toggle {
				f.Var(&spelling{value: v, name: "no-" + name, negate: true}, "no-"+name, "")
				f.Lookup("no-" + name).NoOptDefVal = "true"
			}
		}
	}
}

// fromEnvironment sets what no flag has set. An empty variable says nothing.
func fromEnvironment(values map[string]*value, table []spec) error {
	for i := range table {
		t := &table[i]
		v := values[t.name]
		if t.env == "" || v.given {
			continue
		}
		s := os.Getenv(t.env)
		if s == "" {
			continue
		}
		if err := v.set(s, t.env); err != nil {
			return usagef("%s is %s; %s is accepted", t.env, quoted(s), err)
		}
	}
	return nil
}

// neutral reports whether a value asks for nothing but the default.
func (v *value) neutral() bool {
	if !v.given {
		return true
	}
	a, errA := strconv.ParseFloat(v.text, 64)
	b, errB := strconv.ParseFloat(v.spec.def, 64)
	if errA == nil && errB == nil {
		return a == b
	}
	if v.spec.kind == on {
		return v.text == "false"
	}
	return v.text == v.spec.def
}
