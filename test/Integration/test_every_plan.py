# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every plan on every transport, for a model of each family and for the checkpoints that packages contain: results are
PyTorch's and the reference interpreter's. Heads and feed-forward dimensions that do not divide are padded."""
import dataclasses
import shutil
import sys

import numpy as np
import pytest

import braidtest
import families
import models
from braidtest import braid
from conftest import Case

pytestmark = pytest.mark.torch

BATCH, SEQ, LENGTHS = 2, 16, (16, 5)
PLANS = (("tp=2", "auto"), ("tp=3", "auto"), ("tp=4", "auto"), ("tp=8", "auto"), ("dp=2,tp=2", "auto"), ("tp=2", "tp-sp"),
         ("tp=8", "tp-sp"), ("dp=2,tp=2", "tp-sp,dp"), ("dp=2,tp=2", "tp-sp,dp,fsdp"))
SMALL = ("llama", "gpt2", "roberta")
REAL = ("minilm", "smollm2")


def small_case(directory, name):
    small = next(small for small in families.ALL if small.name == name)
    small = dataclasses.replace(small, batch=BATCH, seq=SEQ, lengths=LENGTHS)
    model = families.build(small)
    model.save_pretrained(directory / "checkpoint")
    inputs = families.make_inputs(small)
    return Case(directory, directory / "checkpoint", inputs, families.output(small, model, inputs), small.output, small.ask)


def minilm_case(directory):
    checkpoint = models.minilm_directory()
    inputs = models.make_inputs(models.read_config(checkpoint), BATCH, SEQ, LENGTHS)
    return Case(directory, checkpoint, inputs, models.pytorch_output(checkpoint, inputs))


def smollm2_case(directory):
    import torch
    sys.path.insert(0, str(braidtest.ROOT / "examples" / "complete-text"))
    try:
        import complete
        import convert
    finally:
        sys.path.pop(0)
    convert.convert(complete.GGUF, directory / "checkpoint")
    inputs = models.make_inputs({"vocab_size": 49000}, BATCH, SEQ, LENGTHS)
    del inputs["token_type_ids"]
    with torch.no_grad():
        golden = complete.pytorch_model()(**{k: torch.from_numpy(v) for k, v in inputs.items()}).logits.numpy()
    return Case(directory, directory / "checkpoint", inputs, golden, "logits")


@pytest.fixture(scope="module")
def case(request, tmp_path_factory):
    name, directory = request.param, tmp_path_factory.mktemp(request.param)
    yield minilm_case(directory) if name == "minilm" else smollm2_case(directory) if name == "smollm2" else small_case(directory, name)
    shutil.rmtree(directory)  # SmolLM2's has half a gigabyte


@pytest.mark.parametrize("transport", ["threads", "shm"])
@pytest.mark.parametrize("mesh,strategy", PLANS)
@pytest.mark.parametrize("case", [*SMALL, *(pytest.param(name, marks=pytest.mark.long) for name in REAL)], indirect=True)
def test_plan(case, tmp_path, mesh, strategy, transport):
    bundle, out = tmp_path / "model.braid", tmp_path / "out"
    braid("compile", case.model, "--mesh", mesh, "--strategy", strategy, "--isa", "host", "-o", bundle)
    done = braid("run", bundle, "--ranks", braidtest.ranks_of(mesh), "--transport", transport, *case.run_args(), "--output", out,
                 "--check", case.golden, "--check", "reference")
    assert done.out.count(": passed") == 2
    assert models.relative_l2(np.load(out / f"{case.output}.npy"), case.golden_value) <= 2e-5
