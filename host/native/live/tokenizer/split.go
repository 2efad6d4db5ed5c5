package tokenizer

import (
	"fmt"
	"strings"

	"github.com/dlclark/regexp2/v2"
	"golang.org/x/text/unicode/norm"

	"github.com/dryserve/dryserve/host/native/cliutil"
)

// pattern is a text or a regular expression in a file.
type pattern struct {
	String *string
	Regex  *string
}

// step is a normalizer or pre-tokenizer as files have it.
type step struct {
	Type           string
	Normalizers    []step
	Pretokenizers  []step
	Prepend        string
	Pattern        pattern
	Content        string
	Behavior       string
	Invert         bool
	AddPrefixSpace *bool   `json:"add_prefix_space"`
	PrependScheme  *string `json:"prepend_scheme"`
	UseRegex       *bool   `json:"use_regex"`
	IndividualDigs bool    `json:"individual_digits"`
	Replacement    string
	Split          *bool
}

// change is what a normalizer does to a text.
type change func(text string) string

// normalizer builds one. Of several each works on what the one before gives.
func normalizer(s *step) (change, error) {
	if s == nil {
		return func(text string) string { return text }, nil
	}
	switch s.Type {
	case "Sequence":
		var all []change
		for i := range s.Normalizers {
			c, err := normalizer(&s.Normalizers[i])
			if err != nil {
				return nil, err
			}
			all = append(all, c)
		}
		return func(text string) string {
			for _, c := range all {
				text = c(text)
			}
			return text
		}, nil
	case "NFC":
		return norm.NFC.String, nil
	case "NFD":
		return norm.NFD.String, nil
	case "NFKC":
		return norm.NFKC.String, nil
	case "NFKD":
		return norm.NFKD.String, nil
	case "Lowercase":
		return strings.ToLower, nil
	case "Prepend":
		return func(text string) string { return s.Prepend + text }, nil
	case "Replace":
		if s.Pattern.String != nil && *s.Pattern.String != "" {
			return func(text string) string { return strings.ReplaceAll(text, *s.Pattern.String, s.Content) }, nil
		}
		return nil, fmt.Errorf("normalizer: Replace has a pattern that is no text; a text is accepted")
	}
	return nil, fmt.Errorf("normalizer: type is %s; Sequence, NFC, NFD, NFKC, NFKD, Lowercase, Prepend or Replace is accepted", cliutil.Quote(s.Type))
}

// cut splits a text into pieces that are encoded by themselves. start: nothing
// stands before the text.
type cut func(text string, start bool) []string

// usual is the expression of ByteLevel where use_regex is on: contractions,
// letters, digits and other signs with a space before them, and white space.
const usual = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

// cutter builds one. level: bytes are spelt as characters from here on.
func cutter(s *step) (c cut, level bool, err error) {
	if s == nil {
		return func(text string, _ bool) []string { return []string{text} }, false, nil
	}
	switch s.Type {
	case "Sequence":
		return sequence(s.Pretokenizers)
	case "ByteLevel":
		c, err = byteLevel(s)
		return c, true, err
	case "Split":
		c, err = splitter(s)
		return c, false, err
	case "Digits":
		if !s.IndividualDigs {
			c, err = expression(`\p{Nd}+`)
		} else {
			c, err = expression(`\p{Nd}`)
		}
		return c, false, err
	case "Metaspace":
		return metaspace(s), false, nil
	}
	return nil, false, fmt.Errorf("pre_tokenizer: type is %s; Sequence, ByteLevel, Split, Digits or Metaspace is accepted", cliutil.Quote(s.Type))
}

func sequence(steps []step) (cut, bool, error) {
	var all []cut
	any := false
	for i := range steps {
		c, level, err := cutter(&steps[i])
		if err != nil {
			return nil, false, err
		}
		if any {
			return nil, false, fmt.Errorf("pre_tokenizer: %s stands behind ByteLevel; ByteLevel at the end is accepted", cliutil.Quote(steps[i].Type))
		}
		any = any || level
		all = append(all, c)
	}
	return func(text string, start bool) []string {
		pieces := []string{text}
		for _, c := range all {
			var next []string
			for i, p := range pieces {
				next = append(next, c(p, start && i == 0)...)
			}
			pieces = next
		}
		return pieces
	}, any, nil
}

func byteLevel(s *step) (cut, error) {
	split, err := expression(usual)
	if err != nil {
		return nil, err
	}
	regex, space := s.UseRegex == nil || *s.UseRegex, s.AddPrefixSpace == nil || *s.AddPrefixSpace
	return func(text string, start bool) []string {
		if space && !strings.HasPrefix(text, " ") {
			text = " " + text
		}
		if regex {
			return split(text, start)
		}
		return []string{text}
	}, nil
}

func splitter(s *step) (cut, error) {
	if s.Behavior != "Isolated" && !(s.Behavior == "Removed" && s.Invert) {
		return nil, fmt.Errorf("pre_tokenizer: Split has the behavior %s; Isolated, or Removed with invert, is accepted", cliutil.Quote(s.Behavior))
	}
	var c cut
	var err error
	switch {
	case s.Pattern.Regex != nil:
		c, err = expression(*s.Pattern.Regex)
	case s.Pattern.String != nil && *s.Pattern.String != "":
		c, err = expression(regexp2.Escape(*s.Pattern.String))
	default:
		err = fmt.Errorf("pre_tokenizer: Split has no pattern; String or Regex is accepted")
	}
	return c, err
}

// expression cuts at the borders of an expression's matches.
func expression(text string) (cut, error) {
	re, err := regexp2.Compile(text, regexp2.None)
	if err != nil {
		return nil, fmt.Errorf("pre_tokenizer: the expression %s cannot be read", cliutil.Quote(text))
	}
	return func(text string, _ bool) (pieces []string) {
		at := 0
		matches, _ := re.FindAllStringIndex(text, -1) // fails on a time limit only, and there is none
		for _, m := range matches {
			if m[0] > at {
				pieces = append(pieces, text[at:m[0]])
			}
			if m[1] > m[0] {
				pieces = append(pieces, text[m[0]:m[1]])
			}
			at = m[1]
		}
		if at < len(text) {
			pieces = append(pieces, text[at:])
		}
		return pieces
	}, nil
}

// metaspace spells spaces as a sign and cuts before each.
func metaspace(s *step) cut {
	sign := s.Replacement
	if sign == "" {
		sign = "▁"
	}
	scheme := "always"
	if s.AddPrefixSpace != nil && !*s.AddPrefixSpace {
		scheme = "never"
	}
	if s.PrependScheme != nil {
		scheme = *s.PrependScheme
	}
	split := s.Split == nil || *s.Split
	return func(text string, start bool) []string {
		text = strings.ReplaceAll(text, " ", sign)
		if !strings.HasPrefix(text, sign) && (scheme == "always" || scheme == "first" && start) {
			text = sign + text
		}
		if !split {
			return []string{text}
		}
		var pieces []string
		for len(text) > 0 {
			end := strings.Index(text[1:], sign) + 1
			if end == 0 {
				end = len(text)
			}
			pieces = append(pieces, text[:end])
			text = text[end:]
		}
		return pieces
	}
}
