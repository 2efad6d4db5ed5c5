//go:build unix && !solaris && !aix

package sweep

import (
	"os"
	"syscall"
)

// lock keeps other processes from locking the file until it is closed, and
// reports whether one has. File systems without locks leave it to the user.
func lock(f *os.File) (taken bool) {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == syscall.EWOULDBLOCK
}
