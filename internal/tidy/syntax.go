package tidy

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// CoreSyntax checks what the core's source must not contain: goroutines,
// channels, select, defer, recover, init functions, ranges over maps, and
// package-level variables anything could change.
func (r *Repo) CoreSyntax() ([]string, error) {
	var found []string
	packages, err := r.checkCore()
	if err != nil {
		return nil, err
	}
	for _, p := range packages {
		for _, f := range p.files {
			found = append(found, r.bannedSyntax(f, p.info)...)
		}
		found = append(found, r.mutableVars(p)...)
	}
	return found, nil
}

// checkedPackage is a type-checked core package.
type checkedPackage struct {
	files []*ast.File
	info  *types.Info
}

// checkCore type-checks the core's packages against compiled export data.
func (r *Repo) checkCore() ([]checkedPackage, error) {
	exports, err := r.exportData()
	if err != nil {
		return nil, err
	}
	conf := types.Config{Importer: importer.ForCompiler(r.fset, "gc", func(path string) (io.ReadCloser, error) {
		file, ok := exports[path]
		if !ok {
			return nil, fmt.Errorf("no export data for %s", path)
		}
		return os.Open(file)
	})}
	// The files the build would take, not those another build tag selects.
	out, err := r.run("go", "list", "-f", "{{.ImportPath}}\t{{.Dir}}\t{{join .GoFiles \" \"}}", "./core/...")
	if err != nil {
		return nil, err
	}
	var packages []checkedPackage
	for line := range strings.Lines(out) {
		field := strings.Split(strings.TrimSpace(line), "\t")
		if len(field) < 3 {
			continue
		}
		dir, err := filepath.Rel(r.Dir, field[1])
		if err != nil {
			return nil, err
		}
		p := checkedPackage{info: &types.Info{
			Types: map[ast.Expr]types.TypeAndValue{},
			Defs:  map[*ast.Ident]types.Object{},
			Uses:  map[*ast.Ident]types.Object{},

			Selections: map[*ast.SelectorExpr]*types.Selection{},
		}}
		for _, f := range r.goSrc {
			if f.dir() == filepath.ToSlash(dir) && slices.Contains(strings.Fields(field[2]), filepath.Base(f.path)) {
				p.files = append(p.files, f.syntax)
			}
		}
		if _, err := conf.Check(field[0], r.fset, p.files, p.info); err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
	return packages, nil
}

// exportData maps the import paths behind the core to their export data.
func (r *Repo) exportData() (map[string]string, error) {
	out, err := r.run("go", "list", "-export", "-deps", "-json=ImportPath,Export", "./core/...")
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	for dec := json.NewDecoder(strings.NewReader(out)); dec.More(); {
		var p struct{ ImportPath, Export string }
		if err := dec.Decode(&p); err != nil {
			return nil, err
		}
		exports[p.ImportPath] = p.Export
	}
	return exports, nil
}

// bannedSyntax lists a file's forbidden statements and types.
func (r *Repo) bannedSyntax(f *ast.File, info *types.Info) []string {
	var found []string
	ban := func(n ast.Node, what string) {
		found = append(found, fmt.Sprintf("%s: the core has no %s", r.at(n.Pos()), what))
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			ban(n, "goroutines")
		case *ast.DeferStmt:
			ban(n, "defer")
		case *ast.SelectStmt:
			ban(n, "select")
		case *ast.ChanType:
			ban(n, "channels")
		case *ast.FuncDecl:
			if n.Recv == nil && n.Name.Name == "init" {
				ban(n, "init functions")
			}
		case *ast.CallExpr:
			if id, ok := n.Fun.(*ast.Ident); ok && id.Name == "recover" && info.Uses[id] == types.Universe.Lookup("recover") {
				ban(n, "recover")
			}
		case *ast.RangeStmt:
			if t := info.TypeOf(n.X); t != nil {
				if _, isMap := t.Underlying().(*types.Map); isMap {
					ban(n, "range over a map, whose order is random")
				}
			}
		}
		return true
	})
	return found
}

// mutableVars lists package-level variables that are not plain read-only
// tables. A table is a basic value or an array of such, unexported, and
// nothing in its package assigns to it, slices it or takes its address.
func (r *Repo) mutableVars(p checkedPackage) []string {
	tables := map[types.Object]bool{}
	var found []string
	for _, f := range p.files {
		for _, decl := range f.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok || gen.Tok != token.VAR {
				continue
			}
			for _, spec := range gen.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names {
					obj := p.info.Defs[name]
					switch {
					case name.Name == "_":
					case name.IsExported() || !isTable(obj.Type()):
						found = append(found, fmt.Sprintf("%s: the core has no package-level variable but unexported tables of plain values; %s is one", r.at(name.Pos()), name.Name))
					default:
						tables[obj] = true
					}
				}
			}
		}
	}
	for _, f := range p.files {
		for _, target := range changedIdents(f, p.info) {
			if tables[p.info.Uses[target]] {
				found = append(found, fmt.Sprintf("%s: the table %s is written to, sliced or its address taken", r.at(target.Pos()), target.Name))
			}
		}
	}
	return found
}

// isTable reports whether a type holds no reference to anything mutable.
func isTable(t types.Type) bool {
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return true
	case *types.Array:
		return isTable(u.Elem())
	case *types.Struct:
		for i := range u.NumFields() {
			if !isTable(u.Field(i).Type()) {
				return false
			}
		}
		return true
	}
	return false
}

// changedIdents lists the identifiers at the root of everything a file
// assigns to, increments, slices or takes the address of, calls of methods
// with a pointer receiver included.
func changedIdents(f *ast.File, info *types.Info) []*ast.Ident {
	var roots []*ast.Ident
	add := func(exprs ...ast.Expr) {
		for _, e := range exprs {
			if id := root(e); id != nil {
				roots = append(roots, id)
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			add(n.Lhs...)
		case *ast.IncDecStmt:
			add(n.X)
		case *ast.RangeStmt:
			add(n.Key, n.Value)
		case *ast.SliceExpr:
			add(n.X)
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				add(n.X)
			}
		case *ast.SelectorExpr:
			if s := info.Selections[n]; s != nil && s.Kind() == types.MethodVal && !isPointer(s.Recv()) &&
				isPointer(s.Obj().(*types.Func).Signature().Recv().Type()) {
				add(n.X)
			}
		}
		return true
	})
	return roots
}

func isPointer(t types.Type) bool {
	_, ok := t.Underlying().(*types.Pointer)
	return ok
}

// root is the identifier an addressable expression starts from.
func root(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.IndexExpr:
			e = x.X
		case *ast.SelectorExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}
