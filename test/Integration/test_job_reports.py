# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One report and one trace of ranks on several hosts, whose clocks count from different moments."""
import json

import pytest

from braidtest import BAD_INPUT, BIN, RANK_FAILED, braid, braid_run
from lab import Lab, LabUnavailable

pytestmark = pytest.mark.usefixtures("ucx")
RANDOM = ["--random-weights", 3, "--random-inputs", 1]
AHEAD = 3600  # seconds, from host to host


@pytest.fixture(scope="module")
def hosts():
    try:
        with Lab(hosts=3, rate="1gbit", clock=AHEAD) as made:
            yield made
    except LabUnavailable as error:
        pytest.skip(f"no test hosts with clocks of their own here: {error}")


def run_on(lab, counts, bundle, *words, expect=0):
    places = ",".join(f"{address}:{count}" for address, count in zip(lab.addresses, counts))
    command = [BIN / "braid-run", bundle, *RANDOM, "--hosts", places, "--agent", lab.agent, "--time-limit", 60, *words]
    done = lab.run(0, [str(word) for word in command], capture_output=True, text=True, timeout=180)
    assert done.returncode == expect, done.stdout + done.stderr
    return done


def test_hosts_have_clocks_of_their_own(hosts):
    now = [float(hosts.run(host, ["python3", "-c", "import time; print(time.monotonic())"], capture_output=True, text=True).stdout)
           for host in range(3)]
    assert AHEAD <= now[1] - now[0] < AHEAD + 60 and AHEAD <= now[2] - now[1] < AHEAD + 60


def test_one_report_and_one_trace(hosts, bundle_of, tmp_path):
    report_path, trace_path = tmp_path / "report.json", tmp_path / "trace.json"
    run_on(hosts, (1, 2, 1), bundle_of("hierarchical.mlir"), "--repeat", 5, "--report", report_path, "--trace", trace_path)
    report = json.loads(report_path.read_text())
    assert [rank["rank"] for rank in report["per_rank"]] == [0, 1, 2, 3]
    assert [rank["host"] for rank in report["per_rank"]] == ["host0", "host1", "host1", "host2"]
    assert [process["ranks"] for process in report["processes"]] == [[0], [1], [2], [3]]
    assert report["peak_memory_bytes"] == sum(process["peak_memory_bytes"] for process in report["processes"])
    # The clocks are an exact number of hours apart, and the measured offset is as near to it as the report says.
    expected = [0, -AHEAD, -AHEAD, -2 * AHEAD]
    for rank, offset in zip(report["per_rank"], expected):
        error = rank["clock_error_s"]
        assert abs(rank["clock_offset_s"] - offset) <= error + 1e-9, rank
        assert error == 0 if rank["rank"] == 0 else 0 < error < 0.05, rank
    for process in report["processes"]:
        assert abs(process["clock_drift_s"]) < 0.1, process

    trace = json.loads(trace_path.read_text())
    assert [process["host"] for process in trace["metadata"]["processes"]] == ["host0", "host1", "host1", "host2"]
    for process, offset in zip(trace["metadata"]["processes"], expected):
        assert abs(process["clock_offset_s"] - offset) <= process["clock_error_s"] + 1e-9, process
    rows = {event["pid"]: event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "process_name"}
    assert rows == {0: "rank 0 (host0)", 1: "rank 1 (host1)", 2: "rank 2 (host1)", 3: "rank 3 (host2)"}
    spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert {event["pid"] for event in spans} == {0, 1, 2, 3}
    assert all(event["ts"] >= 0 for event in spans)


def test_no_rank_leaves_a_collective_before_the_last_has_come(hosts, bundle_of, tmp_path):
    """By clocks that are hours apart."""
    report_path, trace_path = tmp_path / "report.json", tmp_path / "trace.json"
    run_on(hosts, (1, 1), bundle_of("chunks.mlir"), "--repeat", 5, "--report", report_path, "--trace", trace_path)
    error = json.loads(report_path.read_text())["per_rank"][1]["clock_error_s"] * 1e6
    spans = [event for event in json.loads(trace_path.read_text())["traceEvents"]
             if event["ph"] == "X" and event["cat"] == "communication" and event["args"]["operation"].startswith(("all_", "reduce_"))]
    assert spans
    for collective in {event["args"]["collective"] for event in spans}:
        calls = [event for event in spans if event["args"]["collective"] == collective]
        assert {call["pid"] for call in calls} == {0, 1} and len(calls) == 2, calls
        begun = [call["ts"] - call["args"].get("beside_older_s", 0) * 1e6 for call in calls]
        assert max(begun) <= min(call["ts"] + call["dur"] for call in calls) + 2 * error + 1, calls


def test_what_was_predicted_of_a_job(hosts, bundle_of, tmp_path):
    """Of each collective, over hosts and within one, beside what it took; without a trace nothing else changes."""
    machine, report_path = tmp_path / "machine.json", tmp_path / "report.json"
    braid("calibrate", "--quick", "--max-load", 1000, "--transports", "shm", "-o", machine)
    done = hosts.run(0, [str(word) for word in [BIN / "braid", "calibrate", "--links", "--quick", "--hosts", "host0,host1,host2",
                                                "--agent", hosts.agent, "-o", machine]], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    done = run_on(hosts, (1, 2, 1), bundle_of("hierarchical.mlir"), "--repeat", 5, "--machine", machine, "--report", report_path)
    assert "predicted on" in done.stdout, done.stdout
    report = json.loads(report_path.read_text())
    prediction = report["prediction"]
    assert "missing" not in prediction
    predicted = {one["identity"]: one for one in prediction["collectives"]}
    assert predicted.keys() == {one["identity"] for one in report["collectives"]} and predicted
    for one in prediction["run"], *predicted.values():
        assert one["predicted_s"] > 0 and 0 < one["least_measured_s"] <= one["measured_s"], one
        assert one["error"] == pytest.approx(one["predicted_s"] / one["measured_s"] - 1)
    assert prediction["run"]["measured_s"] == report["median_run_s"]
    # A run is no shorter than the rank that waits for none.
    assert all(one["least_measured_s"] <= max(report["run_s"]) for one in predicted.values())
    # Of one run it is what the trace tells, on one clock: from the arrival of a group's last rank, in the mean over ranks.
    trace_path = tmp_path / "trace.json"
    run_on(hosts, (1, 2, 1), bundle_of("hierarchical.mlir"), "--machine", machine, "--report", report_path, "--trace", trace_path)
    report = json.loads(report_path.read_text())
    error_us = max(rank["clock_error_s"] for rank in report["per_rank"]) * 1e6
    spans = {}
    for event in json.loads(trace_path.read_text())["traceEvents"]:
        if event["ph"] == "X" and event["cat"] == "communication":
            spans.setdefault(event["args"]["collective"], {})[event["pid"]] = event["ts"], event["ts"] + event["dur"]
    for one in report["prediction"]["collectives"]:
        of_ranks = spans[one["identity"]]
        groups = ((0, 2), (1, 3)) if "/between." in one["identity"] else ((0, 1), (2, 3))
        last = {rank: max(of_ranks[member][0] for member in group) for group in groups for rank in group}
        mean = sum(max(0, of_ranks[rank][1] - last[rank]) for rank in range(4)) / 4
        assert one["measured_s"] * 1e6 == pytest.approx(mean, abs=2 * error_us + 1), one
        assert one["runs_awake"] in (0, 1)
    # A link that passes at once what a run sends takes less of it, once it has been idle.
    content = json.loads(machine.read_text())
    link = content["links"][0]
    slow = {**link, "bytes_per_second": 1e6, "both_ways_bytes_per_second": 1e6, "host_bytes_per_second": 1e6}
    run_s = []
    for messages in [], [{"bytes": 1 << 20, "seconds": link["latency_seconds"] + 1e-6}]:
        machine.write_text(json.dumps({**content, "links": [{**slow, "messages": messages}]}))
        run_on(hosts, (1, 2, 1), bundle_of("hierarchical.mlir"), "--machine", machine, "--report", report_path)
        run_s.append(json.loads(report_path.read_text())["prediction"]["run"]["predicted_s"])
    assert 0 < run_s[1] < run_s[0], run_s
    # What goes over a link beside computation takes as much longer as the file says.
    run_s = []
    for slowdown in 1, 100:
        machine.write_text(json.dumps({**content, "links": [{**slow, "messages": [], "compute_slowdown": 1,
                                                             "communication_slowdown": slowdown}]}))
        run_on(hosts, (1, 1), bundle_of("chunks.mlir"), "--machine", machine, "--report", report_path)
        run_s.append(json.loads(report_path.read_text())["prediction"]["run"]["predicted_s"])
    assert 0 < run_s[0] < run_s[1], run_s
    # A file that lacks the link predicts nothing, and says what is missing.
    machine.write_text(json.dumps({**content, "links": []}))
    run_on(hosts, (1, 2, 1), bundle_of("hierarchical.mlir"), "--machine", machine, "--report", report_path)
    assert "the machine file has no link between hosts" in json.loads(report_path.read_text())["prediction"]["missing"]


def test_a_trace_that_cannot_be_written_fails_once(hosts, bundle_of, tmp_path):
    err = run_on(hosts, (1, 1), bundle_of("chunks.mlir"), "--trace", tmp_path / "missing" / "trace.json", expect=BAD_INPUT).stderr
    assert "cannot write" in err and "missing/trace.json" in err
    # A device that is full, which shows when the first piece is written.
    err = run_on(hosts, (1, 1), bundle_of("chunks.mlir"), "--trace", "/dev/full", expect=BAD_INPUT).stderr
    assert err.count("cannot write '/dev/full': No space left on device") == 1, err


def test_ranks_of_one_process_have_neither_host_nor_clock(bundle_of, tmp_path):
    braid_run(bundle_of("chunks.mlir"), *RANDOM, "--report", tmp_path / "report.json", "--trace", tmp_path / "trace.json")
    report = json.loads((tmp_path / "report.json").read_text())
    assert "processes" not in report and "clock_offset_s" not in report["per_rank"][0]
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert "metadata" not in trace
