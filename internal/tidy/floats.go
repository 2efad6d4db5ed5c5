package tidy

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// fusedTargets are targets whose compiler joins a product and a sum into one
// rounding where the source allows it.
var fusedTargets = []struct {
	name string
	env  []string
}{
	{"arm64", []string{"GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0"}},
	{"amd64 v3", []string{"GOOS=linux", "GOARCH=amd64", "GOAMD64=v3", "CGO_ENABLED=0"}},
}

// fused matches an instruction of the listing with its place.
var fused = regexp.MustCompile(`\(([^()]*\.go:\d+)\)\t(V?FN?M(?:ADD|SUB)\w*)\t`)

// compilerError matches a message of the compiler among the listing.
var compilerError = regexp.MustCompile(`(?m)^\S+\.go:\d+:\d+: .*$`)

// Floats compiles the core for targets with fused instructions and lists each
// one found: its result would differ from the other targets' in the last bit.
func (r *Repo) Floats() ([]string, error) {
	var found []string
	for _, target := range fusedTargets {
		listing, err := r.listing(target.env)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", target.name, err)
		}
		seen := map[string]bool{}
		for lines := bufio.NewScanner(bytes.NewReader(listing)); lines.Scan(); {
			m := fused.FindStringSubmatch(lines.Text())
			if m == nil {
				continue
			}
			place := m[1]
			if rel, err := filepath.Rel(r.Dir, place); err == nil && !strings.HasPrefix(rel, "..") {
				place = filepath.ToSlash(rel)
			}
			finding := fmt.Sprintf("%s: compiles to %s on %s; write float64(a*b) before adding", place, m[2], target.name)
			if !seen[finding] {
				seen[finding] = true
				found = append(found, finding)
			}
		}
	}
	return found, nil
}

// listing is the compiler's assembly of the core's packages.
func (r *Repo) listing(env []string) ([]byte, error) {
	cmd := exec.Command("go", "build", "-gcflags="+r.Module+"/core/...=-S", "./core/...")
	cmd.Dir = r.Dir
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("go build: %w: %s", err, bytes.Join(compilerError.FindAll(out, 5), []byte("; ")))
	}
	if !bytes.Contains(out, []byte(" STEXT ")) {
		return nil, fmt.Errorf("go build -S printed no assembly of %s/core", r.Module)
	}
	return out, nil
}
