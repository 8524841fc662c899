# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tables of test/lab: that they hold every figure that was asked for, and that a wrong result is no figure."""
import json
import sys

import pytest

from braidtest import ROOT

sys.path.insert(0, str(ROOT / "test/lab"))
import lab as laboratory  # noqa: E402
import peers  # noqa: E402
from lab import Lab, LabUnavailable  # noqa: E402


def table(monkeypatch, capsys, *words):
    """Exit status, and what is printed."""
    monkeypatch.setattr(sys, "argv", ["lab.py", *map(str, words)])
    status = laboratory.main()
    said = capsys.readouterr()
    return status, said.out + said.err


@pytest.fixture(scope="module")
def hosts():
    try:
        with Lab(hosts=1, share=0.5):
            pass
    except LabUnavailable as error:
        pytest.skip(f"no test hosts here: {error}")


def test_collectives_over_hosts_and_on_one(hosts, monkeypatch, capsys, tmp_path):
    status, said = table(monkeypatch, capsys, "table", "--runners", "braid", "--hosts", 2, "--rates", "1gbit", "--ranks", 2,
                         "--sizes", "4KiB", "--rounds", 2, "--json", tmp_path / "figures.json")
    assert status == 0, said
    assert "2 hosts at 1gbit, 1 rank each" in said and "2 ranks on this host" in said and "load" in said
    rows = json.loads((tmp_path / "figures.json").read_text())["rows"]
    assert len(rows) == 6 and all(row["median_s"] > 0 and len(row["rounds_s"]) == 2 for row in rows)
    assert all(row["processor_share"] > 0 for row in rows if row["hosts"] == 2)


def test_a_wrong_result_is_no_figure(monkeypatch, capsys):
    right = peers.collectives

    def wrong(*case):
        text, given, expected = right(*case)
        expected[0, 0] += 1
        return text, given, expected
    monkeypatch.setattr(peers, "collectives", wrong)
    status, said = table(monkeypatch, capsys, "table", "--runners", "braid", "--rates", "", "--ranks", 2, "--sizes", "4KiB",
                         "--operations", "all_reduce")
    assert status == 1 and "Braid ended with status 2" in said and "check failed for 'y0'" in said


def test_plans_of_a_model(hosts, tiny, monkeypatch, capsys, tmp_path):
    few = ["--warmup", 1, "--repeat", 3, "--rounds", 2, "--json", tmp_path / "figures.json"]
    plans = ["--plan", "tp=2", "--plan", "tp=2 --strategy tp-sp"]
    status, said = table(monkeypatch, capsys, "model", tiny.model, *plans, *few, "--rates", "1gbit", "--weights", tiny.checkpoint)
    assert status == 0 and "2 hosts at 1gbit, 1 rank each" in said, said
    rows = json.loads((tmp_path / "figures.json").read_text())["rows"]
    assert [row["plan"] for row in rows] == plans[1::2] and [row["transport"] for row in rows] == ["ucx"] * 2
    assert rows[0]["times_as_fast"] == 1 and all(row["comm_s"] > 0 and row["sent_bytes"] > 0 for row in rows)
    status, said = table(monkeypatch, capsys, "model", tiny.model, "--here", "--plan", "dp=1", "--plan", "dp=2", *few)
    assert status == 0, said
    rows = json.loads((tmp_path / "figures.json").read_text())["rows"]
    assert [(row["ranks"], row["transport"], row["sent_bytes"]) for row in rows] == [(1, "shm", 0), (2, "shm", 0)]


@pytest.mark.parametrize("words,message", [
    (("table", "--ranks-per-host", 0), "expects numbers from 1 to 16, got '0'"),
    (("model", "x.mlir", "--plan", "tp", "--here"), "a plan is a mesh and options of braid compile"),
    (("model", "x.mlir", "--plan", "tp=4"), "plan 'tp=4' has 4 ranks, 2 hosts of 1 ranks have 2"),
    (("model", "no.mlir", "--plan", "tp=2", "--here"), "cannot read 'no.mlir'")])
def test_wrong_arguments(words, message, monkeypatch, capsys):
    try:
        status, said = table(monkeypatch, capsys, *words)
    except SystemExit as end:
        status, said = end.code, capsys.readouterr().err
    assert status in (1, 2) and message in said
