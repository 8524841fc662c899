# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The interpreter and the CPU target give PyTorch's result on every mesh."""
import numpy as np
import pytest

import braidtest
import models
from braidtest import braid, braid_run
from conftest import Case

# The bound for f32: relative L2 over the full output.
F32_TOLERANCE = 2e-5

MESHES = ["tp=1", "tp=2", "tp=4", "dp=2", "dp=2,tp=2"]
TARGETS = ["reference", "cpu"]

# name -> batch, sequence length, valid lengths. An odd batch is padded for dp=2.
SHAPES = {
    "even-batch": (4, 9, [9, 1, 5, 8]),
    "odd-batch": (3, 7, [7, 2, 6]),
    "one-token": (2, 1, [1, 1]),
}


@pytest.fixture(scope="module")
def small_cases(tmp_path_factory):
    made = {}

    def get(bert, shape):
        key = (bert.name, shape)
        if key not in made:
            directory = tmp_path_factory.mktemp(f"{bert.name}-{shape}")
            checkpoint = models.write_bert(bert, directory / "checkpoint")
            batch, seq, lengths = SHAPES[shape]
            inputs = models.make_inputs(models.read_config(checkpoint), batch, seq, lengths, seed=bert.seed)
            made[key] = Case(directory, checkpoint, inputs, models.pytorch_output(checkpoint, inputs))
        return made[key]

    return get


def check_case(case, mesh, target, out, extra=()):
    """Compares the output with the golden twice: by --check, and here, with no code shared."""
    ranks = braidtest.ranks_of(mesh)
    common = ["--ranks", ranks, *case.run_args(), "--output", out, "--check", case.golden, *extra]
    if target == "reference":
        braid("run", case.model, "--mesh", mesh, "--target", "reference", *common)
    else:
        braid_run(case.bundle(mesh), *common)
    value = np.load(out / f"{case.output}.npy")
    assert value.shape == case.golden_value.shape and value.dtype == np.float32
    assert models.relative_l2(value, case.golden_value) <= F32_TOLERANCE
    return value


def small_matrix():
    for bert in models.SMALL_BERTS:
        for shape in SHAPES:
            for mesh in MESHES:
                for target in TARGETS:
                    # With one token, softmax has a single key: testing one mesh is enough.
                    if shape == "one-token" and mesh != "tp=2":
                        continue
                    yield pytest.param(bert, shape, mesh, target, id=f"{bert.name}-{shape}-{mesh}-{target}")


@pytest.mark.torch
@pytest.mark.parametrize("bert,shape,mesh,target", list(small_matrix()))
def test_small_bert(small_cases, tmp_path, bert, shape, mesh, target):
    check_case(small_cases(bert, shape), mesh, target, tmp_path / "out")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("mesh", MESHES)
def test_tiny_bert_stored_golden(tiny, tmp_path, mesh, target):
    check_case(tiny, mesh, target, tmp_path / "out")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("mesh", MESHES)
def test_minilm_stored_golden(minilm_case, tmp_path, mesh, target):
    check_case(minilm_case, mesh, target, tmp_path / "out")


@pytest.fixture(scope="module")
def minilm_sentences(tmp_path_factory, minilm):
    """MiniLM on tokenized sentences of different lengths, compared with the installed PyTorch."""
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(str(minilm / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.enable_padding(length=20)
    encoded = tokenizer.encode_batch(["Two ranks share every layer.", "Snow.", "Where does the time go when a collective is slow?",
                                      "The second sentence of this paragraph is about nothing in particular."])
    inputs = {"input_ids": np.array([e.ids for e in encoded], np.int64),
              "attention_mask": np.array([e.attention_mask for e in encoded], np.int64),
              "token_type_ids": np.array([e.type_ids for e in encoded], np.int64)}
    assert len(set(inputs["attention_mask"].sum(axis=1))) == 4, "the mask is to be ragged"
    return Case(tmp_path_factory.mktemp("sentences"), minilm, inputs, models.pytorch_output(minilm, inputs))


@pytest.mark.torch
@pytest.mark.parametrize("mesh", MESHES)
def test_minilm_sentences_cpu(minilm_sentences, tmp_path, mesh):
    check_case(minilm_sentences, mesh, "cpu", tmp_path / "out")


@pytest.mark.torch
@pytest.mark.parametrize("mesh", [pytest.param("tp=1", marks=pytest.mark.long), "tp=2",
                                  pytest.param("tp=4", marks=pytest.mark.long), "dp=2,tp=2"])
def test_minilm_sentences_reference(minilm_sentences, tmp_path, mesh):
    check_case(minilm_sentences, mesh, "reference", tmp_path / "out")


@pytest.mark.parametrize("mesh", ["tp=2", "tp=4", "dp=2,tp=2"])
def test_check_against_unpartitioned_interpreter(minilm_case, mesh):
    done = braid("run", minilm_case.bundle(mesh), "--ranks", braidtest.ranks_of(mesh), *minilm_case.run_args(),
                 "--check", "reference", timeout=300)
    assert "2e-05" in done.out + done.err or "2.0e-05" in done.out + done.err or "2e-5" in done.out + done.err, \
        f"expects what is allowed to be printed{done}"


def test_run_compiles_a_model_in_memory(minilm_case):
    braid("run", minilm_case.model, "--mesh", "tp=2", "--ranks", 2, "--target", "cpu", *minilm_case.run_args(),
          "--check", minilm_case.golden)


def test_random_weights_are_the_same_on_every_mesh(tiny, tmp_path):
    values = {}
    for mesh in MESHES:
        out = tmp_path / mesh
        braid_run(tiny.bundle(mesh), "--ranks", braidtest.ranks_of(mesh), "--random-weights", 42,
                  *braidtest.input_args(tiny.inputs), "--output", out)
        values[mesh] = np.load(out / f"{models.OUTPUT}.npy")
    for mesh, value in values.items():
        assert models.relative_l2(value, values["tp=1"]) <= F32_TOLERANCE, mesh
    out = tmp_path / "another-seed"
    braid_run(tiny.bundle("tp=1"), "--ranks", 1, "--random-weights", 43, *braidtest.input_args(tiny.inputs), "--output", out)
    assert models.relative_l2(np.load(out / f"{models.OUTPUT}.npy"), values["tp=1"]) > 1e-3


@pytest.mark.parametrize("mesh", ["tp=4", "dp=2,tp=2"])
def test_results_are_bitwise_reproducible(minilm_case, tmp_path, mesh):
    values = [check_case(minilm_case, mesh, "cpu", tmp_path / str(i)) for i in range(3)]
    assert all(np.array_equal(values[0].view(np.int32), v.view(np.int32)) for v in values[1:])


def test_a_team_of_threads_gives_the_same_answer(minilm_case, tmp_path):
    check_case(minilm_case, "tp=2", "cpu", tmp_path / "out", extra=["--threads", 2])


def test_what_is_padded_does_not_matter(minilm_case, tmp_path):
    """Ids at masked positions do not affect the valid positions."""
    ids = minilm_case.values["input_ids"].copy()
    mask = minilm_case.values["attention_mask"] == 1
    assert not mask.all()
    ids[~mask] = (ids[~mask] + 1234) % 30522
    changed = models.write_inputs({**minilm_case.values, "input_ids": ids}, tmp_path / "inputs")
    out = tmp_path / "out"
    braid_run(minilm_case.bundle("tp=2"), "--ranks", 2, "--weights", minilm_case.checkpoint,
              *braidtest.input_args(changed), "--output", out)
    value = np.load(out / f"{models.OUTPUT}.npy")
    assert models.relative_l2(value[mask], minilm_case.golden_value[mask]) <= F32_TOLERANCE
    assert models.relative_l2(value[~mask], minilm_case.golden_value[~mask]) > 1e-3
