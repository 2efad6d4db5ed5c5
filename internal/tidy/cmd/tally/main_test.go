package main

import (
	"strings"
	"testing"
)

func TestTally(t *testing.T) {
	for _, c := range []struct {
		name  string
		lines []string
		last  string
		said  string
		good  bool
	}{
		{"passing", []string{
			`{"Action":"start","Package":"p"}`,
			`{"Action":"pass","Package":"p","Test":"TestA/x"}`,
			`{"Action":"pass","Package":"p","Test":"TestA"}`,
			`{"Action":"skip","Package":"p","Test":"TestB"}`,
			`{"Action":"pass","Package":"p","Elapsed":0.5}`,
		}, "1 skipped\n2 passed, 0 failed", "ok   p  0.50s", true},
		{"failing test", []string{
			`{"Action":"start","Package":"p"}`,
			`{"Action":"pass","Package":"p","Test":"TestA"}`,
			`{"Action":"output","Package":"p","Test":"TestB","Output":"the reason\n"}`,
			`{"Action":"fail","Package":"p","Test":"TestB"}`,
			`{"Action":"fail","Package":"p","Elapsed":0.5}`,
		}, "1 passed, 1 failed", "the reason", false},
		{"broken build", []string{
			`{"Action":"pass","Package":"q","Test":"TestA"}`,
			`{"ImportPath":"p","Action":"build-output","Output":"x.go:1: bad\n"}`,
			`{"ImportPath":"p","Action":"build-fail"}`,
			`{"Action":"start","Package":"p"}`,
			`{"Action":"fail","Package":"p","FailedBuild":"p"}`,
		}, "1 passed, 1 failed", "x.go:1: bad", false},
		{"panic", []string{
			`{"Action":"start","Package":"p"}`,
			`{"Action":"pass","Package":"p","Test":"TestA"}`,
			`{"Action":"output","Package":"p","Test":"TestB","Output":"panic: test timed out\n"}`,
			`{"Action":"fail","Package":"p"}`,
		}, "1 passed, 1 failed", "TestB did not end:\npanic: test timed out", false},
		{"no tests", []string{`{"Action":"skip","Package":"p"}`}, "0 passed, 0 failed", "", false},
		{"cut off", []string{
			`{"Action":"start","Package":"p"}`,
			`{"Action":"pass","Package":"p","Test":"TestA"}`,
		}, "1 passed, 1 failed", "FAIL p  did not end", false},
		{"foreign line", []string{
			`go: warning`, `{"Action":"pass","Package":"p","Test":"TestA"}`, `{"Action":"pass","Package":"p"}`,
		}, "1 passed, 0 failed", "go: warning", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			tally := newTally(&out)
			if err := tally.read(strings.NewReader(strings.Join(c.lines, "\n"))); err != nil {
				t.Fatal(err)
			}
			if good := tally.close(); good != c.good {
				t.Errorf("good is %v", good)
			}
			text := strings.TrimSpace(out.String())
			if !strings.HasSuffix(text, c.last) || !strings.Contains(text, c.said) {
				t.Errorf("want %q and last %q in:\n%s", c.said, c.last, text)
			}
		})
	}
}
