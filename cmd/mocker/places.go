package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/dryserve/dryserve/host/native/cliutil"
	"github.com/dryserve/dryserve/host/native/live/bus"
	"github.com/dryserve/dryserve/host/native/live/discovery"
	"github.com/dryserve/dryserve/host/native/live/dynamo"
	"github.com/dryserve/dryserve/host/native/live/events"
	"github.com/dryserve/dryserve/host/native/live/plane"
)

// places are where workers are recorded, take requests and publish events.
type places struct {
	discovery, requests, events string

	root string // of files
	etcd discovery.EtcdOptions
	nats bus.Options

	bind, host, port     string // of requests by TCP; host "": as it is bound
	eventBind, eventHost string // of events by ZeroMQ
	namespace, component string
	codec                string // of requests and answers

	running, queue int // requests over TCP that are answered at a time, and that wait
}

// places reads flags and variables (live notes §1).
func (o *options) places(namespace, component string) (p places, err error) {
	p = places{
		discovery: o.text("discovery-backend"), requests: o.text("request-plane"), events: o.text("event-plane"),
		root: discovery.Dir(), port: setting("DYN_TCP_RPC_PORT", "0"), namespace: namespace, component: component,
	}
	if p.events == "" {
		p.events = "zmq" // with every kind of discovery
	}
	if n, err := strconv.Atoi(p.port); err != nil || n < 0 || n > 65535 {
		return p, usagef("DYN_TCP_RPC_PORT is %s; a port, or 0 for any, is accepted", quoted(p.port))
	}
	if p.codec = setting("DYN_REQUEST_PLANE_CODEC", "msgpack"); p.codec != "msgpack" && p.codec != "json" {
		return p, usagef("DYN_REQUEST_PLANE_CODEC is %s; msgpack or json is accepted", quoted(p.codec))
	}
	if err := p.refuse(); err != nil {
		return p, err
	}
	if err := p.addresses(); err != nil {
		return p, err
	}
	if err := p.limits(); err != nil {
		return p, err
	}
	if p.discovery == "etcd" {
		if p.etcd, err = etcdOptions(o.given("discovery-backend") || os.Getenv("ETCD_ENDPOINTS") != ""); err != nil {
			return p, err
		}
	}
	if !p.overNATS() {
		return p, nil
	}
	for _, name := range []string{namespace, component} {
		if strings.ContainsAny(name, "*> \t\r\n") {
			return p, usagef("the workers' name %s cannot be a subject of NATS; a name without *, > and spaces is accepted", quoted(name))
		}
	}
	p.nats, err = natsOptions()
	return p, err
}

func (p *places) overNATS() bool { return p.requests == "nats" || p.events == "nats" }

// refuse names variables that ask for what is not built.
func (p *places) refuse() error {
	for _, v := range os.Environ() {
		name, value, _ := strings.Cut(v, "=")
		off := value == "" || value == "0" || strings.EqualFold(value, "false")
		switch {
		case off:
		case strings.HasPrefix(name, "DYN_TCP_TLS_"):
			return usagef("%s is set; requests and answers over TLS are not built yet, leave it out", name)
		case p.events == "zmq" && strings.HasPrefix(name, "DYN_ZMQ_BROKER_"):
			return usagef("%s is set; events through a broker of ZeroMQ are not built yet, leave it out", name)
		}
	}
	return nil
}

// addresses decides where this process listens and what it says of it. With etcd
// the reference's rule holds: requests are taken at the machine's own address,
// events wherever it has one. Else nothing listens beyond the loopback interface
// unless a variable names a host.
func (p *places) addresses() error {
	usual := "127.0.0.1"
	if p.discovery == "etcd" {
		usual = ownAddress()
	}
	var err error
	if p.bind, err = interfaceAddress("DYN_TCP_RPC_HOST", usual); err != nil {
		return err
	}
	if anywhere(p.bind) {
		p.host = ownAddress()
	}
	address, err := interfaceAddress("DYN_EVENT_PLANE_HOST", usual)
	if err != nil {
		return err
	}
	p.eventHost, p.eventBind = address, address
	if p.discovery == "etcd" || anywhere(address) {
		p.eventBind = "0.0.0.0"
	}
	if anywhere(address) {
		p.eventHost = ownAddress()
	}
	return nil
}

// limits reads how many requests there may be (live notes §1): those of the
// server, or fewer if the engine has a limit of its own.
func (p *places) limits() error {
	p.running, p.queue = plane.UsualRunning, plane.UsualWaiting
	engine := math.MaxInt
	queue := 16
	for name, n := range map[string]*int{
		"DYN_TCP_WORKER_POOL_SIZE": &p.running, "DYN_TCP_WORK_QUEUE_SIZE": &p.queue, "DYN_ENGINE_REQUEST_LIMIT": &engine, "DYN_DYNAMO_REQUEST_QUEUE_LIMIT": &queue,
	} {
		text := os.Getenv(name)
		if text == "" {
			continue
		}
		x, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return usagef("%s is %s; a whole number from 0 to 2147483647 is accepted", name, quoted(text))
		}
		*n = int(x)
	}
	if engine < p.running {
		p.running, p.queue = engine, min(p.queue, queue)
	}
	return nil
}

// anywhere reports whether a host stands for all addresses.
func anywhere(host string) bool {
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return ip != nil && ip.IsUnspecified()
}

// ownAddress is the address from which this machine speaks to others; the
// loopback address if there is none.
func ownAddress() string {
	for _, to := range []string{"192.0.2.1:9", "[2001:db8::1]:9"} { // nothing is sent
		if conn, err := net.Dial("udp", to); err == nil {
			ip := conn.LocalAddr().(*net.UDPAddr).IP
			_ = conn.Close()
			if !ip.IsLoopback() {
				return ip.String()
			}
		}
	}
	addresses, _ := net.InterfaceAddrs()
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	return "127.0.0.1"
}

// interfaceAddress is the host that a variable names, or the address of the
// interface.
func interfaceAddress(variable, usual string) (string, error) {
	host := setting(variable, usual)
	i, err := net.InterfaceByName(host)
	if err != nil {
		return host, nil
	}
	addresses, err := i.Addrs()
	if err != nil {
		return "", err
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil {
			return n.IP.String(), nil
		}
	}
	return "", usagef("%s is the interface %s, which has no IPv4 address; an address, or an interface with one, is accepted", variable, quoted(host))
}

// seconds reads a variable.
func seconds(name string, usual int, least int) (time.Duration, error) {
	text := os.Getenv(name)
	if text == "" {
		return time.Duration(usual) * time.Second, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > 1e9 {
		return 0, usagef("%s is %s; a whole number of seconds of at least %d is accepted", name, quoted(text), least)
	}
	return time.Duration(n) * time.Second, nil
}

// patience is how long the reference waits for etcd and for NATS at its start.
const patience = 120

// etcdOptions reads the variables of etcd. Where nobody has asked for etcd, and it
// is only the default, it is not waited for.
func etcdOptions(asked bool) (e discovery.EtcdOptions, err error) {
	for s := range strings.SplitSeq(setting("ETCD_ENDPOINTS", "http://localhost:2379"), ",") {
		e.Endpoints = append(e.Endpoints, strings.TrimSpace(s))
	}
	if err := discovery.CheckEndpoints(e.Endpoints); err != nil {
		return e, usagef("ETCD_ENDPOINTS: %v", err)
	}
	wait := 0
	if asked {
		wait = patience
	}
	for _, x := range []struct {
		to           *time.Duration
		name         string
		usual, least int
	}{
		{&e.Patience, "ETCD_STARTUP_CONNECT_TIMEOUT_SECONDS", wait, 0}, {&e.TTL, "ETCD_LEASE_TTL", 30, 1},
		{&e.PingEvery, "ETCD_KEEPALIVE_INTERVAL_SECONDS", 10, 0}, {&e.PingFor, "ETCD_KEEPALIVE_TIMEOUT_SECONDS", 10, 1},
	} {
		if *x.to, err = seconds(x.name, x.usual, x.least); err != nil {
			return e, err
		}
	}
	e.Username, e.Password = os.Getenv("ETCD_AUTH_USERNAME"), os.Getenv("ETCD_AUTH_PASSWORD")
	if (e.Username == "") != (e.Password == "") {
		return e, usagef("one of ETCD_AUTH_USERNAME and ETCD_AUTH_PASSWORD is set; both or neither are accepted")
	}
	e.TLS, err = certificates("ETCD_AUTH_CA", "ETCD_AUTH_CLIENT_CERT", "ETCD_AUTH_CLIENT_KEY")
	return e, err
}

// natsOptions reads the variables of NATS.
func natsOptions() (n bus.Options, err error) {
	n = bus.Options{
		Servers: setting("NATS_SERVER", "nats://localhost:4222"), User: os.Getenv("NATS_AUTH_USERNAME"), Password: os.Getenv("NATS_AUTH_PASSWORD"),
		Token: os.Getenv("NATS_AUTH_TOKEN"), Seed: os.Getenv("NATS_AUTH_NKEY"), Credentials: os.Getenv("NATS_AUTH_CREDENTIALS_FILE"),
	}
	if (n.User == "") != (n.Password == "") {
		return n, usagef("one of NATS_AUTH_USERNAME and NATS_AUTH_PASSWORD is set; both or neither are accepted")
	}
	if n.Patience, err = seconds("NATS_STARTUP_CONNECT_TIMEOUT_SECONDS", patience, 0); err != nil {
		return n, err
	}
	if n.TLS, err = certificates("NATS_TLS_CA_CERT_PATH", "NATS_TLS_CLIENT_CERT_PATH", "NATS_TLS_CLIENT_KEY_PATH"); err != nil {
		return n, err
	}
	if text := os.Getenv("NATS_TLS_INSECURE"); text != "" {
		insecure, err := truth(text)
		if err != nil {
			return n, usagef("NATS_TLS_INSECURE is %s; %v is accepted", quoted(text), err)
		}
		if insecure && n.TLS == nil {
			n.TLS = &tls.Config{}
		}
		if insecure {
			n.TLS.InsecureSkipVerify = true // asked for
		}
	}
	if err := n.Check(); err != nil {
		return n, usagef("%v", err)
	}
	if n.Credentials != "" {
		if _, err := os.Stat(n.Credentials); err != nil {
			return n, usagef("NATS_AUTH_CREDENTIALS_FILE: %s: %v", n.Credentials, cliutil.Reason(err))
		}
	}
	return n, nil
}

// certificates reads the files of a TLS client that variables name; nil if they
// name none.
func certificates(authority, certificate, key string) (*tls.Config, error) {
	if (os.Getenv(certificate) == "") != (os.Getenv(key) == "") {
		return nil, usagef("one of %s and %s is set; both or neither are accepted", certificate, key)
	}
	if os.Getenv(authority) == "" && os.Getenv(certificate) == "" {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if path := os.Getenv(authority); path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, usagef("%s: %s: %v", authority, path, cliutil.Reason(err))
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, usagef("%s: %s: no certificate is in it; PEM is accepted", authority, path)
		}
	}
	if path := os.Getenv(certificate); path != "" {
		pair, err := tls.LoadX509KeyPair(path, os.Getenv(key))
		if err != nil {
			return nil, usagef("%s and %s: %v; a certificate and its key, both PEM, are accepted", certificate, key, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// withoutEtcd and withoutNATS are the ways to do without them.
const (
	withoutEtcd = "--discovery-backend file finds workers by files, and --http 127.0.0.1:8000 serves OpenAI's API without any frontend"
	withoutNATS = "--request-plane tcp and --event-plane zmq need none"
)

// open connects and listens. Until then a signal ends ctx, and with it the wait
// for what is not there yet. done closes what the site does not.
func (p *places) open(ctx context.Context, d *dynamo.Options) (done func(), err error) {
	var conn *nats.Conn
	done = func() {
		if conn != nil {
			conn.Close()
		}
	}
	closers := []func(){done}
	defer func() {
		if err != nil {
			for _, c := range closers {
				c()
			}
		}
	}()
	var begun atomic.Bool
	warn := func(instead string) func(string, ...any) {
		return func(text string, args ...any) {
			if !begun.Load() {
				args = append(args, "instead", instead)
			}
			d.Log.Warn(text, args...)
		}
	}
	if p.overNATS() {
		if conn, err = bus.Connect(ctx, p.nats, warn(withoutNATS)); err != nil {
			return nil, fmt.Errorf("NATS cannot be used at %s (%v); start it, or name it by NATS_SERVER; or else %s", p.nats.Servers, err, withoutNATS)
		}
	}
	switch p.discovery {
	case "etcd":
		d.Store, err = discovery.OpenEtcd(ctx, p.etcd, warn(withoutEtcd))
		if err != nil {
			return nil, fmt.Errorf("etcd cannot be used at %s (%v); start it, or name it by ETCD_ENDPOINTS; or else %s", strings.Join(p.etcd.Endpoints, ","), err, withoutEtcd)
		}
	case "mem":
		d.Store = &discovery.Memory{}
		d.Log.Warn("with --discovery-backend mem nobody but this process can find the workers; file or etcd is for frontends")
	default:
		if d.Store, err = discovery.Open(p.root, d.Log.Warn); err != nil {
			return nil, fmt.Errorf("the records at %s cannot be used: %w", p.root, err)
		}
	}
	closers, d.Codec = append(closers, d.Store.Close), p.codec
	if p.requests == "nats" {
		var over *plane.Subjects
		if over, err = plane.OverNATS(conn, p.namespace, p.component, strings.TrimPrefix(reference, "ai-dynamo "), d.Log); err == nil {
			d.Requests = over
		}
	} else {
		var server *plane.Server
		if server, err = plane.Listen(net.JoinHostPort(p.bind, p.port), p.host, d.Log); err == nil {
			server.Limit(p.running, p.queue)
			d.Requests = server
		}
	}
	if err != nil {
		return nil, fmt.Errorf("requests cannot be taken: %w", err)
	}
	d.Events = events.ZMQ{Bind: p.eventBind, Host: p.eventHost}
	if p.events == "nats" {
		d.Events = events.OverNATS(conn, d.Log.Warn)
	}
	begun.Store(true)
	d.Log.Info("places", "discovery", p.discovery, "requests", p.requests, "events", p.events, "address", d.Requests.Address())
	return done, nil
}

// interrupted reports whether a wait has ended by a signal.
func interrupted(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }
