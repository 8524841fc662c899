#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes golden/: PyTorch's results, for machines where PyTorch's CPU build is not available.

Run it with build/venv/bin/python. test_stored_goldens.py fails when PyTorch no longer gives these results.
"""
import os
import shutil

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np

import models

TINY = models.Bert("tiny", hidden=16, heads=4, layers=1, intermediate=24, vocab=31, positions=12, seed=5)


def tiny_inputs():
    return models.make_inputs({"vocab_size": TINY.vocab}, batch=2, seq=7, lengths=[7, 3], seed=21)


def minilm_inputs():
    return models.make_inputs({"vocab_size": 30522}, batch=2, seq=6, lengths=[6, 4], seed=22)


def main():
    shutil.rmtree(models.GOLDEN, ignore_errors=True)
    tiny = models.write_bert(TINY, models.GOLDEN / "tiny-bert")
    (tiny / "model.safetensors").chmod(0o644)
    for directory, checkpoint, inputs in ((tiny, tiny, tiny_inputs()),
                                          (models.GOLDEN / "minilm", models.minilm_directory(), minilm_inputs())):
        models.write_inputs(inputs, directory)
        np.save(directory / f"{models.OUTPUT}.npy", models.pytorch_output(checkpoint, inputs))


if __name__ == "__main__":
    main()
