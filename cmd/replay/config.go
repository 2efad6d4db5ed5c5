package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/dryserve/dryserve/host/native/cliutil"
	"github.com/dryserve/dryserve/host/native/scenario"
	"github.com/spf13/pflag"
)

// commandLineOnly are flags that no file has.
var commandLineOnly = map[string]bool{"help": true, "version": true, "config": true, "print-config": true}

// kindOf tells what a flag takes by the name its value has in the help.
func kindOf(f *pflag.Flag) scenario.Kind {
	switch kind, _ := pflag.UnquoteUsage(f); kind {
	case "path", "file":
		return scenario.Path
	case "json":
		return scenario.JSON
	}
	return scenario.Text
}

// readConfig sets the flags that the file of --config has and the command line
// does not.
func (o *options) readConfig(all *pflag.FlagSet) error {
	if o.config == "" {
		return usagef("--config is empty; a path is accepted")
	}
	file, err := scenario.Read(o.config, knownKeys(all))
	if err != nil {
		return err
	}
	for _, s := range file.Settings {
		if all.Changed(s.Name) {
			continue
		}
		if err := o.take(s); err != nil {
			return err
		}
	}
	if len(o.traces) == 0 {
		o.traces = file.Traces
	}
	return nil
}

// knownKeys are the flags that a file may have.
func knownKeys(all *pflag.FlagSet) scenario.Known {
	known := scenario.Known{Kind: func(name string) scenario.Kind { return kindOf(all.Lookup(name)) }}
	all.VisitAll(func(f *pflag.Flag) {
		if _, later := f.Value.(*laterValue); later {
			known.Silent = append(known.Silent, f.Name)
		} else if !commandLineOnly[f.Name] {
			known.Names = append(known.Names, f.Name)
		}
	})
	return known
}

// take sets a flag as the file says.
func (o *options) take(s scenario.Setting) error {
	if o.flags.Set(s.Name, s.Text) != nil {
		return fmt.Errorf("%s:%d: %s is %s; %s is accepted", o.config, s.Line, s.Name, cliutil.Quote(s.Text), accepts(o.flags.Lookup(s.Name)))
	}
	if o.origin == nil {
		o.origin = map[string]scenario.Setting{}
	}
	o.origin[s.Name] = s
	return nil
}

// locate lets a sentence about a flag begin with its place in the file of
// --config, if it stands there.
func (o *options) locate(err error) error {
	if err == nil || len(o.origin) == 0 {
		return err
	}
	text, about := strings.CutPrefix(err.Error(), "--")
	end := strings.IndexAny(text, ": ")
	if !about || end < 0 {
		return err
	}
	s, ok := o.origin[text[:end]]
	if !ok {
		return err
	}
	place := fmt.Sprintf("%s:%d: %s", o.config, s.Line, text)
	if rest := text[end:]; s.JSON { // mostly with a line of its own: ":7:5: " or ": line 7: "
		if line, ok := strings.CutPrefix(rest, ": line "); ok {
			rest = ":" + line
		}
		if len(rest) > 1 && rest[0] == ':' && rest[1]-'0' < 10 {
			place = o.config + rest
		}
	}
	if _, usage := err.(usageError); usage {
		return usageError{place}
	}
	return fmt.Errorf("%s", place)
}

// writeConfig writes the flags in effect as a file for --config. They are
// checked first.
func (o *options) writeConfig(w io.Writer) error {
	if _, _, err := o.configure(); err != nil {
		return o.locate(err)
	}
	dir, err := filepath.Abs(".")
	if err != nil {
		return err
	}
	var sections []scenario.Section
	for _, g := range o.groups {
		s := scenario.Section{Title: g.title}
		g.flags.VisitAll(func(f *pflag.Flag) {
			if !commandLineOnly[f.Name] && err == nil {
				var e scenario.Entry
				e, err = entryOf(f)
				s.Entries = append(s.Entries, e)
			}
		})
		sections = append(sections, s)
	}
	if err != nil {
		return err
	}
	return scenario.Write(w, "replay --config FILE runs this; what is commented out has its default.", dir, o.traces, sections)
}

// entryOf is a flag as it stands in a file. Text of JSON files stands in it, too.
func entryOf(f *pflag.Flag) (scenario.Entry, error) {
	e := scenario.Entry{Name: f.Name, Given: f.Changed, Text: f.DefValue, Kind: kindOf(f)}
	if policy := os.Getenv(policyVariable); f.Name == "router-policy-config" && !f.Changed && policy != "" {
		e.Given, e.Text = true, policy
		return e, nil
	}
	if !f.Changed {
		if strings.Contains(f.Usage, "(default:") {
			e.Text = "" // there is none that could be written
		}
		return e, nil
	}
	e.Text = f.Value.String()
	switch f.Value.(type) {
	case wholeValue, seedValue, realValue, toggleValue:
		e.Plain = true
	}
	if e.Kind == scenario.JSON {
		e.Inline = []byte(e.Text)
		if !scenario.IsJSON(e.Text) {
			var err error
			if e.Inline, err = os.ReadFile(e.Text); err != nil {
				return e, fmt.Errorf("--%s: cannot read %s: %w", f.Name, e.Text, cliutil.Reason(err))
			}
		}
	}
	return e, nil
}
