package workload

import (
	"math"
	"slices"
	"strconv"

	"github.com/zeebo/xxh3"
)

// linePrefix begins the id of a session whose row has none; the number of the
// row's line follows. A row may spell such an id out and so join the session.
const linePrefix = "request_"

// maxText bounds the bytes of all session ids together.
const maxText = math.MaxUint32

// names finds sessions by their ids. The ids themselves are the workload's.
type names struct {
	table   []int32 // open addressing: 1 + name, 0: empty
	session []int32 // of each name
	ahead   bool    // a name request_<line> of a line still to come exists
	scratch []byte
}

// session finds the session of a row, or makes it. id is nil if the row has
// none.
func (b *Builder) session(id []byte, line int64) (s int32, fresh bool, code Code) {
	n := &b.names
	if id == nil {
		if n.ahead {
			n.scratch = strconv.AppendInt(append(n.scratch[:0], linePrefix...), line, 10)
			if name := b.find(n.scratch); name >= 0 {
				return n.session[name], false, OK
			}
		}
		return b.open(0, line), true, OK
	}
	if name := b.find(id); name >= 0 {
		return n.session[name], false, OK
	}
	if named := lineOf(id); named > line {
		n.ahead = true
	} else if s := b.unnamed(named); s >= 0 {
		return s, false, OK
	}
	if len(b.w.text)+len(id) > maxText {
		return 0, false, TooMuchText
	}
	s = b.open(b.intern(id), line)
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

// find is the number of a name, -1 if it is not known.
func (b *Builder) find(id []byte) int32 {
	if len(b.names.table) == 0 {
		return -1
	}
	return b.names.table[b.slot(id)] - 1
}

// slot is where a name is or belongs.
func (b *Builder) slot(id []byte) int {
	mask := uint64(len(b.names.table) - 1)
	for i := xxh3.Hash(id) & mask; ; i = (i + 1) & mask {
		name := b.names.table[i]
		if name == 0 || string(id) == string(b.name(name)) {
			return int(i)
		}
	}
}

// name is the text of name 1, 2, ...
func (b *Builder) name(name int32) []byte {
	return b.w.text[b.w.textOff[name-1]:b.w.textOff[name]]
}

// intern adds a name that find does not know and returns 1 + its number.
func (b *Builder) intern(id []byte) int32 {
	n, w := &b.names, &b.w
	if len(w.textOff) == 0 {
		w.textOff = append(w.textOff, 0)
	}
	if len(w.textOff)*4 > len(n.table)*3 {
		n.table = make([]int32, max(64, 2*len(n.table)))
		for name := int32(1); name < int32(len(w.textOff)); name++ {
			n.table[b.slot(b.name(name))] = name
		}
	}
	i := b.slot(id)
	w.text = append(w.text, id...)
	w.textOff = append(w.textOff, uint32(len(w.text)))
	n.table[i] = int32(len(w.textOff) - 1)
	return n.table[i]
}
