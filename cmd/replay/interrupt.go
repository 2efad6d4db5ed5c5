package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// onInterrupt runs clean when the process is asked to end, and ends it with
// 128 plus the signal's number. Signals that the process was started to ignore
// stay ignored. The returned function takes it back.
func onInterrupt(clean func()) (stop func()) {
	return onSignal(func(number int) {
		clean()
		os.Exit(128 + number)
	})
}

// onSignal tells of the first signal that asks the process to end; what the next
// one does is left to the system.
func onSignal(tell func(number int)) (stop func()) {
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
		number := int(syscall.SIGINT)
		if n, ok := s.(syscall.Signal); ok {
			number = int(n)
		}
		tell(number)
		signal.Stop(signals)
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
	}
}

// interruptible is a context that ends when the process is asked to end. status
// is 0, or 128 plus the number of the signal that has come; a second signal ends
// the process as if nobody listened.
func interruptible() (ctx context.Context, status func() int, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	free := onSignal(func(number int) { cancel(signalled(number)) })
	status = func() int {
		if number, ok := context.Cause(ctx).(signalled); ok {
			return 128 + int(number)
		}
		return 0
	}
	return ctx, status, func() { free(); cancel(nil) }
}

// signalled is a signal's number as the cause of an end.
type signalled int

func (signalled) Error() string { return "interrupted" }
