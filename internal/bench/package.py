"""Times one replay through the Python package: the call alone, in a fresh process, as reference.py does.

Usage: python package.py TRACE WORKERS ENGINE_ARGS native|wasm
Prints {"wall_s": SECONDS, "again_s": SECONDS, "import_s": SECONDS, "report": {...}}; the call starts the
helper. again_s is what the same call takes once more, if a fifth argument asks for it.
"""
import json
import sys
import time

begin = time.perf_counter()
from dryserve import run_trace_replay

imported = time.perf_counter() - begin
trace, workers, engine, where = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3]), sys.argv[4]
begin = time.perf_counter()
result = run_trace_replay(trace, extra_engine_args=engine, num_workers=workers, engine=where)
wall = time.perf_counter() - begin
again = None
if len(sys.argv) > 5:
    begin = time.perf_counter()
    run_trace_replay(trace, extra_engine_args=engine, num_workers=workers, engine=where)
    again = time.perf_counter() - begin
json.dump({"wall_s": wall, "again_s": again, "import_s": imported, "report": result.summary}, sys.stdout)
