package plane_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/dryserve/dryserve/host/native/live/bus"
	"github.com/dryserve/dryserve/host/native/live/card"
	"github.com/dryserve/dryserve/host/native/live/plane"
	"github.com/dryserve/dryserve/host/native/live/wire"
	"github.com/dryserve/dryserve/internal/stand"
)

var silent = slog.New(slog.DiscardHandler)

// caller hears answers.
type caller struct {
	t *testing.T
	net.Listener
}

func newCaller(t *testing.T) caller {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return caller{t, l}
}

// payload is a request whose answer comes here.
func (c caller) payload(body string) []byte {
	info, _ := json.Marshal(map[string]string{"address": c.Addr().String(), "subject": "s", "context": "c", "stream_type": "response"})
	control, _ := json.Marshal(map[string]any{"id": "i", "connection_info": map[string]string{"transport": "tcp_server", "info": string(info)}})
	return wire.AppendTwoPart(nil, control, []byte(body))
}

// frame is the same as a frame of TCP.
func (c caller) frame(e card.Endpoint, body string) []byte {
	b, err := wire.AppendRequest(nil, wire.Request{Path: e.Path(), Payload: c.payload(body)})
	if err != nil {
		c.t.Fatal(err)
	}
	return b
}

// hear is the next answer's connection.
func (c caller) hear() net.Conn {
	c.t.Helper()
	_ = c.Listener.(*net.TCPListener).SetDeadline(time.Now().Add(stand.Long))
	conn, err := c.Accept()
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(stand.Long))
	return conn
}

// whole reads an answer to its end.
func (c caller) whole(conn net.Conn) (parts []string) {
	c.t.Helper()
	for {
		header, data, err := wire.ReadTwoPart(conn)
		if err != nil {
			c.t.Fatal(err)
		}
		parts = append(parts, string(header)+string(data))
		if string(header) == `"sentinel"` {
			_ = conn.Close()
			return parts
		}
	}
}

// echo answers with what it is asked.
func echo(_ context.Context, _ wire.Control, body []byte, to *plane.Stream) bool {
	to.Item(body)
	return true
}

const echoed = `{"subject":"s","stream_type":"response"}|{"error":null}|{"data":7,"complete_final":false}|{"complete_final":true}|"sentinel"`

// A request over NATS is replied to with nothing, and answered over TCP; what is no
// request is neither, and harms nobody.
func TestSubjects(t *testing.T) {
	server := stand.NATS(t)
	connect := func() *nats.Conn {
		conn, err := bus.Connect(t.Context(), bus.Options{Servers: "nats://" + server.Address}, func(string, ...any) {})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conn.Close)
		return conn
	}
	s, err := plane.OverNATS(connect(), "My_Ns-x", "Back-End", "1.6.1", silent)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	go s.Serve()
	e := card.Endpoint{Namespace: "My_Ns-x", Component: "Back-End", Name: "gen_Er8", Instance: 0x1eeea22a8ee25405}
	if err := s.Handle(e, echo); err != nil {
		t.Fatal(err)
	}
	frontend, c := connect(), newCaller(t)
	where := s.Transport()(e)["nats_tcp"]
	if where != "My_Ns-x_Back-End.gen_Er8-1eeea22a8ee25405" {
		t.Errorf("the record says %s", where)
	}
	for _, garbage := range []string{"", "x", strings.Repeat("\xff", 24), string(wire.AppendTwoPart(nil, []byte("{}"), nil)), strings.Repeat("a", 1<<20)} {
		if err := frontend.PublishRequest(where, "nobody", []byte(garbage)); err != nil {
			t.Fatal(err)
		}
	}
	reply, err := frontend.Request(where, c.payload("7"), stand.Long)
	if err != nil || len(reply.Data) > 0 {
		t.Errorf("%v, reply %q", err, reply.Data)
	}
	if got := strings.Join(c.whole(c.hear()), "|"); got != echoed {
		t.Errorf("got  %s\nwant %s", got, echoed)
	}
	// Tools are told of the service what the reference tells them.
	const end = `"name":"my_ns-x_back-end","id":"ID",`
	for verb, want := range map[string]string{
		"PING": `{"type":"io.nats.micro.v1.ping_response",` + end + `"version":"1.6.1","metadata":{}}`,
		"INFO": `{"type":"io.nats.micro.v1.info_response",` + end + `"description":"Dynamo component Back-End in namespace My_Ns-x","version":"1.6.1","metadata":{},"endpoints":[` +
			`{"name":"My_Ns-x_Back-End-gen_Er8-1eeea22a8ee25405","subject":"My_Ns-x_Back-End.gen_Er8-1eeea22a8ee25405","queue_group":"q","metadata":{}}]}`,
		"STATS": `{"type":"io.nats.micro.v1.stats_response",` + end + `"version":"1.6.1","started":"AT","endpoints":[` +
			`{"name":"My_Ns-x_Back-End-gen_Er8-1eeea22a8ee25405","subject":"My_Ns-x_Back-End.gen_Er8-1eeea22a8ee25405","num_requests":6,"num_errors":5,"processing_time":0,"average_processing_time":0,"last_error":"","queue_group":"q"}]}`,
	} {
		for _, subject := range []string{"$SRV." + verb, "$SRV." + verb + ".my_ns-x_back-end"} {
			m, err := frontend.Request(subject, nil, stand.Long)
			if err != nil {
				t.Fatal(err)
			}
			got := regexp.MustCompile(`"id":"[A-Z2-7]+"`).ReplaceAllString(string(m.Data), `"id":"ID"`)
			if got = regexp.MustCompile(`"started":"[0-9T:.-]+Z"`).ReplaceAllString(got, `"started":"AT"`); got != want {
				t.Errorf("%s\ngot  %s\nwant %s", subject, got, want)
			}
		}
	}
	gone := e
	gone.Instance++
	if err := s.Handle(gone, echo); err != nil {
		t.Fatal(err)
	}
	s.Forget(gone)
	s.Forget(gone)
	if _, err := frontend.Request(gone.Subject(), c.payload("7"), stand.Long); err != nats.ErrNoResponders {
		t.Error(err)
	}
	s.Close()
	s.Close()
	if _, err := frontend.Request(where, c.payload("7"), stand.Long); err == nil {
		t.Error("it is replied to after the end")
	}
}

// listening is a TCP server with one endpoint, and a connection to it.
func listening(t *testing.T, h plane.Handler) (*plane.Server, card.Endpoint, net.Conn) {
	t.Helper()
	s, err := plane.Listen("127.0.0.1:0", "", silent)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	go s.Serve()
	e := card.Endpoint{Namespace: "a", Component: "b", Name: "c", Instance: 1}
	if err := s.Handle(e, h); err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", s.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return s, e, conn
}

// Frames that come in any pieces are read, one after the other.
func TestPieces(t *testing.T) {
	s, e, conn := listening(t, echo)
	c := newCaller(t)
	b := append(c.frame(e, "7"), c.frame(e, "7")...)
	for i := range b {
		if _, err := conn.Write(b[i : i+1]); err != nil {
			t.Fatal(err)
		}
	}
	replies := make([]byte, 8)
	if _, err := io.ReadFull(conn, replies); err != nil || string(replies) != strings.Repeat("\x00", 8) {
		t.Errorf("%v, %q", err, replies)
	}
	for range 2 {
		if got := strings.Join(c.whole(c.hear()), "|"); got != echoed {
			t.Errorf("got  %s\nwant %s", got, echoed)
		}
	}
	s.Forget(e)
	if _, err := conn.Write(c.frame(e, "7")); err != nil {
		t.Fatal(err)
	}
	const refused = "Server unavailable: unknown endpoint 1/a/b/c"
	reply := make([]byte, 4+len(refused))
	if _, err := io.ReadFull(conn, reply); err != nil || string(reply[4:]) != refused {
		t.Errorf("%v, %q", err, reply)
	}
}

// A frontend that does not read its answer, and then cancels it or goes, holds up
// its own answer only, and that one ends.
func TestSlowReader(t *testing.T) {
	for _, way := range []string{`"kill"`, "go", "close"} {
		t.Run(way, func(t *testing.T) {
			ended := make(chan error, 1)
			s, e, conn := listening(t, func(ctx context.Context, _ wire.Control, body []byte, to *plane.Stream) bool {
				if string(body) == "7" {
					return echo(ctx, wire.Control{}, body, to)
				}
				big := []byte(`"` + strings.Repeat("a", 1<<20) + `"`)
				for range 1000 { // more than any buffer holds
					to.Item(big)
					if !to.Flush() {
						ended <- ctx.Err()
						return false
					}
				}
				ended <- fmt.Errorf("everything was written")
				return false
			})
			c := newCaller(t)
			if _, err := conn.Write(append(c.frame(e, "0"), c.frame(e, "7")...)); err != nil {
				t.Fatal(err)
			}
			// One of the two is long; the other comes to its end beside it.
			var long net.Conn
			for range 2 {
				answer := c.hear()
				r := bufio.NewReader(answer)
				for i := range 2 {
					if _, _, err := wire.ReadTwoPart(r); err != nil {
						t.Fatal(i, err)
					}
				}
				head, err := r.Peek(24)
				if err != nil {
					t.Fatal(err)
				}
				if head[13] != 0 { // a length of a MiB
					long = answer
				} else if _, data, err := wire.ReadTwoPart(r); err != nil || string(data) != `{"data":7,"complete_final":false}` {
					t.Errorf("%v, %s", err, data)
				}
			}
			if long == nil {
				t.Fatal("there is no long answer")
			}
			switch way {
			case "go":
				_ = long.Close()
			case "close":
				go s.Close()
			default:
				if _, err := long.Write(wire.AppendTwoPart(nil, []byte(way), nil)); err != nil {
					t.Fatal(err)
				}
			}
			select {
			case err := <-ended:
				if err != context.Canceled {
					t.Error(err)
				}
			case <-time.After(stand.Long):
				t.Error("the answer does not end")
			}
		})
	}
}

// What a frontend says on the connection of an answer may be anything.
func TestStrangeWords(t *testing.T) {
	for _, words := range []string{
		string(wire.AppendTwoPart(nil, []byte(`"stop"`), nil)), string(wire.AppendTwoPart(nil, []byte(`"dance"`), nil)), string(wire.AppendTwoPart(nil, nil, []byte("data"))),
	} {
		ended := make(chan error, 1)
		_, e, conn := listening(t, func(ctx context.Context, _ wire.Control, _ []byte, to *plane.Stream) bool {
			to.Flush()
			<-ctx.Done()
			ended <- ctx.Err()
			return true
		})
		c := newCaller(t)
		if _, err := conn.Write(c.frame(e, "0")); err != nil {
			t.Fatal(err)
		}
		answer := c.hear()
		if _, err := io.WriteString(answer, words); err != nil {
			t.Fatal(err)
		}
		<-ended
		text, err := io.ReadAll(answer)
		if err != nil || strings.Contains(string(text), "sentinel") {
			t.Errorf("%q: %v, %q", words, err, text)
		}
	}
	// What is no frame, or too large a one, is not listened to any further.
	for _, words := range []string{"short", strings.Repeat("\xff", 24)} {
		_, e, conn := listening(t, func(ctx context.Context, c wire.Control, body []byte, to *plane.Stream) bool {
			to.Flush()
			time.Sleep(10 * time.Millisecond)
			return echo(ctx, c, body, to)
		})
		c := newCaller(t)
		if _, err := conn.Write(c.frame(e, "7")); err != nil {
			t.Fatal(err)
		}
		answer := c.hear()
		if _, err := io.WriteString(answer, words); err != nil {
			t.Fatal(err)
		}
		_ = answer.(*net.TCPConn).CloseWrite()
		if got := strings.Join(c.whole(answer), "|"); got != echoed {
			t.Errorf("got  %s\nwant %s", got, echoed)
		}
	}
}
