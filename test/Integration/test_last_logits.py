# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`braid import --logits last` gives the row of `--logits all` that belongs to each sequence's last token."""
import json

import numpy as np
import pytest

import braidtest
import families
import models
from braidtest import braid

CONFIGS = {
    "llama": {**families.LLAMAS[0].fields, "model_type": "llama", "architectures": ["LlamaForCausalLM"]},
    "gpt2": {**families.GPT2S[0].fields, "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "layer_norm_epsilon": 1e-5},
}
BATCH, SEQ = 4, 12  # sharded over 2 and 3 ranks
LENGTHS = np.array([12, 1, 5, 8])
MASKS = {
    "right": np.arange(SEQ)[None, :] < LENGTHS[:, None],
    "left": np.arange(SEQ)[None, :] >= SEQ - LENGTHS[:, None],
    "none": None,
}


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    made = {}

    def get(family):
        if family not in made:
            directory = tmp_path_factory.mktemp(family)
            (directory / "config.json").write_text(json.dumps(CONFIGS[family]))
            made[family] = [braidtest.import_model(directory / "config.json", directory / f"{logits}.mlir", BATCH, SEQ,
                                                   "--logits", logits) for logits in ("all", "last")]
        return made[family]

    return get


def logits(model, out, inputs, *args):
    braid("run", model, "--random-weights", 3, *braidtest.input_args(inputs), "--output", out, *args)
    return np.load(out / "logits.npy")


@pytest.mark.parametrize("mesh,strategy", [("tp=1", "tp"), ("tp=2", "tp"), ("tp=2", "tp,vocab"), ("tp=3", "tp-sp,vocab"),
                                           ("dp=2,tp=2", "tp-sp,dp")])
@pytest.mark.parametrize("padding", MASKS)
@pytest.mark.parametrize("family", CONFIGS)
def test_is_the_last_row(imported, tmp_path, family, padding, mesh, strategy):
    every, last = imported(family)
    values = {"input_ids": np.random.default_rng(5).integers(0, CONFIGS[family]["vocab_size"], (BATCH, SEQ))}
    rows = np.full(BATCH, SEQ - 1)
    if MASKS[padding] is not None:
        values["attention_mask"] = MASKS[padding].astype(np.int64)
        rows = SEQ - 1 - values["attention_mask"][:, ::-1].argmax(axis=1)
    inputs = models.write_inputs(values, tmp_path / "inputs")
    expected = logits(every, tmp_path / "all", inputs, "--mesh", "tp=1")[np.arange(BATCH), rows]
    got = logits(last, tmp_path / "last", inputs, "--mesh", mesh, "--strategy", strategy, "--check", "reference")
    assert got.shape == (BATCH, 1, CONFIGS[family]["vocab_size"])
    assert models.relative_l2(got[:, 0], expected) <= 2e-5
    # Rows differ from each other, so that another one would be noticed.
    if padding == "right":
        assert models.relative_l2(got[1:, 0], logits(every, tmp_path / "again", inputs, "--mesh", "tp=1")[1:, -1]) > 1e-3


@pytest.mark.parametrize("family", CONFIGS)
def test_the_head_multiplies_one_row(imported, tmp_path, family):
    """The matmul of the head on each of two ranks: all rows, and one row of each sequence."""
    for model, rows in zip(imported(family), (SEQ, 1)):
        text = tmp_path / "comm.mlir"
        braid("compile", model, "--mesh", "tp=2", "--emit", "comm", "-o", text)
        head, = [line for line in text.read_text().splitlines() if 'role "lm_head"' in line and "nn.linear" in line]
        assert f": tensor<{BATCH}x{rows}x32xf32>, tensor<" in head, head


@pytest.mark.torch
@pytest.mark.parametrize("mesh,target", [("tp=1", "cpu"), ("tp=2", "cpu"), ("tp=2", "reference"), ("tp=2", "program-interpreter")])
@pytest.mark.parametrize("small", [families.LLAMAS[0], families.LLAMAS[1], families.GPT2S[0]], ids=lambda s: s.name)
def test_against_pytorch(tmp_path, small, mesh, target):
    model = families.build(small)
    model.save_pretrained(tmp_path / "checkpoint")
    inputs = families.make_inputs(small)
    rows = inputs["attention_mask"].sum(axis=1) - 1
    golden = families.output(small, model, inputs)[np.arange(small.batch), rows][:, None]
    np.save(tmp_path / "golden.npy", golden)
    last = braidtest.import_model(tmp_path / "checkpoint", tmp_path / "last.mlir", small.batch, small.seq, "--logits", "last")
    braid("run", last, "--mesh", mesh, "--target", target, "--weights", tmp_path / "checkpoint",
          *braidtest.input_args(models.write_inputs(inputs, tmp_path / "inputs")), "--check", tmp_path / "golden.npy")
