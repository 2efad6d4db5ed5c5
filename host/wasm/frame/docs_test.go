package frame

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/intake"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/synth"
)

var update = flag.Bool("update", false, "write the tables of docs/frames.md instead of comparing")

const page = "../../../docs/frames.md"

// packages are where the numbers of the tables are declared.
var packages = map[string]string{
	"frame": ".", "config": "../../../core/config", "trace": "../../../core/trace", "workload": "../../../core/workload",
	"intake": "../../../core/intake", "agentic": "../../../core/agentic", "dynamo": "../../../core/dynamo", "weka": "../../../core/weka",
}

var table = regexp.MustCompile(`(?s)<!-- table: (\w+)\.(\w+) -->\n.*?<!-- end -->\n`)

// The tables of numbers are those in the code.
func TestTables(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	tables := 0
	want := table.ReplaceAllStringFunc(string(text), func(old string) string {
		tables++
		m := table.FindStringSubmatch(old)
		rows := constants(t, packages[m[1]], m[2])
		if len(rows) < 2 {
			t.Errorf("%s.%s has %d constants", m[1], m[2], len(rows))
		}
		return fmt.Sprintf("<!-- table: %s.%s -->\n| %s | | |\n|---|---|---|\n%s<!-- end -->\n", m[1], m[2], m[2], strings.Join(rows, ""))
	})
	if tables != 15 {
		t.Errorf("%d tables", tables)
	}
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) {
		t.Error("docs/frames.md is not up to date; go test ./host/wasm/frame -update writes its tables. Numbers that have changed are another ABI.")
	}
}

// constants lists the constants of a type as rows of a table.
func constants(t *testing.T, dir, typeName string) (rows []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), dir+"/"+e.Name(), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range f.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok || gen.Tok != token.CONST {
				continue
			}
			var first *ast.ValueSpec // whose type and value go on
			for i, spec := range gen.Specs {
				v := spec.(*ast.ValueSpec)
				if len(v.Values) > 0 {
					first = v
				}
				if id, ok := first.Type.(*ast.Ident); !ok || id.Name != typeName {
					continue
				}
				note := strings.TrimSpace(v.Comment.Text())
				rows = append(rows, fmt.Sprintf("| %d | %s | %s |\n", evaluate(t, first.Values[0], i), v.Names[0].Name, strings.ReplaceAll(note, "\n", " ")))
			}
		}
	}
	return rows
}

// evaluate knows iota, numbers and sums.
func evaluate(t *testing.T, e ast.Expr, iota int) int {
	t.Helper()
	switch e := e.(type) {
	case *ast.Ident:
		if e.Name == "iota" {
			return iota
		}
	case *ast.BasicLit:
		if n, err := strconv.Atoi(e.Value); err == nil {
			return n
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return evaluate(t, e.X, iota) + evaluate(t, e.Y, iota)
		}
	}
	t.Fatalf("a constant that is no sum of iota and numbers")
	return 0
}

// Every key of every frame is on the page.
func TestKeysAreDocumented(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	run := Run{Replay: config.Replay{Engine: config.Engine{Timing: config.Timing{Profile: &config.ProfileTable{}, Grid: &config.GridTable{}}}}}
	run.Prefill.Workers = 1
	run.Scaling.Script = []config.Target{{}}
	run.Routing = config.Routing{Router: &config.Router{Policy: &config.RouterPolicy{}}, LoadGrid: &config.GridTable{}}
	n := 0
	for _, fields := range [][]Field{
		run.Fields(), SummaryFields(&replay.Summary{SharedHost: &replay.HostPool{}, Agents: &replay.AgentsSummary{}}), (&RowColumns{}).Fields(), (&Feeding{}).Fields(), (&Fed{}).AllFields(),
		SpecFields(&synth.Spec{}), (&Progressed{}).RouterFields(), (&HandoffColumns{}).Fields(), (&RouteColumns{}).Fields(), (&RecordingColumns{}).Fields(),
		(&TickColumns{}).Fields(), (&SampleColumns{}).Fields(), (&LifecycleColumns{}).Fields(),
		(&GraphAbout{}).Fields(), (&NodeColumns{}).Fields(), (&PlayColumns{}).Fields(), (&OutcomeColumns{}).Fields(),
		(&Progressed{}).QueryFields(), (&Stepping{}).Fields(NeedTiming), (&Stepping{}).Fields(NeedScaling), (&Part{}).Fields(), (&TurnColumns{}).Fields(), (&SessionColumns{}).Fields(),
	} {
		for _, f := range fields {
			n++
			if strings.HasPrefix(f.Name, "prefill.engine.") {
				continue // as those of engine
			}
			if !strings.Contains(string(text), "`"+f.Name+"`") {
				t.Errorf("docs/frames.md does not name `%s`", f.Name)
			}
		}
	}
	for kind := intake.ByTrace; kind <= intake.ByObject; kind++ {
		fault := TraceFault{Finding: intake.Finding{Kind: kind}}
		for _, f := range fault.Fields() {
			n++
			if !strings.Contains(string(text), f.Name) {
				t.Errorf("docs/frames.md does not name %s", f.Name)
			}
		}
	}
	if n < 150 {
		t.Errorf("only %d keys", n)
	}
}
