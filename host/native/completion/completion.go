// Package completion writes the scripts by which shells complete the arguments
// of a program with commands and GNU-style flags.
//
// It owns the scripts. It does not know any flag: the program describes its
// own. A script is complete in itself; it never runs the program.
package completion

import (
	"io"
	"strings"
)

// Flag is a flag, without its dashes.
type Flag struct {
	Name  string
	Help  string   // one line
	Value bool     // it takes a value
	Words []string // the values it takes, if they are few
	Files bool     // its value is a path
}

// Command is a program, or a command of one.
type Command struct {
	Name  string
	Help  string
	Flags []Flag
	Words []string // what stands behind the flags, if it is one of a few words
	Files bool     // or paths
}

// Shells are the shells there are scripts for.
var Shells = []string{"bash", "zsh", "fish"}

// Write writes the script of a shell for the program and its commands; false:
// there is none for it.
func Write(w io.Writer, shell string, program Command, commands []Command) (known bool, err error) {
	var text string
	switch shell {
	case "bash":
		text = bash(program, commands)
	case "zsh":
		text = zsh(program, commands)
	case "fish":
		text = fish(program, commands)
	default:
		return false, nil
	}
	_, err = io.WriteString(w, text)
	return true, err
}

// names lists the commands.
func names(commands []Command) []string {
	var list []string
	for _, c := range commands {
		list = append(list, c.Name)
	}
	return list
}

// quoted is a word for any of the shells: none of them reads anything between
// single quotes.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// bash gives every flag of every command a case of its own.
func bash(program Command, commands []Command) string {
	var b strings.Builder
	name := program.Name
	b.WriteString("# Completion for bash. Load it with: source <(" + name + " completion bash)\n" +
		"_" + name + `() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev= command= flag=
    COMPREPLY=()
    (( COMP_CWORD > 0 )) && prev=${COMP_WORDS[COMP_CWORD-1]}
    if (( COMP_CWORD > 1 )); then
        case ${COMP_WORDS[1]} in
        ` + strings.Join(names(commands), "|") + `) command=${COMP_WORDS[1]} ;;
        esac
    fi
    if [[ $cur == = ]]; then # --flag=
        flag=$prev cur=
    elif [[ $prev == = ]]; then # --flag=value
        flag=${COMP_WORDS[COMP_CWORD-2]}
    elif [[ $prev == --* ]]; then
        flag=$prev
    fi
    case $command:$flag in
`)
	for _, c := range append([]Command{{Flags: program.Flags}}, commands...) {
		b.WriteString(bashValues(name, c))
	}
	b.WriteString("    esac\n    case $command in\n")
	for _, c := range append([]Command{{Flags: program.Flags, Words: names(commands), Files: program.Files}}, commands...) {
		b.WriteString(bashWords(name, c))
	}
	b.WriteString("    esac\n}\n_" + name + `_words() {
    local word
    while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W "$1" -- "$cur")
}
_` + name + `_files() {
    local word
    compopt -o filenames 2>/dev/null
    while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$cur")
}
complete -F _` + name + " " + name + "\n")
	return b.String()
}

// bashValues completes the values of a command's flags.
func bashValues(program string, c Command) string {
	var b strings.Builder
	for _, f := range c.Flags {
		if !f.Value {
			continue
		}
		does := ""
		switch {
		case len(f.Words) > 0:
			does = " _" + program + "_words " + quoted(strings.Join(f.Words, " ")) + ";"
		case f.Files:
			does = " _" + program + "_files;"
		}
		b.WriteString("    " + c.Name + ":--" + f.Name + ")" + does + " return ;;\n")
	}
	return b.String()
}

// bashWords completes what is no value of a flag. The program itself has no
// name here; its words are only the first ones.
func bashWords(program string, c Command) string {
	var b strings.Builder
	name, first := c.Name, ""
	if name == "" {
		name, first = `""`, "(( COMP_CWORD == 1 )) && "
	}
	b.WriteString("    " + name + ")\n        if [[ $cur == -* ]]; then\n            _" + program + "_words " + quoted(flagWords(c.Flags)) + "\n        else\n            :\n")
	if c.Files {
		b.WriteString("            _" + program + "_files\n")
	}
	if len(c.Words) > 0 {
		b.WriteString("            " + first + "_" + program + "_words " + quoted(strings.Join(c.Words, " ")) + "\n")
	}
	b.WriteString("        fi ;;\n")
	return b.String()
}

func flagWords(flags []Flag) string {
	var words []string
	for _, f := range flags {
		words = append(words, "--"+f.Name)
	}
	return strings.Join(words, " ")
}

// zsh describes the flags to _arguments.
func zsh(program Command, commands []Command) string {
	var b strings.Builder
	name := program.Name
	b.WriteString("#compdef " + name + "\n# Completion for zsh. Load it with: source <(" + name + " completion zsh)\n_" + name + `() {
    local -a commands arguments
    commands=(
`)
	for _, c := range commands {
		b.WriteString("        " + quoted(c.Name+":"+c.Help) + "\n")
	}
	b.WriteString("    )\n    if (( CURRENT > 2 )); then\n        case $words[2] in\n")
	for _, c := range commands {
		b.WriteString("        " + c.Name + ")\n            arguments=(\n" + zshFlags(c.Flags, "                "))
		switch {
		case len(c.Words) > 0:
			b.WriteString("                " + quoted("*: :("+strings.Join(c.Words, " ")+")") + "\n")
		case c.Files:
			b.WriteString("                '*: :_files'\n")
		}
		b.WriteString("            )\n            shift words\n            (( CURRENT-- ))\n            _arguments $arguments\n            return ;;\n")
	}
	b.WriteString("        esac\n    fi\n    (( CURRENT == 2 )) && _describe command commands\n    arguments=(\n" +
		zshFlags(program.Flags, "        ") + "        '*: :_files'\n    )\n    _arguments $arguments\n}\ncompdef _" + name + " " + name + "\n")
	return b.String()
}

func zshFlags(flags []Flag, indent string) string {
	var b strings.Builder
	escape := strings.NewReplacer("[", `\[`, "]", `\]`, ":", `\:`)
	for _, f := range flags {
		text := "--" + f.Name
		if f.Value {
			text += "="
		}
		text += "[" + escape.Replace(f.Help) + "]"
		switch {
		case len(f.Words) > 0:
			text += ": :(" + strings.Join(f.Words, " ") + ")"
		case f.Files:
			text += ": :_files"
		case f.Value:
			text += ": : "
		}
		b.WriteString(indent + quoted(text) + "\n")
	}
	return b.String()
}

// fish has a line for every flag.
func fish(program Command, commands []Command) string {
	var b strings.Builder
	name := program.Name
	list := strings.Join(names(commands), " ")
	b.WriteString("# Completion for fish. Load it with: " + name + " completion fish | source\n")
	for _, c := range commands {
		b.WriteString("complete -c " + name + " -n __fish_use_subcommand -a " + c.Name + " -d " + fishQuoted(c.Help) + "\n")
	}
	for _, c := range append([]Command{program}, commands...) {
		when := "not __fish_seen_subcommand_from " + list
		if c.Name != name {
			when = "__fish_seen_subcommand_from " + c.Name
			if !c.Files {
				b.WriteString("complete -c " + name + " -n " + fishQuoted(when) + " -f\n")
			}
		}
		if c.Name != name && len(c.Words) > 0 {
			b.WriteString("complete -c " + name + " -n " + fishQuoted(when) + " -a " + fishQuoted(strings.Join(c.Words, " ")) + "\n")
		}
		for _, f := range c.Flags {
			line := "complete -c " + name + " -n " + fishQuoted(when) + " -l " + f.Name + " -d " + fishQuoted(f.Help)
			switch {
			case len(f.Words) > 0:
				line += " -x -a " + fishQuoted(strings.Join(f.Words, " "))
			case f.Files:
				line += " -r -F"
			case f.Value:
				line += " -x"
			}
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// fishQuoted is a word of fish, which knows two escapes between single quotes.
func fishQuoted(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
}
