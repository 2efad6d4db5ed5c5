package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dryserve/dryserve/host/native/cliutil"
)

// file is what counts of tokenizer.json.
type file struct {
	AddedTokens []struct {
		ID                      uint32
		Content                 string
		SingleWord              bool `json:"single_word"`
		LStrip, RStrip, Special bool
	} `json:"added_tokens"`
	Normalizer    *step
	PreTokenizer  *step      `json:"pre_tokenizer"`
	PostProcessor *processor `json:"post_processor"`
	Decoder       *decoder
	Model         *struct {
		Type         string
		Vocab        json.RawMessage
		Merges       []json.RawMessage
		UnkToken     *string `json:"unk_token"`
		FuseUnk      bool    `json:"fuse_unk"`
		ByteFallback bool    `json:"byte_fallback"`
		IgnoreMerges bool    `json:"ignore_merges"`
		Dropout      *float64
		Prefix       *string `json:"continuing_subword_prefix"`
		Suffix       *string `json:"end_of_word_suffix"`
	}
}

// decoder is the kind of spelling of a vocabulary.
type decoder struct {
	Type     string
	Decoders []decoder
}

// processor puts tokens around a text.
type processor struct {
	Type       string
	Processors []processor
	Single     []struct {
		SpecialToken *struct{ ID string }
		Sequence     *struct{ ID string }
	}
	SpecialTokens map[string]struct{ IDs []uint32 } `json:"special_tokens"`
}

// maxID bounds ids, so that a file cannot ask for tables without end.
const maxID = 1 << 22

// Load reads the tokenizer of a model's directory, or a tokenizer.json itself.
func Load(path string) (*Tokenizer, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; a directory of a model on this machine is accepted", path, cliutil.Reason(err))
	}
	if info.IsDir() {
		path = filepath.Join(path, "tokenizer.json")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; a model's tokenizer.json is accepted", path, cliutil.Reason(err))
	}
	return Parse(path, text)
}

// Parse is Load for a file in memory, which path names in sentences.
func Parse(path string, text []byte) (*Tokenizer, error) {
	t, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

func parse(text []byte) (*Tokenizer, error) {
	var f file
	if err := json.Unmarshal(text, &f); err != nil {
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) {
			where := strings.ToLower(kind.Field)
			if where == "" {
				where = "the whole"
			}
			return nil, fmt.Errorf("%s is of the JSON type %s; what a tokenizer.json has there is accepted", where, kind.Value)
		}
		return nil, errors.New("it is not JSON; a tokenizer.json is accepted")
	}
	switch m := f.Model; {
	case m == nil:
		return nil, errors.New("model is missing; a tokenizer.json is accepted")
	case m.Type != "BPE" && m.Type != "":
		return nil, fmt.Errorf("model.type is %s; BPE is accepted", cliutil.Quote(m.Type))
	case m.Dropout != nil && *m.Dropout != 0:
		return nil, errors.New("model.dropout is set; null is accepted")
	case m.Prefix != nil && *m.Prefix != "":
		return nil, errors.New("model.continuing_subword_prefix is set; null is accepted")
	case m.Suffix != nil && *m.Suffix != "":
		return nil, errors.New("model.end_of_word_suffix is set; null is accepted")
	}
	change, err := normalizer(f.Normalizer)
	if err != nil {
		return nil, err
	}
	cut, level, err := cutter(f.PreTokenizer)
	if err != nil {
		return nil, err
	}
	b, err := f.bpe(level)
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{encode: func(dst []uint32, text string, start bool) []uint32 {
		for _, piece := range cut(change(text), start) {
			dst = b.append(dst, piece)
		}
		return dst
	}}
	if err := f.pieces(t, b); err != nil {
		return nil, err
	}
	if f.PostProcessor != nil {
		if err := f.PostProcessor.around(t); err != nil {
			return nil, err
		}
	}
	t.finish()
	return t, nil
}

// bpe reads the vocabulary and the merges.
func (f *file) bpe(level bool) (*bpe, error) {
	b := &bpe{level: level, unk: -1, fuse: f.Model.FuseUnk, whole: f.Model.IgnoreMerges, merges: map[uint64]merge{}}
	if err := json.Unmarshal(f.Model.Vocab, &b.vocab); err != nil || len(b.vocab) == 0 {
		return nil, errors.New("model.vocab is not a vocabulary; an object of tokens and their ids is accepted")
	}
	for token, id := range b.vocab {
		if id > maxID {
			return nil, fmt.Errorf("model.vocab: the id of %s is %d; %d at most is accepted", cliutil.Quote(token), id, maxID)
		}
	}
	for i := range b.bytes {
		b.bytes[i] = -1
		name := string(byteRunes[i])
		if !level {
			if name = fmt.Sprintf("<0x%02X>", i); !f.Model.ByteFallback {
				continue
			}
		}
		if id, ok := b.vocab[name]; ok {
			b.bytes[i] = int64(id)
		}
	}
	if u := f.Model.UnkToken; u != nil && *u != "" {
		id, ok := b.vocab[*u]
		if !ok {
			return nil, fmt.Errorf("model.unk_token is %s, which model.vocab lacks", cliutil.Quote(*u))
		}
		b.unk = int64(id)
	}
	for i, raw := range f.Model.Merges {
		left, right, ok := pair(raw)
		l, okL := b.vocab[left]
		r, okR := b.vocab[right]
		id, okM := b.vocab[left+right]
		if !ok || !okL || !okR || !okM {
			return nil, fmt.Errorf("model.merges[%d] is %s; two tokens of model.vocab that are one there as well are accepted", i, cliutil.Quote(string(raw)))
		}
		if _, twice := b.merges[uint64(l)<<32|uint64(r)]; !twice {
			b.merges[uint64(l)<<32|uint64(r)] = merge{uint32(i), id}
		}
	}
	return b, nil
}

// pair reads a merge: "a b" or ["a", "b"].
func pair(raw json.RawMessage) (left, right string, ok bool) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return strings.Cut(text, " ")
	}
	var two []string
	if json.Unmarshal(raw, &two) != nil || len(two) != 2 {
		return "", "", false
	}
	return two[0], two[1], true
}

// pieces fills in what tokens stand for.
func (f *file) pieces(t *Tokenizer, b *bpe) error {
	size := uint32(0)
	for _, id := range b.vocab {
		size = max(size, id+1)
	}
	for _, a := range f.AddedTokens {
		if a.ID > maxID {
			return fmt.Errorf("added_tokens: the id of %s is %d; %d at most is accepted", cliutil.Quote(a.Content), a.ID, maxID)
		}
		size = max(size, a.ID+1)
	}
	t.pieces = make([]string, size)
	spaces := f.Decoder.has("Metaspace") || f.Decoder.has("Replace")
	for token, id := range b.vocab {
		t.pieces[id] = token
		switch {
		case b.level || f.Decoder.has("ByteLevel"):
			t.pieces[id] = unspell(token)
		case f.Model.ByteFallback && isByte(token) >= 0:
			t.pieces[id] = string([]byte{byte(isByte(token))})
		case spaces:
			t.pieces[id] = strings.ReplaceAll(token, "▁", " ")
		}
	}
	for _, a := range f.AddedTokens {
		if a.Content == "" {
			return fmt.Errorf("added_tokens: the content of id %d is empty; a text is accepted", a.ID)
		}
		if t.pieces[a.ID] = a.Content; a.Special {
			t.pieces[a.ID] = ""
		}
		t.added = append(t.added, added{text: a.Content, id: a.ID, word: a.SingleWord, lstrip: a.LStrip, rstrip: a.RStrip})
	}
	slices.SortFunc(t.added, longest)
	return nil
}

func (d *decoder) has(kind string) bool {
	if d == nil {
		return false
	}
	for i := range d.Decoders {
		if d.Decoders[i].has(kind) {
			return true
		}
	}
	return d.Type == kind
}

// unspell is the bytes of a token of a byte-level vocabulary.
func unspell(token string) string {
	b := make([]byte, 0, len(token))
	for _, r := range token {
		if x, ok := runeBytes[r]; ok {
			b = append(b, x)
		} else {
			b = append(b, string(r)...)
		}
	}
	return string(b)
}

// isByte is the byte that a token such as <0x0A> is, -1 if it is none.
func isByte(token string) int {
	hex, ok := strings.CutPrefix(token, "<0x")
	if !ok || len(hex) != 3 || hex[2] != '>' {
		return -1
	}
	n, err := strconv.ParseUint(hex[:2], 16, 8)
	if err != nil {
		return -1
	}
	return int(n)
}

// around finds what stands before and behind a single text.
func (p *processor) around(t *Tokenizer) error {
	switch p.Type {
	case "Sequence":
		for i := range p.Processors {
			if err := p.Processors[i].around(t); err != nil {
				return err
			}
		}
	case "ByteLevel":
	case "TemplateProcessing":
		to := &t.prefix
		for _, part := range p.Single {
			if part.Sequence != nil {
				to = &t.suffix
			} else if part.SpecialToken != nil {
				*to = append(*to, p.SpecialTokens[part.SpecialToken.ID].IDs...)
			}
		}
	default:
		return fmt.Errorf("post_processor: type is %s; Sequence, ByteLevel or TemplateProcessing is accepted", cliutil.Quote(p.Type))
	}
	return nil
}
