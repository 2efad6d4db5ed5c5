package completion

import (
	"strings"
	"testing"
)

var program = Command{Name: "tool", Files: true, Flags: []Flag{
	{Name: "kind", Help: "one's [kind]: a or b", Value: true, Words: []string{"a", "b"}},
	{Name: "out", Help: "write to `path`", Value: true, Files: true},
	{Name: "n", Help: "how many", Value: true},
	{Name: "loud", Help: `no \ more`},
}}

var commands = []Command{{Name: "list", Help: "list what's there", Words: []string{"x", "y"}, Flags: []Flag{{Name: "all", Help: "all"}}}}

// Each script has every flag, with its help quoted for its shell.
func TestScripts(t *testing.T) {
	for shell, want := range map[string][]string{
		"bash": {
			"source <(tool completion bash)", "    :--kind) _tool_words 'a b'; return ;;\n", "    :--out) _tool_files; return ;;\n", "    :--n) return ;;\n",
			"_tool_words '--kind --out --n --loud'\n", "(( COMP_CWORD == 1 )) && _tool_words 'list'\n", "_tool_words '--all'\n", "_tool_words 'x y'\n",
			"complete -F _tool tool\n",
		},
		"zsh": {
			"#compdef tool\n", `'--kind=[one'\''s \[kind\]\: a or b]: :(a b)'`, "'--out=[write to `path`]: :_files'", "'--n=[how many]: : '", `'--loud[no \ more]'`,
			`'list:list what'\''s there'`, "'*: :(x y)'",
		},
		"fish": {
			`-l kind -d 'one\'s [kind]: a or b' -x -a 'a b'`, "-l out -d 'write to `path`' -r -F", "-l n -d 'how many' -x", `-l loud -d 'no \\ more'`,
			`-a list -d 'list what\'s there'`, "-n '__fish_seen_subcommand_from list' -a 'x y'", "-n '__fish_seen_subcommand_from list' -l all -d 'all'",
		},
	} {
		var b strings.Builder
		if known, err := Write(&b, shell, program, commands); !known || err != nil {
			t.Fatal(shell, known, err)
		}
		for _, w := range want {
			if !strings.Contains(b.String(), w) {
				t.Errorf("%s: no %s in\n%s", shell, w, b.String())
			}
		}
	}
	if known, err := Write(&strings.Builder{}, "csh", program, commands); known || err != nil {
		t.Errorf("csh: %v, %v", known, err)
	}
}
