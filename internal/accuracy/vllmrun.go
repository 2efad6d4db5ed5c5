package accuracy

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// ReadRun reads a vLLM run as LLMServingSim records it: a directory with
// meta.json (model, engine arguments) and requests.jsonl (a line per request,
// times in seconds of one clock). Requests arrive when vLLM queued them; the
// directory two levels up names the GPU.
func ReadRun(dir string) (Case, error) {
	var meta struct {
		Model  string `json:"model"`
		Kwargs struct {
			TP                  int `json:"tensor_parallel_size"`
			MaxNumSeqs          int `json:"max_num_seqs"`
			MaxNumBatchedTokens int `json:"max_num_batched_tokens"`
		} `json:"engine_kwargs"`
	}
	path := filepath.Join(dir, "meta.json")
	data, err := os.ReadFile(path)
	if err != nil {
		return Case{}, err
	}
	if err := json.Unmarshal(data, &meta); err != nil {
		return Case{}, fmt.Errorf("%s: %w; the record of a vLLM run is accepted", path, err)
	}
	if meta.Model == "" || meta.Kwargs.TP < 1 {
		return Case{}, fmt.Errorf("%s: has no model or no engine_kwargs.tensor_parallel_size; both are needed", path)
	}
	system := filepath.Base(filepath.Dir(filepath.Clean(dir)))
	c := Case{
		Name:  fmt.Sprintf("%s, %d x %s, vLLM", meta.Model, meta.Kwargs.TP, system),
		Model: meta.Model, Backend: "vllm", System: system, TP: meta.Kwargs.TP,
		MaxNumSeqs: meta.Kwargs.MaxNumSeqs, MaxNumBatchedTokens: meta.Kwargs.MaxNumBatchedTokens,
	}
	samples, err := c.readRequests(filepath.Join(dir, "requests.jsonl"))
	if err != nil {
		return Case{}, err
	}
	c.Measured = Reduce(samples)
	return c, nil
}

func (c *Case) readRequests(path string) ([]Sample, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var samples []Sample
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		var r struct {
			Input  int     `json:"input_toks"`
			Output int     `json:"output_toks"`
			Queued float64 `json:"queued_ts"`
			First  float64 `json:"first_token_ts"`
			Last   float64 `json:"last_token_ts"`
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w; the record of a request is accepted", path, n, err)
		}
		if r.Input < 1 || r.Output < 1 || !(r.Queued <= r.First && r.First <= r.Last) {
			return nil, fmt.Errorf("%s: line %d: has no tokens or times in disorder; a served request is accepted", path, n)
		}
		const ms = 1000
		c.Requests = append(c.Requests, Request{ArrivalMs: r.Queued * ms, Input: r.Input, Output: r.Output})
		samples = append(samples, sample(r.Queued*ms, r.First*ms, r.Last*ms, r.Output))
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(samples) == 0 {
		return nil, fmt.Errorf("%s: has no requests; one or more are needed", path)
	}
	slices.SortStableFunc(c.Requests, func(a, b Request) int { return cmp.Compare(a.ArrivalMs, b.ArrivalMs) })
	start := c.Requests[0].ArrivalMs
	for i := range c.Requests {
		c.Requests[i].ArrivalMs -= start
	}
	return samples, nil
}
