# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The programs of examples/programs: no copies, and the reference's results in every way to run them."""
import re

import pytest

from braidtest import ROOT, braid

PROGRAMS = sorted((ROOT / "examples/programs").glob("*.mlir"))


def test_every_program_is_described():
    text = (ROOT / "examples/programs/README.md").read_text()
    assert PROGRAMS
    for program in PROGRAMS:
        assert f"[`{program.name}`]({program.name})" in text


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_no_copies(program):
    assert "rt.copy" not in braid("compile", program, "--emit=rt").out


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
@pytest.mark.parametrize("how", [["--transport", "threads", "--repeat", 20], ["--transport", "shm", "--repeat", 20],
                                 ["--target", "program-interpreter", "--schedules", 100]], ids=["threads", "shm", "orders"])
def test_results(program, how):
    out = braid("run", program, "--random-weights", 1, "--random-inputs", 1, "--check", "reference", *how).out
    assert re.search(r"check y against reference: .*: passed", out), out
    if how[0] == "--target":
        assert "order: no two commands that share memory are unordered" in out
        assert "100 orders of" in out
