# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every program of faulty_programs.py is refused when it is compiled, by name; the one that it is made from runs."""
import functools
import re
import subprocess
import sys
import tempfile

import pytest

from braidtest import BAD_INPUT, ROOT, braid, run
from faulty_programs import FAULTS

EXAMPLES, INPUTS = ROOT / "examples/programs", ROOT / "test/Integration/Inputs/faults"
BASES = sorted({fault.base for fault in FAULTS})


@functools.cache
def text_of(base):
    name, _, level = base.partition(":")
    script, *arguments = name.split()
    if script.endswith(".py"):
        command = [sys.executable, EXAMPLES / script, *arguments]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    else:
        text = next(path for folder in (EXAMPLES, INPUTS) if (path := folder / f"{name}.mlir").exists()).read_text()
    if not level:
        return text
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        file.write(text)
        file.flush()
        return braid("compile", file.name, f"--emit={level}").out


def test_there_are_a_hundred():
    assert len(FAULTS) >= 100
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    assert len({fault.spoil(text_of(fault.base)) for fault in FAULTS}) == len(FAULTS), "two faults are the same program"


@pytest.mark.parametrize("base", BASES)
def test_right_program(base, tmp_path):
    path = tmp_path / "right.mlir"
    path.write_text(text_of(base))
    entry = ["--entry", "decode"] if base.startswith("generation.py") else []
    if base.endswith(":rt"):
        # What is compiled from it runs as the module does that it comes from, which another case checks.
        out = braid("run", path, "--random-weights", 1, "--random-inputs", 1, "--target", "program-interpreter", "--schedules", 100, *entry).out
        assert "order: no two commands that share memory are unordered" in out
    else:
        out = braid("run", path, "--random-weights", 1, "--random-inputs", 1, "--check", "reference", *entry).out
        assert re.search(r"check \S+ against reference: .*: passed", out) and "failed" not in out, out


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_fault(fault, tmp_path):
    path, bundle = tmp_path / "wrong.mlir", tmp_path / "wrong.braid"
    path.write_text(fault.spoil(text_of(fault.base)))
    err = braid("compile", path, "-o", bundle, expect=BAD_INPUT).err
    assert not bundle.exists()
    said = [line.split(": ", 2)[2] for line in err.splitlines() if re.match(r"\S+:\d+:\d+: (error|note): (?!see current op)", line)]
    said = [line for line in said if line != "the other command"]
    assert said == fault.says, err


# A fault that the check of memory accepts without the rule, for each of its rules.
NEEDED = {
    "frame": "a callee's frame beyond the caller's",
    "events": "an event reused",
    "arguments": "two results in one buffer",
    "once": "two values of a bucket in one place",
    "in-place": "a product over its own operand",
    "race": "an addend that comes when its sum has started",
    "unwritten": "one row is left out",
    "result": "a result that nothing writes",
    "joined": "an entry that ends before its collective",
    "sharing": "a chunk is gathered over one that is read",
}


def test_the_table_has_every_rule():
    header = (ROOT / "include/braid/Conversion/BufferCheck.h").read_text()
    rules = re.search(r"enum class BufferRule : unsigned \{\n(.*?)\};", header, re.DOTALL).group(1)
    names = [re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower() for name in re.findall(r"^  (\w+)", rules, re.MULTILINE)]
    assert names == list(NEEDED)
    unknown = run("braid-opt", "--braid-verify-buffers=skip=none", ROOT / "examples/write-your-own/model.mlir", expect=BAD_INPUT).err
    assert "expects a rule of the check of buffers in 'skip', got 'none'" in unknown


@pytest.mark.parametrize("rule", NEEDED)
def test_every_rule_is_needed(rule, tmp_path):
    (fault,) = [fault for fault in FAULTS if fault.name == NEEDED[rule]]
    path = tmp_path / "wrong.mlir"
    path.write_text(fault.spoil(text_of(fault.base)))
    run("braid-opt", path, "--braid-verify-buffers", "-o", "/dev/null", expect=BAD_INPUT)
    run("braid-opt", path, f"--braid-verify-buffers=skip={rule}", "-o", "/dev/null")
