package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A table gives the results of the Mooncake trace it stands for, by either
// engine.
func TestTablesAsMooncake(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "azure.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03.9799600,1100,10\r\n2023-11-16 18:17:04.0319600,600,8\r\n2023-11-16 18:17:03.9899600,1500,30\r\n")
	put(t, dir, "azure.jsonl", `{"timestamp":0,"input_length":1100,"output_length":10,"hash_ids":[1,2,3]}
{"timestamp":52,"input_length":600,"output_length":8,"hash_ids":[4,5]}
{"timestamp":10,"input_length":1500,"output_length":30,"hash_ids":[6,7,8]}
`)
	put(t, dir, "burst.csv", "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"+
		"100.0,s,0.5,GPT-4,600,30,630,Conversation log\n100.25,,2,ChatGPT,900,20,920,API log\n100.5,,2,ChatGPT,0,0,0,API log\n"+
		"101.0,s,1,GPT-4,1200,5,1205,Conversation log\n104.0,s,1,GPT-4,40,5,45,Conversation log\n")
	put(t, dir, "burst.jsonl", `{"session_id":"s","timestamp":100000,"input_length":600,"output_length":30,"hash_ids":[1,2]}
{"timestamp":100250,"input_length":900,"output_length":20,"hash_ids":[3,4]}
{"session_id":"s","delay":500,"input_length":1200,"output_length":5,"hash_ids":[1,2,5]}
{"session_id":"s","delay":2000,"input_length":40,"output_length":5,"hash_ids":[6]}
`)
	for _, name := range []string{"azure", "burst"} {
		var reports []string
		for _, trace := range []string{name + ".csv", name + ".jsonl"} {
			for _, engine := range []string{"fast", "plain"} {
				out := invoke(t, dir, trace, "--num-workers", "2", "--engine-impl", engine, "--report-json", "r.json")
				if out.status != 0 {
					t.Fatalf("%+v", out)
				}
				text, err := os.ReadFile(filepath.Join(dir, "r.json"))
				if err != nil {
					t.Fatal(err)
				}
				reports = append(reports, timeless(string(text)))
				if left := "1 of 5 requests are left out: they have no tokens, as those that failed"; strings.Contains(out.stderr, left) != (trace == "burst.csv") {
					t.Errorf("%s: %s", trace, out.stderr)
				}
			}
		}
		for _, r := range reports[1:] {
			if r != reports[0] {
				t.Errorf("%s: reports differ:\n%s\n%s", name, reports[0], r)
			}
		}
	}
}

// The examples of other formats run, and both engines agree.
func TestExampleTraces(t *testing.T) {
	dir := t.TempDir()
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"agents.json": "read as weka", "table.csv": "read as burstgpt"} {
		var reports []string
		for _, engine := range []string{"fast", "plain"} {
			out := invoke(t, dir, filepath.Join(examples, name), "--execution-model", "m", "--engine-impl", engine, "--report-json", "r.json", "--no-table")
			text, err := os.ReadFile(filepath.Join(dir, "r.json"))
			if out.status != 0 || !strings.Contains(out.stderr, want) || err != nil {
				t.Fatalf("%+v %v", out, err)
			}
			reports = append(reports, timeless(string(text)))
		}
		if reports[0] != reports[1] {
			t.Errorf("%s: reports differ:\n%s\n%s", name, reports[0], reports[1])
		}
	}
}

// timeless drops what depends on the time of day.
func timeless(report string) string {
	var lines []string
	for _, line := range strings.Split(report, "\n") {
		if !strings.Contains(line, "wall_time") && !strings.Contains(line, "processed_") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}
