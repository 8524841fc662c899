# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights stored cut over the ranks that share a batch (--strategy fsdp): only weights are sent, and little of them is whole."""
import json
import re

import pytest

from braidtest import ROOT, braid

CONFIG = json.loads((ROOT / "test/Driver/Inputs/tiny-llama.json").read_text())
PARAMETER = re.compile(r'nn\.parameter "([^"]+)".* : tensor<([0-9x]+)xf32>')


def model(folder, layers):
    (folder / "config.json").write_text(json.dumps({**CONFIG, "num_hidden_layers": layers}))
    braid("import", folder / "config.json", "--batch", 4, "--seq", 8, "-o", folder / "model.mlir")
    return folder / "model.mlir"


def parameters(module):
    """Bytes by name, of weights and of vectors."""
    found = {True: {}, False: {}}
    for name, shape in PARAMETER.findall(module.read_text()):
        size = 4
        for extent in shape.split("x"):
            size *= int(extent)
        found["x" in shape][name] = size
    return found[True], found[False]


def report(module, folder, *options):
    braid("run", module, "--random-weights", 1, "--random-inputs", 1, "--check", "reference", "--report", folder / "r.json", *options)
    return json.loads((folder / "r.json").read_text())


def assert_prefetched(exposed):
    """The weights of a layer are gathered while the layer before it computes; nothing comes before the table of words."""
    assert all(".layers." not in name for name in exposed), exposed


@pytest.mark.parametrize("transport", ["threads", "shm"])
def test_what_is_sent_are_the_weights(tmp_path, transport):
    module = model(tmp_path, 3)
    weights, vectors = parameters(module)
    assert weights and vectors
    result = report(module, tmp_path, "--mesh", "dp=2", "--strategy", "dp,fsdp", "--transport", transport)
    assert {c["kind"] for c in result["collectives"]} == {"all_gather"}
    assert {c["name"] for c in result["collectives"]} == set(weights)
    assert_prefetched({c["name"] for c in result["collectives"] if c["exposed_by_form"]})
    # A rank sends the half that it holds to the other one, once.
    assert result["bytes_sent_per_rank"] == sum(weights.values()) // 2
    for rank in result["per_rank"]:
        assert rank["parameter_bytes"] == sum(weights.values()) // 2 + sum(vectors.values())
        assert rank["symmetric_value_bytes"] == sum(weights.values()) // 2


def test_without_it_nothing_is_sent(tmp_path):
    result = report(model(tmp_path, 3), tmp_path, "--mesh", "dp=2", "--strategy", "dp")
    assert result["collectives"] == [] and result["bytes_sent_per_rank"] == 0


def test_beside_tensor_parallelism_reductions_stay_as_they_are(tmp_path):
    module = model(tmp_path, 3)
    sums, exposed = {}, {}
    for strategy in ("tp,dp", "tp,dp,fsdp"):
        result = report(module, tmp_path, "--mesh", "dp=2,tp=2", "--strategy", strategy)
        sums[strategy] = [(c["identity"], c["bytes_sent_per_rank"]) for c in result["collectives"] if c["kind"] == "all_reduce"]
        exposed[strategy] = {c["name"] for c in result["collectives"] if c["kind"] == "all_gather" and c["exposed_by_form"]}
    assert sums["tp,dp"] and sums["tp,dp"] == sums["tp,dp,fsdp"]
    assert_prefetched(exposed["tp,dp,fsdp"])


def test_memory_does_not_grow_with_layers(tmp_path):
    frames = {}
    for layers in (4, 8):
        rank = report(model(tmp_path, layers), tmp_path, "--mesh", "dp=2", "--strategy", "dp,fsdp")["per_rank"][0]
        frames[layers] = rank["symmetric_arena_bytes"], rank["local_arena_bytes"]
    assert frames[4] == frames[8]
