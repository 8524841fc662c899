# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models whose collectives are encoded, each by its role, by patterns, or by the path to one call: a run passes its check
against the reference interpreter and PyTorch, and has the same bits on every transport. SmolLM2 is in test_smollm2.py."""
import json
import re

import numpy as np
import pytest

from braidtest import BUILD, ROOT, braid, braid_run, import_model, input_args, ranks_of, run
from models import write_inputs
from simulation import Simulation, halves_of

TRANSPORTS = ["threads", "shm", "ucx"]
QUANTIZED = {
    "pattern": "*=int8:128",
    "explicit": "attention.output=int8:128,mlp.down=int4:128+spikes/int8:128",
    "path": "mlp.*=fp8e4m3:128,@main/@*#1/mlp.down=bf16",
}


def where(transport, mesh):
    return ["--hosts", f"localhost:{ranks_of(mesh)}"] if transport == "ucx" else ["--transport", transport]


def check_encoded(case, mesh, quantize, folder, reference=False):
    """Compares with PyTorch's result, and perhaps the interpreter's, within what the bundle says, and the transports with each
    other."""
    bundle, bits = folder / "bundle", {}
    braid("compile", case.model, "--mesh", mesh, "--quantize", quantize, "-o", bundle, timeout=300)
    words = [bundle, *case.run_args()]
    if reference:
        expect_encoded(braid("run", *words, "--check", "reference", timeout=300))
    for transport in TRANSPORTS:
        expect_encoded(braid_run(*words, *where(transport, mesh), "--check", case.golden, "--output", folder / transport))
        bits[transport] = (folder / transport / f"{case.output}.npy").read_bytes()
    assert all(of == bits["threads"] for of in bits.values())


def check_budget(model, mesh, weights, bound, calibration, inputs, folder):
    """A program whose encodings were chosen passes its check, with the same bits, on every transport, and on a GPU, of which the CPU
    plays the part. `inputs` are arrays."""
    for name, value in inputs.items():
        np.save(folder / f"{name}.npy", value)
    words = [*weights, *input_args({name: folder / f"{name}.npy" for name in inputs}), "--check", "reference"]
    bundle, bits = folder / "budget.braid", []

    def compile_for(*target):
        braid("compile", model, "--mesh", mesh, *weights, "--quantize-budget", bound, "--calibration", calibration, *target, "-o", bundle,
              timeout=600)
    compile_for("--isa", "host")
    for transport in TRANSPORTS:
        expect_encoded(braid("run", bundle, *words, *where(transport, mesh), "--output", folder / transport, timeout=300))
        bits.append([file.read_bytes() for file in sorted((folder / transport).glob("*.npy"))])
    assert bits[0] and bits == [bits[0]] * len(TRANSPORTS)
    compile_for("--target", "cuda:sm_90a")
    run("braid-test-cuda-on-host", bundle, "-o", folder / "host.braid", timeout=300)
    expect_encoded(braid("run", folder / "host.braid", *words, "--ranks", ranks_of(mesh), "--target", "cuda", "--cuda-library",
                         BUILD / "lib" / "libBraidNullDevice.so", timeout=600))


def expect_encoded(done):
    """The difference is that of encodings, and not of rounding."""
    difference = re.search(r"relative L2 ([\d.e+-]+), allowed", done.out)
    assert ": passed" in done.out and float(difference[1]) > 1e-4, done


@pytest.mark.parametrize("how", ["pattern", "explicit", pytest.param("path", marks=pytest.mark.long)])
@pytest.mark.parametrize("mesh", ["tp=4", pytest.param("tp=2", marks=pytest.mark.long), pytest.param("tp=3", marks=pytest.mark.long),
                                  pytest.param("dp=2,tp=2", marks=pytest.mark.long)])
def test_minilm(minilm_case, ucx, mesh, how, tmp_path):
    check_encoded(minilm_case, mesh, QUANTIZED[how], tmp_path, reference=True)


@pytest.mark.torch
def test_minilm_loses_what_a_simulation_loses(minilm, tmp_path):
    """Cosines of the embeddings of sentences with those of the model without encodings, of which short sentences have the lowest."""
    import tokenizers
    import torch
    import transformers
    tokenizer = tokenizers.Tokenizer.from_file(str(minilm / "tokenizer.json"))
    tokenizer.enable_truncation(64)
    tokenizer.enable_padding(length=64)
    sentences = [s for s in re.split(r"(?<=[.;:,]) ", " ".join((ROOT / "LICENSE.TXT").read_text().split())) if len(s.split()) > 3]
    encoded = tokenizer.encode_batch(sentences[:96])
    inputs = {"input_ids": [e.ids for e in encoded], "attention_mask": [e.attention_mask for e in encoded],
              "token_type_ids": [e.type_ids for e in encoded]}
    data = write_inputs({name: np.array(values, np.int64) for name, values in inputs.items()}, tmp_path / "data")
    model = import_model(minilm, tmp_path / "model.mlir", 8, 64)
    encodings = ["int8:128+zero-point", "int4:128", "int4:128+zero-point", "int4:128+zero-point+spikes"]
    braid("evaluate", model, "--mesh", "tp=4", "--weights", minilm, "--data", tmp_path / "data", "--output", tmp_path / "out",
          *[word for name in encodings for word in ("--encodings", name)], timeout=300)
    report = json.loads((tmp_path / "out" / "evaluation.json").read_text())

    bert = transformers.BertModel.from_pretrained(str(minilm), attn_implementation="eager", local_files_only=True).float().eval()
    simulation = Simulation(bert, 4)
    for layer in bert.encoder.layer:
        simulation.replace(layer.attention.output, "dense")
        simulation.replace(layer.output, "dense")

    def embeddings(halves=None):
        simulation.halves, means = halves, []
        with torch.no_grad():
            for batch in zip(*[torch.from_numpy(np.load(file)).split(8) for file in data.values()]):
                words = dict(zip(data, batch))
                mask = words["attention_mask"].unsqueeze(-1)
                means.append((bert(**words).last_hidden_state * mask).sum(1) / mask.sum(1))
        return torch.cat(means)
    plain = embeddings()
    for row in report["encodings"]:
        damage = 1 - torch.nn.functional.cosine_similarity(embeddings(halves_of(row["encodings"])).double(), plain.double())
        got = 1 - row["cosine_mean"], 1 - row["cosine_lowest"]
        print(f"{row['encodings']}: 1 - cosine is {got[0]:.3g} in the mean and {got[1]:.3g} at most, in the simulation "
              f"{damage.mean():.3g} and {damage.max():.3g}")
        # Both round alike, but sums of matmuls differ in their last bits, which changes single codes.
        assert got == (pytest.approx(float(damage.mean()), rel=0.1), pytest.approx(float(damage.max()), rel=0.3))
