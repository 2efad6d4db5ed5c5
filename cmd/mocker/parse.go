package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/dryserve/dryserve/host/native/cliutil"
	"github.com/dryserve/dryserve/host/native/live/fleet"
)

// usageError is a command line that cannot be understood or asks for what is
// not built: exit status 2. Any other error has status 1.
type usageError struct{ sentence string }

func (e usageError) Error() string { return e.sentence }

func usagef(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }

func quoted(s string) string { return cliutil.Quote(s) }

// topic is a part of the command line.
type topic struct {
	title string
	table []spec
}

func topics() []topic {
	return []topic{
		{"Serving by itself", httpFlags()}, {"Workers", workerFlags()}, {"Engine", engineFlags()}, {"Router before the workers", routerFlags()},
		{"AISimulate", aisFlags()}, {"Behind a Dynamo frontend", frontendFlags()},
	}
}

// options is the command line, parsed but not yet judged.
type options struct {
	values   map[string]*value
	topics   []topic
	help     bool
	version  bool
	warnings []string
	at       places            // behind a frontend
	say      func(text string) // tells at once; nil: nobody hears, and no grid is made
}

func (o *options) given(name string) bool  { return o.values[name].given }
func (o *options) text(name string) string { return o.values[name].text }
func (o *options) is(name string) bool     { return o.values[name].text == "true" }

// real and whole are numbers that parsing has checked; 0 if they are not set.
func (o *options) real(name string) float64 {
	x, _ := strconv.ParseFloat(o.values[name].text, 64)
	return x
}

func (o *options) whole(name string) int {
	n, _ := strconv.ParseInt(o.values[name].text, 10, 64)
	return int(n)
}

// wrong says what a flag, or the variable that stands for it, should be.
func (o *options) wrong(name, accepted string) error {
	v := o.values[name]
	by := v.by
	if by == "" {
		by = "--" + name
	}
	text := v.text
	if v.spec.kind == freeText || text == "" {
		text = quoted(text)
	}
	return usagef("%s is %s; %s is accepted", by, text, accepted)
}

func parse(args []string) (*options, error) {
	o := &options{values: map[string]*value{}, topics: topics()}
	f := pflag.NewFlagSet("mocker", pflag.ContinueOnError)
	f.Usage = func() {}
	f.BoolVarP(&o.help, "help", "h", false, "")
	f.BoolVar(&o.version, "version", false, "")
	for _, t := range o.topics {
		declare(f, o.values, t.table)
	}
	args, err := cliutil.Lengthen(f, args, func(name string) bool { return !ours(name) })
	if err != nil {
		return nil, usageError{err.Error()}
	}
	if err := f.Parse(args); err != nil {
		return nil, parseError(f, o, err)
	}
	if o.help || o.version {
		return o, nil
	}
	if len(f.Args()) > 0 {
		return nil, usagef("%s stands without a flag; mocker --help lists the flags", quoted(f.Arg(0)))
	}
	for _, t := range o.topics {
		if err := fromEnvironment(o.values, t.table); err != nil {
			return nil, err
		}
	}
	o.logFromEnvironment()
	return o, o.refuse()
}

// ours reports whether a flag is none of the reference's, whose beginnings then
// stand for those of the reference only.
func ours(name string) bool {
	return name == "perf-grid" || name == "grid-dir" || slices.ContainsFunc(httpFlags(), func(s spec) bool { return s.name == name })
}

// logFromEnvironment takes the level out of DYN_LOG, whose filters by module
// mean nothing here: "debug,dynamo_runtime=warn" is debug.
func (o *options) logFromEnvironment() {
	level := o.values["log-level"]
	word, _, _ := strings.Cut(os.Getenv("DYN_LOG"), ",")
	if word = strings.ToLower(strings.TrimSpace(word)); word == "" || level.given {
		return
	}
	if level.set(word, "DYN_LOG") != nil {
		o.warn("DYN_LOG is %s, whose first word is no level; %s is accepted", quoted(os.Getenv("DYN_LOG")), level.accepts())
	}
}

// parseError rewords pflag's errors: what was found, what is accepted.
func parseError(f *pflag.FlagSet, o *options, err error) error {
	var unknown *pflag.NotExistError
	var novalue *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.Is(err, errMixed):
		errors.As(err, &invalid)
		v := invalid.GetFlag().Value.(*spelling).value
		return usagef("--%s is also given as --%s; one of the two spellings is accepted", v.spec.name, v.spec.legacy)
	case errors.As(err, &unknown):
		if short := unknown.GetSpecifiedShortnames(); short != "" {
			return usagef("unknown flag %s; mocker --help lists the flags", quoted("-"+short))
		}
		var names []string
		f.VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
		name := unknown.GetSpecifiedName()
		if near, ok := cliutil.Nearest(name, names); ok {
			return usagef("unknown flag %s; did you mean --%s?", quoted("--"+name), near)
		}
		return usagef("unknown flag %s; mocker --help lists the flags", quoted("--"+name))
	case errors.As(err, &novalue):
		name := novalue.GetFlag().Name
		return usagef("--%s has no value; %s is accepted", name, accepts(novalue.GetFlag()))
	case errors.As(err, &invalid):
		return usagef("--%s is %s; %s is accepted", invalid.GetFlag().Name, quoted(invalid.GetValue()), accepts(invalid.GetFlag()))
	}
	return usagef("%s; mocker --help lists the flags", strings.ReplaceAll(err.Error(), "\n", " "))
}

func accepts(flag *pflag.Flag) string {
	if s, ok := flag.Value.(*spelling); ok {
		return s.value.accepts()
	}
	return "true or false"
}

// refuse names the first thing that is asked for and not built. What only a
// variable asks for is left alone where it means nothing here.
func (o *options) refuse() error {
	for _, t := range o.topics {
		for i := range t.table {
			s := &t.table[i]
			v := o.values[s.name]
			told := !o.given("http") && (s.told || s.field != "") // the frontend's business
			if s.later == "" || told || v.neutral() || !strings.HasPrefix(v.by, "--") {
				continue
			}
			accepted := "leave it out"
			if s.def != "" {
				accepted = s.def + " is accepted"
			}
			return usagef("%s is not built yet (%s); %s", v.by, s.later, accepted)
		}
	}
	if trace := os.Getenv("DYN_MOCKER_KV_CACHE_TRACE"); trace != "" {
		if b, err := truth(trace); err != nil || b {
			return usagef("DYN_MOCKER_KV_CACHE_TRACE is %s; traces of the KV cache are not built yet, leave it out", quoted(trace))
		}
	}
	if err := o.refuseOther(); err != nil {
		return err
	}
	if m := o.text("router-mode"); o.given("http") && m != "" && !slices.Contains(fleet.Modes(), m) {
		return usagef("%s %s is not built yet (the caller names a worker, or workers differ); %s is accepted", o.values["router-mode"].by, m, strings.Join(fleet.Modes(), " or "))
	}
	return nil
}

// refuseOther refuses what belongs to the other way of serving: by itself, or
// behind a frontend.
func (o *options) refuseOther() error {
	http := o.given("http")
	for _, t := range o.topics {
		for i := range t.table {
			s := &t.table[i]
			v := o.values[s.name]
			typed := v.given && strings.HasPrefix(v.by, "--")
			switch {
			case http && s.front && typed && !v.neutral():
				return usagef("%s is for workers behind a Dynamo frontend; with --http, leave it out", v.by)
			case !http && s.alone && typed:
				return usagef("%s is for --http; without it, leave it out", v.by)
			case !http && s.ready != nil && v.text != "" && !slices.Contains(s.ready, v.text):
				by := v.by
				if by == "" {
					by = "--" + s.name
				}
				way := ""
				if s.name == "discovery-backend" {
					way = "; or --http 127.0.0.1:8000 serves OpenAI's API without any frontend"
				}
				return usagef("%s %s is not built yet; --%s %s is accepted%s", by, v.text, s.name, strings.Join(s.ready, " or "), way)
			}
		}
	}
	if http {
		return nil
	}
	for _, s := range routerFlags() {
		if v := o.values[s.name]; v.given && strings.HasPrefix(v.by, "--") && o.text("router-mode") == "" {
			return usagef("%s is given without --router-mode, which tells the frontend of a router; both or neither are accepted", v.by)
		}
	}
	return nil
}
