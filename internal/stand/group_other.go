//go:build !unix

package stand

import (
	"os/exec"
	"syscall"
)

func own(*exec.Cmd) {}

func signalGroup(cmd *exec.Cmd, _ syscall.Signal) error { return cmd.Process.Kill() }
