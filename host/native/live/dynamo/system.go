package dynamo

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/dryserve/dryserve/host/native/live/card"
)

// Health is what the system server says of the workers.
type Health struct {
	Ready              bool   // a mocker is not, unless told so (live notes §7)
	HealthPath, Living string // routes
}

// serveSystem begins to serve metrics and health, if that is asked for.
func (s *Site) serveSystem() error {
	if s.o.System == "" {
		return nil
	}
	l, err := net.Listen("tcp", s.o.System)
	if err != nil {
		return fmt.Errorf("the system server cannot listen at %s: %w", s.o.System, err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+s.o.Health.HealthPath, s.health(time.Now()))
	mux.HandleFunc("GET "+s.o.Health.Living, s.health(time.Now()))
	mux.Handle("GET /metrics", s.o.Meter.Handler())
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "Route not found")
	})
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 30 * time.Second, ErrorLog: slog.NewLogLogger(s.o.Log.Handler(), slog.LevelDebug)}
	s.system = l.Addr().String()
	s.loops.Go(func() { _ = s.http.Serve(l) }) // ends with Close
	return nil
}

// System is where the system server listens, "" if there is none.
func (s *Site) System() string { return s.system }

// health says how it is and which endpoints there are.
func (s *Site) health(started time.Time) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		word, status := "notready", http.StatusServiceUnavailable
		s.mu.Lock()
		if s.o.Health.Ready && !s.leaving {
			word, status = "ready", http.StatusOK
		}
		names := fmt.Sprintf("%q:\"ready\"", s.o.Endpoint)
		for _, x := range s.workers {
			for _, p := range x.tells {
				names += fmt.Sprintf(",%q:\"ready\"", card.QueryName(p.ID))
			}
		}
		s.mu.Unlock()
		up := time.Since(started)
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"status":"%s","uptime":{"secs":%d,"nanos":%d},"endpoints":{%s}}`, word, up/time.Second, up%time.Second, names)
	}
}
