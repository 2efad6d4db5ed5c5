package replay

import (
	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/workload"
)

func newPlain(e config.Engine, w *workload.Workload, traceBlockSize, id int) worker { panic("not yet") }
