# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The output in docs/one-collective.md is what the tools print."""

import re

import pytest

from braidtest import BAD_INPUT, ROOT, braid

PAGE = (ROOT / "docs" / "one-collective.md").read_text()
BLOCKS = re.findall(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", PAGE, re.M | re.S)
LISTINGS = [(name, body) for language, name, body in BLOCKS if language in ("mlir", "text")]
SLICES = ROOT / "examples/programs/slices.mlir"


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """The output of the page's commands by level; that of the run is 'run'."""
    directory = tmp_path_factory.mktemp("walk")
    (config,) = [body for _, name, body in BLOCKS if name == "config.json"]
    (directory / "config.json").write_text(config)
    outputs = {}
    commands = [line.split() for language, _, body in BLOCKS if language == "sh" for line in body.splitlines()]
    assert commands.pop() == ["braid", "compile", "examples/programs/slices.mlir", "--emit=rt"]
    assert [c[:2] for c in commands] == [["braid", "import"]] + 2 * [["braid", "compile"]] + [["braid", "run"]]
    for command in commands:
        done = braid(*command[1:], cwd=directory)
        assert done.code == 0, done
        outputs[command[1]] = done.out
    for level in ("scheduled", "rt"):
        outputs[f"slices.{level}"] = braid("compile", SLICES, f"--emit={level}").out
    outputs["slices.run"] = braid("run", SLICES, "--random-weights", 1, "--random-inputs", 1).out
    (directory / "without-wait.mlir").write_text(outputs["slices.rt"].replace("rt.wait %arg8\n", "\n"))
    refused = braid("compile", "without-wait.mlir", "-o", "no.braid", cwd=directory, expect=BAD_INPUT).err
    outputs["slices.without-wait"] = re.sub(r"^\S+:\d+:\d+: ", "", refused, flags=re.M)
    for level in {name for name, _ in LISTINGS if "." not in name} - {"run"}:
        done = braid("compile", "model.mlir", "--mesh", "tp=2", "--strategy", "tp", f"--emit={level}", cwd=directory)
        assert done.code == 0, done
        outputs[level] = done.out
    return outputs


def test_every_level_has_a_listing():
    assert [name for name, _ in LISTINGS] == ["nn", "comm", "kernels", "scheduled", "rt", "run", "slices.scheduled", "slices.rt", "slices.rt",
                                              "slices.without-wait", "slices.run"]


@pytest.mark.parametrize("name,body", LISTINGS, ids=[f"{name}-{i}" for i, (name, _) in enumerate(LISTINGS)])
def test_listing_is_what_is_printed(printed, name, body):
    lines = [line.strip() for line in printed[name].splitlines()]
    at = 0
    for wanted in body.splitlines():
        pattern = re.compile(".*".join(re.escape(part) for part in wanted.strip().split("…")))
        found = next((i for i in range(at, len(lines)) if pattern.fullmatch(lines[i])), None)
        assert found is not None, f"not printed, or not in this order: {wanted}"
        at = found + 1
