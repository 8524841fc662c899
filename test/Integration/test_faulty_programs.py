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


# A fault that a check accepts without the rule, for each of its rules: one of the table or, where its programs have no such
# operation, a module of test/Transforms/Placements by its first comment.
NEEDED = {
    "buffers": {
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
    },
    "handles": {
        "taken": "a handle is passed to two layers",
        "kept": "two slices exchange their handles",
    },
    "placements": {
        "called": "presence: A call on ranks of which none runs the caller.",
        "present": "a stage with the weights of another",
        "returned": "a result that its rank does not have",
        "complete": "a reduction over the stages inside of one",
        "stays": "presence: A state moves to another rank.",
        "sum-once": "a second sum",
        "sum-parts": "a reduction over the wrong axis",
        "reduce-kind": "a maximum of addends",
        "gather-once": "parts joined along another dimension",
        "gather-dim": "refused: Parts are joined along another dimension.",
        "gather-sums": "partials: Partial sums are put side by side.",
        "gather-axes": "refused: Parts are joined in another order.",
        "take-part": "partials: A rank takes its part of a sum that is not added up.",
        "one-rank": "refused: A shard of partial sums, and a broadcast of one rank's partial sum.",
        "alike": "a weight that is not cut",
        "table-rows": "refused: The table of an embedding in parts, without the group that tells its rows.",
        "one-factor": "an input that is declared in other parts",
        "whole": "refused: A normalization of parts.",
        "sum-or-parts": "partials: Partial sums meet a weight whose outputs are cut over the same axis",
        "relative": "pairs: Multiplied by exp(common - own) instead of exp(own - common).",
        "one-kind": "partials: Partial sums and partial maxima are added.",
        "extrema": "partials: The activation of a maximum is not the maximum of activations.",
        "added-once": "a bias on each rank of a sum",
        "product": "refused: A product of two partial sums.",
        "linear": "a non-linear operation on addends",
        "shift": "a ring that turns the other way",
        "ring": "a ring of odd length by parity",
        "declared": "gradients that are not reduced",
        "declared-axes": "partials: Parts over the same axes, but in the order of others.",
    },
}
CHECKS = {"buffers": ("--braid-verify-buffers", "include/braid/Conversion/BufferCheck.h"),
          "handles": ("--braid-verify-level=level=scheduled", "lib/Transforms/HandleUses.h"),
          "placements": ("--braid-check-placements", "include/braid/Analysis/PlacementRule.h")}


def skipping(option, rule):
    return f"{option}{' ' if '=' in option else '='}skip={rule}"


@pytest.mark.parametrize("check", CHECKS)
def test_the_table_has_every_rule(check):
    option, header = CHECKS[check]
    rules = re.search(r"enum class \w+Rule : unsigned \{\n(.*?)\};", (ROOT / header).read_text(), re.DOTALL).group(1)
    names = [re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower() for name in re.findall(r"^  (\w+),? ", rules, re.MULTILINE)]
    assert names == list(NEEDED[check])
    unknown = run("braid-opt", skipping(option, "none"), ROOT / "examples/write-your-own/model.mlir", expect=BAD_INPUT).err
    assert f"expects a rule of the check of {check} in 'skip', got 'none'" in unknown


def fault_named(name):
    file, colon, comment = name.partition(": ")
    if not colon:
        (fault,) = [fault for fault in FAULTS if fault.name == name]
        return fault.spoil(text_of(fault.base))
    modules = (ROOT / f"test/Transforms/Placements/{file}.mlir").read_text().split("// -----\n")
    (module,) = [module for module in modules if f"\n// {comment}" in "\n" + module]
    return module


@pytest.mark.parametrize("check,rule", [(check, rule) for check, rules in NEEDED.items() for rule in rules])
def test_every_rule_is_needed(check, rule, tmp_path):
    path = tmp_path / "wrong.mlir"
    path.write_text(fault_named(NEEDED[check][rule]))
    option = CHECKS[check][0]
    run("braid-opt", path, option, "-o", "/dev/null", expect=BAD_INPUT)
    run("braid-opt", path, skipping(option, rule), "-o", "/dev/null")
