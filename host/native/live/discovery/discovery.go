// Package discovery is how workers are found: records under keys, in a place that
// frontends and workers share: a directory, etcd, or the memory of this process.
//
// It owns the spelling of keys, that records appear whole and stay alive, and that
// they vanish with their owner. It does not own what records say (live/card).
//
// Invariants: a record that can be read is complete; what this process has put
// is renewed well before it expires, is put again if it was lost, and is removed
// by Leave; nothing of others is removed before it has expired.
//
// Source: live notes §2.1, §2.4.
package discovery

import (
	"context"
	"maps"
	"os"
	"slices"
	"sync"
)

// Buckets of records.
const (
	Instances     = "v1/instances"
	Cards         = "v1/mdc"
	EventChannels = "v1/event_channels"
	EventSources  = "v1/event_sources"
)

// Store is a place where workers are recorded.
type Store interface {
	// Join begins the records of one more worker.
	Join(ctx context.Context) (Records, error)
	// Close removes all records of this process.
	Close()
}

// Records are those of one worker. They vanish together.
type Records interface {
	// Instance is the id that the place gives the worker, 0 if it gives none.
	Instance() uint64
	// Put writes a record, whole or not at all.
	Put(bucket, key string, text []byte) error
	// Leave removes them all, for good.
	Leave()
}

// Memory is a place that nobody else sees.
type Memory struct {
	mu      sync.Mutex
	members []*memory
	closed  bool
}

type memory struct {
	of      *Memory
	records map[string][]byte
	gone    bool
}

// Join begins the records of a worker.
func (m *Memory) Join(context.Context) (Records, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, os.ErrClosed
	}
	r := &memory{of: m, records: map[string][]byte{}}
	m.members = append(m.members, r)
	return r, nil
}

// Close removes all.
func (m *Memory) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.members {
		r.gone, r.records = true, nil
	}
	m.members, m.closed = nil, true
}

// Keys are the keys of all records, buckets included, in order.
func (m *Memory) Keys() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var keys []string
	for _, r := range m.members {
		keys = slices.AppendSeq(keys, maps.Keys(r.records))
	}
	slices.Sort(keys)
	return keys
}

func (r *memory) Instance() uint64 { return 0 }

func (r *memory) Put(bucket, key string, text []byte) error {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	if r.gone {
		return os.ErrClosed
	}
	r.records[bucket+"/"+key] = text
	return nil
}

func (r *memory) Leave() {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	r.gone, r.records = true, nil
	r.of.members = slices.DeleteFunc(r.of.members, func(x *memory) bool { return x == r })
}
