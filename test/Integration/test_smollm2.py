# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The example converts SmolLM2's real weights from GGUF. Results are compared with PyTorch's after transformers has
read the same GGUF file."""
import json
import shutil
import sys

import numpy as np
import pytest

import braidtest
from conftest import Case
import simulation
from test_against_pytorch import check_case
from test_encoded_models import QUANTIZED, check_budget, check_encoded

EXAMPLE = braidtest.ROOT / "examples" / "complete-text"

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def smollm2(tmp_path_factory):
    sys.path.insert(0, str(EXAMPLE))
    try:
        import complete
        import convert
    finally:
        sys.path.remove(str(EXAMPLE))
    import torch
    directory = tmp_path_factory.mktemp("smollm2")
    convert.convert(complete.GGUF, directory / "checkpoint")
    tokenizer = complete.Tokenizer.from_file(str(directory / "checkpoint" / "tokenizer.json"))
    encoded = [tokenizer.encode(text).ids for text in ("The capital of France is Paris, and that of 2 others", "Snow falls")]
    seq = max(map(len, encoded))
    assert len(set(map(len, encoded))) == 2, "the mask is to be ragged"
    inputs = {"input_ids": np.array([ids + [0] * (seq - len(ids)) for ids in encoded], np.int64),
              "attention_mask": np.array([[1] * len(ids) + [0] * (seq - len(ids)) for ids in encoded], np.int64)}
    with torch.no_grad():
        golden = complete.pytorch_model()(**{k: torch.from_numpy(v) for k, v in inputs.items()}).logits.numpy()
    yield Case(directory, directory / "checkpoint", inputs, golden, "logits")
    shutil.rmtree(directory)  # half a gigabyte, which pytest would keep


@pytest.mark.parametrize("mesh", ["tp=3", "tp=2", pytest.param("tp=1", marks=pytest.mark.long),
                                  pytest.param("tp=4", marks=pytest.mark.long), pytest.param("tp=8", marks=pytest.mark.long),
                                  pytest.param("dp=2,tp=3", marks=pytest.mark.long)])
def test_smollm2_cpu(smollm2, tmp_path, mesh):
    check_case(smollm2, mesh, "cpu", tmp_path / "out")


@pytest.mark.long
def test_smollm2_reference(smollm2, tmp_path):
    check_case(smollm2, "tp=3", "reference", tmp_path / "out")


@pytest.mark.parametrize("how", ["explicit", pytest.param("pattern", marks=pytest.mark.long), pytest.param("path", marks=pytest.mark.long)])
def test_smollm2_encoded(smollm2, ucx, tmp_path, how):
    check_encoded(smollm2, "tp=3", QUANTIZED[how], tmp_path)


@pytest.mark.long
def test_smollm2_under_a_budget(smollm2, ucx, tmp_path):
    model = braidtest.import_model(smollm2.checkpoint, tmp_path / "model.mlir", 1, 16)
    ids = np.random.default_rng(8).integers(1000, 30000, (2, 16))
    np.save(tmp_path / "ids.npy", ids)
    check_budget(model, "tp=3", ["--weights", smollm2.checkpoint], "kl<=0.2", tmp_path / "ids.npy", {"input_ids": ids[:1]}, tmp_path)


@pytest.mark.long
def test_smollm2_loses_what_a_simulation_loses(smollm2, tmp_path):
    import complete
    tokenizer = complete.Tokenizer.from_file(str(smollm2.checkpoint / "tokenizer.json"))
    text = " ".join((braidtest.ROOT / "LICENSE.TXT").read_text().split())
    ids = np.array(tokenizer.encode(text).ids[:16 * 128], np.int64).reshape(16, 128)
    np.save(tmp_path / "ids.npy", ids)
    model = braidtest.import_model(smollm2.checkpoint, tmp_path / "model.mlir", 1, 128)
    encodings = ["int8:128", "int7:128", "int6:128", "int5:128/int8:128", "int6:128+zero-point", "int4:128+zero-point",
                 "int4:128+spikes/int8:128", "int6:128+hadamard64"]
    braidtest.braid("evaluate", model, "--mesh", "tp=3", "--weights", smollm2.checkpoint, "--data", tmp_path / "ids.npy",
                    "--output", tmp_path / "out", *[word for name in encodings for word in ("--encodings", name)])
    report = json.loads((tmp_path / "out" / "evaluation.json").read_text())
    model = simulation.smollm2(complete.pytorch_model(), 3)

    def likelihoods(*halves):
        return np.array([simulation.likelihood(model, sequence[None], *halves) for sequence in ids])

    plain = likelihoods()
    assert np.log(report["perplexity"]) == pytest.approx(-plain.mean(), rel=1e-5)
    for row in report["encodings"]:
        model.squares = {}
        lost = plain - likelihoods(simulation.halves_of(row["encodings"]))
        got = np.log1p([batch["perplexity_increase"] for batch in row["batches"]])
        # What every half of every all_reduce loses. Both round alike, but sums of matmuls differ in their last bits, more with each layer.
        errors = model.relative_errors()
        simulated = [errors[i // 2, i % 2] for i in range(len(errors))]
        assert [one["half"] for one in row["collectives"]] == ["reduce", "gather"] * (len(errors) // 2)
        ratios = np.array([one["relative_l2"] for one in row["collectives"]]) / simulated
        noise = (got - lost).std(ddof=1) / len(ids)**0.5
        print(f"{row['encodings']}: {got.mean():+.4f}, in the simulation {lost.mean():+.4f}, standard error of the difference {noise:.4f}; "
              f"errors of all_reduces differ by up to {np.abs(ratios - 1).max():.2%}, the first ones by {np.abs(ratios[:6] - 1).max():.2%}")
        assert ratios[:6] == pytest.approx(1, abs=0.002)
        assert ratios == pytest.approx(1, abs=0.02)
        # Codes that differ by one in early layers change what a sequence loses: the simulation alone, of weights that differ by 1e-6,
        # loses 0.004, 0.009 and 0.026 of this text with 6 bits and a zero point. That averages out over sequences.
        assert abs((got - lost).mean()) <= 3 * noise
        # A larger error of the mean would let any difference pass.
        assert noise <= 0.012 + 0.07 * lost.mean()
