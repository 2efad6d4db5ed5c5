package profile

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dryserve/dryserve/core/config"
)

// array is an array as sentences speak of it.
type array struct {
	name string
	data []float64
	axes []array // what it is over; none for an axis
}

// fault words what core/config found wrong with the array.
func (a array) fault(path string, f config.TableFault) error {
	switch f.Code {
	case config.TooFew:
		return fmt.Errorf("%s: array %s has %s; two or more are accepted", path, a.name, values(len(a.data)))
	case config.WrongLength:
		var want []string
		for _, x := range a.axes {
			want = append(want, fmt.Sprintf("%s has %s", x.name, values(len(x.data))))
		}
		return fmt.Errorf("%s: array %s has %s, but %s; one for each is accepted", path, a.name, values(len(a.data)), strings.Join(want, " and "))
	case config.NotRising:
		return fmt.Errorf("%s: array %s has %s at index %d after %s; strictly rising values are accepted",
			path, a.name, number(a.data[f.Index]), f.Index, number(a.data[f.Index-1]))
	case config.NegativeFloat:
		return fmt.Errorf("%s: array %s is %s at index %s; numbers of at least 0 are accepted", path, a.name, number(a.data[f.Index]), a.index(f.Index))
	}
	return fmt.Errorf("%s: array %s is %s at index %s; finite numbers are accepted", path, a.name, number(a.data[f.Index]), a.index(f.Index))
}

// index spells the place of a value in all dimensions of the array.
func (a array) index(i int) string {
	if len(a.axes) < 2 {
		return strconv.Itoa(i)
	}
	parts := make([]string, len(a.axes))
	for d := len(a.axes) - 1; d >= 0; d-- {
		n := len(a.axes[d].data)
		parts[d] = strconv.Itoa(i % n)
		i /= n
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

func values(n int) string {
	if n == 1 {
		return "1 value"
	}
	return strconv.Itoa(n) + " values"
}

// list joins names: a, b and c.
func list(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
