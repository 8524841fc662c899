# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Omitted inputs have the same meaning as in transformers, and random inputs are the same on every mesh."""
import json

import numpy as np
import pytest

import braidtest
import families
import models
from braidtest import braid, braid_run

SMALL = [families.LLAMAS[0], families.GPT2S[0], families.ROBERTAS[0], families.ROBERTAS[1], families.BERTS[0]]


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    made = {}

    def get(small):
        if small.name not in made:
            directory = tmp_path_factory.mktemp(small.name)
            model = families.build(small)
            model.save_pretrained(directory / "checkpoint")
            module = braidtest.import_model(directory / "checkpoint", directory / "model.mlir", small.batch, small.seq, *small.ask)
            made[small.name] = model, directory / "checkpoint", module
        return made[small.name]

    return get


def given(small, *names):
    inputs = families.make_inputs(small)
    return {name: inputs[name] for name in names}


@pytest.mark.torch
@pytest.mark.parametrize("mesh,target", [("tp=1", "cpu"), ("dp=3,tp=2", "cpu"), ("dp=3", "reference"),
                                         ("tp=2", "program-interpreter")])
@pytest.mark.parametrize("small", SMALL, ids=lambda s: s.name)
def test_only_ids(imported, tmp_path, small, mesh, target):
    model, checkpoint, module = imported(small)
    inputs = given(small, "input_ids")
    golden = tmp_path / "golden.npy"
    np.save(golden, families.output(small, model, inputs))
    braid("run", module, "--mesh", mesh, "--target", target, "--weights", checkpoint,
          *braidtest.input_args(models.write_inputs(inputs, tmp_path / "inputs")), "--check", golden)


@pytest.mark.torch
@pytest.mark.parametrize("left_out", ["attention_mask", "token_type_ids"])
def test_one_left_out(imported, tmp_path, left_out):
    small = families.BERTS[0]
    model, checkpoint, module = imported(small)
    inputs = given(small, *({"input_ids", "attention_mask", "token_type_ids"} - {left_out}))
    golden = tmp_path / "golden.npy"
    np.save(golden, families.output(small, model, inputs))
    bundle = braidtest.compile_model(module, tmp_path / "model.braid", "tp=2")
    assert "'attention_mask' i64[3, 9], 1 when left out" in braid("explain", bundle).out
    files = braidtest.input_args(models.write_inputs(inputs, tmp_path / "inputs"))
    for transport in ("threads", "shm"):
        braid_run(bundle, "--transport", transport, "--weights", checkpoint, *files, "--check", golden)


def test_what_has_no_default(tiny):
    bundle = tiny.bundle("tp=2")
    done = braid_run(bundle, "--weights", tiny.checkpoint, expect=braidtest.BAD_INPUT)
    assert done.err == ("braid-run: error: the model also needs:\n"
                        f"  --input input_ids=FILE.npy   with i64 [{tiny.batch}, {tiny.seq}]\n"
                        "      (or --random-inputs SEED)\n"), done


def test_random_inputs(tiny, tmp_path):
    """Random inputs are the same on every mesh and for the interpreter; another seed gives others."""
    def values(name, *args):
        braid("run", *args, "--weights", tiny.checkpoint, "--output", tmp_path / name)
        return np.load(tmp_path / name / f"{models.OUTPUT}.npy")

    once = values("once", tiny.model, "--mesh", "tp=1", "--random-inputs", 1)
    assert np.array_equal(values("again", tiny.model, "--mesh", "tp=1", "--random-inputs", 1), once)
    for i, args in enumerate([(tiny.bundle("tp=2"),), (tiny.bundle("tp=2"), "--transport", "shm"),
                              (tiny.model, "--mesh", "tp=2", "--target", "reference")]):
        np.testing.assert_allclose(values(f"mesh{i}", *args, "--random-inputs", 1), once, rtol=1e-4, atol=1e-5)
    assert np.abs(values("other", tiny.model, "--mesh", "tp=1", "--random-inputs", 2) - once).max() > 1e-2
    braid("run", tiny.bundle("tp=2"), "--weights", tiny.checkpoint, "--random-inputs", 3, "--check", "reference")


def test_no_bound_to_draw_below(tmp_path):
    model = tmp_path / "model.mlir"
    model.write_text('func.func @main(%i: tensor<3xi64> {nn.name = "i"}, %t: tensor<5x4xf32> {nn.name = "t"})'
                     ' -> (tensor<3x4xf32> {nn.name = "r"}) attributes {nn.entry} {\n'
                     "%r = nn.embedding %i, %t : tensor<3xi64>, tensor<5x4xf32> -> tensor<3x4xf32>\nreturn %r : tensor<3x4xf32>\n}\n")
    done = braid("run", model, "--mesh", "dp=1", "--random-inputs", 1, expect=braidtest.BAD_INPUT)
    assert done.err.endswith("braid run: error: --random-inputs: input 'i' i64 [3] has no random values: the model gives "
                             "no upper bound\n"), done
    model.write_text(model.read_text().replace('nn.name = "i"', 'nn.name = "i", nn.below = 5 : i64'))
    braid("run", model, "--mesh", "dp=1", "--random-inputs", 1, "--check", "reference")
