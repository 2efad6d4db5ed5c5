package discovery

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// EtcdOptions say where etcd is and how it is spoken to.
type EtcdOptions struct {
	Endpoints          []string // such as http://localhost:2379
	Username, Password string
	TLS                *tls.Config // nil: as the endpoints' schemes say
	TTL                time.Duration
	PingEvery, PingFor time.Duration // of connections in use; 0: never
	Patience           time.Duration // how long etcd may take to be there at the start
}

// Times of calls.
const (
	callTime  = 5 * time.Second
	leaveTime = 2 * time.Second
	firstWait = time.Second
	longWait  = 5 * time.Second
)

// again is how soon a broken connection is tried again: within the life of a
// lease.
var again = backoff.Config{BaseDelay: 500 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 3 * time.Second}

// Etcd is a cluster that workers are recorded in: each with a lease of its own,
// whose id is the worker's. Take it from OpenEtcd.
type Etcd struct {
	o      EtcdOptions
	client *clientv3.Client
	leases pb.LeaseClient
	warn   func(text string, args ...any)

	mu      sync.Mutex
	members []*leased
	closed  bool
}

// CheckEndpoints says what is wrong with the endpoints of a cluster, nil if
// nothing is.
func CheckEndpoints(list []string) error {
	for _, e := range list {
		u, err := url.Parse(e)
		if err == nil && u.Scheme != "http" && u.Scheme != "https" {
			u, err = url.Parse("http://" + e)
		}
		if err != nil || u.Hostname() == "" || u.Port() == "" || strings.Trim(u.Path, "/") != "" {
			return fmt.Errorf("the endpoint %q is no address; http://HOST:PORT is accepted, several are separated by commas", e)
		}
	}
	return nil
}

// OpenEtcd connects. As long as nobody is there it tries again, with longer and
// longer waits, until the patience has run out or ctx has ended; a cluster that
// refuses is not asked twice. warn is told what goes wrong meanwhile and later.
func OpenEtcd(ctx context.Context, o EtcdOptions, warn func(text string, args ...any)) (*Etcd, error) {
	limit, cancel := context.WithTimeout(ctx, o.Patience)
	defer cancel()
	for wait := firstWait; ; wait = min(2*wait, longWait) {
		s, err := connect(ctx, o, warn)
		if err == nil {
			return s, nil
		}
		if refused(err) || limit.Err() != nil {
			return nil, reason(err)
		}
		left := o.Patience
		if end, ok := limit.Deadline(); ok {
			left = time.Until(end).Round(time.Second)
		}
		if left < wait {
			return nil, reason(err)
		}
		warn("etcd is not there yet; it is tried again", "endpoints", strings.Join(o.Endpoints, ","), "error", reason(err), "again_in", wait.String(), "for", left.String())
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-limit.Done():
			t.Stop()
			return nil, reason(err)
		}
	}
}

// connect makes a client that has asked something.
func connect(ctx context.Context, o EtcdOptions, warn func(text string, args ...any)) (*Etcd, error) {
	c, err := clientv3.New(clientv3.Config{
		Endpoints: o.Endpoints, Username: o.Username, Password: o.Password, TLS: o.TLS, DialTimeout: callTime,
		DialKeepAliveTime: o.PingEvery, DialKeepAliveTimeout: o.PingFor, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithNoProxy(), grpc.WithConnectParams(grpc.ConnectParams{Backoff: again, MinConnectTimeout: callTime})},
	})
	if err != nil {
		return nil, err
	}
	call, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	// A lease is what comes next anyway, and asks for no right to read.
	s := &Etcd{o: o, client: c, leases: pb.NewLeaseClient(c.ActiveConnection()), warn: warn}
	granted, err := s.leases.LeaseGrant(call, &pb.LeaseGrantRequest{TTL: s.seconds()})
	if err == nil {
		_, err = c.Revoke(call, clientv3.LeaseID(granted.ID))
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return s, nil
}

// refused reports whether a cluster has answered, and does not want to.
func refused(err error) bool {
	switch status.Code(rpcError(err)) {
	case codes.Unauthenticated, codes.PermissionDenied, codes.InvalidArgument, codes.FailedPrecondition, codes.Unimplemented:
		return true
	}
	return false
}

// rpcError is the error of a call behind those of etcd's client.
func rpcError(err error) error {
	var e rpctypes.EtcdError
	if errors.As(err, &e) {
		return status.Error(e.Code(), e.Error())
	}
	return err
}

// reason is the part of a call's error that helps: of "transport: Error while
// dialing: dial tcp 127.0.0.1:2379: connect: connection refused" the end.
func reason(err error) error {
	text := rpcError(err).Error()
	if s, ok := status.FromError(rpcError(err)); ok {
		text = s.Message()
	}
	for _, before := range []string{"Error while dialing: ", "last connection error: ", "etcdserver: "} {
		if i := strings.LastIndex(text, before); i >= 0 {
			text = text[i+len(before):]
		}
	}
	switch {
	case strings.Contains(text, "server preface"), strings.Contains(text, "HTTP status code"):
		text = "whoever listens there does not answer as etcd does"
	case strings.Contains(text, "deadline exceeded"):
		text = "there is no answer in time"
	}
	return errors.New(strings.Trim(text, `" `))
}

// seconds is the life of a lease.
func (s *Etcd) seconds() int64 { return int64(math.Ceil(s.o.TTL.Seconds())) }

// leased are the records of a worker.
type leased struct {
	of   *Etcd
	id   int64
	stop chan struct{}
	done chan struct{}

	mu      sync.Mutex
	records []entry // in the order they were put
	gone    bool
}

type entry struct {
	key  string
	text string
}

// Join takes a lease.
func (s *Etcd) Join(ctx context.Context) (Records, error) {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return nil, os.ErrClosed
	}
	call, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	granted, err := s.leases.LeaseGrant(call, &pb.LeaseGrantRequest{TTL: s.seconds()})
	if err != nil {
		return nil, reason(err)
	}
	r := &leased{of: s, id: granted.ID, stop: make(chan struct{}), done: make(chan struct{})}
	go r.keep()
	s.mu.Lock()
	s.members = append(s.members, r)
	closed = s.closed
	s.mu.Unlock()
	if closed {
		r.Leave()
		return nil, os.ErrClosed
	}
	return r, nil
}

// Close lets all workers leave.
func (s *Etcd) Close() {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	members := slices.Clone(s.members)
	s.mu.Unlock()
	var all sync.WaitGroup
	for _, r := range members {
		all.Go(r.Leave)
	}
	all.Wait()
	if first {
		_ = s.client.Close()
	}
}

func (r *leased) Instance() uint64 { return uint64(r.id) }

func (r *leased) Put(bucket, key string, text []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone {
		return os.ErrClosed
	}
	e := entry{bucket + "/" + key, string(text)}
	if err := r.write(e); err != nil {
		return fmt.Errorf("etcd does not take the record %s: %w", e.key, reason(err))
	}
	r.records = append(slices.DeleteFunc(r.records, func(x entry) bool { return x.key == e.key }), e)
	return nil
}

func (r *leased) write(e entry) error {
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	_, err := r.of.client.Put(ctx, e.key, e.text, clientv3.WithLease(clientv3.LeaseID(r.id)))
	return err
}

// Leave gives the lease back, and with it all records.
func (r *leased) Leave() {
	r.mu.Lock()
	if r.gone {
		r.mu.Unlock()
		<-r.done
		return
	}
	r.gone = true
	r.mu.Unlock()
	close(r.stop)
	<-r.done
	ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
	defer cancel()
	_, err := r.of.client.Revoke(ctx, clientv3.LeaseID(r.id))
	if err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		r.of.warn("etcd does not take a lease back; its records expire by themselves", "lease", fmt.Sprintf("%x", r.id), "within", r.of.o.TTL.String(), "error", reason(err))
	}
	r.of.mu.Lock()
	r.of.members = slices.DeleteFunc(r.of.members, func(x *leased) bool { return x == r })
	r.of.mu.Unlock()
}

// keep renews the lease in good time. Once etcd has not answered, or has
// forgotten the lease, everything is put again under the same id: the worker
// is the same.
func (r *leased) keep() {
	defer close(r.done)
	every := r.of.o.TTL / 3
	t := time.NewTimer(every)
	defer t.Stop()
	lost := false
	for {
		select {
		case <-r.stop:
			return
		case <-t.C:
		}
		err := r.renew()
		if err == nil && lost {
			err = r.restore()
		}
		switch {
		case errors.Is(err, rpctypes.ErrLeaseNotFound):
			if err = r.again(); err == nil {
				r.of.warn("etcd had lost a lease; its worker is recorded again", "lease", fmt.Sprintf("%x", r.id))
			}
		case err == nil && lost:
			r.of.warn("etcd answers again", "lease", fmt.Sprintf("%x", r.id))
		}
		if err != nil && !lost {
			r.of.warn("etcd does not renew a lease; it is tried again", "lease", fmt.Sprintf("%x", r.id), "error", reason(err))
		}
		lost = err != nil
		if lost {
			t.Reset(min(every, firstWait))
		} else {
			t.Reset(every)
		}
	}
}

// renew prolongs the lease once.
func (r *leased) renew() error {
	ctx, cancel := r.call()
	defer cancel()
	stream, err := r.of.leases.LeaseKeepAlive(ctx)
	if err != nil {
		return err
	}
	if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: r.id}); err != nil {
		return err
	}
	answer, err := stream.Recv()
	if err == nil && answer.TTL <= 0 {
		err = rpctypes.ErrLeaseNotFound
	}
	return err
}

// call is a context for one call, that Leave ends.
func (r *leased) call() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), min(callTime, r.of.o.TTL/3))
	go func() {
		select {
		case <-r.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// again takes the lease anew and puts all records.
func (r *leased) again() error {
	ctx, cancel := r.call()
	defer cancel()
	_, err := r.of.leases.LeaseGrant(ctx, &pb.LeaseGrantRequest{ID: r.id, TTL: r.of.seconds()})
	if err != nil && !errors.Is(rpctypes.Error(err), rpctypes.ErrLeaseExist) {
		return err
	}
	return r.restore()
}

// restore puts all records.
func (r *leased) restore() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.records {
		if err := r.write(e); err != nil {
			return rpctypes.Error(err)
		}
	}
	return nil
}
