package workload

import (
	"slices"
	"strconv"
)

// linePrefix begins the id of a session whose row has none; the number of the
// row's line follows. A row may spell such an id out and so join the session.
const linePrefix = "request_"

// names finds sessions by their ids. The ids themselves are the workload's.
type names struct {
	session []int32 // of each id
	ahead   bool    // an id request_<line> of a line still to come exists
	scratch []byte
}

// session finds the session of a row, or makes it. id is nil if the row has
// none.
func (b *Builder) session(id []byte, line int64) (s int32, fresh bool, code Code) {
	n := &b.names
	if id == nil {
		if n.ahead {
			n.scratch = AppendLineID(n.scratch[:0], line)
			if name := b.w.ids.Find(n.scratch); name >= 0 {
				return n.session[name], false, OK
			}
		}
		return b.open(0, line), true, OK
	}
	if name := b.w.ids.Find(id); name >= 0 {
		return n.session[name], false, OK
	}
	if named := lineOf(id); named > line {
		n.ahead = true
	} else if s := b.unnamed(named); s >= 0 {
		return s, false, OK
	}
	name := b.w.ids.Add(id)
	if name < 0 {
		return 0, false, TooMuchText
	}
	s = b.open(name+1, line)
	n.session = append(n.session, s)
	return s, true, OK
}

// open adds a session.
func (b *Builder) open(name int32, line int64) int32 {
	b.w.Sessions = append(b.w.Sessions, Session{First: -1, Line: int32(line), name: name})
	return int32(len(b.w.Sessions) - 1)
}

// unnamed finds the session named after a line, -1 if there is none. Lines
// ascend with the sessions.
func (b *Builder) unnamed(line int64) int32 {
	i, ok := slices.BinarySearchFunc(b.w.Sessions, line, func(s Session, line int64) int {
		return int(int64(s.Line) - line)
	})
	if !ok || b.w.Sessions[i].name > 0 {
		return -1
	}
	return int32(i)
}

// AppendLineID appends the id of a session whose row, on the line, has none.
func AppendLineID(dst []byte, line int64) []byte {
	return strconv.AppendInt(append(dst, linePrefix...), line, 10)
}

// IsLineID reports whether an id is one that a row without an id may have.
func IsLineID(id []byte) bool { return lineOf(id) > 0 }

// lineOf is the line in an id request_<line>, 0 for any other id.
func lineOf(id []byte) int64 {
	if len(id) <= len(linePrefix) || string(id[:len(linePrefix)]) != linePrefix {
		return 0
	}
	digits := id[len(linePrefix):]
	if digits[0] == '0' || len(digits) > 18 {
		return 0
	}
	v := int64(0)
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0
		}
		v = v*10 + int64(c-'0')
	}
	return v
}
