package tidy

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Imports checks the layers: the core imports an allowed few packages and its
// own lower layers; hosts may use the core, commands both; nothing but
// internal test tools and tests may use internal packages.
func (r *Repo) Imports() []string {
	var found []string
	for _, f := range r.goSrc {
		for _, spec := range f.syntax.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				found = append(found, fmt.Sprintf("%s: unreadable import %s", r.at(spec.Pos()), spec.Path.Value))
				continue
			}
			if why := r.mayNotImport(f, name); why != "" {
				found = append(found, fmt.Sprintf("%s: %s imports %s: %s", r.at(spec.Pos()), f.dir(), name, why))
			}
		}
	}
	return found
}

// mayNotImport says why a file may not import a package, "" if it may.
func (r *Repo) mayNotImport(f *goFile, name string) string {
	local, isLocal := strings.CutPrefix(name, r.Module+"/")
	area := firstElement(f.path)
	if f.test() {
		if isLocal && firstElement(local) == "cmd" {
			return "commands are no libraries"
		}
		return ""
	}
	if area == "core" {
		return mayCoreImport(f.dir(), local, isLocal, name)
	}
	if !isLocal {
		return ""
	}
	allowed := map[string][]string{
		"host":     {"core", "host"},
		"cmd":      {"core", "host"},
		"bindings": {"core", "host"},
		"web":      {"core", "host"},
		"internal": {"core", "host", "internal"},
	}[area]
	if !slices.Contains(allowed, firstElement(local)) {
		return fmt.Sprintf("%s may use only %s", area, strings.Join(allowed, ", "))
	}
	return ""
}

func mayCoreImport(dir, local string, isLocal bool, name string) string {
	if !isLocal {
		if slices.Contains(coreImports, name) {
			return ""
		}
		return "it is not among the packages the core may use"
	}
	if firstElement(local) != "core" {
		return "the core knows nothing above it"
	}
	from, to := coreLayer(dir), coreLayer(local)
	switch {
	case from < 0:
		return dir + " has no layer; give it one in exceptions.go"
	case to < 0:
		return local + " has no layer; give it one in exceptions.go"
	case to >= from:
		return fmt.Sprintf("layer %d may use only lower layers, that one is in layer %d", from+1, to+1)
	}
	return ""
}

// coreLayer is the index of a core package's layer, -1 if it has none.
func coreLayer(dir string) int {
	name := strings.TrimPrefix(dir, "core/")
	return slices.IndexFunc(coreLayers, func(layer []string) bool { return slices.Contains(layer, name) })
}

func firstElement(p string) string { return strings.SplitN(p, "/", 2)[0] }

// CoreModules checks the modules behind the core's imports.
func (r *Repo) CoreModules() ([]string, error) {
	out, err := r.run("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "./core/...")
	if err != nil {
		return nil, err
	}
	modules := strings.Fields(out)
	slices.Sort(modules)
	var found []string
	for _, m := range slices.Compact(modules) {
		if _, ok := coreModules[m]; !ok && m != r.Module {
			found = append(found, fmt.Sprintf("core: depends on module %s, which is not allowed for the core", m))
		}
	}
	return found, nil
}

// DirectModules checks what go.mod requires by itself.
func (r *Repo) DirectModules() ([]string, error) {
	out, err := r.run("go", "mod", "edit", "-json")
	if err != nil {
		return nil, err
	}
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
		Replace []struct{ Old struct{ Path string } }
	}
	if err := json.Unmarshal([]byte(out), &mod); err != nil {
		return nil, err
	}
	var found []string
	for _, req := range mod.Require {
		if _, ok := directModules[req.Path]; !ok && !req.Indirect {
			found = append(found, fmt.Sprintf("go.mod: requires %s; direct dependencies are %s",
				req.Path, strings.Join(slices.Sorted(maps.Keys(directModules)), ", ")))
		}
	}
	for _, rep := range mod.Replace {
		found = append(found, fmt.Sprintf("go.mod: replaces %s; a replacement does not reach those who import the module", rep.Old.Path))
	}
	return found, nil
}

// ExactMath checks that the core calls only functions of package math whose
// bits are the same everywhere.
func (r *Repo) ExactMath() []string {
	var found []string
	for _, f := range r.core() {
		name := importName(f.syntax, "math")
		if name == "" {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, ok := call.X.(*ast.Ident)
			if !ok || pkg.Name != name || !isMathFunction(call.Sel.Name) {
				return true
			}
			if !slices.Contains(exactMath, call.Sel.Name) {
				found = append(found, fmt.Sprintf("%s: math.%s is not the same bits on every target", r.at(n.Pos()), call.Sel.Name))
			}
			return true
		})
	}
	return found
}

// isMathFunction tells functions from constants: those of package math are
// Pi, E, Phi, Sqrt2 and the like, Ln2, Log2E and the like, and the limits.
func isMathFunction(name string) bool {
	for _, prefix := range []string{"MaxInt", "MinInt", "MaxUint", "MaxFloat", "SmallestNonzero", "Sqrt2", "SqrtE", "SqrtP", "Ln", "Log2E", "Log10E"} {
		if strings.HasPrefix(name, prefix) {
			return false
		}
	}
	return !slices.Contains([]string{"E", "Pi", "Phi"}, name)
}

// importName is the name a file uses for a package, "" if it does not.
func importName(f *ast.File, pkg string) string {
	for _, spec := range f.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil && p == pkg {
			if spec.Name != nil {
				return spec.Name.Name
			}
			return path.Base(pkg)
		}
	}
	return ""
}
