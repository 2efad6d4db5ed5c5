// Package openai serves simulated workers by HTTP, as OpenAI's API does.
//
// It owns the routes, the requests' JSON and its checks, prompts of chats, stop
// strings and end tokens, the form of answers, of streams and of errors, and how
// faults look to a client. It does not own the workers (live/fleet), what they
// answer (live/answer) or tokens (live/tokenizer).
//
// The answer of a request is known when it comes: only when its tokens are there
// is simulated. So a stop string is found ahead, and the engine is asked for just
// the tokens up to it.
//
// Invariants:
//   - a request that is not answered to its end leaves the workers: when its
//     client goes, when it fails, and when the connection is broken on purpose.
//   - an error is either a status with OpenAI's error object, or, once a stream
//     has begun, an event with it.
//   - a reader that does not read stops its own answer only, and is given up after
//     a while.
package openai

import (
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dryserve/dryserve/host/native/live/answer"
	"github.com/dryserve/dryserve/host/native/live/books"
	"github.com/dryserve/dryserve/host/native/live/clock"
	"github.com/dryserve/dryserve/host/native/live/fault"
	"github.com/dryserve/dryserve/host/native/live/fleet"
	"github.com/dryserve/dryserve/host/native/live/meter"
	"github.com/dryserve/dryserve/host/native/live/tokenizer"
	"github.com/dryserve/dryserve/host/native/live/worker"
)

// Backend is who serves requests: a fleet.
type Backend interface {
	Submit(fleet.Request, worker.Sink) (*fleet.Job, error)
}

// Options describe a server. Recorded, Meter and Books may be nil.
type Options struct {
	Backend   Backend
	Clock     clock.Clock
	Tokenizer *tokenizer.Tokenizer
	Style     answer.Style
	Recorded  answer.Recorded
	Ends      []uint32 // token ids that end an answer, unless a request ignores them
	Meter     *meter.Meter
	Books     *books.Books
	Faults    *fault.Source
	Log       *slog.Logger

	Model         string
	Version       string // of this program
	ContextTokens int    // the most that prompt and answer have together
	ChatTokens    int    // length of a chat's answer where the request does not say
	Seed          uint64 // of answers and of ids
	MaxBodyBytes  int64
	Patience      time.Duration // how long a client may take to send its body, or read nothing; 0: patience
}

// patience is how long clients are usually waited for. One that is there but
// neither sends nor reads would keep its connection for ever.
const patience = 5 * time.Minute

// completionTokens is the length of a completion where the request does not
// say: OpenAI's default.
const completionTokens = 16

// Server is the state. Take it from New.
type Server struct {
	Options
	mux      *http.ServeMux
	format   format
	count    atomic.Uint64 // of requests
	draining atomic.Bool
	mu       sync.Mutex
	active   int           // requests under way
	drained  chan struct{} // closed once it drains and none is under way
	created  int64
	started  time.Time
}

// New returns a server.
func New(o Options) *Server {
	if o.Patience == 0 {
		o.Patience = patience
	}
	s := &Server{Options: o, mux: http.NewServeMux(), started: time.Now(), created: time.Now().Unix(), format: formatOf(o.Tokenizer), drained: make(chan struct{})}
	s.mux.HandleFunc("POST /v1/completions", func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, completions) })
	s.mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, chats) })
	s.mux.HandleFunc("GET /v1/models", s.models)
	s.mux.HandleFunc("GET /v1/models/{name...}", s.model)
	s.mux.HandleFunc("GET /health", s.health)
	s.mux.HandleFunc("GET /live", s.live)
	s.mux.HandleFunc("GET /version", s.version)
	if o.Meter != nil {
		s.mux.Handle("GET /metrics", o.Meter.Handler())
	}
	s.mux.HandleFunc("/", s.unknown)
	for _, path := range []string{"/v1/completions", "/v1/chat/completions"} {
		s.mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { s.method(w, r, "POST") })
	}
	for _, path := range []string{"/v1/models", "/health", "/live", "/version", "/metrics"} {
		s.mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { s.method(w, r, "GET") })
	}
	return s
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.RequestURI == "*" { // to which the mux has no words
		s.unknown(w, r)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// Drain refuses requests from now on; those under way go on. It is to be called
// once.
func (s *Server) Drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining.Store(true)
	if s.active == 0 {
		close(s.drained)
	}
}

// Drained is closed when the last request under way has ended, after Drain.
func (s *Server) Drained() <-chan struct{} { return s.drained }

// enter counts a request, unless the server drains; leave is its end.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining.Load() {
		return false
	}
	s.active++
	return true
}

func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active--; s.active == 0 && s.draining.Load() {
		close(s.drained)
	}
}

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	b := append([]byte(`{"object":"list","data":[`), s.card()...)
	respond(w, http.StatusOK, append(b, "]}\n"...))
}

func (s *Server) model(w http.ResponseWriter, r *http.Request) {
	if name := r.PathValue("name"); name != s.Model {
		s.refuse(w, noModel(name))
		return
	}
	respond(w, http.StatusOK, append(s.card(), '\n'))
}

// card describes the model.
func (s *Server) card() []byte {
	b := append([]byte(`{"id":`), quote(s.Model)...)
	b = append(b, `,"object":"model","created":`...)
	b = appendInt(b, s.created)
	b = append(b, `,"owned_by":"dryserve","max_model_len":`...)
	b = appendInt(b, int64(s.ContextTokens))
	return append(b, '}')
}

// health says whether requests are taken.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	if s.draining.Load() {
		respond(w, http.StatusServiceUnavailable, s.status("notready"))
		return
	}
	respond(w, http.StatusOK, s.status("ready"))
}

// live says that the process is there.
func (s *Server) live(w http.ResponseWriter, _ *http.Request) {
	respond(w, http.StatusOK, s.status("ready"))
}

// status has the form of the reference's system server (live notes §7).
func (s *Server) status(word string) []byte {
	up := time.Since(s.started)
	b := append([]byte(`{"status":"`), word...)
	b = append(b, `","uptime":{"secs":`...)
	b = appendInt(b, int64(up/time.Second))
	b = append(b, `,"nanos":`...)
	b = appendInt(b, int64(up%time.Second))
	b = append(b, `},"endpoints":{"generate":"`...)
	return append(append(b, word...), "\"}}\n"...)
}

func (s *Server) version(w http.ResponseWriter, _ *http.Request) {
	b := append([]byte(`{"version":`), quote(s.Version)...)
	respond(w, http.StatusOK, append(b, "}\n"...))
}

func (s *Server) unknown(w http.ResponseWriter, r *http.Request) {
	s.refuse(w, failure{http.StatusNotFound, invalid, "", "unknown_url", "there is no " + r.Method + " " + short(r.URL.Path) + "; /v1/models, /v1/completions, /v1/chat/completions, /metrics, /health, /live and /version are served"})
}

func (s *Server) method(w http.ResponseWriter, r *http.Request, accepted string) {
	w.Header().Set("Allow", accepted)
	s.refuse(w, failure{http.StatusMethodNotAllowed, invalid, "", "method_not_allowed", short(r.URL.Path) + " is asked for with " + short(r.Method) + "; " + accepted + " is accepted"})
}

func respond(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that has gone needs no answer
}
