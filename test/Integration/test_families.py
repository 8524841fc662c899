# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small models of every family give PyTorch's result, in the interpreter and on the CPU, whether heads divide or are
padded."""
import json
import re

import numpy as np
import pytest

import braidtest
import families
import models
from braidtest import braid
from conftest import Case
from test_against_pytorch import check_case

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    made = {}

    def get(small, **saving):
        key = (small.name, *saving.items())
        if key not in made:
            directory = tmp_path_factory.mktemp(small.name)
            model = families.build(small)
            model.save_pretrained(directory / "checkpoint", **saving)
            inputs = families.make_inputs(small)
            made[key] = Case(directory, directory / "checkpoint", inputs, families.output(small, model, inputs), small.output,
                             small.ask)
        return made[key]

    return get


def matrix():
    for small in families.ALL:
        for mesh in ("tp=1", "tp=2", "tp=3", "tp=4", "dp=3,tp=2"):
            for target in ("reference", "cpu"):
                yield pytest.param(small, mesh, target, id=f"{small.name}-{mesh}-{target}")


@pytest.mark.parametrize("small,mesh,target", list(matrix()))
def test_small_model(cases, tmp_path, small, mesh, target):
    check_case(cases(small), mesh, target, tmp_path / "out")


@pytest.mark.parametrize("mesh,strategy", [("tp=3", "tp-sp"), ("dp=3,tp=3", "tp-sp,dp")])
@pytest.mark.parametrize("small", families.ALL, ids=lambda s: s.name)
def test_sequence_parallel(cases, tmp_path, small, mesh, strategy):
    case = cases(small)
    braid("run", case.model, "--mesh", mesh, "--strategy", strategy, "--ranks", braidtest.ranks_of(mesh), "--target", "cpu",
          *case.run_args(), "--output", tmp_path / "out", "--check", case.golden)


# Tied and untied weights, with and without a bias: 61 words over 3 and 4 ranks.
@pytest.mark.parametrize("mesh,strategy,transport", [("tp=3", "tp-sp,vocab", "threads"), ("tp=4", "tp,vocab", "shm")])
@pytest.mark.parametrize("small", [families.LLAMAS[0], families.LLAMAS[1], families.GPT2S[0], families.GPT2S[1],
                                   families.ROBERTAS[2], families.BERTS[1]], ids=lambda s: s.name)
def test_vocabulary_that_does_not_divide(cases, tmp_path, small, mesh, strategy, transport):
    case, parts, out = cases(small), braidtest.ranks_of(mesh), tmp_path / "out"
    bundle = tmp_path / "model.braid"
    done = braid("compile", case.model, "--mesh", mesh, "--strategy", strategy, "--remarks", "padding", "-o", bundle)
    padded = -(-61 // parts) * parts
    for role in ("embedding.word", "lm_head"):
        assert f"a vocabulary of 61 of '{role}' is padded to {padded} for axis 'tp' of size {parts}" in done.err, done
    done = braid("run", bundle, "--ranks", parts, "--transport", transport, *case.run_args(), "--output", out,
                 "--check", case.golden, "--check", "reference")
    assert done.out.count(": passed") == 2
    assert np.load(out / "logits.npy").shape == (small.batch, small.seq, 61)
    braid("run", bundle, "--target", "program-interpreter", "--schedules", 3, *case.run_args(), "--check", case.golden)
    # The reference interpreter on the partitioned program.
    braid("run", case.model, "--mesh", mesh, "--strategy", strategy, "--target", "reference", *case.run_args(),
          "--check", case.golden)


@pytest.mark.parametrize("target", ["cpu", "reference", "program-interpreter"])
def test_nobody_looks_up_padding(cases, tmp_path, target):
    """Row 61 exists on the last of two ranks, but is no word."""
    case = cases(families.GPT2S[0])
    values = {name: value.copy() for name, value in case.values.items()}
    values["input_ids"][0, 2] = 61
    inputs = models.write_inputs(values, tmp_path / "inputs")
    done = braid("run", case.model, "--mesh", "tp=2", "--target", target, "--weights", case.checkpoint,
                 *braidtest.input_args(inputs), "--output", tmp_path / "out", expect=braidtest.BAD_INPUT)
    assert "id 61 at position 2 is outside of [0, 61)" in done.err or "ids from 0 to 60, got 61 at position [0, 2]" in done.err, done
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize("small", [s for s in families.LLAMAS if s.old_rope], ids=lambda s: s.name)
def test_old_spelling_of_rope(tmp_path, small):
    model = families.build(small)
    model.save_pretrained(tmp_path / "checkpoint")
    families.spell_old_rope(small, tmp_path / "checkpoint")
    inputs = families.make_inputs(small)
    case = Case(tmp_path, tmp_path / "checkpoint", inputs, families.output(small, model, inputs), small.output)
    check_case(case, "tp=1", "reference", tmp_path / "out")


@pytest.mark.parametrize("target", ["reference", "cpu"])
@pytest.mark.parametrize("small", [families.LLAMAS[1], families.GPT2S[0]], ids=lambda s: s.name)
def test_checkpoint_in_several_files(cases, tmp_path, small, target):
    case = cases(small, max_shard_size="10KB")
    index = json.loads((case.checkpoint / "model.safetensors.index.json").read_text())
    assert len(set(index["weight_map"].values())) > 2
    check_case(case, "tp=2", target, tmp_path / "out")


def test_index_that_names_a_missing_file(tmp_path):
    small = families.GPT2S[0]
    families.build(small).save_pretrained(tmp_path / "checkpoint", max_shard_size="10KB")
    index = json.loads((tmp_path / "checkpoint" / "model.safetensors.index.json").read_text())
    lost = index["weight_map"]["transformer.h.1.mlp.c_fc.weight"]
    (tmp_path / "checkpoint" / lost).unlink()
    done = braid("import", tmp_path / "checkpoint", "-o", tmp_path / "model.mlir", "--batch", 1, "--seq", 4,
                 expect=braidtest.BAD_INPUT)
    assert lost in done.err and "No such file" in done.err
    assert not (tmp_path / "model.mlir").exists()


def test_configuration_alone_gives_random_weights(cases, tmp_path):
    """Without a checkpoint and without PyTorch: the same seed gives the same model on every mesh."""
    for small in (families.LLAMAS[3], families.GPT2S[1]):
        case = cases(small)
        model = braidtest.import_model(case.checkpoint / "config.json", tmp_path / f"{small.name}.mlir", small.batch, small.seq)
        values = []
        for mesh, seed in (("tp=1", 5), ("tp=2", 5), ("tp=1", 6)):
            out = tmp_path / f"{small.name}-{mesh}-{seed}"
            braid("run", model, "--mesh", mesh, "--ranks", braidtest.ranks_of(mesh), "--target", "cpu",
                  "--random-weights", seed, *braidtest.input_args(case.inputs), "--output", out)
            values.append(np.load(out / f"{small.output}.npy"))
        assert models.relative_l2(values[1], values[0]) <= 2e-5
        assert models.relative_l2(values[2], values[0]) > 1e-3


def test_plain_tensor_parallelism_needs_two_all_reduces_a_layer(cases, tmp_path):
    for small in (families.LLAMAS[0], families.GPT2S[0]):
        text = tmp_path / f"{small.name}.mlir"
        braid("compile", cases(small).model, "--mesh", "tp=2", "--emit", "comm", "-o", text)
        layer = next(part for part in text.read_text().split("func.func") if "@decoder_layer" in part.split("\n")[0])
        collectives = re.findall(r"comm\.(all_reduce|reduce_scatter|all_gather|part|all_to_all)\b", layer)
        assert collectives == ["all_reduce", "all_reduce"], text.read_text()


@pytest.mark.parametrize("small", [families.LLAMAS[1], families.GPT2S[1], families.ROBERTAS[1]], ids=lambda s: s.name)
def test_a_process_per_rank(cases, tmp_path, small):
    check_case(cases(small), "tp=4", "cpu", tmp_path / "out", extra=["--transport", "shm"])


def test_many_layers_are_compiled_once(tmp_path):
    config = {**families.LLAMAS[3].fields, "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 16,
              "intermediate_size": 24, "num_hidden_layers": 126}
    (tmp_path / "config.json").write_text(json.dumps(config))
    model = braidtest.import_model(tmp_path / "config.json", tmp_path / "model.mlir", 2, 6)
    assert model.read_text().count("func.func private") == 1
    braid("compile", model, "--mesh", "tp=2", "--emit", "rt", "-o", tmp_path / "rt.mlir")
    program = (tmp_path / "rt.mlir").read_text()
    assert program.count("rt.procedure @decoder_layer") == 1 and program.count("rt.call @decoder_layer") == 126
    inputs = models.write_inputs({"input_ids": np.arange(12).reshape(2, 6), "attention_mask": np.ones((2, 6), np.int64)},
                                 tmp_path / "inputs")
    braid("run", model, "--mesh", "tp=2", "--ranks", 2, "--target", "cpu", "--random-weights", 3,
          *braidtest.input_args(inputs), "--check", "reference")


@pytest.mark.parametrize("small", [families.LLAMAS[1], families.GPT2S[0], families.ROBERTAS[0]], ids=lambda s: s.name)
def test_in_many_orders_on_poisoned_memory(cases, small):
    case = cases(small)
    done = braid("run", case.bundle("tp=2"), "--target", "program-interpreter", "--schedules", 10, *case.run_args(),
                 "--check", case.golden)
    assert "no two commands that share memory are unordered" in done.out + done.err


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_checkpoint(tmp_path, dtype):
    """16-bit weights are converted to f32 when they are loaded; the arithmetic is in f32."""
    import torch
    from transformers import LlamaForCausalLM
    small = families.LLAMAS[0]
    families.build(small).to(getattr(torch, dtype)).save_pretrained(tmp_path / "checkpoint")
    model = LlamaForCausalLM.from_pretrained(tmp_path / "checkpoint", dtype=torch.float32, attn_implementation="eager").eval()
    inputs = families.make_inputs(small)
    case = Case(tmp_path, tmp_path / "checkpoint", inputs, families.output(small, model, inputs), small.output)
    for target in ("reference", "cpu"):
        check_case(case, "tp=2", target, tmp_path / target)
