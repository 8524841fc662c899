# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every level of MiniLM's first layer can be printed, and the printed text can be parsed."""
import re

import pytest

import braidtest
from braidtest import braid, run

# level -> the operations that it must contain, and those that it must not contain
LEVELS = {
    "nn": (["nn.linear", "nn.attention", "nn.layer_norm", "nn.activation", "nn.embedding"], ["comm.all_reduce", "comm.start", "rt."]),
    "comm": (["nn.linear", "comm.all_reduce"], ["comm.start", "rt."]),
    "kernels": (["rt.kernel", "rt.launch", "comm.all_reduce"], ["nn.layer_norm", "nn.activation", "comm.start"]),
    "scheduled": (["rt.kernel", "rt.launch", "comm.start", "comm.wait"], ["nn.layer_norm", "rt.start"]),
    "rt": (["rt.procedure", "rt.launch", "library = \"matmul\"", "rt.launch @attention", "rt.start", "rt.record"], ["nn.linear", "comm.start"]),
    "llvm": (["define ", "fmul|fadd"], ["nn.linear"]),
}


@pytest.fixture(scope="module")
def layer(tmp_path_factory, minilm):
    directory = tmp_path_factory.mktemp("layer")
    braid("import", minilm, "--batch", 2, "--seq", 16, "--layers", 1, "-o", directory / "layer.mlir")
    return directory


def strip_comments(text):
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith(("//", ";")))


def emit(layer, level):
    path = layer / f"{level}.txt"
    if not path.exists():
        braid("compile", layer / "layer.mlir", "--mesh", "tp=2", "--target", "cpu", f"--emit={level}", "-o", path)
    return path


@pytest.mark.parametrize("level", LEVELS)
def test_level_is_printed(layer, level):
    text = strip_comments(emit(layer, level).read_text())
    present, absent = LEVELS[level]
    for pattern in present:
        assert re.search(pattern, text), f"no {pattern} at level {level}"
    for word in absent:
        assert word not in text, f"{word} at level {level}"
    if level == "llvm":
        assert re.search(r"<\d+ x float>", text), "expects vectors in the kernels"


@pytest.mark.parametrize("level", LEVELS)
def test_standard_output_shows_the_same(layer, level):
    done = braid("compile", layer / "layer.mlir", "--mesh", "tp=2", "--target", "cpu", f"--emit={level}")
    assert done.out.strip() == emit(layer, level).read_text().strip()


@pytest.mark.parametrize("level", ["nn", "comm", "kernels", "scheduled", "rt"])
def test_level_is_read_again(layer, level):
    again = run("braid-opt", emit(layer, level))
    assert run("braid-opt", "--mlir-print-op-generic", emit(layer, level)).out
    text = emit(layer, level).read_text()
    assert strip_comments(again.out).split() and len(again.out.splitlines()) > 20
    # Printing the parsed module changes nothing.
    (layer / f"again-{level}.mlir").write_text(again.out)
    assert run("braid-opt", layer / f"again-{level}.mlir").out == again.out, text[:200]


def test_two_all_reduces_a_layer(layer):
    text = strip_comments(emit(layer, "comm").read_text())
    assert len(re.findall(r"\bcomm\.all_reduce\b", text)) == 2
    assert not re.search(r"\bcomm\.(all_gather|reduce_scatter)\b", text)


def test_starts_and_waits_pair(layer):
    text = strip_comments(emit(layer, "scheduled").read_text())
    assert len(re.findall(r"\bcomm\.start\b", text)) == len(re.findall(r"\bcomm\.wait\b", text)) == 2


def test_equal_layers_are_compiled_once(tmp_path, minilm):
    kernels = {}
    for layers in (1, 6):
        model = tmp_path / f"{layers}.mlir"
        braid("import", minilm, "--batch", 2, "--seq", 16, "--layers", layers, "-o", model)
        text = strip_comments(braid("compile", model, "--mesh", "tp=2", "--target", "cpu", "--emit=rt").out)
        kernels[layers] = len(re.findall(r"^\s*rt\.kernel\b", text, re.MULTILINE))
    assert kernels[1] == kernels[6] > 0
