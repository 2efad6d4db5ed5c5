package main

import "strings"

// variable is a variable of the environment that has no flag, or several that
// belong together.
type variable struct{ names, usage string }

// variables are all of them; those in brackets behind a flag stand in for it.
func variables() []variable {
	return []variable{
		{"DYN_NAMESPACE, DYN_NAMESPACE_WORKER_SUFFIX", "where workers are found, and what is added to it (default dynamo)"},
		{"DYN_FILE_KV", "directory of the records, for --discovery-backend file (default dynamo_store_kv in the temporary directory)"},
		{"DYN_TCP_RPC_HOST, DYN_TCP_RPC_PORT", "where requests are taken and where frontends are told to bring them (default 127.0.0.1 with file and mem, else this machine's first address; any port)"},
		{"DYN_EVENT_PLANE_HOST", "the address, or network interface, at which routers hear events over ZeroMQ (default: as above)"},
		{"DYN_HTTP_RPC_HOST", "where workers that decode are told to meet those that compute prompts (default: as for requests)"},
		{"DYN_TCP_WORKER_POOL_SIZE, DYN_TCP_WORK_QUEUE_SIZE", "requests that are answered at once, and that wait (default 10000, 40000)"},
		{"DYN_ENGINE_REQUEST_LIMIT, DYN_DYNAMO_REQUEST_QUEUE_LIMIT", "the same by the reference's other names: fewer for the engine (default: no limit), and that wait then (default 16)"},
		{"DYN_REQUEST_PLANE_CODEC", "how requests and answers are written: msgpack or json (default msgpack)"},
		{"DYN_TCP_TLS_*, DYN_ZMQ_BROKER_*", "TLS between frontend and workers and brokers of events, which are not built yet: refused"},
		{"DYN_SYSTEM_PORT", "port of the system server with /metrics, /health and /live (default -1: none)"},
		{"DYN_SYSTEM_HOST", "address of the system server (default 127.0.0.1; 0.0.0.0 with etcd)"},
		{"DYN_SYSTEM_STARTING_HEALTH_STATUS", "what /health says from the start: notready or ready (default notready)"},
		{"DYN_SYSTEM_HEALTH_PATH, DYN_SYSTEM_LIVE_PATH", "other routes than /health and /live"},
		{"ETCD_ENDPOINTS", "addresses of etcd (default http://localhost:2379)"},
		{"ETCD_LEASE_TTL", "seconds after which a worker that is gone is forgotten (default 30)"},
		{"ETCD_STARTUP_CONNECT_TIMEOUT_SECONDS, ETCD_KEEPALIVE_INTERVAL_SECONDS, ETCD_KEEPALIVE_TIMEOUT_SECONDS", "how long etcd is waited for at the start, and how often and for how long it is pinged"},
		{"ETCD_AUTH_USERNAME, ETCD_AUTH_PASSWORD, ETCD_AUTH_CA, ETCD_AUTH_CLIENT_CERT, ETCD_AUTH_CLIENT_KEY", "who asks etcd, and the files of TLS"},
		{"NATS_SERVER", "addresses of NATS (default nats://localhost:4222)"},
		{"NATS_STARTUP_CONNECT_TIMEOUT_SECONDS", "how long NATS is waited for at the start (default 120)"},
		{"NATS_AUTH_USERNAME, NATS_AUTH_PASSWORD, NATS_AUTH_TOKEN, NATS_AUTH_NKEY, NATS_AUTH_CREDENTIALS_FILE", "who asks NATS"},
		{"NATS_TLS_CA_CERT_PATH, NATS_TLS_CLIENT_CERT_PATH, NATS_TLS_CLIENT_KEY_PATH, NATS_TLS_INSECURE", "the files of TLS, and whether certificates are not checked"},
		{"DYN_TCP_TLS_*, DYN_ZMQ_BROKER_*", "TLS for requests and answers, and a broker of ZeroMQ, which are not built yet: leave them out"},
		{"DYN_MOCKER_KV_CACHE_TRACE", "traces of the KV cache, which are not built yet; a word for no is accepted"},
		{"DYN_LOG", "its first word stands in for --log-level"},
	}
}

// help is the text of one of them.
func (v variable) help() string {
	return wrap("  ", v.names) + wrap(strings.Repeat(" ", column), v.usage)
}

// wrap breaks a text into lines that are indented.
func wrap(indent, text string) (out string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(indent)+len(line)+1+len(word) > wrapAt {
			out += indent + line + "\n"
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return out + indent + line + "\n"
}
