# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models whose collectives are encoded, each by its role, by patterns, or by the path to one call: a run passes its check
against the reference interpreter and PyTorch, and has the same bits on every transport. SmolLM2 is in test_smollm2.py."""
import re

import pytest

from braidtest import braid, braid_run, ranks_of

TRANSPORTS = ["threads", "shm", "ucx"]
QUANTIZED = {
    "pattern": "*=int8:128",
    "explicit": "attention.output=int8:128,mlp.down=int4:128+spikes/int8:128",
    "path": "mlp.*=fp8e4m3:128,@main/@*#1/mlp.down=bf16",
}


def check_encoded(case, mesh, quantize, folder, reference=False):
    """Compares with PyTorch's result, and perhaps the interpreter's, within what the bundle says, and the transports with each
    other."""
    bundle, bits = folder / "bundle", {}
    braid("compile", case.model, "--mesh", mesh, "--quantize", quantize, "-o", bundle, timeout=300)
    words = [bundle, *case.run_args()]
    if reference:
        expect_encoded(braid("run", *words, "--check", "reference", timeout=300))
    for transport in TRANSPORTS:
        where = ["--hosts", f"localhost:{ranks_of(mesh)}"] if transport == "ucx" else ["--transport", transport]
        expect_encoded(braid_run(*words, *where, "--check", case.golden, "--output", folder / transport))
        bits[transport] = (folder / transport / f"{case.output}.npy").read_bytes()
    assert all(of == bits["threads"] for of in bits.values())


def expect_encoded(done):
    """The difference is that of encodings, and not of rounding."""
    difference = re.search(r"relative L2 ([\d.e+-]+), allowed", done.out)
    assert ": passed" in done.out and float(difference[1]) > 1e-4, done


@pytest.mark.parametrize("how", ["pattern", "explicit", pytest.param("path", marks=pytest.mark.long)])
@pytest.mark.parametrize("mesh", ["tp=4", pytest.param("tp=2", marks=pytest.mark.long), pytest.param("tp=3", marks=pytest.mark.long),
                                  pytest.param("dp=2,tp=2", marks=pytest.mark.long)])
def test_minilm(minilm_case, ucx, mesh, how, tmp_path):
    check_encoded(minilm_case, mesh, QUANTIZED[how], tmp_path, reference=True)
