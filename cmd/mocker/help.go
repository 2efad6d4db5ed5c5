package main

import (
	"io"
	"strings"
)

const helpHead = `Usage: mocker --http ADDRESS [flags]
       mocker --discovery-backend file [flags]

Serves simulated inference engines as time passes, without a GPU and without a
model: answers are made up, but they come when those of a real fleet would.
Engines behave as those of ` + reference + `. With --http it serves by itself, else
as workers behind python -m dynamo.frontend.
`

const helpTail = `
Flags of the reference that are not built yet are refused by name. A variable in
brackets stands in for its flag. Exit status: 0 served until a signal, 1 a
failure, 2 the command line is wrong or asks for what is not built yet.

Examples:
  mocker --http 127.0.0.1:8000
  mocker --http :8000 --num-workers 4 --router-mode kv --block-size 16
  mocker --http :8000 --model-path ./Qwen3-0.6B --speedup-ratio 10
  mocker --discovery-backend file --model-path ./Qwen3-0.6B --num-workers 4
  mocker --http :8000 --fault-error-rate 0.05 --fault-stall-rate 0.01 --fault-seed 7
`

// wrapAt is the widest line of the help.
const wrapAt = 100

// column is where descriptions begin.
const column = 8

// printHelp writes the flags by topic, then the names that are refused.
func printHelp(w io.Writer) error {
	var b strings.Builder
	b.WriteString(helpHead)
	var later []string
	for _, t := range topics() {
		var lines []string
		for i := range t.table {
			s := &t.table[i]
			if s.later != "" {
				later = append(later, "--"+s.name)
				continue
			}
			lines = append(lines, s.help())
		}
		if len(lines) > 0 {
			b.WriteString("\n" + t.title + ":\n" + strings.Join(lines, ""))
		}
	}
	b.WriteString("\nVariables without a flag, for workers behind a frontend:\n")
	for _, v := range variables() {
		b.WriteString(v.help())
	}
	b.WriteString("\nNot built yet (accepted only with their defaults):\n")
	line := " "
	for _, name := range later {
		if len(line)+len(name) >= wrapAt {
			b.WriteString(line + "\n")
			line = " "
		}
		line += " " + name
	}
	b.WriteString(line + "\n" + helpTail)
	_, err := io.WriteString(w, b.String())
	return err
}

// help is the text of one flag.
func (s *spec) help() string {
	head := "  --" + s.name
	if s.kind == toggle {
		head = "  --[no-]" + s.name
	}
	for _, a := range append(s.aliases, s.legacy) {
		if a != "" {
			head += ", --" + a
		}
	}
	if s.arg != "" {
		head += " " + s.arg
	}
	text := s.usage
	if s.def != "" {
		text += " (default " + s.def + ")"
	}
	if s.env != "" {
		text += " [" + s.env + "]"
	}
	return head + "\n" + wrap(strings.Repeat(" ", column), text)
}
