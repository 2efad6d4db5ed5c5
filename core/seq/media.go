package seq

import "github.com/zeebo/xxh3"

// Tokens that stand for multimodal content have ids from padBase on
// (router notes §1.7).
const (
	padBase = 1_000_000
	padMask = 1<<30 - 1
)

// idDigits is the length of a multimodal identifier that is a digest already.
const idDigits = 64

// MediaHash is the 64-bit hash of a multimodal identifier: the head of one that
// is a 256-bit digest in hexadecimal, else a hash of the text. ok is false for
// the empty text (router notes §1.7).
func MediaHash(id string) (hash uint64, ok bool) {
	if id == "" {
		return 0, false
	}
	if len(id) == idDigits {
		if head, ok := digest(id); ok {
			return head, true
		}
	}
	return xxh3.HashStringSeed(id, 0), true
}

// digest is the first 64 bits of a text that is hexadecimal throughout.
func digest(id string) (head uint64, ok bool) {
	for i := range len(id) {
		c := id[i]
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		if i < 16 {
			head = head<<4 | uint64(c)
		}
	}
	return head, true
}

// PadToken is the token id that stands for content with a multimodal hash.
func PadToken(hash uint64) uint32 { return padBase + uint32(hash&padMask) }

// Media is a multimodal object and the ranges of tokens it stands at, each from
// a first token up to but not including a last one.
type Media struct {
	Hash    uint64
	Offsets [][2]int
}

// SplitMedia hands the objects of a prompt of total tokens to its blocks, the
// last one of which may be incomplete: each block lists the objects that reach
// into it, in the order given, with the offsets counted from its own first
// token and cut at its ends (router notes §1.7).
func SplitMedia(objects []Media, blockSize, total int) [][]Media {
	if blockSize < 1 || total < 1 {
		return nil
	}
	blocks := make([][]Media, (total+blockSize-1)/blockSize)
	for i := range blocks {
		first := i * blockSize
		last := min(first+blockSize, total)
		for _, o := range objects {
			part := Media{Hash: o.Hash}
			for _, r := range o.Offsets {
				if from, to := max(r[0], first), min(r[1], last); from < to {
					part.Offsets = append(part.Offsets, [2]int{from - first, to - first})
				}
			}
			if part.Offsets != nil {
				blocks[i] = append(blocks[i], part)
			}
		}
	}
	return blocks
}
