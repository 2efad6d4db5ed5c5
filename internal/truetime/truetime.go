// Package truetime plays a trace in real time against the live mocker, over HTTP
// and as streams, and compares what its client sees with a replay of the same
// trace.
//
// It owns the client and the comparison. It does not own either program: both are
// run as a user would run them.
//
// A prompt is the token ids that the trace's hash ids stand for, so the mocker's
// cache finds what the replay's finds. The client's times include everything: the
// request's way, its JSON, the engine and the answer's way back.
//
// Invariants: requests are sent at the trace's times and never wait for each
// other; a request that is not answered to its last token is a failure.
package truetime

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"strconv"
	"sync"

	"github.com/dryserve/dryserve/host/native/live/books"
	"github.com/dryserve/dryserve/host/native/live/clock"
)

// blockTokens is how many tokens a hash id of the trace stands for, as usual in
// Mooncake traces and in replay.
const blockTokens = 512

// Row is a request of a trace.
type Row struct {
	AtMs   float64  `json:"timestamp"`
	Input  int      `json:"input_length"`
	Output int      `json:"output_length"`
	Hashes []uint32 `json:"hash_ids"`
}

// ReadRows reads the first n rows of a plain Mooncake trace.
func ReadRows(path string, n int) (rows []Row, text []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for len(rows) < n && lines.Scan() {
		var r Row
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, nil, fmt.Errorf("%s:%d: %w", path, len(rows)+1, err)
		}
		if r.Input < 1 || r.Output < 1 || (len(r.Hashes)-1)*blockTokens >= r.Input || len(r.Hashes)*blockTokens < r.Input {
			return nil, nil, fmt.Errorf("%s:%d: %d tokens of prompt, %d of answer and %d hash ids; a row of Mooncake's with %d tokens a hash id is accepted", path, len(rows)+1, r.Input, r.Output, len(r.Hashes), blockTokens)
		}
		rows, text = append(rows, r), append(append(text, lines.Bytes()...), '\n')
	}
	if len(rows) == 0 {
		return nil, nil, errors.Join(fmt.Errorf("%s has no rows", path), lines.Err())
	}
	return rows, text, lines.Err()
}

// body is the request of a row.
func (r Row) body(model string) []byte {
	b := append([]byte(`{"model":`), strconv.Quote(model)...)
	b = append(b, `,"stream":true,"ignore_eos":true,"max_tokens":`...)
	b = strconv.AppendInt(b, int64(r.Output), 10)
	b = append(b, `,"prompt":[`...)
	for i := range r.Input {
		if i > 0 {
			b = append(b, ',')
		}
		// Any numbers will do that are equal where the ids are.
		b = strconv.AppendUint(b, uint64(r.Hashes[i/blockTokens]*blockTokens+uint32(i%blockTokens)), 10)
	}
	return append(b, "]}"...)
}

// Play sends the rows to a server at their times, the first at once, and books
// what its clients see. lateMs is how late the latest of them was sent.
func Play(url, model string, rows []Row) (b *books.Books, lateMs float64, err error) {
	c := clock.NewWall(true)
	w := c.Waiter()
	b = new(books.Books)
	var all sync.WaitGroup
	failures := make(chan error, len(rows))
	bodies := make([][]byte, len(rows))
	for i, r := range rows {
		bodies[i] = r.body(model)
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: len(rows)}}
	defer client.CloseIdleConnections()
	startMs := c.NowMs() + 20
	for i, r := range rows {
		atMs := startMs + r.AtMs - rows[0].AtMs
		w.Until(atMs, nil)
		sentMs := c.NowMs()
		lateMs = max(lateMs, sentMs-atMs)
		all.Go(func() {
			if err := ask(client, url, c, b.Arrive(r.Input, sentMs), r.Output, bodies[i]); err != nil {
				failures <- fmt.Errorf("request %d: %w", i+1, err)
			}
		})
	}
	all.Wait()
	select {
	case err = <-failures:
	default:
	}
	return b, lateMs, err
}

// ask asks for one answer and notes its tokens.
func ask(client *http.Client, url string, c clock.Clock, q *books.Request, tokens int, body []byte) error {
	resp, err := client.Post(url+"/v1/completions", "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		return fmt.Errorf("status %d: %s", resp.StatusCode, bytes.TrimSpace(text))
	}
	r := bufio.NewReader(resp.Body)
	n := 0
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return fmt.Errorf("the stream ends after %d tokens of %d: %w", n, tokens, err)
		}
		switch {
		case bytes.HasPrefix(line, []byte("data: [DONE]")):
			if n != tokens {
				return fmt.Errorf("%d tokens, want %d", n, tokens)
			}
			q.End(books.Completed, 0, c.NowMs())
			return nil
		case bytes.Contains(line, []byte(`"finish_reason":null`)):
			q.Token(c.NowMs())
			n++
		}
	}
}

// Median is what the comparison looks at, in ms: by its name in a report.
type Median struct {
	Key, Name    string
	Limited      bool // must be within the limit
	Replay, Live float64
	Served       float64 // as the mocker itself reports it
}

// PerCent is by how much the live figure differs.
func (m Median) PerCent() float64 { return 100 * (m.Live/m.Replay - 1) }

// Medians reads those of a replay's report and of the mocker's, beside what the
// client has seen.
func Medians(b *books.Books, replay, served []byte) ([]Median, error) {
	s := b.Summary(1, 1)
	list := []Median{
		{Key: "median_ttft_ms", Name: "TTFT", Limited: true, Live: s.TTFT.Median}, {Key: "median_itl_ms", Name: "ITL", Limited: true, Live: s.ITL.Median},
		{Key: "median_tpot_ms", Name: "TPOT", Live: s.TPOT.Median}, {Key: "median_e2e_latency_ms", Name: "E2E", Live: s.E2E.Median},
	}
	for _, x := range []struct {
		text []byte
		to   func(i int) *float64
	}{{replay, func(i int) *float64 { return &list[i].Replay }}, {served, func(i int) *float64 { return &list[i].Served }}} {
		var doc map[string]any
		if err := json.Unmarshal(x.text, &doc); err != nil {
			return nil, err
		}
		for i := range list {
			v, ok := doc[list[i].Key].(float64)
			if !ok || !(v > 0) {
				return nil, fmt.Errorf("a report has no %s", list[i].Key)
			}
			*x.to(i) = v
		}
		if n := doc["completed_requests"]; n != float64(s.CompletedRequests) {
			return nil, fmt.Errorf("a report has %v completed requests, the client %d", n, s.CompletedRequests)
		}
	}
	return list, nil
}

// Within reports whether the medians that count differ by at most so many per
// cent.
func Within(list []Median, perCent float64) bool {
	for _, m := range list {
		if m.Limited && !(math.Abs(m.PerCent()) <= perCent) {
			return false
		}
	}
	return true
}
