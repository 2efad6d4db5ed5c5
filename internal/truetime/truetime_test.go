package truetime

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func rows(t *testing.T, text string) ([]Row, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "t.jsonl")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	list, kept, err := ReadRows(path, 2)
	if err == nil && strings.Count(string(kept), "\n") != len(list) {
		t.Errorf("%d rows, text %q", len(list), kept)
	}
	return list, err
}

// Rows are read as far as wanted; those that cannot be played are named.
func TestReadRows(t *testing.T) {
	const row = `{"timestamp":5,"input_length":600,"output_length":3,"hash_ids":[7,8]}` + "\n"
	if list, err := rows(t, row+row+"no row"); err != nil || len(list) != 2 || list[1].Input != 600 || list[1].Hashes[1] != 8 {
		t.Errorf("%v, %v", list, err)
	}
	for text, want := range map[string]string{
		"": "has no rows", row + "{": ":2: ", `{"timestamp":5,"input_length":600,"output_length":3,"hash_ids":[7]}`: ":1: 600 tokens of prompt",
		`{"timestamp":5,"input_length":512,"output_length":3,"hash_ids":[7,8]}`: "512 tokens of prompt", `{"timestamp":5,"input_length":5,"output_length":0,"hash_ids":[7]}`: "0 of answer",
	} {
		if _, err := rows(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Equal hash ids are equal tokens.
func TestBody(t *testing.T) {
	var a, b struct{ Prompt []uint32 }
	if json.Unmarshal(Row{Input: 1000, Output: 1, Hashes: []uint32{3, 4}}.body("m"), &a) != nil || json.Unmarshal(Row{Input: 700, Output: 1, Hashes: []uint32{3, 5}}.body("m"), &b) != nil {
		t.Fatal("no JSON")
	}
	if len(a.Prompt) != 1000 || len(b.Prompt) != 700 || a.Prompt[511] != b.Prompt[511] || a.Prompt[512] == b.Prompt[512] || a.Prompt[0] == a.Prompt[1] {
		t.Errorf("%d and %d tokens", len(a.Prompt), len(b.Prompt))
	}
}

// The client books what it sees, and an answer with a token too few is a failure.
func TestPlay(t *testing.T) {
	tokens := 3
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range tokens {
			time.Sleep(5 * time.Millisecond)
			fmt.Fprint(w, "data: {\"choices\":[{\"text\":\"x\",\"finish_reason\":null}]}\n\n")
			w.(http.Flusher).Flush()
		}
		fmt.Fprint(w, "data: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n")
	}))
	defer s.Close()
	list := []Row{{AtMs: 100, Input: 10, Output: 3, Hashes: []uint32{1}}, {AtMs: 130, Input: 20, Output: 3, Hashes: []uint32{2}}}
	b, lateMs, err := Play(s.URL, "m", list)
	if err != nil || lateMs < 0 {
		t.Fatal(err)
	}
	if x := b.Summary(1, 1); x.CompletedRequests != 2 || x.TotalInputTokens != 30 || x.TotalOutputTokens != 6 || x.TTFT.Min < 5 || x.DurationMs < 15 {
		t.Errorf("%+v", x)
	}
	report := `{"completed_requests":2,"median_ttft_ms":1,"median_itl_ms":5,"median_tpot_ms":5,"median_e2e_latency_ms":10}`
	medians, err := Medians(b, []byte(report), []byte(report))
	if err != nil || len(medians) != 4 || medians[0].Replay != 1 || Within(medians, 100) || !Within(medians, 1e9) {
		t.Errorf("%v: %+v", err, medians)
	}
	if _, err := Medians(b, []byte(report), []byte(strings.Replace(report, ":2", ":1", 1))); err == nil {
		t.Error("a report of another run is taken")
	}
	tokens = 2
	if _, _, err := Play(s.URL, "m", list); err == nil || !strings.Contains(err.Error(), "2 tokens, want 3") {
		t.Error(err)
	}
}
