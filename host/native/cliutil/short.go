package cliutil

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Lengthen puts whole flags in the place of their beginnings, as Python's argparse
// does: --num-work 4 is --num-workers 4. What is the beginning of no flag is left
// as it is. Of several flags it is the one for which first reports true, if that
// is one; else the error says which there are.
func Lengthen(f *pflag.FlagSet, args []string, first func(name string) bool) ([]string, error) {
	args = slices.Clone(args)
	for i := 0; i < len(args); i++ {
		name, isFlag := strings.CutPrefix(args[i], "--")
		if !isFlag {
			continue
		}
		if name == "" { // only words follow
			break
		}
		name, value, hasValue := strings.Cut(name, "=")
		flag := f.Lookup(name)
		if flag == nil {
			whole, err := lengthen(f, name, first)
			if err != nil {
				return nil, err
			}
			if whole == "" {
				continue
			}
			flag = f.Lookup(whole)
			if args[i] = "--" + whole; hasValue {
				args[i] += "=" + value
			}
		}
		if !hasValue && flag.NoOptDefVal == "" {
			i++ // its value, whatever that begins with
		}
	}
	return args, nil
}

// lengthen is the flag that begins as name does, "" if none does.
func lengthen(f *pflag.FlagSet, name string, first func(name string) bool) (string, error) {
	var all, preferred []string
	other := string(f.GetNormalizeFunc()(f, name)) // as an older spelling of flags
	f.VisitAll(func(flag *pflag.Flag) {
		if strings.HasPrefix(flag.Name, name) || strings.HasPrefix(flag.Name, other) {
			if all = append(all, flag.Name); first(flag.Name) {
				preferred = append(preferred, flag.Name)
			}
		}
	})
	switch {
	case len(all) == 0 || name == "":
		return "", nil
	case len(all) == 1:
		return all[0], nil
	case len(preferred) == 1:
		return preferred[0], nil
	}
	slices.Sort(all)
	const most = 4
	list := "--" + strings.Join(all[:min(len(all), most)], ", --")
	if n := len(all) - most; n > 0 {
		list += fmt.Sprintf(" and %d more", n)
	}
	return "", fmt.Errorf("--%s begins several flags: %s; more of its name is accepted", name, list)
}
