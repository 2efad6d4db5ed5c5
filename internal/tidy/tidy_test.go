package tidy

import "testing"

// TestRepository holds the tree to its laws.
func TestRepository(t *testing.T) {
	r, err := Open("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, law := range laws(r) {
		t.Run(law.name, func(t *testing.T) {
			found, err := law.check()
			if err != nil {
				t.Fatal(err)
			}
			for _, finding := range found {
				t.Error(finding)
			}
		})
	}
}

type law struct {
	name  string
	check func() ([]string, error)
}

// laws lists every check of a tree.
func laws(r *Repo) []law {
	plain := func(f func() []string) func() ([]string, error) {
		return func() ([]string, error) { return f(), nil }
	}
	return []law{
		{"imports", plain(r.Imports)},
		{"core modules", r.CoreModules},
		{"direct modules", r.DirectModules},
		{"exact math", plain(r.ExactMath)},
		{"core syntax", r.CoreSyntax},
		{"floats", r.Floats},
		{"sizes", func() ([]string, error) { return r.Sizes(longFunctions) }},
		{"package comments", plain(r.Docs)},
		{"text", r.Text},
		{"vet", r.Vet},
	}
}
