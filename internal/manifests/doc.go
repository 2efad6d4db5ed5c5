// Package manifests checks what is under deploy/: that Kubernetes would take the
// manifests, that what they name fits together, and that the mocker knows every
// flag and variable in them.
//
// It is a module of its own, so that Kubernetes' types are no dependency of the
// product. It owns no code but tests.
package manifests
