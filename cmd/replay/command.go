package main

import (
	"io"
	"os"
	"strings"

	"github.com/dryserve/dryserve/host/native/completion"
	"github.com/dryserve/dryserve/host/native/sweep"
	"github.com/spf13/pflag"
)

// subcommand is a word in front of the arguments that asks for something else
// than a replay. A trace of that name is written ./name.
type subcommand struct {
	name    string
	args    string   // what stands behind the flags, for the help
	summary string   // one line
	about   string   // paragraphs of its help, wrapped, with the exit status
	words   []string // the arguments, if they are one of these
	files   bool     // the arguments are paths
	flags   func(*settings) []group
	run     func(args []string, stdout results, stderr *os.File) int
}

// settings are the flags of all commands; each declares those it has.
type settings struct {
	options
	json      bool
	all       bool
	maxErrors int
	output    string
	jobs      int // of a sweep
	view      sweep.View
}

// commands lists them in the order of the help.
func commands() []subcommand {
	return []subcommand{
		{
			name: "diff", args: "A.json B.json", summary: "compare two reports", about: diffAbout, files: true,
			flags: diffFlags, run: runDiff,
		},
		{
			name: "sweep", args: "SCENARIO.yaml", summary: "run every combination of some settings and compare them (docs/sweep.md)", about: sweepAbout, files: true,
			flags: sweepFlags, run: runSweep,
		},
		{
			name: "validate", args: "TRACE...", summary: "check a trace and describe it", about: validateAbout, files: true,
			flags: validateFlags, run: runValidate,
		},
		{
			name: "convert", args: "TRACE... --output FILE", summary: "write a trace as Mooncake JSON lines", about: convertAbout, files: true,
			flags: convertFlags, run: runConvert,
		},
		{
			name: "completion", args: "bash|zsh|fish", summary: "print the completion script of a shell", about: completionAbout, words: completion.Shells,
			flags: helpOnly, run: runCompletion,
		},
		{
			name: "serve", summary: "replay what comes as frames on standard input (docs/serve.md)",
			run: func(args []string, stdout results, stderr *os.File) int {
				return serve(args, os.Stdin, stdout.w, stderr)
			},
		},
	}
}

func commandNamed(name string) subcommand {
	for _, c := range commands() {
		if c.name == name {
			return c
		}
	}
	return subcommand{}
}

// pick takes flags of the replay into a set of their own.
func pick(o *options, names ...string) *pflag.FlagSet {
	picked := newFlagSet()
	for _, g := range flagGroups(o) {
		for _, name := range names {
			if f := g.flags.Lookup(name); f != nil {
				picked.AddFlag(f)
			}
		}
	}
	return picked
}

// readingFlags are those that say how a trace is read.
func readingFlags(s *settings) *pflag.FlagSet {
	return pick(&s.options, "trace-format", "trace-block-size", "weka-nested-timestamp-basis", "trace-shared-prefix-ratio", "trace-num-prefix-groups")
}

// helpOnly is for commands without flags of their own.
func helpOnly(s *settings) []group {
	return []group{{"This program", pick(&s.options, "help")}}
}

// parse reads the arguments of the command. done: they asked for help, which is
// printed, or err is about them.
func (c subcommand) parse(args []string, stdout io.Writer) (s *settings, done bool, err error) {
	s = &settings{}
	all := newFlagSet()
	groups := c.flags(s)
	for _, g := range groups {
		all.AddFlagSet(g.flags)
	}
	if err := all.Parse(args); err != nil {
		return nil, true, parseError(all, err, c.name)
	}
	s.traces, s.given = all.Args(), all.Changed
	if s.help {
		return nil, true, c.printHelp(stdout, groups)
	}
	return s, false, nil
}

func (c subcommand) printHelp(w io.Writer, groups []group) error {
	var b strings.Builder
	b.WriteString("Usage: replay " + c.name + " [flags] " + c.args + "\n\n" + c.about)
	for _, g := range groups {
		b.WriteString("\n" + g.title + ":\n" + g.flags.FlagUsagesWrapped(helpWidth))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
