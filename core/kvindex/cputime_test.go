//go:build unix

package kvindex

import (
	"syscall"
	"time"
)

// cpuTime is what the process has computed so far. Rates over it hold on a
// machine that does other things, too.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
