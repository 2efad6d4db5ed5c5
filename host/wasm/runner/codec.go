package runner

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/stats"
	"github.com/dryserve/dryserve/host/wasm/frame"
)

// Encode writes a frame; its bytes are those of frame.Append.
func Encode(fields []frame.Field) ([]byte, error) {
	var b bytes.Buffer
	e := msgpack.NewEncoder(&b)
	e.UseCompactInts(true)
	err := errors.Join(e.EncodeMapLen(len(fields)+1), e.EncodeString(frame.VersionKey), e.EncodeInt(frame.ABI))
	for _, f := range fields {
		err = errors.Join(err, e.EncodeString(f.Name), encode(e, f.Var))
	}
	return b.Bytes(), err
}

func encode(e *msgpack.Encoder, from any) error {
	switch p := from.(type) {
	case *bool:
		return e.EncodeBool(*p)
	case *uint8:
		return e.EncodeUint(uint64(*p))
	case *int:
		return e.EncodeInt(int64(*p))
	case *int32:
		return e.EncodeInt(int64(*p))
	case *int64:
		return e.EncodeInt(*p)
	case *uint32:
		return e.EncodeUint(uint64(*p))
	case *uint64:
		return e.EncodeUint(*p)
	case *float64:
		return e.EncodeFloat64(*p)
	case *string:
		return e.EncodeString(*p)
	case *[]byte:
		return encodeBytes(e, *p)
	case *[]float64:
		return encodeBytes(e, frame.Floats(nil, *p))
	case *[]int32:
		return encodeBytes(e, frame.Ints(nil, *p))
	case *[]int64:
		return encodeBytes(e, frame.Longs(nil, *p))
	case *[config.MaxDrafts]float64:
		return encodeBytes(e, frame.Floats(nil, p[:]))
	case *[32]byte:
		return encodeBytes(e, p[:])
	case *stats.Dist:
		return encodeBytes(e, frame.Floats(nil, frame.DistColumn(p)))
	}
	return fmt.Errorf("frames have no %T", from)
}

// encodeBytes writes a nil slice as an empty one.
func encodeBytes(e *msgpack.Encoder, b []byte) error {
	if b == nil {
		b = []byte{}
	}
	return e.EncodeBytes(b)
}

// Pairs decodes a frame to its values by key, but for the version. The library
// makes room for what a frame claims before it has seen that it is there, so the
// form is checked first.
func Pairs(b []byte) (map[string]any, error) {
	switch f := frame.Check(b); f.Code {
	case frame.OK:
	case frame.WrongVersion:
		return nil, fmt.Errorf("the version is %d, not %d", f.Found, frame.ABI)
	default:
		return nil, fmt.Errorf("at byte %d it is no map of flat values", f.At)
	}
	d := msgpack.NewDecoder(bytes.NewReader(b))
	n, err := d.DecodeMapLen()
	if err != nil {
		return nil, err
	}
	values := make(map[string]any, n)
	for range n {
		key, err := d.DecodeString()
		if err != nil {
			return nil, err
		}
		if _, twice := values[key]; twice {
			return nil, fmt.Errorf("the key %q stands twice", key)
		}
		if values[key], err = d.DecodeInterface(); err != nil {
			return nil, err
		}
	}
	delete(values, frame.VersionKey)
	return values, nil
}

// Decode reads a frame that has exactly the given fields.
func Decode(b []byte, fields []frame.Field) error {
	values, err := Pairs(b)
	if err != nil {
		return err
	}
	return assign(values, fields)
}

// assign takes the fields' values out of the pairs, which must have them all
// and no others.
func assign(values map[string]any, fields []frame.Field) error {
	for _, f := range fields {
		v, ok := values[f.Name]
		if !ok {
			return fmt.Errorf("the key %q is missing", f.Name)
		}
		if err := store(f.Var, v); err != nil {
			return fmt.Errorf("the key %q: %w", f.Name, err)
		}
	}
	if len(values) != len(fields) {
		return fmt.Errorf("there are %d keys, not %d", len(values), len(fields))
	}
	return nil
}

func store(to, v any) error {
	switch p := to.(type) {
	case *bool:
		return same(p, v)
	case *float64:
		return same(p, v)
	case *string:
		return same(p, v)
	case *[]byte:
		return same(p, v)
	case *[]float64:
		column, err := floats(v)
		*p = column
		return err
	case *[]int32:
		column, ok := v.([]byte)
		if !ok || len(column)%4 != 0 {
			return fmt.Errorf("%T is no column of 4-byte numbers", v)
		}
		*p = frame.AppendInts(nil, column)
		return nil
	case *[]int64:
		column, ok := v.([]byte)
		if !ok || len(column)%8 != 0 {
			return fmt.Errorf("%T is no column of 8-byte numbers", v)
		}
		*p = frame.AppendLongs(nil, column)
		return nil
	case *[32]byte:
		if b, ok := v.([]byte); !ok || copy(p[:], b) != len(b) || len(b) != len(p) {
			return fmt.Errorf("%T is no digest", v)
		}
		return nil
	case *stats.Dist:
		column, err := floats(v)
		if err == nil && !frame.SetDist(p, column) {
			err = fmt.Errorf("%d numbers are no distribution", len(column))
		}
		return err
	case *[config.MaxDrafts]float64:
		column, err := floats(v)
		if err == nil && copy(p[:], column) != len(p) {
			err = fmt.Errorf("%d numbers are too few", len(column))
		}
		return err
	}
	return storeWhole(to, v)
}

func floats(v any) ([]float64, error) {
	column, ok := v.([]byte)
	if !ok || len(column)%8 != 0 {
		return nil, fmt.Errorf("%T is no column of 8-byte numbers", v)
	}
	return frame.AppendFloats(nil, column), nil
}

func same[T any](p *T, v any) error {
	x, ok := v.(T)
	if !ok {
		return fmt.Errorf("%T is no %T", v, *p)
	}
	*p = x
	return nil
}

func storeWhole(to, v any) error {
	if n, ok := v.(uint64); ok {
		if p, ok := to.(*uint64); ok {
			*p = n
			return nil
		}
	}
	n, err := whole(v)
	if err != nil {
		return err
	}
	fits := true
	switch p := to.(type) {
	case *uint8:
		*p, fits = uint8(n), n == int64(uint8(n))
	case *int32:
		*p, fits = int32(n), n == int64(int32(n))
	case *uint32:
		*p, fits = uint32(n), n == int64(uint32(n))
	case *uint64:
		*p, fits = uint64(n), n >= 0
	case *int:
		*p = int(n)
	case *int64:
		*p = n
	default:
		return fmt.Errorf("frames have no %T", to)
	}
	if !fits {
		return fmt.Errorf("%d is out of range", n)
	}
	return nil
}

// whole is any of the integers that the library decodes to.
func whole(v any) (int64, error) {
	switch n := v.(type) {
	case int8:
		return int64(n), nil
	case int16:
		return int64(n), nil
	case int32:
		return int64(n), nil
	case int64:
		return n, nil
	case uint8:
		return int64(n), nil
	case uint16:
		return int64(n), nil
	case uint32:
		return int64(n), nil
	case uint64:
		if n < 1<<63 {
			return int64(n), nil
		}
	}
	return 0, fmt.Errorf("%v is no whole number in range", v)
}
