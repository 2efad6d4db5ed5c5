package main

import (
	"os"
	"os/signal"
	"syscall"
)

// onInterrupt runs clean when the process is asked to end, and ends it with
// 128 plus the signal's number. Signals that the process was started to ignore
// stay ignored. The returned function takes it back.
func onInterrupt(clean func()) (stop func()) {
	signals := make(chan os.Signal, 1)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	go func() {
		s, ok := <-signals
		if !ok {
			return
		}
		clean()
		status := 128 + int(syscall.SIGINT)
		if n, ok := s.(syscall.Signal); ok {
			status = 128 + int(n)
		}
		os.Exit(status)
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
	}
}
