package cliutil

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestLengthen(t *testing.T) {
	f := pflag.NewFlagSet("x", pflag.ContinueOnError)
	for _, name := range []string{"num-workers", "num-blocks", "default-x", "decode-ratio", "block"} {
		f.String(name, "", "")
	}
	for _, name := range []string{"fast", "no-fast", "block-all"} {
		f.Bool(name, false, "")
	}
	f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if rest, ok := strings.CutPrefix(name, "older-"); ok {
			name = "default-" + rest
		}
		return pflag.NormalizedName(name)
	})
	ours := func(name string) bool { return name != "default-x" }
	for args, want := range map[string]string{
		"":                                 "",
		"--num-w 4 --num-blo=5 word":       "--num-workers 4 --num-blocks=5 word",
		"--num-workers --num-b --fas":      "--num-workers --num-b --fast",
		"--num-w --num-w --n=":             "--num-workers --num-w ! --n begins several flags: --no-fast, --num-blocks, --num-workers; more of its name is accepted",
		"--de 1 --d=2":                     "--decode-ratio 1 --decode-ratio=2",
		"--block x --block- --no-f --fast": "--block x --block-all --no-fast --fast",
		"--fas=true --unknown --num-w=":    "--fast=true --unknown --num-workers=",
		"-n --num-w 1 -- --num-w":          "-n --num-workers 1 -- --num-w",
		"--":                               "--",
		"--num 4":                          "! --num begins several flags: --num-blocks, --num-workers; more of its name is accepted",
		"--older-x 1 --older- 2":           "--older-x 1 --default-x 2",
		"--num-workers":                    "--num-workers",
	} {
		want, sentence, _ := strings.Cut(want, "! ")
		got, err := Lengthen(f, strings.Fields(args), ours)
		switch {
		case sentence != "" && (err == nil || err.Error() != sentence):
			t.Errorf("%s: %v, want %s", args, err, sentence)
		case sentence == "" && (err != nil || !slices.Equal(got, strings.Fields(want))):
			t.Errorf("%s: %v, %q, want %s", args, err, got, want)
		}
	}
}
