package tracefile

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
)

// The examples of docs/traces.md are traces of the format they stand under.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../../docs/traces.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		name, body, _ := strings.Cut(section, "\n")
		format, ok := ParseFormat(name)
		if !ok {
			t.Errorf("%s is no format", name)
			continue
		}
		seen++
		block := regexp.MustCompile("(?s)```([a-z]+)\n(.*?)```").FindStringSubmatch(body)
		if block == nil {
			t.Errorf("%s has no example", name)
			continue
		}
		o := Options{Format: format, TraceBlockSize: 512, ArrivalSpeedup: 1, Concurrency: format == AppliedCompute, ExecutionModel: "m"}
		for _, o.Format = range []Format{format, Auto} {
			loaded, err := Load(context.Background(), []string{write(t, "t."+block[1], []byte(block[2]))}, o)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if loaded.Format != format && format != MooncakeDelta || len(loaded.Workload.Turns) < 2 {
				t.Errorf("%s is read as %s, %d requests", name, loaded.Format, len(loaded.Workload.Turns))
			}
		}
	}
	if want := len(Formats()); seen != want {
		t.Errorf("%d formats, want %d", seen, want)
	}
}
