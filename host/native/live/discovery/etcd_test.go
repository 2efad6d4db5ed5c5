package discovery_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/dryserve/dryserve/host/native/live/discovery"
	"github.com/dryserve/dryserve/internal/stand"
)

// cluster is etcd as a test looks at it.
type cluster struct {
	*stand.Server
	t      *testing.T
	client *clientv3.Client

	mu     sync.Mutex
	warned []string
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{Server: stand.Etcd(t), t: t}
	var err error
	if c.client, err = clientv3.New(clientv3.Config{Endpoints: []string{c.Address}, Logger: zap.NewNop()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.client.Close() })
	return c
}

func (c *cluster) warn(text string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.warned = append(c.warned, fmt.Sprint(text, " ", args))
}

func (c *cluster) open(o discovery.EtcdOptions) (*discovery.Etcd, error) {
	o.Endpoints = []string{"http://" + c.Address}
	if o.TTL == 0 {
		o.TTL = 3 * time.Second
	}
	return discovery.OpenEtcd(c.t.Context(), o, c.warn)
}

// keys are all keys with their values, leases and whether these live.
func (c *cluster) keys() (list []string) {
	answer, err := c.client.Get(stand.Soon(c.t), "", clientv3.WithPrefix())
	if err != nil {
		return []string{err.Error()}
	}
	for _, kv := range answer.Kvs {
		list = append(list, fmt.Sprintf("%s=%s@%x", kv.Key, kv.Value, kv.Lease))
	}
	return list
}

func (c *cluster) become(want ...string) {
	c.t.Helper()
	var got []string
	for end := time.Now().Add(stand.Long); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if got = c.keys(); slices.Equal(got, want) {
			return
		}
	}
	c.t.Fatalf("the keys become %q, not %q", got, want)
}

// Workers have leases, whose ids are theirs. What is lost comes back: a lease that
// somebody revokes, keys and leases with all of etcd.
func TestEtcd(t *testing.T) {
	c := newCluster(t)
	s, err := c.open(discovery.EtcdOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c.become()
	var workers []discovery.Records
	for range 2 {
		r, err := s.Join(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		workers = append(workers, r)
	}
	a, b := workers[0], workers[1]
	for i, err := range []error{a.Put(discovery.Instances, "x/y", []byte("old")), a.Put(discovery.Instances, "x/y", []byte("1")), a.Put(discovery.Cards, "x", []byte("2")), b.Put(discovery.Cards, "z", []byte("3"))} {
		if err != nil {
			t.Error(i, err)
		}
	}
	if a.Instance() == 0 || a.Instance() == b.Instance() {
		t.Errorf("instances %x and %x", a.Instance(), b.Instance())
	}
	all := []string{fmt.Sprintf("v1/instances/x/y=1@%x", a.Instance()), fmt.Sprintf("v1/mdc/x=2@%x", a.Instance()), fmt.Sprintf("v1/mdc/z=3@%x", b.Instance())}
	c.become(all...)
	if _, err := c.client.Revoke(stand.Soon(t), clientv3.LeaseID(a.Instance())); err != nil {
		t.Fatal(err)
	}
	c.become(all...)
	time.Sleep(4 * time.Second) // longer than a lease lives
	c.become(all...)
	b.Leave()
	c.become(all[:2]...)
	if err := b.Put(discovery.Cards, "z", nil); err == nil {
		t.Error("who has left is recorded")
	}
	c.Kill()
	c.Forget()
	c.Start()
	c.become(all[:2]...)
	s.Close()
	s.Close()
	c.become()
	if _, err := s.Join(t.Context()); err == nil {
		t.Error("a worker joins after the end")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := strings.Count(strings.Join(c.warned, "\n"), "recorded again"); n != 2 {
		t.Errorf("%q", c.warned)
	}
}

// Without etcd workers leave all the same; their records expire.
func TestEtcdGone(t *testing.T) {
	c := newCluster(t)
	s, err := c.open(discovery.EtcdOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Join(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Put(discovery.Cards, "x", []byte("1")); err != nil {
		t.Error(err)
	}
	c.Kill()
	if err := r.Put(discovery.Cards, "y", nil); err == nil || !strings.HasPrefix(err.Error(), "etcd does not take the record v1/mdc/y: ") {
		t.Error(err)
	}
	if _, err := s.Join(t.Context()); err == nil {
		t.Error("a worker joins")
	}
	s.Close()
	c.Start()
	c.become()
}

// etcd may come later, unless it is not waited for; whom it refuses does not wait.
func TestEtcdLate(t *testing.T) {
	c := newCluster(t)
	c.Kill()
	if _, err := c.open(discovery.EtcdOptions{}); err == nil || !strings.HasSuffix(err.Error(), "connection refused") || len(c.warned) > 0 {
		t.Errorf("%v, %q", err, c.warned)
	}
	go func() { time.Sleep(100 * time.Millisecond); c.Program.Start() }()
	s, err := c.open(discovery.EtcdOptions{Patience: stand.Long})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	// Users.
	ctx := stand.Soon(t)
	for i, f := range []func() error{
		func() error { _, err := c.client.UserAdd(ctx, "root", "word"); return err },
		func() error { _, err := c.client.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := c.client.AuthEnable(ctx); return err },
	} {
		if err := f(); err != nil {
			t.Fatal(i, err)
		}
	}
	for _, o := range []discovery.EtcdOptions{{}, {Username: "root", Password: "wrong"}} {
		o.Patience = stand.Long
		c.warned = nil
		if _, err := c.open(o); err == nil || len(c.warned) > 0 {
			t.Errorf("%v, %q", err, c.warned)
		} else {
			t.Log(err)
		}
	}
	if s, err = c.open(discovery.EtcdOptions{Username: "root", Password: "word"}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := s.Join(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Put(discovery.Cards, "x", []byte("1")); err != nil {
		t.Error(err)
	}
}

// Somebody else listens where etcd should.
func TestNotEtcd(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0") // and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	const stranger, silent = "whoever listens there does not answer as etcd does", "there is no answer in time"
	for address, want := range map[string]string{web.URL: stranger, "http://" + l.Addr().String(): silent} {
		_, err := discovery.OpenEtcd(t.Context(), discovery.EtcdOptions{Endpoints: []string{address}, TTL: time.Second}, func(string, ...any) {})
		if err == nil || err.Error() != want && err.Error() != stranger { // a silent one may be told of either way
			t.Error(err)
		}
	}
}

// etcd with TLS, asked with a certificate.
func TestEtcdTLS(t *testing.T) {
	certificate, key := stand.Certificate(t)
	e := stand.EtcdTLS(t, certificate, key)
	text, err := os.ReadFile(certificate)
	if err != nil {
		t.Fatal(err)
	}
	known := x509.NewCertPool()
	known.AppendCertsFromPEM(text)
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	o := discovery.EtcdOptions{Endpoints: []string{"https://" + e.Address}, TTL: 3 * time.Second, TLS: &tls.Config{RootCAs: known, Certificates: []tls.Certificate{pair}}}
	s, err := discovery.OpenEtcd(context.Background(), o, func(string, ...any) {})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	o.TLS = nil
	if _, err := discovery.OpenEtcd(context.Background(), o, func(string, ...any) {}); err == nil {
		t.Error("a stranger is let in")
	}
}
