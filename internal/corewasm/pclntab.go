package corewasm

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// pclntab is the table of functions in memory: where its parts begin, and the
// tables by number that functions have besides. See runtime/symtab.go.
type pclntab struct {
	m                                  memory
	names, files, units, values, funcs region
	count                              int
	extra                              int // address that offsets of funcdata count from
}

// region is a part of memory.
type region struct{ at, bytes int }

func (r region) end() int { return r.at + r.bytes }

const (
	word      = 8  // bytes of a pointer; Go's wasm has 64-bit ones
	funcBytes = 44 // of a _func without what follows it

	// Offsets in a _func.
	pcfileAt, pclnAt, npcdataAt, unitAt, startLineAt, nfuncdataAt = 20, 24, 28, 32, 36, 43

	inlTreeIndex, argLiveIndex           = 2, 3       // pcdata that only tracebacks read
	inlTree, argInfo, argLiveInfo, wraps = 3, 5, 6, 7 // funcdata that only they and traces read
	inlinedCallBytes                     = 16
)

func (m memory) u32(at int) int { return int(binary.LittleEndian.Uint32(m[at:])) }

func (m memory) pointer(at int) int { return int(binary.LittleEndian.Uint64(m[at:])) }

func (m memory) set32(at int, n uint32) { binary.LittleEndian.PutUint32(m[at:], n) }

func (m memory) clear(r region) { clear(m[r.at:r.end()]) }

// find finds the table by its head and by the module's description that points
// there.
func (m memory) find() (*pclntab, error) {
	head := []byte{0xF1, 0xFF, 0xFF, 0xFF, 0, 0, 1, word}
	for from := 0; ; {
		at := bytes.Index(m[from:], head)
		if at < 0 {
			return nil, fmt.Errorf("slimming core.wasm: its table of functions is not found; the Go of this repository's go.mod is accepted")
		}
		at += from
		if t := m.described(at); t != nil {
			return t, nil
		}
		from = at + 1
	}
}

// described is the table at an address if a moduledata describes it.
func (m memory) described(at int) *pclntab {
	const (
		slices   = 6 // funcnametab, cutab, filetab, pctab, pclntable, ftab
		sliceLen = 24
		gofuncAt = word + slices*sliceLen + 21*word
	)
	pointer := binary.LittleEndian.AppendUint64(nil, uint64(at))
	for from := 0; ; from++ {
		k := bytes.Index(m[from:], pointer)
		if k < 0 {
			return nil
		}
		from += k
		if from+gofuncAt+word > len(m) {
			continue
		}
		part := func(i, size int) region {
			s := from + word + i*sliceLen
			return region{m.pointer(s), m.pointer(s+word) * size}
		}
		t := &pclntab{m: m, names: part(0, 1), units: part(1, 4), files: part(2, 1), values: part(3, 1), funcs: part(4, 1), count: m.pointer(at + word), extra: m.pointer(from + gofuncAt)}
		if t.fits(at) && part(5, word).bytes == (t.count+1)*word {
			return t
		}
	}
}

// fits reports whether the parts are those that the head names.
func (t *pclntab) fits(at int) bool {
	for i, r := range []region{t.names, t.units, t.files, t.values, t.funcs} {
		if r.at != at+t.m.pointer(at+(4+i)*word) || r.bytes < 0 || r.end() > len(t.m) {
			return false
		}
	}
	return t.count > 0 && t.extra > 0 && t.extra < len(t.m)
}

// slim clears what only tracebacks read.
func (m memory) slim() error {
	t, err := m.find()
	if err != nil {
		return err
	}
	used := make([]bool, t.values.bytes) // of the tables by pc: what is read
	kept := map[int]bool{}               // funcdata that is read
	var trees []region
	for i := range t.count {
		f := t.funcs.at + m.u32(t.funcs.at+i*8+4)
		if f+funcBytes > t.funcs.end() {
			return fmt.Errorf("slimming core.wasm: function %d is out of its table", i)
		}
		pcdata, funcdata := f+funcBytes, f+funcBytes+4*m.u32(f+npcdataAt)
		if n := m.u32(f + npcdataAt); n > inlTreeIndex && int(m[f+nfuncdataAt]) > inlTree && m.u32(funcdata+4*inlTree) != none {
			calls := t.highest(m.u32(pcdata+4*inlTreeIndex)) + 1
			trees = append(trees, region{t.extra + m.u32(funcdata+4*inlTree), calls * inlinedCallBytes})
		}
		for _, at := range []int{pcfileAt, pclnAt, unitAt, startLineAt} {
			m.set32(f+at, 0)
		}
		t.mark(used, m.u32(f+16)) // pcsp
		for k := range m.u32(f + npcdataAt) {
			if k == inlTreeIndex || k == argLiveIndex {
				m.set32(pcdata+4*k, 0)
			}
			t.mark(used, m.u32(pcdata+4*k))
		}
		for k := range int(m[f+nfuncdataAt]) {
			switch k {
			case inlTree, argInfo, argLiveInfo, wraps:
				m.set32(funcdata+4*k, none)
			}
			if off := m.u32(funcdata + 4*k); off != none {
				kept[t.extra+off] = true
			}
		}
		m.set32(f+4, 0) // its name
	}
	t.sweep(used, kept, trees)
	return nil
}

const none = 1<<32 - 1 // an offset of funcdata that is not there

// sweep clears the texts, and what was not marked.
func (t *pclntab) sweep(used []bool, kept map[int]bool, trees []region) {
	for _, r := range []region{t.names, t.files, t.units} {
		t.m.clear(r)
	}
	for i, is := range used {
		if !is {
			t.m[t.values.at+i] = 0
		}
	}
	for _, r := range trees {
		shared := false
		for at := r.at; at < r.end(); at++ {
			shared = shared || kept[at]
		}
		if !shared && r.end() <= len(t.m) {
			t.m.clear(r)
		}
	}
}

// mark marks the bytes of the table by pc at an offset; at 0 is none.
func (t *pclntab) mark(used []bool, off int) {
	if off == 0 {
		return
	}
	t.walk(off, func(at int, _ int64) { used[at] = true })
}

// highest is the highest value of a table, -1 if there is none.
func (t *pclntab) highest(off int) (most int) {
	most = -1
	if off == 0 {
		return most
	}
	t.walk(off, func(_ int, value int64) { most = max(most, int(value)) })
	return most
}

// walk goes through a table by pc: pairs of a zigzag difference of values and a
// difference of pcs, to a difference of values that is 0 and not the first.
// visit is told every byte of it, and the value there.
func (t *pclntab) walk(off int, visit func(at int, value int64)) {
	b := t.m[t.values.at:t.values.end()]
	value := int64(-1)
	for first := true; ; first = false {
		d, k := binary.Uvarint(b[off:])
		if d == 0 && !first || k <= 0 {
			visit(off, value)
			return
		}
		value += int64(d>>1) ^ -int64(d&1)
		_, l := binary.Uvarint(b[off+k:])
		for i := range k + max(l, 0) {
			visit(off+i, value)
		}
		off += k + max(l, 0)
	}
}
