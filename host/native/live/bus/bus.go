// Package bus is a connection to NATS that stays.
//
// It owns how the servers are reached and who asks, and that a lost connection
// is made again. It does not own what is said over it (live/plane, live/events).
//
// Invariants: a connection that was made once is made again for ever, with its
// subscriptions, until it is closed.
//
// Source: live notes §1, §3.7.
package bus

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// Options say where NATS is and who asks.
type Options struct {
	Servers     string // such as nats://localhost:4222, several separated by commas
	User        string
	Password    string
	Token       string
	Seed        string // of an NKey
	Credentials string // a file with a JWT and a seed
	TLS         *tls.Config
	Patience    time.Duration // how long NATS may take to be there at the start
}

// Check says what is wrong with options, nil if nothing is.
func (o Options) Check() error {
	for s := range strings.SplitSeq(o.Servers, ",") {
		if !strings.Contains(s, "://") {
			s = "nats://" + s
		}
		u, err := url.Parse(s)
		if err != nil || u.Hostname() == "" || u.Scheme != "nats" && u.Scheme != "tls" || strings.Trim(u.Path, "/") != "" {
			return fmt.Errorf("the server %q is no address of NATS; nats://HOST:PORT is accepted, several are separated by commas", s)
		}
	}
	if o.Seed != "" {
		if _, err := nkeys.FromSeed([]byte(o.Seed)); err != nil {
			return errors.New("the seed of the NKey is none; a text that begins with SU is accepted")
		}
	}
	return nil
}

// Times of a connection.
const (
	dialTime  = 3 * time.Second
	firstWait = time.Second
	longWait  = 5 * time.Second
	againWait = 500 * time.Millisecond
	pingEvery = 10 * time.Second
)

// Connect connects. As long as nobody is there it tries again, until the patience
// has run out or ctx has ended; servers that refuse are not asked twice. warn is
// told what goes wrong meanwhile and later.
func Connect(ctx context.Context, o Options, warn func(text string, args ...any)) (*nats.Conn, error) {
	d := &dialer{Dialer: net.Dialer{Timeout: dialTime}}
	list, err := o.list(warn, d)
	if err != nil {
		return nil, err
	}
	end := time.Now().Add(o.Patience)
	for wait := firstWait; ; wait = min(2*wait, longWait) {
		conn, err := nats.Connect(o.Servers, list...)
		if err == nil {
			return conn, nil
		}
		if errors.Is(err, nats.ErrNoServers) {
			err = d.reason(err)
		}
		left := time.Until(end)
		if refused(err) || left < wait || ctx.Err() != nil {
			return nil, err
		}
		warn("NATS is not there yet; it is tried again", "servers", o.Servers, "error", err, "again_in", wait.String(), "for", left.Round(time.Second).String())
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, err
		}
	}
}

// dialer remembers why nobody was reached, which NATS's client does not say.
type dialer struct {
	net.Dialer
	mu   sync.Mutex
	last error
}

func (d *dialer) Dial(network, address string) (net.Conn, error) {
	conn, err := d.Dialer.Dial(network, address)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = err
	return conn, err
}

// reason is why nobody was reached, or usual if that is not known.
func (d *dialer) reason(usual error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last == nil {
		return usual
	}
	return d.last
}

// refused reports whether a server has answered, and does not want to.
func refused(err error) bool {
	for _, e := range []error{nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrSecureConnRequired, nats.ErrSecureConnWanted, nats.ErrNkeysNotSupported} {
		if errors.Is(err, e) {
			return true
		}
	}
	var unknown *tls.CertificateVerificationError
	return errors.As(err, &unknown)
}

// list is the options of the client. Of several ways to say who asks one counts:
// a name with a password, a token, an NKey, credentials, in this order.
func (o Options) list(warn func(text string, args ...any), d nats.CustomDialer) ([]nats.Option, error) {
	list := []nats.Option{
		nats.Name("mocker"), nats.SetCustomDialer(d), nats.Timeout(dialTime), nats.MaxReconnects(-1), nats.ReconnectWait(againWait),
		nats.IgnoreAuthErrorAbort(), nats.FlusherTimeout(dialTime), nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(2),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				warn("the connection to NATS is lost; it is made again", "error", err)
			}
		}),
		nats.ReconnectHandler(func(c *nats.Conn) { warn("NATS is there again", "server", c.ConnectedUrlRedacted()) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			warn("NATS says that something is wrong", "error", err)
		}),
	}
	if o.TLS != nil {
		list = append(list, nats.Secure(o.TLS))
	}
	switch {
	case o.User != "" && o.Password != "":
		list = append(list, nats.UserInfo(o.User, o.Password))
	case o.Token != "":
		list = append(list, nats.Token(o.Token))
	case o.Seed != "":
		pair, err := nkeys.FromSeed([]byte(o.Seed))
		if err != nil {
			return nil, err
		}
		public, err := pair.PublicKey()
		if err != nil {
			return nil, err
		}
		list = append(list, nats.Nkey(public, pair.Sign))
	case o.Credentials != "":
		list = append(list, nats.UserCredentials(o.Credentials))
	default:
		list = append(list, nats.UserInfo("user", "user")) // as the reference says it
	}
	return list, nil
}
