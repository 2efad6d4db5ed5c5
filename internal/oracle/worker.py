"""Answers replay cases with the reference, one JSON line per case.

The reference (dynamo.replay) is imported once; every case runs in a forked
child, because it never returns for a few inputs and keeps state between runs.

Request:  {"dir": D, "files": [names below D], "kwargs": {...}, "timeout_s": S},
          without files for a synthetic workload: "synthetic": {its sizes}
Answer:   {"report": {...}, "requests": [...]} or {"error": TEXT} or
          {"timeout": true} or {"died": TEXT}
"report" is from a run without per-request capture, whose sums are
reproducible; "requests" is from a second run with it.
"""
import json
import os
import select
import signal
import sys
import time

os.environ.setdefault("DYN_LOG", "error")

WALL_CLOCK = ("wall_time_ms", "processed_tokens_per_s", "processed_output_tokens_per_s")


def answer(replay, case):
    if case.get("synthetic"):
        run, files = replay.run_synthetic_trace_replay, ()
        case["kwargs"].update(case["synthetic"])
    else:
        run, files = replay.run_trace_replay, trace_files(case)
    if case["kwargs"].get("router_mode") == "kv_router":
        return routed(run, files, case["kwargs"])
    try:
        summary = run(*files, **case["kwargs"]).summary
        records = run(*files, capture_per_request=True, **case["kwargs"]).per_request
    except Exception as failure:  # whatever it raises is its answer
        return {"error": f"{type(failure).__name__}: {failure}"}
    report = {key: value for key, value in summary.items() if key not in WALL_CLOCK}
    return {"report": report, "requests": records}


def routed(run, files, kwargs):
    """The KV router draws lots that nobody can repeat: everything is from one run."""
    try:
        if kwargs.get("router_config") is not None:
            from dynamo.llm import KvRouterConfig

            kwargs["router_config"] = KvRouterConfig.from_json(json.dumps(kwargs["router_config"]))
        report = run(*files, capture_per_request=True, **kwargs)
    except Exception as failure:
        return {"error": f"{type(failure).__name__}: {failure}"}
    summary = {key: value for key, value in report.summary.items() if key not in WALL_CLOCK}
    return {"report": summary, "requests": report.per_request}


def trace_files(case):
    paths = [os.path.join(case["dir"], name) for name in case["files"]]
    return (paths[0] if len(paths) == 1 else paths,)


def child(replay, case, pipe):
    """Runs one case and writes the answer to the pipe; never returns."""
    status = 1
    try:
        os.chdir(case["dir"])  # engine arguments name files relative to it
        text = json.dumps(answer(replay, case)).encode()
        while text:
            text = text[os.write(pipe, text):]
        status = 0
    finally:
        os._exit(status)


def ask(replay, case):
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        child(replay, case, write_end)
    os.close(write_end)
    deadline = time.monotonic() + case["timeout_s"]
    parts, late = [], False
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([read_end], [], [], left)[0]:
            late = True
            os.kill(pid, signal.SIGKILL)
            break
        part = os.read(read_end, 1 << 16)
        if not part:
            break
        parts.append(part)
    os.close(read_end)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if late:
        return '{"timeout": true}'
    if code != 0:
        return json.dumps({"died": f"exit code {code}"})
    return b"".join(parts).decode()


def main():
    # Only answers may reach the caller's pipe: whatever the reference prints
    # goes to the error stream.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    import dynamo.replay as replay

    out.write('{"ready": true}\n')
    out.flush()
    for line in sys.stdin:
        out.write(ask(replay, json.loads(line)) + "\n")
        out.flush()


main()
