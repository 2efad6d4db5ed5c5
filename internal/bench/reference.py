"""Times one replay on the reference: the call alone, without imports.

Usage: python reference.py TRACE WORKERS ENGINE_ARGS ROUTER_MODE
Prints {"wall_s": SECONDS, "import_s": SECONDS, "report": {...}}.
"""
import json
import os
import sys
import time

os.environ.setdefault("DYN_LOG", "error")

begin = time.perf_counter()
from dynamo.replay import run_trace_replay

imported = time.perf_counter() - begin
trace, workers, engine = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
router = sys.argv[4]
begin = time.perf_counter()
result = run_trace_replay(trace, extra_engine_args=engine, num_workers=workers, router_mode=router)
wall = time.perf_counter() - begin
json.dump({"wall_s": wall, "import_s": imported, "report": result.summary}, sys.stdout)
