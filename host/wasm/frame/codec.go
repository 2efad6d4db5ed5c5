package frame

import (
	"math"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/stats"
)

// Field is a key of a frame and the variable it stands for.
type Field struct {
	Name string
	Var  any // a pointer to one of the types of docs/frames.md; see set
	Need bool
}

// Append writes a frame with the version key and the fields in their order.
func Append(b []byte, fields []Field) []byte {
	b = appendMap(b, len(fields)+1)
	b = appendNatural(appendText(b, VersionKey), ABI)
	for i := range fields {
		b = get(appendText(b, fields[i].Name), fields[i].Var)
	}
	return b
}

// get writes the value of a variable.
func get(b []byte, from any) []byte {
	switch p := from.(type) {
	case *bool:
		return appendBool(b, *p)
	case *uint8:
		return appendNatural(b, uint64(*p))
	case *int:
		return appendWhole(b, int64(*p))
	case *int32:
		return appendWhole(b, int64(*p))
	case *int64:
		return appendWhole(b, *p)
	case *uint32:
		return appendNatural(b, uint64(*p))
	case *uint64:
		return appendNatural(b, *p)
	case *float64:
		return appendReal(b, *p)
	case *string:
		return appendText(b, *p)
	case *[]byte:
		return append(appendBytesHead(b, len(*p)), *p...)
	case *[]float64:
		return Floats(appendBytesHead(b, 8*len(*p)), *p)
	case *[]int32:
		return Ints(appendBytesHead(b, 4*len(*p)), *p)
	case *[]int64:
		return Longs(appendBytesHead(b, 8*len(*p)), *p)
	case *[config.MaxDrafts]float64:
		return Floats(appendBytesHead(b, 8*len(*p)), p[:])
	case *[32]byte:
		return append(appendBytesHead(b, len(p)), p[:]...)
	case *stats.Dist:
		column := DistColumn(p)
		return Floats(appendBytesHead(b, 8*len(column)), column)
	}
	panic("frame: a field is of a type that frames do not have")
}

// Decode reads one frame. Keys may stand in any order; all must be among the
// fields, and the needed ones be there. Byte slices alias the frame.
func Decode(b []byte, fields []Field) Fault {
	if f := Check(b); f.Code != OK {
		return f
	}
	var few [16]bool
	seen := few[:]
	if len(fields) > len(few) {
		seen = make([]bool, len(fields))
	}
	r := reader{b: b}
	versioned := false
	for range r.next().whole {
		key := r.next().bytes
		v := r.next()
		if string(key) == VersionKey {
			if versioned {
				return Fault{Code: TwiceKey, Name: VersionKey}
			}
			versioned = true
			continue
		}
		i := find(fields, key)
		switch {
		case i < 0:
			return Fault{Code: UnknownKey, Name: clip(key)}
		case seen[i]:
			return Fault{Code: TwiceKey, Name: fields[i].Name}
		}
		seen[i] = true
		if code := set(fields[i].Var, v); code != OK {
			return Fault{Code: code, Name: fields[i].Name}
		}
	}
	for i := range fields {
		if fields[i].Need && !seen[i] {
			return Fault{Code: MissingKey, Name: fields[i].Name}
		}
	}
	return Fault{}
}

// Check goes through a whole frame: its form, then its version. It allocates
// nothing, whatever lengths the frame claims.
func Check(b []byte) Fault {
	r := reader{b: b}
	head := r.next()
	if head.kind != mapping {
		return Fault{Code: BadFrame}
	}
	version := int64(0)
	for range head.whole {
		key := r.next()
		if key.kind != text {
			return Fault{Code: BadFrame, At: r.at}
		}
		at := r.at
		v := r.next()
		if v.kind == bad || v.kind == mapping {
			return Fault{Code: BadFrame, At: at}
		}
		if string(key.bytes) == VersionKey && version == 0 {
			version, _ = v.toWhole()
		}
	}
	if r.at != len(b) {
		return Fault{Code: BadFrame, At: r.at}
	}
	if version != ABI {
		return Fault{Code: WrongVersion, Found: version}
	}
	return Fault{}
}

func find(fields []Field, key []byte) int {
	for i := range fields {
		if fields[i].Name == string(key) {
			return i
		}
	}
	return -1
}

// clip bounds what a fault repeats of a key.
func clip(key []byte) string {
	const most = 64
	return string(key[:min(len(key), most)])
}

// set stores a value in a variable. Whole numbers may come as floats and the
// other way round, where nothing is lost: JavaScript does not tell them apart.
func set(to any, v value) Error {
	switch p := to.(type) {
	case *bool:
		if v.kind != boolean {
			return WrongType
		}
		*p = v.whole != 0
		return OK
	case *float64:
		return v.toFloat(p)
	case *uint64:
		return v.toNatural(p)
	case *string:
		if v.kind != text {
			return WrongType
		}
		*p = string(v.bytes)
		return OK
	case *[]byte:
		if v.kind != bytes {
			return WrongType
		}
		*p = v.bytes
		return OK
	case *[]float64:
		if v.kind != bytes || len(v.bytes)%8 != 0 {
			return WrongType
		}
		*p = AppendFloats(nil, v.bytes)
		return OK
	case *[]int32:
		if v.kind != bytes || len(v.bytes)%4 != 0 {
			return WrongType
		}
		*p = AppendInts(nil, v.bytes)
		return OK
	case *[]int64:
		if v.kind != bytes || len(v.bytes)%8 != 0 {
			return WrongType
		}
		*p = AppendLongs(nil, v.bytes)
		return OK
	case *[config.MaxDrafts]float64:
		if v.kind != bytes || len(v.bytes) != 8*len(p) {
			return WrongType
		}
		copy(p[:], AppendFloats(nil, v.bytes))
		return OK
	case *[32]byte:
		if v.kind != bytes || len(v.bytes) != len(p) {
			return WrongType
		}
		copy(p[:], v.bytes)
		return OK
	case *stats.Dist:
		if v.kind != bytes || len(v.bytes)%8 != 0 || !SetDist(p, AppendFloats(nil, v.bytes)) {
			return WrongType
		}
		return OK
	}
	return setWhole(to, v)
}

// setWhole is set for the signed and the small numbers.
func setWhole(to any, v value) Error {
	n, code := v.toWhole()
	if code != OK {
		return code
	}
	switch p := to.(type) {
	case *uint8:
		return store(p, n, 0, math.MaxUint8)
	case *int32:
		return store(p, n, math.MinInt32, math.MaxInt32)
	case *uint32:
		return store(p, n, 0, math.MaxUint32)
	case *int:
		*p = int(n)
	case *int64:
		*p = n
	default:
		panic("frame: a field is of a type that frames do not have")
	}
	return OK
}

func store[T uint8 | int32 | uint32](p *T, n, least, most int64) Error {
	if n < least || n > most {
		return NotInRange
	}
	*p = T(n)
	return OK
}

// toWhole is the number, which must be whole.
func (v value) toWhole() (int64, Error) {
	const most = 1 << 63 // exact as a float
	switch v.kind {
	case integer:
		return v.whole, OK
	case natural:
		return 0, NotInRange
	case float:
		if v.real != math.Trunc(v.real) {
			return 0, WrongType // NaN, too
		}
		if !(v.real >= -most && v.real < most) {
			return 0, NotInRange
		}
		return int64(v.real), OK
	}
	return 0, WrongType
}

func (v value) toNatural(p *uint64) Error {
	if v.kind == natural {
		*p = uint64(v.whole)
		return OK
	}
	n, code := v.toWhole()
	switch {
	case code != OK:
		return code
	case n < 0:
		return NotInRange
	}
	*p = uint64(n)
	return OK
}

// toFloat takes a whole number only if a float can be it.
func (v value) toFloat(p *float64) Error {
	const exact = 1 << 53
	switch {
	case v.kind == float:
		*p = v.real
		return OK
	case v.kind == natural || v.kind == integer && (v.whole > exact || v.whole < -exact):
		return NotInRange
	case v.kind != integer:
		return WrongType
	}
	*p = float64(v.whole)
	return OK
}
