package cliutil

import (
	"errors"
	"os"
)

// Reason strips the operation and the path that errors of package os repeat,
// so that a sentence can name the path once: "no such file or directory".
func Reason(err error) error {
	var pe *os.PathError
	var le *os.LinkError
	var se *os.SyscallError
	switch {
	case errors.As(err, &pe):
		return pe.Err
	case errors.As(err, &le):
		return le.Err
	case errors.As(err, &se):
		return se.Err
	}
	return err
}
