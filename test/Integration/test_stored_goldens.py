# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The goldens in the tree equal PyTorch's results."""
import numpy as np
import pytest

import make_goldens
import models


@pytest.mark.torch
@pytest.mark.parametrize("name", ["tiny-bert", "minilm"])
def test_pytorch_still_gives_the_stored_golden(name, minilm):
    stored = models.GOLDEN / name
    checkpoint = stored if name == "tiny-bert" else minilm
    inputs = make_goldens.tiny_inputs() if name == "tiny-bert" else make_goldens.minilm_inputs()
    for key, value in inputs.items():
        assert np.array_equal(np.load(stored / f"{key}.npy"), value)
    assert models.relative_l2(models.pytorch_output(checkpoint, inputs), np.load(stored / f"{models.OUTPUT}.npy")) <= 2e-6


@pytest.mark.torch
def test_the_stored_checkpoint_is_what_the_script_makes(tmp_path):
    from safetensors.numpy import load_file
    made = load_file(models.write_bert(make_goldens.TINY, tmp_path) / "model.safetensors")
    stored = load_file(models.GOLDEN / "tiny-bert" / "model.safetensors")
    assert made.keys() == stored.keys()
    assert all(np.array_equal(made[name], stored[name]) for name in made)
