// Package tidy checks the written laws of this repository: who may import
// whom, what the core's source may contain, how long files and functions may
// be, which floating-point instructions the compiler may emit, and what text
// must not be in the tree.
//
// It owns the laws as code, one file per law, and their exceptions with the
// reason for each (exceptions.go). It does not own style that gofmt or vet
// already decide; it only runs them.
//
// Invariants: a check never changes the tree; each returns its findings as
// sentences that begin with a place, and an empty list means the law holds;
// each has a test on a small broken tree that proves it can fail.
package tidy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Repo is a tree under inspection.
type Repo struct {
	Dir    string // root of the Go module
	Module string // module path

	files []string // slash-separated, relative to Dir, sorted
	goSrc []*goFile
	fset  *token.FileSet
}

// goFile is one parsed Go file.
type goFile struct {
	path   string
	text   []byte
	syntax *ast.File
}

func (f *goFile) test() bool      { return strings.HasSuffix(f.path, "_test.go") }
func (f *goFile) generated() bool { return ast.IsGenerated(f.syntax) }
func (f *goFile) dir() string     { return path.Dir(f.path) }

// Open lists and parses the tree below dir: what git tracks or would add, or
// everything if dir is not in a git work tree.
func Open(dir string) (*Repo, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	r := &Repo{Dir: dir, fset: token.NewFileSet()}
	module, err := r.run("go", "list", "-m")
	if err != nil {
		return nil, err
	}
	r.Module = strings.TrimSpace(module)
	if r.files, err = r.list(); err != nil {
		return nil, err
	}
	for _, name := range r.files {
		if !strings.HasSuffix(name, ".go") || slices.Contains(strings.Split(name, "/"), "testdata") {
			continue
		}
		text, err := os.ReadFile(r.abs(name))
		if err != nil {
			return nil, err
		}
		syntax, err := parser.ParseFile(r.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		r.goSrc = append(r.goSrc, &goFile{name, text, syntax})
	}
	return r, nil
}

func (r *Repo) abs(name string) string { return filepath.Join(r.Dir, filepath.FromSlash(name)) }

// list names the files of the tree. The walk itself is done in any case: it
// is what lets go test notice that a cached result is out of date.
func (r *Repo) list() ([]string, error) {
	names, err := r.walk()
	if err != nil {
		return nil, err
	}
	out, err := r.run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return names, nil // not a git work tree, or no git
	}
	known := map[string]bool{}
	for name := range strings.SplitSeq(out, "\x00") {
		known[name] = true
	}
	return slices.DeleteFunc(names, func(n string) bool { return !known[n] }), nil
}

// walk names the regular files below Dir in order.
func (r *Repo) walk() ([]string, error) {
	var names []string
	err := filepath.WalkDir(r.Dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(r.Dir, p)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir() && slices.Contains([]string{".git", "bin", ".oracle", "node_modules"}, d.Name()):
			return filepath.SkipDir
		case d.Type().IsRegular():
			names = append(names, filepath.ToSlash(name))
		}
		return nil
	})
	slices.Sort(names)
	return names, err
}

// run runs a command in the tree and returns what it prints.
func (r *Repo) run(name string, args ...string) (string, error) {
	return r.runEnv(nil, name, args...)
}

func (r *Repo) runEnv(env []string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = r.Dir
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.Output()
	if err != nil {
		detail := err.Error()
		if exit, ok := err.(*exec.ExitError); ok && len(exit.Stderr) > 0 {
			detail = strings.TrimSpace(string(exit.Stderr))
		}
		return string(out), fmt.Errorf("%s %s: %s", name, strings.Join(args, " "), detail)
	}
	return string(out), nil
}

// at is the place of a position: file:line.
func (r *Repo) at(pos token.Pos) string {
	p := r.fset.Position(pos)
	return fmt.Sprintf("%s:%d", p.Filename, p.Line)
}

// core lists the files below core/ that are no tests.
func (r *Repo) core() []*goFile {
	var files []*goFile
	for _, f := range r.goSrc {
		if strings.HasPrefix(f.path, "core/") && !f.test() {
			files = append(files, f)
		}
	}
	return files
}
