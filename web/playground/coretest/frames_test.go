package coretest

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The recorded dialogues, spoken in JavaScript: requests read and written again
// get the recorded answers, and what is read is what the record spells out.
func TestDialogues(t *testing.T) {
	var n struct{ Calls, Frames, Values int }
	if err := json.Unmarshal(node(t, "dialogue.mjs", core, root+"/testdata/frames/dialogue.txt"), &n); err != nil {
		t.Fatal(err)
	}
	if n.Calls < 40 || n.Frames < 60 || n.Values < 500 {
		t.Errorf("only %+v", n)
	}
}

// The numbers in JavaScript are those of docs/frames.md.
func TestTables(t *testing.T) {
	var constants map[string]map[string]int
	if err := json.Unmarshal(node(t, "tables.mjs"), &constants); err != nil {
		t.Fatal(err)
	}
	docs := read(t, root+"/docs/frames.md")
	row := regexp.MustCompile(`(?m)^\| (\d+) \| (\w+) \|`)
	for name, want := range map[string]string{"Op": "frame.Op", "Status": "frame.Status", "Refused": "frame.Error", "Code": "config.Code", "Field": "config.Field", "Line": "trace.Code", "Row": "workload.Code"} {
		_, rest, _ := strings.Cut(docs, "<!-- table: "+want+" -->")
		table, _, ok := strings.Cut(rest, "<!-- end -->")
		rows := row.FindAllStringSubmatch(table, -1)
		if !ok || len(rows) < 8 {
			t.Fatalf("%s: %d rows", want, len(rows))
		}
		missing := []string{}
		for _, r := range rows {
			key := strings.TrimPrefix(r[2], "Field")
			got, known := constants[name][key]
			switch {
			case !known:
				missing = append(missing, key)
			case r[1] != strconv.Itoa(got):
				t.Errorf("%s.%s is %d, want %s", name, key, got, r[1])
			}
		}
		if want := strings.Join(unsaid[name], " "); strings.Join(missing, " ") != want {
			t.Errorf("%s has no %v, want none but %s", name, missing, want)
		}
	}
}

// unsaid are numbers that the JavaScript has no name for: what is right, and
// tables, which it checks itself.
var unsaid = map[string][]string{
	"Refused": {"OK"}, "Line": {"OK"}, "Row": {"OK"},
	"Code": {"Valid", "NoTable", "TooFew", "NotRising", "WrongLength"},
	"Field": {"None", "Profile", "ProfilePrefillISL", "ProfilePrefillTTFT", "ProfileDecodeActiveKV", "ProfileDecodeContext", "ProfileDecodeITL",
		"Grid", "GridPrefillBatch", "GridPrefillISL", "GridPrefillPrefix", "GridPrefillMs", "GridDecodeBatch", "GridDecodeContext", "GridDecodeMs"},
}
