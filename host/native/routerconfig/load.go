package routerconfig

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/dryserve/dryserve/host/native/cliutil"
)

// maxFileBytes bounds a file with a configuration; real ones have under 4 KiB.
const maxFileBytes = 16 << 20

// Load is Parse of the argument of a flag: JSON text, or the path of a file
// with it.
func Load(flag, argument string, o Options) (Config, error) {
	text := strings.TrimLeft(argument, " \t\r\n")
	switch {
	case text == "":
		return Config{}, fmt.Errorf("%s is empty; JSON or the path of a JSON file is accepted", flag)
	case strings.IndexByte(`{["`, text[0]) >= 0:
		return Parse(flag, []byte(argument), o)
	}
	f, err := os.Open(argument)
	if err != nil {
		return Config{}, fmt.Errorf("%s: cannot open %s: %w; JSON or the path of a JSON file is accepted", flag, argument, cliutil.Reason(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	switch {
	case err != nil:
		return Config{}, fmt.Errorf("%s: cannot read %s: %w", flag, argument, cliutil.Reason(err))
	case len(data) > maxFileBytes:
		return Config{}, fmt.Errorf("%s: %s is larger than %d MiB; a JSON object is accepted", flag, argument, maxFileBytes>>20)
	}
	return Parse(argument, data, o)
}

// OverrideQueuePolicy takes a router_queue_policy that engine arguments give,
// which wins in a replay (router notes §7). The name is one of the queue's.
func (c *Config) OverrideQueuePolicy(name string) {
	f, _ := fieldNamed("router_queue_policy")
	_ = f.set(c, value{kind: text, text: name}) // engineargs has checked it
}
