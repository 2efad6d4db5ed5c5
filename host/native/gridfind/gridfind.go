// Package gridfind finds the grid file that was made for a model, a GPU, an
// engine and a number of GPUs, where the reference asks AIConfigurator.
//
// It owns what identifies a grid, where grids are looked for (a directory, then
// those that the program carries), how one is made that is missing, and the
// sentences about none and about several. It does not own the format of grids (host/native/profile does) nor
// what their durations are taken for.
//
// Invariants: exactly one grid or an error, which is one sentence with the
// grids that there are; a grid of the directory goes before the program's own.
// What a grid does not say of itself is never guessed.
//
// Source of behaviour: the identity is that of the reference's performance
// models (peers notes §4.1); grids are our own.
package gridfind

import (
	"bytes"
	"compress/gzip"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/dryserve/dryserve/host/native/cliutil"
	"github.com/dryserve/dryserve/host/native/profile"
)

// DirFlag is the flag that names the directory, for sentences.
const DirFlag = "--grid-dir"

// Shipped begins the path of a grid that the program carries.
const Shipped = "shipped:"

//go:embed shipped/*.gz
var shipped embed.FS

// Identity is what a grid was made for.
type Identity struct {
	System, Model  string
	Backend        string // vllm, sglang or trtllm
	BackendVersion string // "" and "current": any
	TP             int    // GPUs of a rank, 1 or more
	MoETP, MoEEP   int    // GPUs that share an expert, groups that share the experts; 0: any
	AttentionDP    int    // ranks that share the experts; 0 is 1
}

// String names what is looked for.
func (id Identity) String() string {
	backend := id.Backend
	if id.versioned() {
		backend += " " + id.BackendVersion
	}
	s := fmt.Sprintf("%s on %s with %s, tp %d", id.Model, id.System, backend, id.TP)
	for _, size := range id.sizes() {
		s += fmt.Sprintf(", %s %d", size.name, size.n)
	}
	return s
}

func (id Identity) versioned() bool {
	return id.BackendVersion != "" && id.BackendVersion != "current"
}

type size struct {
	name string
	n    int
}

// sizes are those that are looked for beside tp.
func (id Identity) sizes() []size {
	return slices.DeleteFunc([]size{{"moe_tp", id.MoETP}, {"moe_ep", id.MoEEP}, {"attention_dp", id.AttentionDP}},
		func(s size) bool { return s.n == 0 || s.name == "attention_dp" && s.n == 1 })
}

// fits reports whether a grid was made for the identity. Sizes that it does not
// say are 1, but for tp.
func (id Identity) fits(g *profile.Grid) bool {
	same := func(want, has int) bool { return want == 0 || want == max(has, 1) }
	model := g.Model == id.Model || named(id.Model) && path.Base(filepath.ToSlash(id.Model)) == path.Base(g.Model)
	return model && g.System == id.System && g.Backend == id.Backend && g.TP == id.TP && g.PP <= 1 &&
		(!id.versioned() || g.BackendVersion == id.BackendVersion) &&
		same(id.MoETP, g.MoETP) && same(id.MoEEP, g.MoEEP) && same(max(id.AttentionDP, 1), g.AttentionDP)
}

// UsualType reports whether a word stands for the type that a model's numbers
// have by default, as the reference spells it. Grids are for these types.
func UsualType(word string) bool {
	return slices.Contains([]string{"", "auto", "none", "null"}, strings.ToLower(strings.TrimSpace(word)))
}

// named reports whether a model is named by a path on this machine, whose last
// element is its name without the owner's.
func named(model string) bool { return strings.HasPrefix(model, ".") || filepath.IsAbs(model) }

// File is a grid and where it is.
type File struct {
	Path string
	Grid *profile.Grid
}

// String tells what a grid is for.
func (f File) String() string {
	g := f.Grid
	or := func(s, none string) string {
		if s == "" {
			return none
		}
		return s
	}
	s := strings.TrimSpace(or(g.Backend, "no backend") + " " + g.BackendVersion)
	s = fmt.Sprintf("%s (%s on %s with %s", f.Path, or(g.Model, "no model"), or(g.System, "no system"), s)
	for _, size := range []size{{"tp", g.TP}, {"pp", g.PP}, {"moe_tp", g.MoETP}, {"moe_ep", g.MoEEP}, {"attention_dp", g.AttentionDP}} {
		if size.n > 0 {
			s += fmt.Sprintf(", %s %d", size.name, size.n)
		}
	}
	return s + ")"
}

// Finder looks for grids in a directory, if it has one, and in the program, and
// has what neither has made. Its zero value looks in the program only.
type Finder struct {
	Dir  string
	Make *Exporter // nil: none are made
	Used bool      // somebody has looked
}

// Find returns the grid that was made for an identity, and its path, which Load
// takes.
func (f *Finder) Find(id Identity) (File, error) {
	f.Used = true
	var all []File
	var strangers []string
	for _, list := range []func() ([]File, []string, error){f.directory, carried} {
		files, others, err := list()
		if err != nil {
			return File{}, err
		}
		fitting := slices.DeleteFunc(slices.Clone(files), func(x File) bool { return !id.fits(x.Grid) })
		switch len(fitting) {
		case 0:
			all, strangers = append(all, files...), append(strangers, others...)
		case 1:
			return fitting[0], nil
		default:
			return File{}, fmt.Errorf("several grids are for %s: %s; an identity that only one of them has is accepted, or its path with --perf-grid", id, describe(fitting))
		}
	}
	if f.Make != nil {
		if made, err := f.Make.Find(id); !errors.Is(err, errNone) {
			return made, err
		}
	}
	return File{}, f.none(id, all, strangers)
}

// none says what there is instead, and how to make what is missing.
func (f *Finder) none(id Identity, all []File, strangers []string) error {
	s := fmt.Sprintf("no grid is for %s; there are %s", id, describe(all))
	if len(strangers) > 0 {
		s += ", and what is no grid: " + enumerate(strangers)
	}
	dir, version := f.Dir, ""
	if dir == "" {
		dir = "grids"
	}
	if id.versioned() {
		version = " --backend-version " + id.BackendVersion
	}
	s += fmt.Sprintf("; python -m dryserve.export_grid --model %s --system %s --backend %s%s --tp %d --out %s makes one for %s %s",
		id.Model, id.System, id.Backend, version, id.TP, filepath.Join(dir, "grid.json"), DirFlag, dir)
	if sizes := id.sizes(); len(sizes) > 0 {
		s += ", but none that says its " + sizes[0].name
	}
	return fmt.Errorf("%s", s)
}

// directory reads the grids of the directory, in the order of their names;
// others are the paths of other JSON files.
func (f *Finder) directory() (files []File, others []string, err error) {
	if f.Dir == "" {
		return nil, nil, nil
	}
	entries, err := os.ReadDir(f.Dir)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: cannot open %s: %w; a directory with grids is accepted", DirFlag, f.Dir, cliutil.Reason(err))
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		at := filepath.Join(f.Dir, e.Name())
		if g, err := profile.LoadGrid(at); err == nil {
			files = append(files, File{at, g})
		} else {
			others = append(others, at)
		}
	}
	return files, others, nil
}

// carried are the grids of the program, which nobody changes.
func carried() ([]File, []string, error) {
	files, err := unpack()
	return files, nil, err
}

var unpack = sync.OnceValues(func() (files []File, err error) {
	for _, at := range names() {
		g, err := Load(at)
		if err != nil {
			return nil, err
		}
		files = append(files, File{at, g})
	}
	return files, nil
})

// Load loads a grid by its path, or one of the program's own.
func Load(at string) (*profile.Grid, error) {
	name, own := strings.CutPrefix(at, Shipped)
	if !own {
		return profile.LoadGrid(at)
	}
	packed, err := shipped.ReadFile("shipped/" + name + ".gz")
	if err != nil {
		return nil, fmt.Errorf("%s: the program carries no such grid; %s are accepted", at, strings.Join(names(), ", "))
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be unpacked: %w", at, err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be unpacked: %w", at, err)
	}
	return profile.ParseGrid(at, data)
}

// names are the paths of the program's own grids.
func names() []string {
	var paths []string
	entries, _ := shipped.ReadDir("shipped") // of what is embedded, it cannot fail
	for _, e := range entries {
		paths = append(paths, Shipped+strings.TrimSuffix(e.Name(), ".gz"))
	}
	return paths
}

// maxListed bounds how many grids a sentence has.
const maxListed = 8

func describe(files []File) string {
	texts := make([]string, len(files))
	for i, f := range files {
		texts[i] = f.String()
	}
	return enumerate(texts)
}

func enumerate(texts []string) string {
	if more := len(texts) - maxListed; more > 0 {
		texts = append(slices.Clone(texts[:maxListed]), fmt.Sprintf("%d more", more))
	}
	return strings.Join(texts, ", ")
}
