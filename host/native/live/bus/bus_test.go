package bus_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/dryserve/dryserve/host/native/live/bus"
	"github.com/dryserve/dryserve/internal/stand"
)

// Who asks is said in every way that NATS knows; who is not let in is told at once.
func TestWhoAsks(t *testing.T) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, _ := pair.PublicKey()
	seed, _ := pair.Seed()
	certificate, key := stand.Certificate(t)
	dir := t.TempDir()
	config := func(name, text string) []string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return []string{"-c", path}
	}
	text, err := os.ReadFile(certificate)
	if err != nil {
		t.Fatal(err)
	}
	known, mine := x509.NewCertPool(), tls.Certificate{}
	known.AppendCertsFromPEM(text)
	if mine, err = tls.LoadX509KeyPair(certificate, key); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		server      []string
		good, wrong bus.Options
	}{
		"usual":    {[]string{"--user", "user", "--pass", "user"}, bus.Options{}, bus.Options{User: "a", Password: "b"}},
		"password": {[]string{"--user", "a", "--pass", "b"}, bus.Options{User: "a", Password: "b", Token: "ignored"}, bus.Options{}},
		"token":    {[]string{"--auth", "word"}, bus.Options{Token: "word", Seed: "ignored"}, bus.Options{Token: "other"}},
		"nkey":     {config("nkey", "authorization { users: [ { nkey: "+public+" } ] }"), bus.Options{Seed: string(seed)}, bus.Options{}},
		"tls": {config("tls", fmt.Sprintf("tls { cert_file: %q, key_file: %q, ca_file: %q, verify: true }", certificate, key, certificate)),
			bus.Options{TLS: &tls.Config{RootCAs: known, Certificates: []tls.Certificate{mine}}}, bus.Options{TLS: &tls.Config{RootCAs: x509.NewCertPool(), Certificates: []tls.Certificate{mine}}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := stand.NATS(t, c.server...)
			warn := func(text string, args ...any) { t.Error(text, args) }
			c.good.Servers, c.wrong.Servers = "nats://"+s.Address, "nats://"+s.Address
			conn, err := bus.Connect(t.Context(), c.good, warn)
			if err != nil {
				t.Fatal(err)
			}
			conn.Close()
			c.wrong.Patience = stand.Long
			if _, err := bus.Connect(t.Context(), c.wrong, warn); err == nil {
				t.Error("a stranger is let in")
			} else if text := err.Error(); !strings.Contains(text, "uthoriz") && !strings.Contains(text, "certificate") {
				t.Error(err)
			}
		})
	}
}

// NATS may come later than who wants it, unless a signal says that it is enough.
func TestLate(t *testing.T) {
	s := stand.NATS(t)
	s.Stop()
	tried := make(chan string, 100)
	warn := func(text string, args ...any) { tried <- fmt.Sprint(text, args) }
	o := bus.Options{Servers: "nats://" + s.Address, Patience: stand.Long}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-tried; cancel() }()
	if _, err := bus.Connect(ctx, o, warn); err == nil || !strings.HasSuffix(err.Error(), "connection refused") {
		t.Error(err)
	}
	go func() { <-tried; s.Start() }()
	conn, err := bus.Connect(t.Context(), o, warn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// It is made again with its subscriptions, whatever is lost.
	sub, err := conn.SubscribeSync("a")
	if err != nil {
		t.Fatal(err)
	}
	s.Kill()
	s.Start()
	stand.Until(t, "the connection is there again", func() bool {
		if conn.Publish("a", nil) != nil || conn.FlushTimeout(time.Second) != nil {
			return false
		}
		_, err := sub.NextMsg(100 * time.Millisecond)
		return err == nil
	})
	o.Patience = 0
	s.Kill()
	if _, err := bus.Connect(t.Context(), o, func(string, ...any) { t.Error("it is tried again") }); err == nil {
		t.Error("nobody is there")
	}
}

func TestCheck(t *testing.T) {
	for text, good := range map[string]bool{
		"nats://a:4222": true, "a": true, "a:1,tls://b:2": true, "nats://user:word@a:1": true, "": false, "http://a": false, "nats://a/b": false, "a,": false,
	} {
		if err := (bus.Options{Servers: text}).Check(); (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
	}
}
