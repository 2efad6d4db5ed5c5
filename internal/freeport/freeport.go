// Package freeport finds TCP ports for programs that take them themselves, later.
package freeport

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// The ports that Find chooses from. Systems give higher ones to whoever asks for any
// (Linux from 32768 on), so that one of those may be gone before a program that is
// still starting takes it.
const (
	first = 10_000
	ports = 22_000
)

// Find returns a port of 127.0.0.1 that nobody uses.
func Find() (int, error) {
	for range 1000 {
		port := first + rand.IntN(ports)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return port, l.Close()
		}
	}
	return 0, errors.New("no port is free")
}
