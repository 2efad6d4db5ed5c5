package coretest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dryserve/dryserve/internal/viewers"
)

// patience is how long a browser may take for all jobs.
const patience = 3 * time.Minute

// page is what a browser is given and what it answers.
type page struct {
	jobs    []job
	allowed []string // files of the jobs
	results chan []byte
	mu      sync.Mutex
	told    []string // errors of the page
}

func newPage(jobs []job) *page {
	p := &page{jobs: jobs, results: make(chan []byte, 1)}
	for _, j := range jobs {
		p.allowed = append(p.allowed, j.Traces...)
		for _, path := range j.Files {
			p.allowed = append(p.allowed, path)
		}
	}
	return p
}

// ServeHTTP serves the sources, core.wasm, the jobs and their files, and takes
// the results.
func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; {
	case path == "/jobs":
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(p.jobs)
	case path == "/core.wasm":
		http.ServeFile(w, r, core)
	case path == "/file" && slices.Contains(p.allowed, r.URL.Query().Get("path")):
		http.ServeFile(w, r, r.URL.Query().Get("path"))
	case path == "/results" || path == "/told":
		text, _ := io.ReadAll(r.Body)
		if path == "/results" {
			p.results <- text
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.told = append(p.told, string(text))
	case strings.HasSuffix(path, ".js"), strings.HasSuffix(path, ".mjs"):
		w.Header().Set("Content-Type", "text/javascript")
		http.ServeFile(w, r, filepath.Join("..", filepath.FromSlash(path)))
	case strings.HasSuffix(path, ".html"):
		http.ServeFile(w, r, filepath.Join("..", filepath.FromSlash(path)))
	default:
		http.NotFound(w, r)
	}
}

// inBrowser runs jobs in a headless browser, by name.
func inBrowser(t *testing.T, jobs []job) map[string]outcome {
	t.Helper()
	tools, err := viewers.Get(root+"/internal/viewers", root+"/.tools")
	if err != nil {
		t.Fatal(err)
	}
	p := newPage(jobs)
	server := httptest.NewServer(p)
	defer server.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	profile, err := os.MkdirTemp("", "coretest-browser")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		for range 50 { // what the browser has started may go on writing for a moment
			if os.RemoveAll(profile) == nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Logf("%s is left", profile)
	}()
	// The sandbox of a browser needs what containers often lack; the page is ours.
	cmd := exec.CommandContext(ctx, tools.Browser(), "--headless", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run",
		"--user-data-dir="+profile, server.URL+"/coretest/batch_page.html")
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel() // a browser does not end by itself
		_ = cmd.Wait()
	}()
	select {
	case text := <-p.results:
		var told struct {
			Agent   string
			Results json.RawMessage
		}
		if err := json.Unmarshal(text, &told); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(told.Agent, "Chrom") {
			t.Errorf("the browser is %s", told.Agent)
		}
		return byName(t, told.Results, len(jobs))
	case <-ctx.Done():
		p.mu.Lock()
		defer p.mu.Unlock()
		t.Fatalf("no results after %v; the page says %q", patience, p.told)
	}
	return nil
}

// A browser gives the bytes that Node gives.
func TestBrowser(t *testing.T) {
	var jobs []job
	for i, j := range goldenJobs(t) {
		if i%each == 0 {
			jobs = append(jobs, j)
		}
	}
	if len(jobs) < 20 {
		t.Errorf("only %d goldens", len(jobs))
	}
	jobs = append(jobs, exampleJobs(t)...)
	want := bothInNode(t)
	got := inBrowser(t, jobs)
	for _, j := range jobs {
		g, w := got[j.Name], want[j.Name]
		if g.Error != "" || len(g.Complaints) > 0 {
			t.Errorf("%s: %s%+v", j.Name, g.Error, g.Complaints)
		}
		same(t, j.Name, timeless(g.Report), timeless(w.Report))
		same(t, j.Name, g.Requests, w.Requests)
		same(t, j.Name, g.CSV, w.CSV)
	}
}
