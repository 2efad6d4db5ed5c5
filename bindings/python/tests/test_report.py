"""Reports and the ways to look at them."""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path

import pytest

import dryserve

from conftest import EXAMPLES, ROW


@pytest.fixture(scope="module")
def report() -> dryserve.ReplayReport:
    return dryserve.run_trace_replay(EXAMPLES / "support-sessions.jsonl", trace_block_size=64, num_workers=2, capture_per_request=True)


def test_to_dict(report: dryserve.ReplayReport) -> None:
    d = report.to_dict()
    assert list(d) == ["summary", "per_request", "coverage", "planner"] and d["planner"] is None
    assert json.loads(json.dumps(d)) == d
    full = dryserve.ReplayReport({}, None, {}, dryserve.PlannerReplayDetails(ticks=[{"a": (1, 2)}]), dryserve.ReplayTelemetryDetails(5.0, [{"b": 1}]))
    assert full.to_dict()["planner"] == {
        "metadata": {}, "ticks": [{"a": [1, 2]}], "scaling_events": [], "lifecycle_operations": [], "total_ticks": 0, "html_report_path": None,
    }
    assert full.to_dict()["telemetry"] == {"sample_interval_ms": 5.0, "samples": [{"b": 1}]}


def test_travels(report: dryserve.ReplayReport) -> None:
    back = pickle.loads(pickle.dumps(report))
    assert back == report and back.table == report.table and back.engine == "wasm"


def test_table(report: dryserve.ReplayReport) -> None:
    assert report.table.startswith("NVIDIA AIPerf | LLM Metrics\n┏━") and f"{report.summary['mean_ttft_ms']:,.2f}" in report.table


def test_html(report: dryserve.ReplayReport) -> None:
    html = report._repr_html_()
    assert html.startswith("<table>") and html.count("<tr>") == 12
    assert "Time to First Token (ms)" in html and f">{report.summary['p99_ttft_ms']:,.2f}<" in html and f">{report.summary['completed_requests']:,}<" in html


def test_pandas(report: dryserve.ReplayReport) -> None:
    pytest.importorskip("pandas")
    assert report.per_request is not None
    frame = report.to_pandas()
    assert len(frame) == len(report.per_request) and list(frame.columns) == list(report.per_request[0])
    assert frame["ttft_ms"].mean() == pytest.approx(report.summary["mean_ttft_ms"], rel=1e-12)
    metrics = report.metrics_to_pandas()
    assert metrics.loc["itl_ms", "p99"] == report.summary["p99_itl_ms"] and metrics.shape == (6, 9)
    with pytest.raises(ValueError, match="capture_per_request=True asks for them"):
        dryserve.ReplayReport(report.summary, None, {}, None).to_pandas()


def test_no_pandas(report: dryserve.ReplayReport, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pandas is not installed; pip install pandas adds it"):
        report.to_pandas()


def test_jsonl(tmp_path: Path, trace: Path) -> None:
    """The file has the report's requests, which a path asks for, too."""
    path = tmp_path / "r.jsonl"
    report = dryserve.run_trace_replay(trace, report_jsonl_path=path)
    assert [json.loads(line) for line in path.read_text().splitlines()] == report.per_request
    assert report.coverage == {"capture_per_request": True, "capture_planner_details": False, "per_request_records": 3}


def test_warnings(tmp_path: Path) -> None:
    trace = tmp_path / "t.jsonl"
    trace.write_text(ROW + '{"timestamp":0,"input_length":400,"output_length":2,"hash_ids":[2]}\n')
    with pytest.warns(dryserve.ReplayWarning) as caught:
        report = dryserve.run_trace_replay(trace, extra_engine_args={"engine": {"block_size": 16, "num_gpu_blocks": 8}}, replay_concurrency=1, arrival_speedup_ratio=2)
    said = [str(w.message) for w in caught]
    assert "arrival_speedup_ratio has no effect with replay_concurrency" in said and any("1 of 2 requests were rejected" in s for s in said)
    assert all(w.filename == __file__ for w in caught)
    assert report.summary["rejected_requests"] == 1


def test_parity(tmp_path: Path) -> None:
    trace = tmp_path / "t.jsonl"
    trace.write_text('{"timestamp":0,"input_length":100,"output_length":100,"hash_ids":[2]}\n')
    small = {"engine": {"block_size": 16, "num_gpu_blocks": 8}}
    with pytest.warns(dryserve.ReplayWarning, match="can never be served"):
        assert dryserve.run_trace_replay(trace, extra_engine_args=small).summary["failed_requests"] == 1
    with pytest.raises(dryserve.ReplayError, match="replay invariant violated"):
        dryserve.run_trace_replay(trace, extra_engine_args=small, parity=True)


def test_progress(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Short runs show no bar, and none stays."""
    seen: list[dryserve.Progress] = []
    dryserve.run_trace_replay(trace, progress=True)
    dryserve.run_trace_replay(EXAMPLES / "conversation-2k.jsonl", progress=seen.append)
    assert all(p.stage in ("reading", "simulating") and 0 <= p.done for p in seen)
    assert capsys.readouterr() == ("", "")


def test_bar(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from dryserve import _progress

    monkeypatch.setattr(_progress, "_PATIENCE", 0)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    bar = _progress.Bar()
    bar(dryserve.Progress("simulating", 25, 100))
    bar(dryserve.Progress("reading", 4096, -1))
    bar.close()
    assert capsys.readouterr().err == "\r\x1b[Ksimulating [=======                       ]  25%\r\x1b[Kreading 4,096\r\x1b[K"
