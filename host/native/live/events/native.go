package events

import (
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/host/native/live/zmtp"
	"github.com/dryserve/dryserve/host/native/routerwire"
)

// Native tells of one rank's cache as vLLM itself does: a message a pass, over a
// PUB socket, and again to who asks a second socket for what was missed.
//
// Source: live notes §5.
type Native struct {
	rank, blockSize int
	pub             *zmtp.Pub
	router          *zmtp.Router // nil: nobody can ask
	now             func() time.Time

	mu   sync.Mutex
	next uint64 // number of the next message
	kept [][]byte
	from uint64 // number of the oldest that is kept
}

// mostKept is how many messages are kept for those who have missed them.
const mostKept = 10_000

// noMore ends an answer to who has missed something.
var noMore = []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// ListenNative opens the sockets of a rank on a host; replay 0: nobody can ask.
func ListenNative(host string, port, replay, rank, blockSize int) (*Native, error) {
	n := &Native{rank: rank, blockSize: blockSize, now: time.Now}
	var err error
	address := func(port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }
	if n.pub, err = zmtp.Listen(address(port)); err != nil {
		return nil, fmt.Errorf("events of a cache cannot be published at %s: %w", address(port), err)
	}
	if replay == 0 {
		return n, nil
	}
	if n.router, err = zmtp.ListenRouter(address(replay), n.answer); err != nil {
		n.pub.Close()
		return nil, fmt.Errorf("events of a cache cannot be asked for at %s: %w", address(replay), err)
	}
	return n, nil
}

// Close ends it.
func (n *Native) Close() {
	n.pub.Close()
	if n.router != nil {
		n.router.Close()
	}
}

// Wanted reports whether anybody hears what is told.
func (n *Native) Wanted() bool { return n.pub.Wanted(nil) }

// Events of vLLM.
type (
	nativeStored struct {
		Type      string   `msgpack:"type"`
		Blocks    []uint64 `msgpack:"block_hashes"`
		Parent    *uint64  `msgpack:"parent_block_hash"`
		Tokens    []uint32 `msgpack:"token_ids"`
		BlockSize int      `msgpack:"block_size"`
		Group     int      `msgpack:"group_idx"`
	}
	nativeRemoved struct {
		Type   string   `msgpack:"type"`
		Blocks []uint64 `msgpack:"block_hashes"`
		Group  int      `msgpack:"group_idx"`
	}
)

// Tell publishes what the engine said, if anybody listens or can ask. Blocks in
// host memory are not spoken of.
func (n *Native) Tell(raw []engine.KVEvent, blocks []engine.KVBlock, tokens []uint32) error {
	list := n.translate(raw, blocks, tokens)
	if len(list) == 0 {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	number := n.next
	n.next++
	wanted := n.Wanted()
	if !wanted && n.router == nil {
		return nil
	}
	now := n.now()
	payload, err := routerwire.Marshal([]any{float64(now.Unix()) + float64(now.Nanosecond())/1e9, list, n.rank})
	if err != nil {
		return err
	}
	if n.router != nil {
		n.keep(payload)
	}
	if wanted {
		n.pub.Publish(nil, binary.BigEndian.AppendUint64(nil, number), payload)
	}
	return nil
}

func (n *Native) keep(payload []byte) {
	n.kept = append(n.kept, payload)
	if len(n.kept) > mostKept {
		n.kept[0] = nil
		n.kept = n.kept[1:]
		n.from++
	}
}

func (n *Native) translate(raw []engine.KVEvent, blocks []engine.KVBlock, tokens []uint32) (list []any) {
	for _, e := range raw {
		if e.Host {
			continue
		}
		of := blocks[e.First : e.First+e.Count]
		hashes := make([]uint64, len(of))
		for i, b := range of {
			hashes[i] = b.Hash
		}
		if e.Kind == engine.Removed {
			list = append(list, nativeRemoved{"BlockRemoved", hashes, 0})
			continue
		}
		s := nativeStored{Type: "BlockStored", Blocks: hashes, BlockSize: n.blockSize}
		if e.HasParent {
			s.Parent = &e.Parent
		}
		for _, b := range of {
			s.Tokens = append(s.Tokens, tokens[b.Tokens:b.Tokens+n.blockSize]...)
		}
		list = append(list, s)
	}
	return list
}

// answer sends what is kept from a number on: of all, if that is not kept any
// more. Who does not ask properly is not answered.
func (n *Native) answer(parts [][]byte, send func(parts ...[]byte) bool) {
	if len(parts) < 2 || len(parts[1]) != 8 {
		return
	}
	start := binary.BigEndian.Uint64(parts[1])
	n.mu.Lock()
	first := n.from
	list := slices.Clone(n.kept)
	n.mu.Unlock()
	for i, payload := range list {
		number := first + uint64(i)
		if number >= start && !send(nil, nil, binary.BigEndian.AppendUint64(nil, number), payload) {
			return
		}
	}
	send(nil, nil, noMore, nil)
}
