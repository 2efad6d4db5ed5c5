package tidy

import (
	"bytes"
	"fmt"
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"
)

// The limits in lines. Tests may be longer: they are lists of cases.
const (
	maxFileLines     = 600
	maxFuncLines     = 70
	maxTestFileLines = 900
	maxTestFuncLines = 140
)

// sourceSuffixes are the hand-written languages whose files have a limit.
var sourceSuffixes = []string{".go", ".py", ".js", ".mjs", ".ts", ".css", ".html", ".sh"}

// Sizes checks the length of source files and of Go functions. Generated
// files are exempt; long functions may stand in the list of exceptions.
func (r *Repo) Sizes(exceptions map[string]string) ([]string, error) {
	var found []string
	generated := map[string]bool{}
	for _, f := range r.goSrc {
		generated[f.path] = f.generated()
	}
	for _, name := range r.files {
		if !slices.Contains(sourceSuffixes, path.Ext(name)) || generated[name] {
			continue
		}
		text, err := r.read(name)
		if err != nil {
			return nil, err
		}
		limit := maxFileLines
		if strings.HasSuffix(name, "_test.go") || strings.Contains(name, "test_") || strings.Contains(name, ".test.") {
			limit = maxTestFileLines
		}
		if n := bytes.Count(text, []byte("\n")); n > limit {
			found = append(found, fmt.Sprintf("%s: has %d lines, at most %d are allowed", name, n, limit))
		}
	}
	return append(found, r.longFunctions(exceptions)...), nil
}

func (r *Repo) longFunctions(exceptions map[string]string) []string {
	var found []string
	used := map[string]bool{}
	for _, f := range r.goSrc {
		if f.generated() {
			continue
		}
		limit := maxFuncLines
		if f.test() {
			limit = maxTestFuncLines
		}
		for _, decl := range f.syntax.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			lines := r.fset.Position(fn.End()).Line - r.fset.Position(fn.Pos()).Line + 1
			if lines <= limit {
				continue
			}
			name := f.path + ":" + functionName(fn)
			used[name] = true
			if exceptions[name] == "" {
				found = append(found, fmt.Sprintf("%s: %s has %d lines, at most %d are allowed", r.at(fn.Pos()), functionName(fn), lines, limit))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(exceptions)) {
		if !used[name] {
			found = append(found, fmt.Sprintf("%s: is excepted from the length of functions but needs no exception", name))
		}
	}
	return found
}

// functionName is Name, or Type.Name for a method.
func functionName(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	t := fn.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if index, ok := t.(*ast.IndexExpr); ok {
		t = index.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name + "." + fn.Name.Name
	}
	return fn.Name.Name
}

// Docs checks that every package says in a comment what it is.
func (r *Repo) Docs() []string {
	beginning := map[string]string{} // of the comment each directory must have
	documented := map[string]bool{}
	for _, f := range r.goSrc {
		if f.test() {
			continue
		}
		want := "Package " + f.syntax.Name.Name + " "
		if f.syntax.Name.Name == "main" {
			want = "Command "
		}
		beginning[f.dir()] = want
		if strings.HasPrefix(f.syntax.Doc.Text(), want) {
			documented[f.dir()] = true
		}
	}
	var found []string
	for _, dir := range slices.Sorted(maps.Keys(beginning)) {
		if !documented[dir] {
			found = append(found, fmt.Sprintf("%s: the package has no comment that begins with %q", dir, beginning[dir]))
		}
	}
	return found
}
