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


def complete(status):
    """A table without Gloo's rows says so by its status."""
    return status == (1 if peers.Gloo().unavailable() else 0)


def test_encodings_of_an_all_reduce(hosts, monkeypatch, capsys, tmp_path):
    status, said = table(monkeypatch, capsys, "encoded", "--hosts", 2, "--sizes", "1MiB", "--encodings", "plain,int8,int6,int4", "--rounds", 1,
                         "--json", tmp_path / "figures.json")
    assert complete(status) and "all_reduce, 2 hosts at 1gbit, rows of 4096 elements" in said, said
    rows = {row["encoding"]: row for row in json.loads((tmp_path / "figures.json").read_text())["rows"]}
    # A header of 16 bytes for 32 rows, besides.
    for name, payload in ("plain", 4), ("int8", 1.03125), ("int6", 0.78125), ("int4", 0.53125):
        assert 0 <= rows[name]["payload_bytes_per_element"] - payload < 2e-4, rows[name]
        assert rows[name]["median_s"] > 0 and rows[name]["processor_share"] > 0


def test_layers_by_their_share_of_communication(hosts, monkeypatch, capsys, tmp_path):
    config = json.loads((ROOT / "examples/llama-layer/config.json").read_text())
    config.update(hidden_size=256, intermediate_size=512, num_attention_heads=4, num_key_value_heads=2)
    (tmp_path / "config.json").write_text(json.dumps(config))
    status, said = table(monkeypatch, capsys, "layers", "--config", tmp_path / "config.json", "--hosts", 2, "--tokens", 64, "--communication",
                         "0.65", "--encodings", "plain,int8", "--json", tmp_path / "figures.json")
    assert complete(status) and "(65% wanted)" in said, said
    rows = {row["encoding"]: row for row in json.loads((tmp_path / "figures.json").read_text())["rows"]}
    share, ratio = rows["int8"]["measured_share"], rows["int8"]["r"]
    assert 0 < share < 1 and 3.8 < ratio < 3.9
    assert rows["int8"]["bound"] == pytest.approx(1 / ((1 - share) + share / ratio))


@pytest.mark.parametrize("words,message", [
    (("encoded", "--encodings", "INT8!"), "an encoding is one of plain, bf16, int8, int6, int4, or what braid compile --quantize takes"),
    (("encoded", "--sizes", "4KiB"), "sizes expect whole rows of 4096 f32, got 4 KiB"),
    (("layers", "--communication", "1.5"), "a share of communication is a number between 0 and 1, got '1.5'"),
    (("layers", "--encodings", "int8"), "the other encodings are compared with plain, which is not among them"),
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
