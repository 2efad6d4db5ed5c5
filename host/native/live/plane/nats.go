package plane

import (
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/dryserve/dryserve/host/native/live/card"
	"github.com/dryserve/dryserve/host/native/live/wire"
)

// queueGroup is what subscribers to a subject have in common: each request goes to
// one of them.
const queueGroup = "q"

// Subjects takes requests over NATS: each endpoint has its subject. It is also a
// service that tools of NATS can find.
type Subjects struct {
	*desk
	conn    *nats.Conn
	service service
	ended   chan struct{}

	mu     sync.Mutex
	subs   map[string]*nats.Subscription // by subject
	closed bool
}

// OverNATS takes requests for the endpoints of a component, over a connection that
// stays the caller's. version is that of the service.
func OverNATS(conn *nats.Conn, namespace, component, version string, log *slog.Logger) (*Subjects, error) {
	s := &Subjects{desk: newDesk(log), conn: conn, ended: make(chan struct{}), subs: map[string]*nats.Subscription{}}
	s.service = service{
		Name: card.Slug(namespace + "_" + component), ID: rand.Text(), Version: version,
		description: "Dynamo component " + component + " in namespace " + namespace, started: time.Now().UTC(),
	}
	for _, verb := range []string{"PING", "INFO", "STATS"} {
		for _, subject := range []string{"$SRV." + verb, "$SRV." + verb + "." + s.service.Name, "$SRV." + verb + "." + s.service.Name + "." + s.service.ID} {
			if err := s.subscribe(subject, "", func(m *nats.Msg) { s.tell(m, verb) }); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

func (s *Subjects) subscribe(subject, group string, hear nats.MsgHandler) error {
	sub, err := s.conn.QueueSubscribe(subject, group, hear)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subs[subject] = sub
	return nil
}

// Address is where NATS is.
func (s *Subjects) Address() string { return s.conn.ConnectedUrlRedacted() }

// Transport names subjects in records.
func (s *Subjects) Transport() card.Transport { return card.NATS }

// Handle lets an endpoint answer under its subject. It returns once NATS knows of
// it, so that what is recorded can be reached.
func (s *Subjects) Handle(e card.Endpoint, h Handler) error {
	p := &point{Subject: e.Subject(), Group: queueGroup}
	p.Name = strings.ReplaceAll(p.Subject, ".", "-")
	err := s.subscribe(p.Subject, queueGroup, func(m *nats.Msg) {
		p.requests.Add(1)
		if err := s.reply(h, m); err != nil {
			p.errors.Add(1)
			s.log.Debug("a request cannot be understood", "subject", m.Subject, "error", err)
		}
	})
	if err != nil {
		return err
	}
	s.service.mu.Lock()
	s.service.points = append(s.service.points, p)
	s.service.mu.Unlock()
	return s.conn.FlushTimeout(dialTime)
}

// Forget takes an endpoint away.
func (s *Subjects) Forget(e card.Endpoint) {
	s.mu.Lock()
	sub := s.subs[e.Subject()]
	delete(s.subs, e.Subject())
	s.mu.Unlock()
	if sub == nil {
		return
	}
	_ = sub.Unsubscribe()
	s.settle()
	s.service.mu.Lock()
	defer s.service.mu.Unlock()
	s.service.points = slices.DeleteFunc(s.service.points, func(p *point) bool { return p.Subject == e.Subject() })
}

// settle waits until NATS, if it is there, knows who does not listen any more.
func (s *Subjects) settle() {
	if s.conn.IsConnected() {
		_ = s.conn.FlushTimeout(time.Second)
	}
}

// reply begins to serve a request and says so: with nothing, before anything is
// served. Who has sent what is no request hears nothing.
func (s *Subjects) reply(h Handler, m *nats.Msg) error {
	serve, err := s.understand(h, m.Data, m.Header.Get(wire.SentHeader))
	if err != nil {
		return err
	}
	if m.Reply != "" {
		if err := m.Respond(nil); err != nil {
			return err // who asks will not wait for the answer
		}
	}
	s.requests.Go(serve)
	return nil
}

// Serve waits for Close: requests come by themselves.
func (s *Subjects) Serve() { <-s.ended }

// Close ends everything, requests under way too.
func (s *Subjects) Close() {
	s.stop()
	s.mu.Lock()
	subs, closed := s.subs, s.closed
	s.subs, s.closed = map[string]*nats.Subscription{}, true
	s.mu.Unlock()
	if closed {
		return
	}
	for _, sub := range subs {
		_ = sub.Unsubscribe()
	}
	s.settle()
	close(s.ended)
	s.requests.Wait()
}

// service is what tools of NATS are told (its services' protocol).
type service struct {
	Name, ID, Version, description string
	started                        time.Time

	mu     sync.Mutex
	points []*point
}

// point is an endpoint of it.
type point struct {
	Name             string `json:"name"`
	Subject          string `json:"subject"`
	Group            string `json:"queue_group"`
	requests, errors atomic.Int64
}

// tell answers a tool.
func (s *Subjects) tell(m *nats.Msg, verb string) {
	text, err := s.service.answer(verb)
	if err == nil && m.Reply != "" {
		err = m.Respond(text)
	}
	if err != nil {
		s.log.Debug("a tool of NATS is not answered", "error", err)
	}
}

func (s *service) answer(verb string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	none := map[string]string{}
	kind := "io.nats.micro.v1." + strings.ToLower(verb) + "_response"
	switch verb {
	case "PING":
		return json.Marshal(struct {
			Type     string            `json:"type"`
			Name     string            `json:"name"`
			ID       string            `json:"id"`
			Version  string            `json:"version"`
			Metadata map[string]string `json:"metadata"`
		}{kind, s.Name, s.ID, s.Version, none})
	case "INFO":
		type endpoint struct {
			*point
			Metadata map[string]string `json:"metadata"`
		}
		list := []endpoint{}
		for _, p := range s.points {
			list = append(list, endpoint{p, none})
		}
		return json.Marshal(struct {
			Type        string            `json:"type"`
			Name        string            `json:"name"`
			ID          string            `json:"id"`
			Description string            `json:"description"`
			Version     string            `json:"version"`
			Metadata    map[string]string `json:"metadata"`
			Endpoints   []endpoint        `json:"endpoints"`
		}{kind, s.Name, s.ID, s.description, s.Version, none, list})
	}
	type endpoint struct {
		Name     string `json:"name"`
		Subject  string `json:"subject"`
		Requests int64  `json:"num_requests"`
		Errors   int64  `json:"num_errors"`
		Time     int64  `json:"processing_time"`
		Average  int64  `json:"average_processing_time"`
		Last     string `json:"last_error"`
		Group    string `json:"queue_group"`
	}
	list := []endpoint{}
	for _, p := range s.points {
		list = append(list, endpoint{Name: p.Name, Subject: p.Subject, Requests: p.requests.Load(), Errors: p.errors.Load(), Group: p.Group})
	}
	return json.Marshal(struct {
		Type      string     `json:"type"`
		Name      string     `json:"name"`
		ID        string     `json:"id"`
		Version   string     `json:"version"`
		Started   time.Time  `json:"started"`
		Endpoints []endpoint `json:"endpoints"`
	}{kind, s.Name, s.ID, s.Version, s.started, list})
}
