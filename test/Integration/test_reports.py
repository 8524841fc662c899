# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reports and traces are JSON with consistent figures, whose names contain their units."""
import json

import pytest

from braidtest import braid_run

REPEAT = 5
# Fields without a unit: their names say what they count.
COUNTS = {"ranks", "warmup_runs", "threads_per_rank", "runs", "cores", "usable_cores", "parameters", "replicated_parameters", "rank", "comm_of_rank", "commands"}
UNITS = ("_s", "_bytes", "bytes_sent", "bytes_sent_per_rank")


@pytest.fixture(scope="module")
def outcome(minilm_case, tmp_path_factory):
    directory = tmp_path_factory.mktemp("report")
    braid_run(minilm_case.bundle("tp=2"), "--ranks", 2, *minilm_case.run_args(), "--repeat", REPEAT, "--report",
              directory / "r.json", "--trace", directory / "t.json")
    return json.loads((directory / "r.json").read_text()), json.loads((directory / "t.json").read_text())


def numbers(value, name=""):
    if isinstance(value, dict):
        for key, item in value.items():
            if name == "mesh":
                continue
            yield from numbers(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from numbers(item, name)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield name, value


def test_every_number_names_its_unit(outcome):
    report, _ = outcome
    found = list(numbers(report))
    assert len(found) > 20
    assert not {name for name, _ in found if name not in COUNTS and not name.endswith(UNITS)}
    assert all(value >= 0 for _, value in found)


def test_report_adds_up(outcome):
    report, _ = outcome
    assert report["ranks"] == 2 and report["mesh"]["tp"] == 2 and report["transport"] == "threads"
    assert report["runs"] == REPEAT == len(report["run_s"])
    # Ranks are threads of the process; a busy machine gives them less than the time.
    assert 0 < report["processor_s"] < 2.5 * sum(report["run_s"]) + 0.1
    assert sorted(report["run_s"])[REPEAT // 2] == pytest.approx(report["median_run_s"])
    assert len(report["per_rank"]) == 2
    # MiniLM has 6 layers with two all_reduces each, of 2 x 6 tokens x 384 numbers of 4 bytes.
    assert len(report["collectives"]) == 12
    assert all(c["kind"] == "all_reduce" and c["exposed_by_form"] for c in report["collectives"])
    identities = {(c["calls"], c["identity"]) for c in report["collectives"]}
    assert len(identities) == 12 and len({calls for calls, *_ in identities}) == 6
    payload = 2 * 6 * 384 * 4
    # With two ranks every algorithm sends between half the payload and all of it, twice.
    assert 12 * payload / 2 <= report["bytes_sent_per_rank"] <= 2 * 12 * payload
    for rank in report["per_rank"]:
        # The communication time is that of the run with the median time.
        assert 0 < rank["comm_s"] <= report["median_run_s"] + 1e-9
        # Each wait directly follows its start.
        assert rank["hidden_comm_s"] == 0
        assert rank["peer_wait_s"] <= rank["comm_s"] and rank["comm_s"] <= rank["exposed_comm_s"] <= rank["comm_run_s"]
        assert rank["comm_run_s"] == pytest.approx(report["median_run_s"])
        assert rank["parameter_bytes"] > 0
    slowest = report["per_rank"][report["comm_of_rank"]]
    assert slowest["exposed_comm_s"] == max(rank["exposed_comm_s"] for rank in report["per_rank"])
    for field in ("comm_s", "exposed_comm_s", "hidden_comm_s", "peer_wait_s"):
        assert report[field] == slowest[field]
        assert sum(c[field] for c in report["collectives"]) == pytest.approx(report[field], abs=2e-8)
    assert report["peak_memory_bytes"] > sum(rank["parameter_bytes"] for rank in report["per_rank"])


def test_each_rank_holds_about_its_share(outcome):
    report, _ = outcome
    # 10.6 of 22.7 million parameters are in the layers and split; the embeddings are not split.
    for rank in report["per_rank"]:
        assert rank["parameter_bytes"] < 4 * (22.8e6 - 0.45 * 10.6e6)


def test_trace_shows_both_queues_of_every_rank(outcome):
    _, trace = outcome
    events = trace["traceEvents"]
    names = {(e["pid"], e["args"]["name"]) for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    assert {(0, "compute"), (0, "communication"), (1, "compute"), (1, "communication")} <= names
    spans = [e for e in events if e["ph"] == "X"]
    queue_of = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    for rank in (0, 1):
        for queue in ("compute", "communication"):
            mine = sorted((e["ts"], e["dur"]) for e in spans
                          if e["pid"] == rank and queue_of[(rank, e["tid"])] == queue and e["cat"] != "step")
            assert mine, f"rank {rank} shows nothing on its {queue} queue"
            # A queue executes one command at a time.
            for (begin, duration), (following, _) in zip(mine, mine[1:]):
                assert duration >= 0 and begin + duration <= following + 1e-3
    collectives = [e for e in spans if e["cat"] == "communication" and e["pid"] == 0]
    assert len(collectives) >= 12
    # The steps that move bytes are drawn within their collective, unless they came while an older one was under way.
    steps = [e for e in spans if e["cat"] == "step" and e["pid"] == 0]
    for collective in collectives:
        own = [e for e in steps if e["args"]["collective"] == collective["args"]["collective"]]
        assert own and len({e["args"]["step"] for e in own}) == len(own)
        assert all(e["args"]["does"].startswith(e["name"]) for e in own)
        assert all(e["ts"] + e["dur"] <= collective["ts"] + collective["dur"] + 1e-3 for e in own)
