package main

import (
	"os"
	"slices"
	"strings"

	"github.com/dryserve/dryserve/host/native/cliutil"
	"github.com/dryserve/dryserve/host/native/completion"
	"github.com/dryserve/dryserve/host/native/tracefile"
	"github.com/spf13/pflag"
)

const completionAbout = `Prints the script by which a shell completes commands, flags, their words and
files. To load it now and with every shell to come:
  bash  source <(replay completion bash)       in ~/.bashrc
  zsh   source <(replay completion zsh)        in ~/.zshrc, after compinit
  fish  replay completion fish | source        in ~/.config/fish/config.fish

Exit status: 0, or 2 if the command line is wrong.
`

func runCompletion(args []string, stdout results, stderr *os.File) int {
	s, done, err := commandNamed("completion").parse(args, stdout)
	if done {
		return conclude(err, stderr)
	}
	accepted := strings.Join(completion.Shells, " or ")
	switch {
	case len(s.traces) == 0:
		return conclude(usagef("no shell is given; %s is accepted", accepted), stderr)
	case len(s.traces) > 1 || !slices.Contains(completion.Shells, s.traces[0]):
		return conclude(usagef("the shell is %s; %s is accepted", cliutil.Quote(strings.Join(s.traces, " ")), accepted), stderr)
	}
	program := completion.Command{Name: "replay", Files: true, Flags: completed(flagGroups(&options{}))}
	var list []completion.Command
	for _, c := range commands() {
		described := completion.Command{Name: c.name, Help: c.summary, Words: c.words, Files: c.files}
		if c.flags != nil {
			described.Flags = completed(c.flags(&settings{}))
		}
		list = append(list, described)
	}
	_, err = completion.Write(stdout, s.traces[0], program, list)
	return conclude(err, stderr)
}

// completed describes flags to the shells.
func completed(groups []group) []completion.Flag {
	var flags []completion.Flag
	for _, g := range groups {
		g.flags.VisitAll(func(f *pflag.Flag) {
			kind, usage := pflag.UnquoteUsage(f)
			usage, _, _ = strings.Cut(usage, "\n")
			c := completion.Flag{Name: f.Name, Help: usage, Value: f.NoOptDefVal == ""}
			switch v := f.Value.(type) {
			case choiceValue:
				c.Words = v.choice
			case formatValue:
				c.Words = tracefile.Formats()
			default:
				c.Files = c.Value && (kind == "path" || kind == "file" || kind == "json")
			}
			flags = append(flags, c)
		})
	}
	return flags
}
