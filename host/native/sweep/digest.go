package sweep

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"

	"github.com/dryserve/dryserve/host/native/cliutil"
)

// format is part of every digest: it changes with what a digest is made of.
const format = "dryserve sweep 1"

// Digest names what gives an outcome: the contents of all values, pointers
// followed and names of fields included, in 32 hexadecimal digits. Values may
// have numbers, texts, structures, lists and pointers; others panic.
func Digest(values ...any) string {
	h := sha256.New()
	d := digester{h}
	d.text(format)
	for _, v := range values {
		d.value(reflect.ValueOf(v))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

type digester struct{ h hash.Hash }

func (d digester) number(n uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], n)
	d.h.Write(b[:])
}

func (d digester) text(s string) {
	d.number(uint64(len(s)))
	io.WriteString(d.h, s)
}

func (d digester) value(v reflect.Value) {
	d.number(uint64(v.Kind()))
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			d.number(1)
			return
		}
		d.number(0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		d.number(uint64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		d.number(v.Uint())
	case reflect.Float32, reflect.Float64:
		d.number(math.Float64bits(v.Float()))
	case reflect.String:
		d.text(v.String())
	case reflect.Pointer:
		if v.IsNil() {
			d.number(0)
			return
		}
		d.number(1)
		d.value(v.Elem())
	case reflect.Slice, reflect.Array:
		d.number(uint64(v.Len()))
		for i := range v.Len() {
			d.value(v.Index(i))
		}
	case reflect.Struct:
		d.number(uint64(v.NumField()))
		for i := range v.NumField() {
			d.text(v.Type().Field(i).Name)
			d.value(v.Field(i))
		}
	default:
		panic(fmt.Sprintf("sweep: a %s has no digest", v.Type()))
	}
}

// Content names what is in files, and in all files below directories, by
// name within these. Errors are sentences.
func Content(paths ...string) (string, error) {
	h := sha256.New()
	d := digester{h}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return "", unreadable(path, err)
		}
		if !info.IsDir() {
			err = d.file(path)
		} else {
			err = filepath.WalkDir(path, func(at string, e fs.DirEntry, err error) error {
				if err != nil || e.IsDir() {
					return err
				}
				name, _ := filepath.Rel(path, at)
				d.text(filepath.ToSlash(name))
				return d.file(at)
			})
		}
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func (d digester) file(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return unreadable(path, err)
	}
	defer f.Close()
	inner := sha256.New()
	if _, err := io.Copy(inner, f); err != nil {
		return unreadable(path, err)
	}
	d.h.Write(inner.Sum(nil))
	return nil
}

func unreadable(path string, err error) error {
	return fmt.Errorf("%s: cannot be read: %w", path, cliutil.Reason(err))
}
