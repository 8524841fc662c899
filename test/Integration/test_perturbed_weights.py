# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""--check detects a change of 1% in any one weight tensor.

A comparison that passes says little if a tensor could be wrong without failing it. Therefore each tensor of MiniLM's
checkpoint in turn is scaled by 1.01, and the result must then differ from the golden of the unchanged weights. The
exceptions are tensors that provably do not affect the output:

  embeddings.position_ids    indices 0, 1, 2, ... kept in the file; no weight
  pooler.dense.*             feeds pooler_output, not last_hidden_state
  *.attention.self.key.bias  adds q.b, the same to all keys of a query, and softmax is shift invariant
"""
import json
import re
import shutil
import struct

import numpy as np
import pytest

import braidtest
import models
from braidtest import CHECK_FAILED, OK, braid, braid_run

INDEPENDENT = re.compile(r"embeddings\.position_ids|pooler\.dense\.(weight|bias)|.*\.attention\.self\.key\.bias")


def tensors_of(path):
    """name -> (dtype, offset in the file, end), parsed without the library that other tests use."""
    with open(path, "rb") as f:
        size = struct.unpack("<Q", f.read(8))[0]
        header = json.loads(f.read(size))
    return {name: (entry["dtype"], 8 + size + entry["data_offsets"][0], 8 + size + entry["data_offsets"][1])
            for name, entry in header.items() if name != "__metadata__"}


NAMES = sorted(tensors_of(models.minilm_directory() / "model.safetensors")) if models.minilm_directory().exists() else []


@pytest.fixture(scope="module")
def changed_copy(tmp_path_factory, minilm):
    """A copy of the checkpoint whose tensors are changed in place, one at a time."""
    path = tmp_path_factory.mktemp("perturbed") / "model.safetensors"
    shutil.copyfile(minilm / "model.safetensors", path)
    return path


class Perturbed:
    """A context in which the named tensor of the file is changed."""

    def __init__(self, path, name):
        self.path, (dtype, begin, end) = path, tensors_of(path)[name]
        self.dtype = {"F32": np.float32, "I64": np.int64}[dtype]
        self.begin, self.count = begin, (end - begin) // np.dtype(self.dtype).itemsize

    def __enter__(self):
        data = np.memmap(self.path, self.dtype, "r+", self.begin, (self.count,))
        self.before = data.copy()
        if self.dtype is np.float32 and self.before.any():
            data[:] = self.before * self.dtype(1.01)
        else:  # scaling does not change zeros (pooler.dense.bias) and does not apply to indices
            data[:] = self.before + 1
        assert not np.array_equal(data, self.before)
        data.flush()

    def __exit__(self, *_):
        data = np.memmap(self.path, self.dtype, "r+", self.begin, (self.count,))
        data[:] = self.before
        data.flush()


def check(case, weights, expect):
    return braid_run(case.bundle("tp=2"), "--ranks", 2, "--weights", weights, *braidtest.input_args(case.inputs),
                     "--check", case.golden, expect=expect)


def test_the_checkpoint_was_found():
    assert len(NAMES) == 104


def test_unchanged_weights_pass(minilm_case, changed_copy):
    check(minilm_case, changed_copy, OK)


@pytest.mark.parametrize("name", [n for n in NAMES if not INDEPENDENT.fullmatch(n)])
def test_change_is_noticed(minilm_case, changed_copy, name):
    with Perturbed(changed_copy, name):
        done = check(minilm_case, changed_copy, CHECK_FAILED)
    assert "last_hidden_state" in done.err + done.out, f"expects the output to be named{done}"


@pytest.mark.parametrize("name", [n for n in NAMES if INDEPENDENT.fullmatch(n)])
def test_output_does_not_depend_on(minilm_case, changed_copy, name):
    with Perturbed(changed_copy, name):
        check(minilm_case, changed_copy, OK)


@pytest.mark.parametrize("name", ["embeddings.word_embeddings.weight", "encoder.layer.3.attention.self.value.bias"])
def test_the_interpreter_notices_too(minilm_case, changed_copy, name):
    with Perturbed(changed_copy, name):
        braid("run", minilm_case.model, "--mesh", "tp=2", "--ranks", 2, "--target", "reference", "--weights", changed_copy,
              *braidtest.input_args(minilm_case.inputs), "--check", minilm_case.golden, expect=CHECK_FAILED)
