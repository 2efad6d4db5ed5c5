package tidy

import (
	"bytes"
	"fmt"
	"go/format"
	"os"
	"regexp"
)

// maxFileBytes keeps the repository quick to clone.
const maxFileBytes = 2 << 20

// machinePath matches an absolute path below a directory that exists on
// somebody's machine only. It is assembled so that it does not match itself.
var machinePath = regexp.MustCompile(`(?:^|[^A-Za-z0-9_./-])/(?:` + `work|root|farm|home|Users|tmp` + `)/[A-Za-z0-9._-]+`)

// Text checks the files as text: none names a path of a machine, none is too
// big, Go files are formatted.
func (r *Repo) Text() ([]string, error) {
	var found []string
	for _, name := range r.files {
		text, err := r.read(name)
		if err != nil {
			return nil, err
		}
		if len(text) > maxFileBytes {
			found = append(found, fmt.Sprintf("%s: has %d bytes, at most %d are allowed", name, len(text), maxFileBytes))
		}
		if bytes.IndexByte(text[:min(len(text), 8000)], 0) >= 0 {
			continue // not text
		}
		for i, line := range bytes.Split(text, []byte("\n")) {
			if m := machinePath.Find(line); m != nil {
				found = append(found, fmt.Sprintf("%s:%d: names a path of a machine: %s", name, i+1, bytes.TrimSpace(m)))
			}
		}
	}
	for _, f := range r.goSrc {
		formatted, err := format.Source(f.text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.path, err)
		}
		if !bytes.Equal(formatted, f.text) {
			found = append(found, fmt.Sprintf("%s: is not as gofmt writes it", f.path))
		}
	}
	return found, nil
}

// Vet runs go vet on the tree.
func (r *Repo) Vet() ([]string, error) {
	if _, err := r.run("go", "vet", "./..."); err != nil {
		return []string{err.Error()}, nil
	}
	return nil, nil
}

func (r *Repo) read(name string) ([]byte, error) { return os.ReadFile(r.abs(name)) }
