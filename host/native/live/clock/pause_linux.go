package clock

import (
	"syscall"
	"time"
)

const canPause = true

// pause blocks the thread. A signal may end it early.
func pause(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&t, nil)
}
