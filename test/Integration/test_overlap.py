# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Communication overlaps computation: the trace shows it, and the report and the printed summary quantify it."""
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
    """One run, so that report and trace describe the same. Where there are fewer cores than queues, a communication queue
    may get one only when its rank waits; the run is repeated until each rank's has got one in time once."""
    directory = tmp_path_factory.mktemp(request.param)
    hiding = set()  # the ranks of which a part of the first collective was hidden in some run
    for _ in range(50):
        result = braid_run(bundle, "--ranks", 2, "--transport", request.param, "--random-weights", 1, "--input",
                           f"x={bundle.with_name('x.npy')}", "--warmup", 2, "--repeat", 1, "--report",
                           directory / "r.json", "--trace", directory / "t.json")
        report, trace = (json.loads((directory / name).read_text()) for name in ("r.json", "t.json"))
        hiding |= {rank for rank in (0, 1) if collectives_of(trace, rank)[0]["args"]["hidden_comm_s"] > 0}
        if len(hiding) == 2:
            break
    return report, trace, result.out, hiding


def spans(trace, rank, queue):
    threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in trace["traceEvents"]
               if e["ph"] == "M" and e["name"] == "thread_name"}
    return sorted((e for e in trace["traceEvents"] if e["ph"] == "X" and e["pid"] == rank
                   and threads[(rank, e["tid"])] == queue), key=lambda e: e["ts"])


def collectives_of(trace, rank):
    return [e for e in spans(trace, rank, "communication") if e["cat"] == "communication"]


@pytest.mark.parametrize("rank", [0, 1])
def test_trace_shows_communication_during_computation(outcome, rank):
    _, trace, _, hiding = outcome
    computing = [e for e in spans(trace, rank, "compute") if e["cat"] == "compute"]
    collectives = collectives_of(trace, rank)
    assert len(collectives) == 2 and len(computing) >= 8
    # The second branch is computed while the first branch's sum is in flight, and the following operations while the
    # second branch's sum is.
    assert not any(c["args"]["exposed_by_form"] for c in collectives)
    assert [c["args"]["collective"] for c in collectives] == ["@main/@branches/mlp.down", "@main/@branches/mlp.down#1"]
    for collective in collectives:
        begin, end = collective["ts"], collective["ts"] + collective["dur"]
        beside = sum(max(0, min(end, c["ts"] + c["dur"]) - max(begin, c["ts"])) for c in computing)
        figures = collective["args"]
        # Processor time is at most elapsed time, and time in which the rank waits for its peer does not count.
        assert figures["hidden_comm_s"] * 1e6 <= beside + 100
        assert figures["hidden_comm_s"] + figures["peer_wait_s"] <= figures["comm_s"] + 1e-4
        assert figures["comm_s"] * 1e6 <= collective["dur"] + 1
        assert figures["bytes_sent"] == PAYLOAD
    assert rank in hiding


def test_report_splits_what_collectives_take(outcome):
    report, trace, out, _ = outcome
    rows = report["collectives"]
    assert [(c["identity"], c["calls"], c["name"], c["kind"]) for c in rows] == [
        (f"@main/@branches/{name}", "@main/@branches", name, "all_reduce") for name in ("mlp.down", "mlp.down#1")]
    assert [c["exposed_by_form"] for c in rows] == [False, False]
    assert report["bytes_sent_per_rank"] == sum(c["bytes_sent_per_rank"] for c in rows) == 2 * PAYLOAD
    shown = report["comm_of_rank"]
    for field in ("comm_s", "exposed_comm_s", "hidden_comm_s", "peer_wait_s"):
        assert sum(c[field] for c in rows) == pytest.approx(report[field], abs=1e-9)
        assert report[field] == report["per_rank"][shown][field]
        for row, span in zip(rows, collectives_of(trace, shown)):
            assert span["args"][field] == row[field]
    assert report["exposed_comm_s"] == max(rank["exposed_comm_s"] for rank in report["per_rank"])
    for row in rows:
        line = re.search(rf"^  1 x all_reduce @branches/{row['name']}: (\d+) bytes, ([0-9.]+) ms exposed, "
                         r"([0-9.]+) ms hidden, ([0-9.]+) ms waiting for peers(, exposed by form)?$", out, re.M)
        assert line, out
        assert int(line[1]) == PAYLOAD and bool(line[5]) == row["exposed_by_form"]
        for text, field in zip(line.groups()[1:4], ("exposed_comm_s", "hidden_comm_s", "peer_wait_s")):
            assert float(text) == pytest.approx(1e3 * row[field], abs=1e-3)
