package tidy

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// clean is a small tree that keeps every law. Each test below breaks one
// thing in it.
var clean = map[string]string{
	"go.mod": "module example.com/m\n\ngo 1.26.0\n",
	"core/config/config.go": `// Package config is a core package.
package config

import "math"

// Whole is an exact function.
func Whole(x float64) float64 { return math.Floor(x) }

var table = [...]float64{1, 2, 3}

// Look reads the table.
func Look(i int) float64 { return table[i] }
`,
	"core/timing/timing.go": `// Package timing is a higher core package.
package timing

import "example.com/m/core/config"

// Sum adds a product that may not be fused.
func Sum(a, b, c float64) float64 { return float64(a*b) + config.Whole(c) }
`,
	"host/native/files.go": `// Package native is a host.
package native

import (
	"os"

	"example.com/m/core/timing"
)

// Read uses both.
func Read() (float64, error) {
	_, err := os.ReadFile("x")
	return timing.Sum(1, 2, 3), err
}
`,
	"cmd/tool/main.go": `// Command tool is a command.
package main

import (
	"fmt"

	"example.com/m/host/native"
)

func main() { fmt.Println(native.Read()) }
`,
}

// tree writes the clean tree with changes; an empty text removes a file.
func tree(t *testing.T, changes map[string]string) *Repo {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{}
	for _, set := range []map[string]string{clean, changes} {
		for name, text := range set {
			files[name] = text
		}
	}
	for name, text := range files {
		if text == "" {
			continue
		}
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCleanTreeKeepsEveryLaw(t *testing.T) {
	r := tree(t, nil)
	for _, law := range laws(r) {
		if law.name == "sizes" { // with the exceptions of this tree, not of ours
			law.check = func() ([]string, error) { return r.Sizes(nil) }
		}
		found, err := law.check()
		if err != nil {
			t.Errorf("%s: %v", law.name, err)
		}
		for _, finding := range found {
			t.Errorf("%s: %s", law.name, finding)
		}
	}
}

// corePlus is the clean lowest core package with more text at its end.
func corePlus(text string) map[string]string {
	return map[string]string{"core/config/config.go": clean["core/config/config.go"] + text}
}

func TestEveryLawCanFail(t *testing.T) {
	long := func(lines int) string { return strings.Repeat("\t_ = 0\n", lines-2) }
	for _, c := range []struct {
		name, law string
		changes   map[string]string
		want      string // in one of the findings
	}{
		{"core reads a clock", "imports",
			map[string]string{"core/config/clock.go": "package config\n\nimport _ \"time\"\n"}, "core/config imports time"},
		{"core uses a host", "imports",
			map[string]string{"core/config/up.go": "package config\n\nimport _ \"example.com/m/host/native\"\n", "host/native/files.go": "// Package native is a host.\npackage native\n"}, "knows nothing above it"},
		{"core turns upwards", "imports",
			map[string]string{"core/config/up.go": "package config\n\nimport _ \"example.com/m/core/timing\"\n", "core/timing/timing.go": "// Package timing is empty.\npackage timing\n"}, "may use only lower layers"},
		{"core package without a layer", "imports",
			map[string]string{"core/odd/odd.go": "// Package odd is new.\npackage odd\n\nimport _ \"example.com/m/core/config\"\n"}, "core/odd has no layer"},
		{"host uses a test tool", "imports",
			map[string]string{"internal/x/x.go": "// Package x is a tool.\npackage x\n", "host/native/y.go": "package native\n\nimport _ \"example.com/m/internal/x\"\n"}, "host may use only"},
		{"replaced module", "direct modules",
			map[string]string{"go.mod": clean["go.mod"] + "\nreplace example.com/x => ./core\n"}, "go.mod: replaces example.com/x"},
		{"new dependency", "direct modules",
			map[string]string{"go.mod": clean["go.mod"] + "\nrequire example.com/x v1.0.0\n"}, "go.mod: requires example.com/x"},
		{"inexact function", "exact math",
			map[string]string{"core/config/exp.go": "package config\n\nimport m \"math\"\n\n// E is inexact.\nvar _ = m.Exp(1)\n"}, "math.Exp"},
		{"goroutine", "core syntax", corePlus("\nfunc f() { go f() }\n"), "goroutines"},
		{"channel", "core syntax", corePlus("\nfunc f(c chan int) {}\n"), "channels"},
		{"select", "core syntax", corePlus("\nfunc f() { select {} }\n"), "select"},
		{"defer", "core syntax", corePlus("\nfunc f() { defer f() }\n"), "defer"},
		{"recover", "core syntax", corePlus("\nfunc f() { recover() }\n"), "recover"},
		{"init", "core syntax", corePlus("\nfunc init() {}\n"), "init functions"},
		{"map order", "core syntax", corePlus("\ntype set map[int]bool\n\nfunc f(s set) {\n\tfor range s {\n\t}\n}\n"), "range over a map"},
		{"global state", "core syntax", corePlus("\nvar cache []int\n"), "cache is one"},
		{"exported variable", "core syntax", corePlus("\n// Limit is a variable.\nvar Limit = 3\n"), "Limit is one"},
		{"table written", "core syntax", corePlus("\nfunc f() { table[1] = 5 }\n"), "table is written to"},
		{"table counted up", "core syntax", corePlus("\nfunc f() { table[1]++ }\n"), "table is written to"},
		{"table sliced", "core syntax", corePlus("\nfunc f() []float64 { return table[:] }\n"), "sliced"},
		{"table's address", "core syntax", corePlus("\nfunc f() *float64 { return &table[0] }\n"), "its address taken"},
		{"table's method", "core syntax", corePlus("\ntype n int\n\nfunc (x *n) up() { *x++ }\n\nvar count n\n\nfunc f() { count.up() }\n"), "the table count"},
		{"fused sum", "floats", corePlus("\n// Fma is fused.\nfunc Fma(a, b, c float64) float64 { return a*b + c }\n"), "FMADD"},
		{"fused sum across statements", "floats", corePlus("\n// Fms is fused.\nfunc Fms(a, b, c float64) float64 {\n\tp := a * b\n\treturn c - p\n}\n"), "SUB"},
		{"long file", "sizes",
			map[string]string{"web/long.js": strings.Repeat("x\n", maxFileLines+1)}, "web/long.js: has 601 lines"},
		{"long function", "sizes",
			corePlus("\nfunc f() {\n" + long(maxFuncLines+1) + "}\n"), "f has 71 lines"},
		{"long method", "sizes",
			corePlus("\ntype T int\n\nfunc (t *T) f() {\n" + long(maxFuncLines+1) + "}\n"), "T.f has 71 lines"},
		{"no package comment", "package comments",
			map[string]string{"core/config/config.go": strings.TrimPrefix(clean["core/config/config.go"], "// Package config is a core package.\n")}, "core/config: the package has no comment"},
		{"comment of another package", "package comments",
			map[string]string{"cmd/tool/main.go": strings.Replace(clean["cmd/tool/main.go"], "Command tool", "Package tool", 1)}, "cmd/tool"},
		{"machine path", "text",
			map[string]string{"README.md": "fine\nsee /" + "home/user/notes\n"}, "README.md:2: names a path"},
		{"big file", "text",
			map[string]string{"big.bin": strings.Repeat("\x00", maxFileBytes+1)}, "big.bin: has"},
		{"unformatted", "text", corePlus("\nfunc  f() {}\n"), "not as gofmt writes it"},
		{"vet", "vet",
			map[string]string{"cmd/tool/bad.go": "package main\n\nimport \"fmt\"\n\nfunc bad() { fmt.Printf(\"%d\\n\", \"x\") }\n"}, "Printf"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := tree(t, c.changes)
			i := slices.IndexFunc(laws(r), func(l law) bool { return l.name == c.law })
			if i < 0 {
				t.Fatalf("there is no law %q", c.law)
			}
			found, err := laws(r)[i].check()
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(found, func(f string) bool { return strings.Contains(f, c.want) }) {
				t.Errorf("want a finding with %q, got %q", c.want, found)
			}
		})
	}
}

// A fused instruction must be found on both kinds of target.
func TestFusedInstructionsOfEveryTarget(t *testing.T) {
	r := tree(t, corePlus("\n// Fma is fused.\nfunc Fma(a, b, c float64) float64 { return a*b + c }\n"))
	found, err := r.Floats()
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range fusedTargets {
		if !slices.ContainsFunc(found, func(f string) bool { return strings.Contains(f, " on "+target.name) }) {
			t.Errorf("nothing found on %s: %q", target.name, found)
		}
	}
}

// The module behind a core import is checked even where the import itself is
// allowed.
func TestCoreModulesCanFail(t *testing.T) {
	r := tree(t, map[string]string{
		"core/config/x.go": "package config\n\nimport _ \"example.com/x\"\n",
		"go.mod":           clean["go.mod"] + "\nrequire example.com/x v1.0.0\n\nreplace example.com/x => ./x\n",
		"x/go.mod":         "module example.com/x\n",
		"x/x.go":           "package x\n",
	})
	found, err := r.CoreModules()
	if err != nil {
		t.Fatal(err)
	}
	if want := "depends on module example.com/x"; len(found) != 1 || !strings.Contains(found[0], want) {
		t.Errorf("want one finding with %q, got %q", want, found)
	}
}

// An exception must carry a reason and be needed.
func TestExceptions(t *testing.T) {
	body := "\nfunc f() {\n" + strings.Repeat("\t_ = 0\n", maxFuncLines) + "}\n"
	r := tree(t, corePlus(body))
	name := "core/config/config.go:f"
	for _, c := range []struct {
		exceptions map[string]string
		findings   int
	}{
		{map[string]string{name: "one switch over all events"}, 0},
		{map[string]string{name: ""}, 1},
		{map[string]string{name: "a reason", "core/config/config.go:Whole": "not needed"}, 1},
	} {
		found, err := r.Sizes(c.exceptions)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) != c.findings {
			t.Errorf("%v gives %d findings, want %d: %q", c.exceptions, len(found), c.findings, found)
		}
	}
}

// Generated files have no limit.
func TestGeneratedFilesAreExempt(t *testing.T) {
	text := "// Code generated by a test. DO NOT EDIT.\n\npackage config\n\nfunc f() {\n" +
		strings.Repeat("\t_ = 0\n", maxFileLines+1) + "}\n"
	found, err := tree(t, map[string]string{"core/config/big.go": text}).Sizes(nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 0 {
		t.Errorf("findings in a generated file: %q", found)
	}
}

// In a work tree git decides what belongs to the tree.
func TestGitListsTheTree(t *testing.T) {
	r := tree(t, map[string]string{".gitignore": "ignored.txt\n", "ignored.txt": "x\n", "new.txt": "x\n"})
	if out, err := r.run("git", "init", "-q"); err != nil {
		t.Fatal(out, err)
	}
	names, err := r.list()
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(names, "ignored.txt") || !slices.Contains(names, "new.txt") || !slices.Contains(names, "go.mod") {
		t.Errorf("the tree is %s", fmt.Sprint(names))
	}
}
