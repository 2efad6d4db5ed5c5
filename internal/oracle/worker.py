"""Answers replay cases with the reference, one JSON line per case.

The reference (dynamo.replay) is imported once; every case runs in a forked
child, because it never returns for a few inputs and keeps state between runs.

Request:  {"dir": D, "files": [names below D], "kwargs": {...}, "timeout_s": S},
          without files for a synthetic workload: "synthetic": {its sizes}
          with "scaling": {"initial", "decisions"} asked by it what workers there
          are to be, with kwargs["telemetry"] sampled so often
Answer:   {"report": {...}, "requests": [...]} or {"error": TEXT} or
          {"timeout": true} or {"died": TEXT}
"report" is from a run without per-request capture, whose sums are
reproducible; "requests" is from a second run with it, and so are "ticks",
"lifecycle" and "telemetry" where there is a policy or samples are taken.
"""
import json
import os
import select
import signal
import sys
import time

os.environ.setdefault("DYN_LOG", "error")

WALL_CLOCK = ("wall_time_ms", "processed_tokens_per_s", "processed_output_tokens_per_s")


class Script:
    """A policy that says the same whatever it is told, and notes that."""

    def __init__(self, says):
        self.says, self.ticks = says, []

    def initial_tick_ms(self):
        return self.says["initial"]

    def on_tick(self, told):
        nothing = {"target_prefill": None, "target_decode": None, "next_tick_ms": None}
        n = len(self.ticks)
        self.ticks.append(told)
        return {**nothing, **(self.says["decisions"][n] if n < len(self.says["decisions"]) else {})}


def name_released(operations, requests):
    """Replaces the random ids of requests by what two runs share of them."""
    names = {r["uuid"]: [r["arrival_time_ms"], r["first_admit_ms"], r["input_length"], r["decode_worker_idx"]] for r in requests}
    for o in operations:
        key = "topology_released_request_uuids"
        o[key] = [names.get(uuid) for uuid in o[key]]
    return operations


def watched(replay, case):
    """Answers a case with a policy or with samples."""
    core, kwargs = replay.api, dict(case["kwargs"])
    interval, model = kwargs.pop("telemetry", None), kwargs.get("execution_model")
    if case.get("synthetic"):
        run, args = core._run_mocker_synthetic_trace_replay, []
    else:
        run, args = core._run_mocker_trace_replay, [[os.path.join(case["dir"], name) for name in case["files"]]]
    if interval is not None:
        kwargs.update(capture_telemetry=True, telemetry_sample_interval_ms=interval)

    def once(**more):
        policy = Script(case["scaling"]) if case.get("scaling") else None
        result = run(*args, **kwargs, **more, scaling_policy=policy)
        return core._materialize_offline_report(result, planner=None, execution_model=model), result, policy

    try:
        router(kwargs)
        report, result, policy = once(capture_per_request=True)
        # Sums of a run with records depend on random ids; lots differ in each run.
        summary = report.summary if kwargs.get("router_mode") == "kv_router" else once()[0].summary
    except Exception as failure:
        return {"error": f"{type(failure).__name__}: {failure}"}
    answer = {"report": {key: value for key, value in summary.items() if key not in WALL_CLOCK}, "requests": report.per_request}
    if policy:
        answer["ticks"] = policy.ticks
        answer["lifecycle"] = name_released(result.lifecycle_operations, report.per_request)
    if interval is not None:
        answer["telemetry"] = report.telemetry.samples
    return answer


def answer(replay, case):
    if case.get("synthetic"):
        run, files = replay.run_synthetic_trace_replay, ()
        case["kwargs"].update(case["synthetic"])
    else:
        run, files = replay.run_trace_replay, trace_files(case)
    if case.get("scaling") or "telemetry" in case["kwargs"]:
        return watched(replay, case)
    if case["kwargs"].get("router_mode") == "kv_router":
        return routed(run, files, case["kwargs"])
    try:
        summary = run(*files, **case["kwargs"]).summary
        records = run(*files, capture_per_request=True, **case["kwargs"]).per_request
    except Exception as failure:  # whatever it raises is its answer
        return {"error": f"{type(failure).__name__}: {failure}"}
    report = {key: value for key, value in summary.items() if key not in WALL_CLOCK}
    return {"report": report, "requests": records}


def router(kwargs):
    if kwargs.get("router_config") is not None:
        from dynamo.llm import KvRouterConfig

        kwargs["router_config"] = KvRouterConfig.from_json(json.dumps(kwargs["router_config"]))


def routed(run, files, kwargs):
    """The KV router draws lots that nobody can repeat: everything is from one run."""
    try:
        router(kwargs)
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
