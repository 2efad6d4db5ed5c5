package tokenizer

import "slices"

// Ids of the built-in tokenizer behind the bytes, which are their own ids.
const (
	endOfText = 256 + iota
	imStart
	imEnd
	firstWord = 1000
	words     = 1000
)

// syllables spell the digits of a word's number.
var syllables = [10]string{"ba", "de", "fi", "go", "ku", "la", "me", "ni", "po", "su"}

const wordLen = len(" badefi")

// Builtin is the tokenizer for those who have no model: a token for each byte,
// the three special tokens of ChatML, and a thousand words of three syllables
// with the ids from 1000 on, which simulated answers consist of. A text that
// holds an answer has the answer's tokens again.
func Builtin() *Tokenizer {
	t := &Tokenizer{pieces: make([]string, firstWord+words)}
	for i := range 256 {
		t.pieces[i] = string([]byte{byte(i)})
	}
	for i := range words {
		t.pieces[firstWord+i] = " " + syllables[i/100] + syllables[i/10%10] + syllables[i%10]
	}
	for id, text := range map[uint32]string{endOfText: "<|endoftext|>", imStart: "<|im_start|>", imEnd: "<|im_end|>"} {
		t.added = append(t.added, added{text: text, id: id})
	}
	slices.SortFunc(t.added, longest)
	t.encode = encodeBytes
	t.finish()
	return t
}

func longest(a, b added) int {
	if d := len(b.text) - len(a.text); d != 0 {
		return d
	}
	return int(a.id) - int(b.id)
}

// encodeBytes is the encoding of the built-in tokenizer.
func encodeBytes(dst []uint32, text string, _ bool) []uint32 {
	for at := 0; at < len(text); {
		if n, ok := word(text[at:]); ok {
			dst = append(dst, firstWord+n)
			at += wordLen
			continue
		}
		dst = append(dst, uint32(text[at]))
		at++
	}
	return dst
}

// word is the number of the word that a text begins with.
func word(text string) (n uint32, ok bool) {
	if len(text) < wordLen || text[0] != ' ' {
		return 0, false
	}
	for i := 1; i < wordLen; i += 2 {
		digit := slices.Index(syllables[:], text[i:i+2])
		if digit < 0 {
			return 0, false
		}
		n = 10*n + uint32(digit)
	}
	return n, true
}
