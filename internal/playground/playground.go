// Package playground builds the browser playground (web/playground) and serves
// it, for make and for tests.
//
// It owns how the page is put together and handed to a browser. It does not own
// the page, nor core.wasm.
//
// Invariants: what is served is what lies in the directory; a file whose
// compressed form lies beside it is sent in that form to those who take it.
// Nothing is written on behalf of a request.
package playground

import (
	"fmt"
	"mime"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/dryserve/dryserve/internal/corewasm"
)

// Places below the repository's root.
const (
	source = "web/playground"
	Dist   = "web/playground/dist"
	tools  = ".tools/playground" // what npm installs, and what was compressed once
)

// Tools installs what the page is built from below root and returns where.
func Tools(root string) (string, error) {
	dir, err := filepath.Abs(filepath.Join(root, tools))
	if err != nil {
		return "", err
	}
	return dir, run("bash", filepath.Join(root, source, "tools/setup.sh"), dir)
}

// Build builds core.wasm and the page below root into a directory. Files have
// their compressed form beside them if compressed is set, which takes half a
// minute for a new core.wasm.
func Build(root, out string, compressed bool) error {
	core, err := corewasm.Build(root)
	if err != nil {
		return err
	}
	dir, err := Tools(root)
	if err != nil {
		return err
	}
	args := []string{filepath.Join(root, source, "tools/build.mjs"), "--out", out, "--modules", dir, "--core", core}
	if !compressed {
		args = append(args, "--no-compress")
	}
	return run("node", args...)
}

func run(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(name), err, out)
	}
	return nil
}

// types of files whose type a system may not know or know differently.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".wasm": "application/wasm",
	".json": "application/json", ".jsonl": "application/jsonl", ".csv": "text/csv; charset=utf-8", ".txt": "text/plain; charset=utf-8",
}

// encodings by preference: name in headers, ending of the file.
var encodings = [][2]string{{"br", ".br"}, {"gzip", ".gz"}}

// Handler serves a directory.
func Handler(dir string) http.Handler {
	files := http.FileServer(http.Dir(dir))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := path.Clean("/" + r.URL.Path)
		if strings.HasSuffix(r.URL.Path, "/") {
			name = path.Join(name, "index.html")
		}
		header := w.Header()
		header.Set("Cache-Control", "no-cache")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Add("Vary", "Accept-Encoding")
		kind := types[path.Ext(name)]
		if kind == "" {
			kind = mime.TypeByExtension(path.Ext(name))
		}
		if kind != "" {
			header.Set("Content-Type", kind)
		}
		accepted := r.Header.Get("Accept-Encoding")
		for _, e := range encodings {
			file := filepath.Join(dir, filepath.FromSlash(name)) + e[1]
			info, err := os.Stat(file)
			if err != nil || info.IsDir() || !accepts(accepted, e[0]) {
				continue
			}
			header.Set("Content-Encoding", e[0])
			http.ServeFile(w, r, file)
			return
		}
		files.ServeHTTP(w, r)
	})
}

// accepts reports whether a header names an encoding and does not rule it out.
func accepts(header, encoding string) bool {
	for part := range strings.SplitSeq(header, ",") {
		name, quality, _ := strings.Cut(part, ";")
		if strings.TrimSpace(name) == encoding {
			return strings.ReplaceAll(quality, " ", "") != "q=0"
		}
	}
	return false
}
