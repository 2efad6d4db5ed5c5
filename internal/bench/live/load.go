package live

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Load is what a frontend is asked.
type Load struct {
	Address     string // host:port of the frontend
	Model       string
	Concurrency int
	Requests    int
	PromptBytes int // at least 6, which are the request's number
	Tokens      int
}

// Figures are what a load came to. Times are in ms.
type Figures struct {
	PerSecond        float64
	TTFT50, TTFT99   float64
	Total50, Total99 float64
}

// Run brings the load and fails if any answer is not whole.
func (l Load) Run() (Figures, error) {
	ttft, total := make([]float64, l.Requests), make([]float64, l.Requests)
	var next atomic.Int64
	var all sync.WaitGroup
	failures := make(chan error, l.Concurrency)
	began := time.Now()
	for range l.Concurrency {
		all.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= l.Requests {
					return
				}
				var err error
				if ttft[i], total[i], err = l.ask(i); err != nil {
					failures <- fmt.Errorf("request %d: %w", i, err)
					return
				}
			}
		})
	}
	all.Wait()
	took := time.Since(began).Seconds()
	select {
	case err := <-failures:
		return Figures{}, err
	default:
	}
	slices.Sort(ttft)
	slices.Sort(total)
	return Figures{float64(l.Requests) / took, part(ttft, .5), part(ttft, .99), part(total, .5), part(total, .99)}, nil
}

// part is the value below which a part of sorted ones lies.
func part(sorted []float64, p float64) float64 {
	return sorted[min(len(sorted)-1, int(float64(len(sorted))*p))]
}

// answerTime is the longest that an answer may take.
const answerTime = 60 * time.Second

// ask asks for one streamed completion on a new connection.
func (l Load) ask(i int) (ttftMs, totalMs float64, err error) {
	prompt := fmt.Sprintf("%06d", i) + strings.Repeat("p", max(0, l.PromptBytes-6))
	body := `{"model":` + strconv.Quote(l.Model) + `,"prompt":"` + prompt + `","max_tokens":` + strconv.Itoa(l.Tokens) + `,"stream":true,"ignore_eos":true}`
	began := time.Now()
	conn, err := net.Dial("tcp", l.Address)
	if err != nil {
		return 0, 0, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(began.Add(answerTime))
	if _, err := fmt.Fprintf(conn, "POST /v1/completions HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", l.Address, len(body), body); err != nil {
		return 0, 0, err
	}
	r := bufio.NewReader(conn)
	status, err := r.ReadSlice('\n')
	if err != nil {
		return 0, 0, err
	}
	if !bytes.HasPrefix(status, []byte("HTTP/1.1 200")) {
		return 0, 0, fmt.Errorf("the frontend answers %s", bytes.TrimSpace(status))
	}
	texts := 0
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return 0, 0, errors.Join(errors.New("the stream has no end"), err)
		}
		switch {
		case bytes.HasPrefix(line, []byte("data: [DONE]")):
			if texts != l.Tokens {
				return 0, 0, fmt.Errorf("%d pieces of text, want %d", texts, l.Tokens)
			}
			return ttftMs, ms(began), nil
		case bytes.HasPrefix(line, []byte("data: ")):
			if ttftMs == 0 {
				ttftMs = ms(began)
			}
			if !bytes.Contains(line, []byte(`"text":""`)) {
				texts++
			}
		}
	}
}

func ms(since time.Time) float64 { return float64(time.Since(since).Microseconds()) / 1000 }
