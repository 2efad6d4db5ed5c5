package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dryserve/dryserve/host/native/cliutil"
	"github.com/dryserve/dryserve/host/native/tracefile"
	"github.com/spf13/pflag"
)

// usageError is a command line that cannot be understood or asks for what is
// not built: exit status 2. Any other error has status 1.
type usageError struct{ sentence string }

func (e usageError) Error() string { return e.sentence }

func usagef(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }

// parse reads the command line in the reference's order of complaints: what
// cannot be parsed, what is not built, then the number of traces.
func parse(args []string) (*options, error) {
	o, all := newOptions()
	args, err := cliutil.Lengthen(all, args, func(string) bool { return true })
	if err != nil {
		return nil, usageError{err.Error()}
	}
	if err := all.Parse(args); err != nil {
		return nil, parseError(all, err, "")
	}
	o.traces = all.Args()
	if o.help || o.version {
		return o, nil
	}
	if o.given("config") {
		if err := o.readConfig(all); err != nil {
			return nil, err
		}
	}
	return o, o.locate(o.check(all))
}

// newOptions are options with their defaults, and the flags that set them.
func newOptions() (*options, *pflag.FlagSet) {
	o, all := &options{}, newFlagSet()
	o.groups = flagGroups(o)
	for _, g := range o.groups {
		all.AddFlagSet(g.flags)
	}
	declareLater(all)
	all.SetNormalizeFunc(older)
	o.given, o.flags = all.Changed, all
	return o, all
}

// check refuses flags that do not go together and what is not built.
func (o *options) check(all *pflag.FlagSet) error {
	if sentence := laterAsked(all); sentence != "" {
		return usageError{sentence}
	}
	return o.checkSource()
}

func quoteAll(words []string) string {
	const most = 4
	quoted := make([]string, 0, most+1)
	for i, w := range words {
		if i == most {
			quoted = append(quoted, "...")
			break
		}
		quoted = append(quoted, cliutil.Quote(w))
	}
	return strings.Join(quoted, ", ")
}

// parseError rewords pflag's errors: what was found, what is accepted. The
// command is "" for a replay.
func parseError(f *pflag.FlagSet, err error, command string) error {
	help := strings.Replace("replay "+command+" --help", "  ", " ", 1) + " lists the flags"
	var unknown *pflag.NotExistError
	var novalue *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		return unknownFlag(f, unknown, help)
	case errors.As(err, &novalue):
		return usagef("--%s has no value; %s is accepted", novalue.GetFlag().Name, accepts(novalue.GetFlag()))
	case errors.As(err, &invalid):
		flag := invalid.GetFlag()
		return usagef("--%s is %s; %s is accepted", flag.Name, cliutil.Quote(invalid.GetValue()), accepts(flag))
	}
	return usagef("%s; %s", strings.ReplaceAll(err.Error(), "\n", " "), help)
}

func unknownFlag(f *pflag.FlagSet, e *pflag.NotExistError, help string) error {
	if short := e.GetSpecifiedShortnames(); short != "" {
		return usagef("unknown flag %s; %s", cliutil.Quote("-"+short), help)
	}
	var names []string
	f.VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	name := e.GetSpecifiedName()
	if near, ok := cliutil.Nearest(name, names); ok {
		return usagef("unknown flag %s; did you mean --%s?", cliutil.Quote("--"+name), near)
	}
	return usagef("unknown flag %s; %s", cliutil.Quote("--"+name), help)
}

// accepts says what a flag takes.
func accepts(flag *pflag.Flag) string {
	switch v := flag.Value.(type) {
	case wholeValue:
		return "a whole number"
	case seedValue:
		return "a whole number from 0 to 18446744073709551615"
	case realValue:
		return "a number"
	case formatValue:
		return strings.Join(tracefile.Formats(), " or ")
	case choiceValue:
		return strings.Join(v.choice, " or ")
	case toggleValue:
		return "true or false"
	}
	if what, _ := pflag.UnquoteUsage(flag); what != "" {
		return "a " + what
	}
	return "a value"
}
