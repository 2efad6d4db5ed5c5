package openai

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/dryserve/dryserve/host/native/cliutil"
	"github.com/dryserve/dryserve/host/native/live/worker"
)

// failure is an error as a client sees it. It is nothing if the status is 0.
type failure struct {
	status  int
	kind    string // OpenAI's type
	param   string // the field at fault, "": none
	code    string // "": none
	message string
}

// Types of errors.
const (
	invalid  = "invalid_request_error"
	limited  = "rate_limit_error"
	internal = "server_error"
)

func (f failure) failed() bool { return f.status != 0 }

// wrong is a request that cannot be served as it is.
func wrong(param, format string, args ...any) failure {
	return failure{http.StatusBadRequest, invalid, param, "", fmt.Sprintf(format, args...)}
}

func noModel(name string) failure {
	return failure{http.StatusNotFound, invalid, "model", "model_not_found", "the model " + short(name) + " does not exist"}
}

func tooLong(param, format string, args ...any) failure {
	f := wrong(param, format, args...)
	f.code = "context_length_exceeded"
	return f
}

func unavailable(message string) failure {
	return failure{http.StatusServiceUnavailable, internal, "", "service_unavailable", message}
}

// made is a failure that was asked for.
func made(status int) failure {
	kind, code := internal, ""
	switch {
	case status == http.StatusTooManyRequests:
		kind, code = limited, "rate_limit_exceeded"
	case status < 500:
		kind = invalid
	}
	return failure{status, kind, "", code, "this failure was asked for by --fault-error-rate"}
}

// endFailure is why a worker has ended a request; nothing if it is complete.
func endFailure(s worker.Signal) failure {
	switch s.End {
	case worker.Running, worker.Completed:
		return failure{}
	case worker.Rejected:
		return tooLong("", "the engine does not admit the request: its prompt, or all of it, exceeds the engine's limits")
	case worker.Unservable:
		return failure{http.StatusInternalServerError, internal, "", "", "the request needs more KV cache than the engine has, and was given up"}
	case worker.Closed:
		return unavailable("the server is shutting down")
	}
	return failure{http.StatusInternalServerError, internal, "", "", fmt.Sprintf("the engine does not take the request (code %d)", s.Code)}
}

// object is OpenAI's error object.
func (f failure) object() []byte {
	optional := func(b []byte, s string) []byte {
		if s == "" {
			return append(b, "null"...)
		}
		return cliutil.AppendJSONString(b, s)
	}
	b := append([]byte(`{"error":{"message":`), quote(f.message)...)
	b = append(b, `,"type":`...)
	b = append(b, quote(f.kind)...)
	b = append(b, `,"param":`...)
	b = optional(b, f.param)
	b = append(b, `,"code":`...)
	b = optional(b, f.code)
	return append(b, "}}"...)
}

// refuse answers with an error.
func (s *Server) refuse(w http.ResponseWriter, f failure) {
	s.Log.Debug("refused", "status", f.status, "param", f.param, "message", f.message)
	respond(w, f.status, append(f.object(), '\n'))
}

func quote(s string) []byte { return cliutil.AppendJSONString(nil, s) }

func appendInt(b []byte, n int64) []byte { return strconv.AppendInt(b, n, 10) }

func short(s string) string { return cliutil.Quote(s) }
