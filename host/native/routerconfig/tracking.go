package routerconfig

import (
	"encoding/binary"
	"fmt"
	"os"

	"github.com/zeebo/blake3"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/seq"
	"github.com/dryserve/dryserve/host/native/cliutil"
)

// keyBytes is the size of a tracking key.
const keyBytes = 32

// Subject is what tracked blocks belong to besides their tokens. In a replay
// the model is "replay" and the group "default".
type Subject struct {
	Model, Group    string
	BlockSize       int
	Namespace, Lora string
	Eagle           bool
}

// Tracking says how the blocks of live prompts are named: the usual way, or by
// a key, which it reads from its file (router notes §1.6).
func (c *Config) Tracking(s Subject) (seq.Hashing, error) {
	if c.TrackingHash != config.KeyedXXH3 {
		h := seq.Plain(s.BlockSize)
		h.BlockSeed, h.Eagle = seq.Salt(s.Lora, s.Namespace), s.Eagle
		return h, nil
	}
	key, err := os.ReadFile(c.TrackingKeyFile)
	if err != nil {
		return seq.Hashing{}, fmt.Errorf("router_tracking_key_file: %s: %v", c.TrackingKeyFile, cliutil.Reason(err))
	}
	if len(key) != keyBytes {
		return seq.Hashing{}, fmt.Errorf("router_tracking_key_file: %s: has %d bytes; %d are accepted", c.TrackingKeyFile, len(key), keyBytes)
	}
	return keyed(key, c.TrackingKeyID, s), nil
}

// keyed derives the two seeds of a key of 32 bytes.
func keyed(key []byte, id string, s Subject) seq.Hashing {
	b := []byte("dynamo.router.tracking-hash/keyed-xxh3-v1\x00")
	frame := func(tag byte, data []byte) {
		b = append(b, tag)
		b = binary.LittleEndian.AppendUint64(b, uint64(len(data)))
		b = append(b, data...)
	}
	optional := func(tag byte, text string) {
		if text == "" {
			b = append(b, tag, 0)
			return
		}
		b = append(b, tag, 1)
		b = binary.LittleEndian.AppendUint64(b, uint64(len(text)))
		b = append(b, text...)
	}
	frame(1, []byte(id))
	frame(2, []byte(s.Model))
	frame(3, []byte(s.Group))
	frame(4, binary.LittleEndian.AppendUint32(nil, uint32(s.BlockSize)))
	optional(5, s.Namespace)
	optional(6, s.Lora)
	eagle := byte(0)
	if s.Eagle {
		eagle = 1
	}
	frame(7, []byte{eagle})
	hasher, _ := blake3.NewKeyed(key) // fails on another length only
	hasher.Write(b)
	digest := hasher.Sum(nil)
	return seq.Hashing{
		BlockSize: s.BlockSize, Eagle: s.Eagle,
		BlockSeed: binary.LittleEndian.Uint64(digest[:8]),
		ChainSeed: binary.LittleEndian.Uint64(digest[8:16]),
	}
}
