package playground_test

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/internal/playground"
	"github.com/dryserve/dryserve/internal/viewers"
)

const root = "../.."

var (
	program string // the built command
	tools   string // what npm has installed
	browser string
)

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("left out: these tests install a browser and what builds the page")
		return
	}
	os.Exit(prepared(m))
}

func prepared(m *testing.M) int {
	dir, err := os.MkdirTemp("", "playground-test")
	if err == nil {
		defer os.RemoveAll(dir)
		program = filepath.Join(dir, "replay")
		build := exec.Command("go", "build", "-o", program, "../../cmd/replay")
		build.Stderr = os.Stderr
		err = build.Run()
	}
	if err == nil {
		tools, err = playground.Tools(root)
	}
	var seen *viewers.Tools
	if err == nil {
		seen, err = viewers.Get("../viewers", filepath.Join(root, ".tools"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	browser = seen.Browser()
	return m.Run()
}

// TestPage uses the page in Chromium. PLAYGROUND_SHOTS names a directory where
// screenshots are kept; ONLY chooses tests by a pattern of their names.
func TestPage(t *testing.T) { used(t, "chrome", browser, os.Getenv("ONLY")) }

// TestFirefox opens the page in Firefox and compares its first result with the
// command line's, or does what ONLY chooses of the tests that can be done there.
func TestFirefox(t *testing.T) {
	firefox, err := viewers.Firefox("../viewers", filepath.Join(root, ".tools"))
	if err != nil {
		t.Fatal(err)
	}
	used(t, "firefox", firefox, cmp.Or(os.Getenv("ONLY"), "^the sample runs on opening$"))
}

// used uses the page in a browser of a kind, and does those tests whose names
// match only.
func used(t *testing.T, kind, browser, only string) {
	t.Helper()
	dist, dir := filepath.Join(t.TempDir(), "dist"), t.TempDir()
	if kept := os.Getenv("PLAYGROUND_SHOTS"); kept != "" {
		dir = filepath.Join(kept, kind)
	}
	if err := playground.Build(root, dist, false); err != nil {
		t.Fatal(err)
	}
	// Below a path, as on a static host that has other pages, too.
	server := httptest.NewServer(http.StripPrefix("/what/if", playground.Handler(dist)))
	defer server.Close()
	whole, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command("node", "suite.mjs", kind, browser, server.URL+"/what/if/", dir, tools, program, whole, only)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%v of processor time", command.ProcessState.UserTime()+command.ProcessState.SystemTime())
	var results []struct {
		Name, Fault string
		Ms          int
	}
	if err := json.Unmarshal(out, &results); err != nil || len(results) == 0 {
		t.Fatalf("%v: %s", err, out)
	}
	for _, r := range results {
		t.Run(r.Name, func(t *testing.T) {
			t.Logf("%d ms", r.Ms)
			if r.Fault != "" {
				t.Error(r.Fault)
			}
		})
	}
}

func get(t *testing.T, url, encoding string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept-Encoding", encoding) // else the client would unpack
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

func TestHandler(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"index.html": "page", "index.html.br": "brotli", "main.js": "script", "main.js.gz": "gzip", "core.wasm": "core"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewServer(playground.Handler(dir))
	defer server.Close()
	for _, c := range []struct{ path, accepts, body, encoding, kind string }{
		{"/", "gzip, deflate, br", "brotli", "br", "text/html; charset=utf-8"},
		{"/", "gzip", "page", "", "text/html; charset=utf-8"},
		{"/main.js", "gzip, br", "gzip", "gzip", "text/javascript; charset=utf-8"},
		{"/main.js", "gzip;q=0, br", "script", "", "text/javascript; charset=utf-8"},
		{"/main.js", "", "script", "", "text/javascript; charset=utf-8"},
		{"/core.wasm", "br", "core", "", "application/wasm"},
	} {
		r, body := get(t, server.URL+c.path, c.accepts)
		if body != c.body || r.Header.Get("Content-Encoding") != c.encoding || r.Header.Get("Content-Type") != c.kind || r.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s for %q: %q, %v", c.path, c.accepts, body, r.Header)
		}
	}
	for _, path := range []string{"/nothing", "/../playground.go", "/..%2fplayground.go"} {
		if r, body := get(t, server.URL+path, ""); r.StatusCode != http.StatusNotFound || strings.Contains(body, "package") {
			t.Errorf("%s: %s, %.80q", path, r.Status, body)
		}
	}
}

// most is what opening the page and its sample may take over the wire.
const most = 1_000_000

// TestSize adds up what a browser fetches for the first result.
func TestSize(t *testing.T) {
	dist := filepath.Join(t.TempDir(), "dist")
	if err := playground.Build(root, dist, true); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dist, "*"))
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, filepath.Join(dist, "samples", "conversation-300.jsonl"))
	total := 0
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(file)
		if info.IsDir() || strings.HasSuffix(name, ".br") || strings.HasSuffix(name, ".gz") || name == "LICENSES.txt" {
			continue
		}
		if small, err := os.Stat(file + ".br"); err == nil {
			info = small
		}
		t.Logf("%8d %s", info.Size(), name)
		total += int(info.Size())
	}
	if total >= most {
		t.Errorf("%d bytes, want less than %d", total, most)
	}
}

// TestTypes checks the types of the whole page, its core included.
func TestTypes(t *testing.T) {
	page, err := filepath.Abs(filepath.Join(root, "web/playground"))
	if err != nil {
		t.Fatal(err)
	}
	config, err := json.Marshal(map[string]any{
		"extends":         filepath.Join(page, "tools/tsconfig.json"),
		"compilerOptions": map[string]any{"paths": map[string]any{"uplot": []string{filepath.Join(tools, "node_modules/uplot/dist/uPlot.d.ts")}}},
		"include":         []string{filepath.Join(page, "src/**/*.js")},
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "tsconfig.json")
	if err := os.WriteFile(file, config, 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("node", filepath.Join(tools, "node_modules/typescript/bin/tsc"), "-p", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
