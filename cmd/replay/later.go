package main

import (
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// laterFlag is a flag of the reference whose feature is not built yet. It is
// known, so that it is refused by name instead of being called unknown, and
// accepted with its default, which asks for nothing.
type laterFlag struct {
	feature string
	names   []string // "name" or "name=default"; true and false make a switch
}

// laterFlags are all flags of the reference's command line (replay notes
// §1.1) and all parameters of its Python functions (§2, dashed) that do
// nothing here so far.
var laterFlags = []laterFlag{
	{feature: "scaling by a planner", names: []string{"planner-config", "benchmark-granularity=8", "scaling-policy", "capture-planner-details=true", "performance-model-metadata"}},
	{feature: "telemetry told to a function", names: []string{"telemetry-options", "telemetry-callback"}},
	{feature: "returning requests (--report-jsonl writes them)", names: []string{"capture-per-request=false"}},
}

// renamed are parameters of the reference's functions that have another name
// on the command line.
var renamed = map[string]string{
	"report-jsonl-path": "--report-jsonl",
	"aic-perf-config":   "--ais-perf-config",
	"trace-files":       "TRACE without a flag",
}

// laterValue takes any text and remembers whether it asks for something.
type laterValue struct {
	def string
	set bool
}

func (v *laterValue) Set(s string) error {
	v.set = !v.neutral(s)
	return nil
}

// neutral reports whether s is the default in some spelling.
func (v *laterValue) neutral(s string) bool {
	if v.isSwitch() {
		yes, err := strconv.ParseBool(s)
		return err == nil && strconv.FormatBool(yes) == v.def
	}
	a, errA := strconv.ParseFloat(s, 64)
	b, errB := strconv.ParseFloat(v.def, 64)
	return errA == nil && errB == nil && a == b
}

func (v *laterValue) isSwitch() bool { return v.def == "true" || v.def == "false" }

func (v *laterValue) String() string { return v.def }
func (v *laterValue) Type() string   { return "value" }

// declareLater adds the flags that are refused, hidden from the help's groups.
func declareLater(f *pflag.FlagSet) {
	for _, l := range laterFlags {
		for _, n := range l.names {
			name, def, _ := strings.Cut(n, "=")
			v := &laterValue{def: def}
			flag := f.VarPF(v, name, "", "")
			if v.isSwitch() {
				flag.NoOptDefVal = "true"
			}
		}
	}
	for name := range renamed {
		f.Var(&laterValue{}, name, "")
	}
}

// laterAsked is the sentence for the first flag of the table that asks for
// something, "" if none does.
func laterAsked(f *pflag.FlagSet) string {
	for _, l := range laterFlags {
		for _, n := range l.names {
			name, def, _ := strings.Cut(n, "=")
			if v := f.Lookup(name).Value.(*laterValue); v.set {
				accepted := "leave it out"
				if def != "" {
					accepted = def + " is accepted"
				}
				return "--" + name + " is not built yet (" + l.feature + "); " + accepted
			}
		}
	}
	for _, name := range []string{"report-jsonl-path", "aic-perf-config", "trace-files"} {
		if f.Lookup(name).Value.(*laterValue).set {
			return "--" + name + " is a parameter of the reference's functions; " + renamed[name] + " is accepted"
		}
	}
	return ""
}
