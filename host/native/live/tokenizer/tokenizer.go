// Package tokenizer turns text into token ids and back.
//
// It owns the built-in tokenizer of bytes and the reading of tokenizer.json with
// byte-pair encoding, as most models have it. It does not own chat templates,
// and of other kinds of tokenizers it says so.
//
// Invariants: encoding loses no byte with a tokenizer that knows all bytes; what
// a file asks for and this package does not do is refused, not left out. Every
// error is one sentence that names the file and the field.
package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Tokenizer is immutable: it may be used from anywhere at the same time.
type Tokenizer struct {
	pieces []string // by id: the bytes it stands for
	added  []added  // by the length of their text, longest first
	first  [256][]int32
	encode func(dst []uint32, text string, start bool) []uint32 // without added tokens
	prefix []uint32
	suffix []uint32
	ids    map[string]uint32 // of added tokens
	words  []uint32
}

// added is a token that is found in a text before anything else.
type added struct {
	text           string
	id             uint32
	word           bool // only where no letter or digit stands beside it
	lstrip, rstrip bool // takes the space before or behind it
}

// Size is one more than the largest id.
func (t *Tokenizer) Size() int { return len(t.pieces) }

// Special is the id of an added token, if there is one with this text.
func (t *Tokenizer) Special(text string) (uint32, bool) {
	id, ok := t.ids[text]
	return id, ok
}

// Piece is the bytes that a token stands for, which may be a part of a
// character; "" for tokens that say nothing to a reader and unknown ids.
func (t *Tokenizer) Piece(id uint32) string {
	if int64(id) >= int64(len(t.pieces)) {
		return ""
	}
	return t.pieces[id]
}

// Words are ids that read well one by one, for answers that are made up: those
// from 1000 to 1999 that have text, or all where there are few of these.
func (t *Tokenizer) Words() []uint32 { return t.words }

// Encode appends the tokens of a text, those that open and close every text
// included.
func (t *Tokenizer) Encode(dst []uint32, text string) []uint32 {
	dst = append(dst, t.prefix...)
	return append(t.EncodePart(dst, text), t.suffix...)
}

// EncodePart appends the tokens of a text that is not the whole.
func (t *Tokenizer) EncodePart(dst []uint32, text string) []uint32 {
	start := 0 // of what is not encoded yet
	for at := 0; at < len(text); {
		a, ok := t.addedAt(text, at)
		if !ok {
			at++
			continue
		}
		left, end := at, at+len(a.text)
		if a.lstrip {
			left = start + len(strings.TrimRightFunc(text[start:at], unicode.IsSpace))
		}
		if a.rstrip {
			end = len(text) - len(strings.TrimLeftFunc(text[end:], unicode.IsSpace))
		}
		if left > start {
			dst = t.encode(dst, text[start:left], start == 0)
		}
		dst = append(dst, a.id)
		start, at = end, end
	}
	if start < len(text) {
		dst = t.encode(dst, text[start:], start == 0)
	}
	return dst
}

// addedAt is the longest added token that stands at a place.
func (t *Tokenizer) addedAt(text string, at int) (added, bool) {
	for _, i := range t.first[text[at]] {
		a := t.added[i]
		if strings.HasPrefix(text[at:], a.text) && !(a.word && inWord(text, at, at+len(a.text))) {
			return a, true
		}
	}
	return added{}, false
}

func inWord(text string, start, end int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:start])
	after, _ := utf8.DecodeRuneInString(text[end:])
	return start > 0 && letter(before) || end < len(text) && letter(after)
}

func letter(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }

// finish completes the tables.
func (t *Tokenizer) finish() {
	t.ids = map[string]uint32{}
	for i, a := range t.added {
		t.first[a.text[0]] = append(t.first[a.text[0]], int32(i))
		t.ids[a.text] = a.id
	}
	const few = 200
	var all []uint32
	for id, p := range t.pieces {
		if readable(p) {
			all = append(all, uint32(id))
			if id >= 1000 && id < 2000 {
				t.words = append(t.words, uint32(id))
			}
		}
	}
	if len(t.words) < few {
		t.words = all
	}
}

// readable: printed characters, perhaps behind a space.
func readable(p string) bool {
	if p == "" || !utf8.ValidString(p) {
		return false
	}
	for _, r := range p {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return false
		}
	}
	return strings.TrimSpace(p) != ""
}

// Decoder turns tokens into text, one by one.
type Decoder struct {
	t    *Tokenizer
	rest []byte // the beginning of a character
}

// Decoder returns a decoder.
func (t *Tokenizer) Decoder() Decoder { return Decoder{t: t} }

// Add is the text that a token adds: whole characters only. Bytes that are
// no character become U+FFFD.
func (d *Decoder) Add(id uint32) string {
	p := d.t.Piece(id)
	if len(d.rest) == 0 && utf8.ValidString(p) {
		return p
	}
	d.rest = append(d.rest, p...)
	n := whole(d.rest)
	s := strings.ToValidUTF8(string(d.rest[:n]), "\uFFFD")
	d.rest = append(d.rest[:0], d.rest[n:]...)
	return s
}

// Flush is the text of what is left.
func (d *Decoder) Flush() string {
	s := strings.ToValidUTF8(string(d.rest), "\uFFFD")
	d.rest = d.rest[:0]
	return s
}

// whole is how many bytes are not the beginning of a character that may still
// be completed.
func whole(b []byte) int {
	for back := 1; back < utf8.UTFMax && back <= len(b); back++ {
		if at := len(b) - back; utf8.RuneStart(b[at]) {
			if !utf8.FullRune(b[at:]) {
				return at
			}
			break
		}
	}
	return len(b)
}

// Decode is the text of tokens.
func (t *Tokenizer) Decode(ids []uint32) string {
	var b strings.Builder
	d := t.Decoder()
	for _, id := range ids {
		b.WriteString(d.Add(id))
	}
	b.WriteString(d.Flush())
	return b.String()
}
