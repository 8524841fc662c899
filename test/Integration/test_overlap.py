# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Communication behind computation: the trace shows it, and the report and the printed summary say how much."""
import json
import re

import numpy as np
import pytest

from braidtest import ROOT, braid, braid_run

PAYLOAD = 512 * 256 * 4  # of each of the two all_reduces


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    out = tmp_path_factory.mktemp("overlap") / "two-branches.braid"
    braid("compile", ROOT / "test/Integration/Inputs/two_branches.mlir", "-o", out)
    np.save(out.with_name("x.npy"), np.random.default_rng(1).standard_normal((512, 256), np.float32))
    return out


@pytest.fixture(scope="module", params=["threads", "shm"])
def outcome(request, bundle, tmp_path_factory):
    """One run, so that report and trace speak of the same. Where other programs use the cores too, a communication queue
    may get none in time; then another run is looked at."""
    directory = tmp_path_factory.mktemp(request.param)
    for _ in range(50):
        result = braid_run(bundle, "--ranks", 2, "--transport", request.param, "--random-weights", 1, "--input",
                           f"x={bundle.with_name('x.npy')}", "--warmup", 2, "--repeat", 1, "--report",
                           directory / "r.json", "--trace", directory / "t.json")
        report, trace = (json.loads((directory / name).read_text()) for name in ("r.json", "t.json"))
        if all(collectives_of(trace, rank)[0]["args"]["hidden_s"] > 0 for rank in (0, 1)):
            break
    return report, trace, result.out


def spans(trace, rank, queue):
    threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in trace["traceEvents"]
               if e["ph"] == "M" and e["name"] == "thread_name"}
    return sorted((e for e in trace["traceEvents"] if e["ph"] == "X" and e["pid"] == rank
                   and threads[(rank, e["tid"])] == queue), key=lambda e: e["ts"])


def collectives_of(trace, rank):
    return [e for e in spans(trace, rank, "communication") if e["cat"] == "communication"]


def hidden_us(collective, computing):
    begin, end = collective["ts"], collective["ts"] + collective["dur"]
    return sum(max(0, min(end, c["ts"] + c["dur"]) - max(begin, c["ts"])) for c in computing)


@pytest.mark.parametrize("rank", [0, 1])
def test_trace_shows_communication_during_computation(outcome, rank):
    _, trace, _ = outcome
    computing = [e for e in spans(trace, rank, "compute") if e["cat"] == "compute"]
    collectives = collectives_of(trace, rank)
    assert len(collectives) == 2 and len(computing) >= 8
    # The second branch is computed while the first one's sum is in flight.
    assert hidden_us(collectives[0], computing) > 0
    for collective in collectives:
        hidden = hidden_us(collective, computing)
        assert collective["args"]["hidden_s"] * 1e6 == pytest.approx(hidden, abs=0.1)
        assert collective["args"]["exposed_s"] * 1e6 == pytest.approx(collective["dur"] - hidden, abs=0.1)
        assert collective["args"]["bytes_sent"] == PAYLOAD


def test_report_splits_what_collectives_take(outcome):
    report, _, out = outcome
    (role,) = report["collectives"]
    assert role["kind"] == "all_reduce" and role["role"] == "mlp.down" and role["count_per_run"] == 2
    assert role["bytes_sent_per_rank"] == report["bytes_sent_per_rank"] == 2 * PAYLOAD
    for rank in report["per_rank"]:
        assert rank["hidden_comm_s"] > 0
        assert rank["exposed_comm_s"] + rank["hidden_comm_s"] == pytest.approx(rank["comm_s"], abs=2e-9)
    for field in ("comm_s", "exposed_comm_s", "hidden_comm_s", "comm_wait_s"):
        # There is one role, so that it holds what all collectives do.
        assert role[field] == report[field] == report["per_rank"][report["comm_of_rank"]][field]
    assert report["exposed_comm_s"] == max(rank["exposed_comm_s"] for rank in report["per_rank"])
    line = re.search(r"^  2 x all_reduce 'mlp\.down': (\d+) bytes, ([0-9.]+) ms exposed, ([0-9.]+) ms hidden$", out, re.M)
    assert line, out
    assert int(line[1]) == 2 * PAYLOAD
    assert float(line[2]) == pytest.approx(1e3 * role["exposed_comm_s"], abs=1e-3)
    assert float(line[3]) == pytest.approx(1e3 * role["hidden_comm_s"], abs=1e-3)
