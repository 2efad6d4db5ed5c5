package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Variables of etcd and NATS that say nothing that can be used.
func TestPlacesRefused(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ variables, want string }{
		{"ETCD_ENDPOINTS=bogus", `ETCD_ENDPOINTS: the endpoint "bogus" is no address; http://HOST:PORT is accepted, several are separated by commas`},
		{"ETCD_ENDPOINTS=http://a:1,http://b:2/x", `ETCD_ENDPOINTS: the endpoint "http://b:2/x" is no address; http://HOST:PORT is accepted, several are separated by commas`},
		{"ETCD_LEASE_TTL=0", `ETCD_LEASE_TTL is "0"; a whole number of seconds of at least 1 is accepted`},
		{"ETCD_STARTUP_CONNECT_TIMEOUT_SECONDS=1s", `ETCD_STARTUP_CONNECT_TIMEOUT_SECONDS is "1s"; a whole number of seconds of at least 0 is accepted`},
		{"ETCD_AUTH_USERNAME=a", `one of ETCD_AUTH_USERNAME and ETCD_AUTH_PASSWORD is set; both or neither are accepted`},
		{"ETCD_AUTH_CLIENT_KEY=a", `one of ETCD_AUTH_CLIENT_CERT and ETCD_AUTH_CLIENT_KEY is set; both or neither are accepted`},
		{"ETCD_AUTH_CA=/no/such", `ETCD_AUTH_CA: /no/such: no such file or directory`},
		{"ETCD_AUTH_CA=" + text, `ETCD_AUTH_CA: ` + text + `: no certificate is in it; PEM is accepted`},
		{"NATS_SERVER=http://a:1", `the server "http://a:1" is no address of NATS; nats://HOST:PORT is accepted, several are separated by commas`},
		{"NATS_AUTH_PASSWORD=a", `one of NATS_AUTH_USERNAME and NATS_AUTH_PASSWORD is set; both or neither are accepted`},
		{"NATS_AUTH_NKEY=a", `the seed of the NKey is none; a text that begins with SU is accepted`},
		{"NATS_AUTH_CREDENTIALS_FILE=/no/such", `NATS_AUTH_CREDENTIALS_FILE: /no/such: no such file or directory`},
		{"NATS_TLS_INSECURE=maybe", `NATS_TLS_INSECURE is "maybe"; true or false is accepted`},
		{"NATS_TLS_CLIENT_CERT_PATH=" + text + " NATS_TLS_CLIENT_KEY_PATH=" + text, `NATS_TLS_CLIENT_CERT_PATH and NATS_TLS_CLIENT_KEY_PATH: tls: failed to find any PEM data in certificate input; a certificate and its key, both PEM, are accepted`},
		{"DYN_REQUEST_PLANE_CODEC=xml", `DYN_REQUEST_PLANE_CODEC is "xml"; msgpack or json is accepted`},
		{"DYN_TCP_TLS_CERT_PATH=x", `DYN_TCP_TLS_CERT_PATH is set; requests and answers over TLS are not built yet, leave it out`},
		{"DYN_ZMQ_BROKER_URL=xsub=tcp://a:1,xpub=tcp://a:2", `DYN_ZMQ_BROKER_URL is set; events through a broker of ZeroMQ are not built yet, leave it out`},
		{"DYN_ENGINE_REQUEST_LIMIT=x", `DYN_ENGINE_REQUEST_LIMIT is "x"; a whole number from 0 to 2147483647 is accepted`},
		{"DYN_TCP_RPC_PORT=x", `DYN_TCP_RPC_PORT is "x"; a port, or 0 for any, is accepted`},
		{"DYN_NAMESPACE=a/b", `DYN_NAMESPACE and DYN_NAMESPACE_WORKER_SUFFIX make "a/b"; a name without / and spaces is accepted`},
	} {
		t.Run(c.variables, func(t *testing.T) {
			for v := range strings.FieldsSeq(c.variables) {
				name, value, _ := strings.Cut(v, "=")
				t.Setenv(name, value)
			}
			if got := built(t, "--request-plane", "nats"); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// Where workers listen and what they say of it: loopback, unless etcd finds them
// or a variable names a host.
func TestAddresses(t *testing.T) {
	own, loopback := ownAddress(), ""
	list, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range list {
		if i.Flags&net.FlagLoopback != 0 {
			loopback = i.Name
		}
	}
	for _, c := range []struct {
		discovery, rpc, event            string
		bind, host, eventBind, eventHost string
	}{
		{"file", "", "", "127.0.0.1", "", "127.0.0.1", "127.0.0.1"},
		{"mem", "", "", "127.0.0.1", "", "127.0.0.1", "127.0.0.1"},
		{"file", "10.0.0.1", "10.0.0.2", "10.0.0.1", "", "10.0.0.2", "10.0.0.2"},
		{"file", "0.0.0.0", "0.0.0.0", "0.0.0.0", own, "0.0.0.0", own},
		{"etcd", "", "", own, "", "0.0.0.0", own},
		{"etcd", "127.0.0.1", "127.0.0.1", "127.0.0.1", "", "0.0.0.0", "127.0.0.1"},
		{"etcd", loopback, "", "127.0.0.1", "", "0.0.0.0", own},
		{"etcd", "::", loopback, "::", own, "0.0.0.0", "127.0.0.1"},
	} {
		t.Setenv("DYN_TCP_RPC_HOST", c.rpc)
		t.Setenv("DYN_EVENT_PLANE_HOST", c.event)
		p := places{discovery: c.discovery}
		if err := p.addresses(); err != nil {
			t.Fatal(err)
		}
		if p.bind != c.bind || p.host != c.host || p.eventBind != c.eventBind || p.eventHost != c.eventHost {
			t.Errorf("%+v\ngot %+v", c, p)
		}
	}
}

// etcd is waited for if somebody has asked for it.
func TestPatience(t *testing.T) {
	for _, c := range []struct {
		asked bool
		text  string
		want  time.Duration
	}{{false, "", 0}, {true, "", 2 * time.Minute}, {false, "7", 7 * time.Second}, {true, "0", 0}} {
		t.Setenv("ETCD_STARTUP_CONNECT_TIMEOUT_SECONDS", c.text)
		if e, err := etcdOptions(c.asked); err != nil || e.Patience != c.want || e.TTL != 30*time.Second || e.Endpoints[0] != "http://localhost:2379" {
			t.Errorf("%v, %+v", err, e)
		}
	}
}

// How many requests there may be, by the variables of the reference.
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		variables      string
		running, queue int
	}{
		{"", 10_000, 40_000}, {"DYN_TCP_WORKER_POOL_SIZE=2 DYN_TCP_WORK_QUEUE_SIZE=1", 2, 1}, {"DYN_DYNAMO_REQUEST_QUEUE_LIMIT=1", 10_000, 40_000},
		{"DYN_ENGINE_REQUEST_LIMIT=3", 3, 16}, {"DYN_ENGINE_REQUEST_LIMIT=0 DYN_DYNAMO_REQUEST_QUEUE_LIMIT=0", 0, 0}, {"DYN_ENGINE_REQUEST_LIMIT=20000", 10_000, 40_000},
	} {
		t.Run(c.variables, func(t *testing.T) {
			for v := range strings.FieldsSeq(c.variables) {
				name, value, _ := strings.Cut(v, "=")
				t.Setenv(name, value)
			}
			var p places
			if err := p.limits(); err != nil || p.running != c.running || p.queue != c.queue {
				t.Errorf("%v, %d are answered and %d wait, want %d and %d", err, p.running, p.queue, c.running, c.queue)
			}
		})
	}
}
