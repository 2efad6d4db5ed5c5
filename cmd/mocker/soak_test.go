//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// soakMinutes is the variable that says how long TestSoak runs; `make soak` sets
// it.
const soakMinutes = "DRYSERVE_SOAK_MINUTES"

// A server under a mixed load takes no more memory and no more goroutines as time
// goes by: whole answers and streams, clients that go, that read slowly, that send
// nonsense or only half of it. Every so often the clients pause and what is left
// is measured, after a garbage collection. Without the variable it runs for a few
// seconds and measures five times.
func TestSoak(t *testing.T) {
	period, samples := 400*time.Millisecond, 5
	if text := os.Getenv(soakMinutes); text != "" {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || !(n > 0) {
			t.Fatalf("%s is %q; a number of minutes is accepted", soakMinutes, text)
		}
		period, samples = time.Minute, max(int(n), 5)
		if n < 5 {
			period = time.Duration(n * float64(time.Minute) / 5)
		}
	}
	address, stop := launch(t, "--speedup-ratio", "1000", "--num-workers", "3", "--router-mode", "kv", "--data-parallel-size", "2", "--num-gpu-blocks-override", "256", "--block-size", "16",
		"--log-level", "error", "--fault-disconnect-rate", "0.02", "--fault-error-rate", "0.02", "--fault-seed", "1")
	defer stop()
	s := newSoaker(address)
	s.run(2 * period) // caches fill
	var list []soaked
	fmt.Printf("%8s %10s %12s %12s %11s\n", "minute", "requests", "answered", "heap kB", "goroutines")
	began := time.Now()
	for range samples {
		s.run(period)
		x := s.measure()
		list = append(list, x)
		fmt.Printf("%8.2f %10d %12d %12.0f %11d\n", time.Since(began).Minutes(), s.asked.Load(), s.answered.Load(), x.heapKB, x.goroutines)
	}
	if s.answered.Load() == 0 || s.asked.Load() < 10*int64(samples) {
		t.Fatalf("%d requests, %d answers", s.asked.Load(), s.answered.Load())
	}
	for _, e := range s.failures() {
		t.Error(e)
	}
	first, last := middle(list[:max(1, len(list)/3)]), middle(list[len(list)-max(1, len(list)/3):])
	// What buffers are kept for the next request differs by up to 2 MB from pause to
	// pause. In half an hour, half a million requests, a leak of five bytes each shows.
	if last.heapKB > 1.1*first.heapKB+2048 {
		t.Errorf("the heap grows from %.0f to %.0f kB", first.heapKB, last.heapKB)
	}
	if last.goroutines > first.goroutines+2 {
		t.Errorf("the goroutines grow from %d to %d", first.goroutines, last.goroutines)
	}
}

// soaked is what is left of a pause.
type soaked struct {
	heapKB     float64
	goroutines int
}

// middle is the median of each.
func middle(list []soaked) (m soaked) {
	var heap []float64
	var routines []int
	for _, x := range list {
		heap, routines = append(heap, x.heapKB), append(routines, x.goroutines)
	}
	slices.Sort(heap)
	slices.Sort(routines)
	return soaked{heap[len(heap)/2], routines[len(routines)/2]}
}

// soaker is the clients.
type soaker struct {
	address  string
	asked    atomic.Int64
	answered atomic.Int64
	mu       sync.Mutex
	failed   []error
}

func newSoaker(address string) *soaker { return &soaker{address: address} }

func (s *soaker) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.failed) < 10 {
		s.failed = append(s.failed, err)
	}
}

func (s *soaker) failures() []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// run lets eight clients ask for a while, in all ways there are, and waits until
// all have ended.
func (s *soaker) run(d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			lots := rand.New(rand.NewPCG(uint64(s.asked.Load()), uint64(i)))
			for ctx.Err() == nil {
				s.asked.Add(1)
				switch lots.IntN(10) {
				case 0:
					s.nonsense(client, lots)
				case 1:
					s.half(lots)
				case 2:
					s.vanish(client, lots)
				case 3:
					s.slow(client, lots)
				case 4:
					s.read(client, "/metrics")
				default:
					s.ask(client, lots)
				}
				time.Sleep(time.Duration(lots.IntN(20)) * time.Millisecond)
			}
		})
	}
	all.Wait()
}

// body is a request; prompts of several clients begin alike.
func (s *soaker) body(lots *rand.Rand, tokens int, stream bool) string {
	return fmt.Sprintf(`{"model":"dynamo","prompt":"%s%d","max_tokens":%d,"stream":%v}`, strings.Repeat("All prompts begin so. ", lots.IntN(20)), lots.IntN(1e6), tokens, stream)
}

func (s *soaker) post(ctx context.Context, client *http.Client, body string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, "POST", "http://"+s.address+"/v1/completions", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	return client.Do(r)
}

// ask reads an answer to its end. Faults are made: an error of the server's is an
// answer, a broken connection is none.
func (s *soaker) ask(client *http.Client, lots *rand.Rand) {
	resp, err := s.post(context.Background(), client, s.body(lots, 1+lots.IntN(40), lots.IntN(2) == 0))
	if err != nil {
		return
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
	case resp.StatusCode == 200 && (strings.HasSuffix(string(text), "data: [DONE]\n\n") || strings.HasSuffix(string(text), "}\n")):
		s.answered.Add(1)
	case resp.StatusCode != 500:
		s.fail(fmt.Errorf("status %d: %s", resp.StatusCode, text))
	}
}

// vanish goes in the middle of a stream.
func (s *soaker) vanish(client *http.Client, lots *rand.Rand) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(lots.IntN(30))*time.Millisecond)
	defer cancel()
	resp, err := s.post(ctx, client, s.body(lots, 4000, true))
	if err != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, resp.Body, 200)
	_ = resp.Body.Close()
}

// slow reads a few bytes at a time, and then goes.
func (s *soaker) slow(client *http.Client, lots *rand.Rand) {
	resp, err := s.post(context.Background(), client, s.body(lots, 300, true))
	if err != nil {
		return
	}
	defer resp.Body.Close()
	for range 20 {
		if _, err := resp.Body.Read(make([]byte, 16)); err != nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// nonsense is refused, and is no fault of the server's.
func (s *soaker) nonsense(client *http.Client, lots *rand.Rand) {
	bodies := []string{"", "{", `{"model":"other","prompt":"a"}`, `{"model":"dynamo","prompt":[-1]}`, `{"model":"dynamo","prompt":"a","max_tokens":1e9}`, "\x00\xff", strings.Repeat("[", 20_000)}
	resp, err := s.post(context.Background(), client, bodies[lots.IntN(len(bodies))])
	if err != nil {
		s.fail(err)
		return
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	if resp.StatusCode < 400 || resp.StatusCode > 500 {
		s.fail(fmt.Errorf("nonsense has status %d: %s", resp.StatusCode, text))
	}
}

// half sends half a request, and goes.
func (s *soaker) half(lots *rand.Rand) {
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		s.fail(err)
		return
	}
	defer conn.Close()
	whole := "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{\"model\":"
	_, _ = io.WriteString(conn, whole[:lots.IntN(len(whole))])
	time.Sleep(time.Duration(lots.IntN(5)) * time.Millisecond)
}

func (s *soaker) read(client *http.Client, path string) {
	resp, err := client.Get("http://" + s.address + path)
	if err != nil {
		s.fail(err)
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
}

// measure waits until the server has let go of what has ended.
func (s *soaker) measure() soaked {
	x := soaked{goroutines: runtime.NumGoroutine()}
	for range 100 { // connections close when the server notices
		time.Sleep(5 * time.Millisecond)
		n := runtime.NumGoroutine()
		if n == x.goroutines && n < 40 {
			break
		}
		x.goroutines = n
	}
	runtime.GC() // pools are emptied by the second
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	x.heapKB = float64(m.HeapAlloc) / 1024
	return x
}
