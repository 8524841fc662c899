# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""examples/programs/generation.py: tokens that are decoded over a cache, against all positions computed at once."""
import ctypes
import importlib.util
import json
import re
import subprocess
import sys

import numpy as np
import pytest

from braidtest import BAD_INPUT, BUILD, ROOT, braid, braid_run, run
from clibrary import Runtime, load_model

SCRIPT = ROOT / "examples/programs/generation.py"
SPEC = importlib.util.spec_from_file_location("generation", SCRIPT)
GENERATION = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(GENERATION)
BATCH, PROMPT, TOKENS, CAPACITY, VOCABULARY = (getattr(GENERATION, name) for name in (
    "BATCH", "PROMPT", "TOKENS", "CAPACITY", "VOCABULARY"))
MESHES = ["tp=1", "tp=2"]
STATES = [f"{part}.{i}" for i in range(GENERATION.LAYERS) for part in ("keys", "values")]
CACHE = (BATCH, CAPACITY, GENERATION.KV_HEADS, GENERATION.HEAD_DIM)
SEED = 3


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    path = tmp_path_factory.mktemp("generation") / "generation.mlir"
    path.write_text(subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=True).stdout)
    return path


@pytest.fixture(scope="module")
def bundles(module, tmp_path_factory):
    """A bundle for each mesh."""
    folder = tmp_path_factory.mktemp("bundles")
    paths = {}
    for mesh in MESHES:
        paths[mesh] = folder / f"{mesh}.braid"
        braid("compile", module, "--mesh", mesh, "-o", paths[mesh])
    return paths


def prompt():
    return np.random.default_rng(1).integers(0, VOCABULARY, (BATCH, PROMPT)).astype(np.int32)


class Model:
    """The model in this process; its entries keep the cache between runs."""

    def __init__(self, bundle, transport, **others):
        self.runtime = Runtime()
        self.model = load_model(self.runtime, bundle, transport, **others)
        self.runtime("model_random_weights", self.model, ctypes.c_uint64(SEED))
        self.entries = {name: self.runtime.make("model_execution", self.model, name.encode())
                        for name in ("prefill", "decode", "whole")}

    def run(self, name, ids, position):
        execution = self.entries[name]
        for given, value in (("ids", ids), ("position", np.full(BATCH, position, np.int32))):
            value = np.ascontiguousarray(value, np.int32)
            shape = (ctypes.c_int64 * value.ndim)(*value.shape)
            self.runtime("execution_set_input", execution, given.encode(), 4, shape, ctypes.c_size_t(value.ndim),
                         value.ctypes.data_as(ctypes.c_void_p))
        self.runtime("execution_run", execution)
        logits = np.empty((BATCH, ids.shape[1], VOCABULARY), np.float32)
        self.runtime("execution_get_output", execution, b"logits", logits.ctypes.data_as(ctypes.c_void_p),
                     ctypes.c_size_t(logits.nbytes))
        return logits

    def state(self, name):
        value = np.empty(CACHE, np.float32)
        self.runtime("model_get_state", self.model, name.encode(), value.ctypes.data_as(ctypes.c_void_p),
                     ctypes.c_size_t(value.nbytes))
        return value

    def free(self):
        self.runtime.library.braid_model_free(self.model)


def distance(got, expected):
    return np.linalg.norm(got - expected) / np.linalg.norm(expected)


@pytest.mark.parametrize("transport", ["threads", "shm"])
@pytest.mark.parametrize("mesh", MESHES)
def test_tokens_are_those_of_the_whole_sequence(bundles, mesh, transport):
    """In a process of its own, as ranks of shm are forked from it."""
    generate_apart(bundles[mesh], transport)


def generate_apart(bundle, transport, **others):
    code = f"import test_generation as t; t.generate({str(bundle)!r}, {transport!r}, **{others!r})"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT / "test/Integration", capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"{TOKENS} tokens"


def generate(bundle, transport, **others):
    model = Model(bundle, transport, **others)
    ids = prompt()
    logits = [model.run("prefill", ids, 0)]
    for position in range(PROMPT, CAPACITY):
        ids = np.concatenate([ids, logits[-1][:, -1:].argmax(-1).astype(np.int32)], 1)
        logits.append(model.run("decode", ids[:, -1:], position))
    whole = model.run("whole", ids, 0)
    assert distance(np.concatenate(logits, 1), whole) < 2e-5
    # The tokens that were chosen are those that the whole sequence would have chosen.
    assert (whole.argmax(-1)[:, PROMPT - 1:-1] == ids[:, PROMPT:]).all()
    assert all(np.abs(model.state(name)).min() > 0 for name in STATES)  # the cache is full
    try:
        model.run("decode", ids[:, -1:], CAPACITY)
    except RuntimeError as error:
        assert "append 'append' in @decode_layer" in str(error) and "entry 'decode': rank " in str(error), error
        # Blocks of a GPU run in any order, and the first to find it says so.
        assert re.search(rf"position {CAPACITY} of row [0-{BATCH - 1}] is outside of \[0, {CAPACITY - 1}\], for a capacity of {CAPACITY}$", str(error)), error
    else:
        raise AssertionError("a position beyond the end of the cache was accepted")
    # The next prompt begins with an empty cache.
    model.runtime("model_reset_states", model.model)
    assert np.array_equal(model.run("prefill", ids[:, :PROMPT], 0), logits[0])
    model.free()
    print(f"{ids.shape[1] - PROMPT} tokens")


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("target", ["cpu", "reference", "program-interpreter"])
def test_states_travel_in_files(bundles, mesh, target, tmp_path):
    """Prefill and three tokens, each in a process of its own."""
    ids = prompt()
    last = None

    def step(entry, tokens, position):
        nonlocal last
        np.save(tmp_path / "ids.npy", tokens)
        np.save(tmp_path / "position.npy", np.full(BATCH, position, np.int32))
        out = tmp_path / f"{entry}.{position}"
        states = ["--state", last] if last and entry != "whole" else []
        done = braid("run", bundles[mesh], "--entry", entry, "--random-weights", SEED, "--target", target, "--input",
                     f"ids={tmp_path / 'ids.npy'}", "--input", f"position={tmp_path / 'position.npy'}", *states,
                     "--check", "reference", "--output", out)
        assert done.out.count("against reference") == done.out.count(": passed") == 1 + (len(STATES) if entry != "whole" else 0)
        last = out if entry != "whole" else last
        return np.load(out / "logits.npy")

    logits = [step("prefill", ids, 0)]
    for position in range(PROMPT, PROMPT + 3):
        ids = np.concatenate([ids, logits[-1][:, -1:].argmax(-1).astype(np.int32)], 1)
        logits.append(step("decode", ids[:, -1:], position))
    assert sorted(path.name for path in last.iterdir()) == sorted(f"{name}.npy" for name in ["logits", *STATES])
    padded = np.concatenate([ids, np.zeros((BATCH, CAPACITY - ids.shape[1]), np.int32)], 1)
    whole = step("whole", padded, 0)[:, :ids.shape[1]]
    assert distance(np.concatenate(logits, 1), whole) < 2e-5


@pytest.mark.parametrize("mesh", MESHES)
def test_nothing_is_copied(module, mesh):
    out = braid("compile", module, "--mesh", mesh, "--emit=rt").out
    assert "rt.copy" not in out
    assert out.count("rt.state") == 2 * len(STATES)
    assert out.count("rt.inout") == 2 * 2  # of the layers that prefill and decode


def test_what_is_wrong_is_named(bundles, module, tmp_path):
    common = ["--random-weights", 1, "--random-inputs", 1]
    assert ("error: the bundle has several entries, name one of 'prefill', 'decode', 'whole'" in
            braid_run(bundles["tp=2"], *common, expect=BAD_INPUT).err)
    assert ("error: the bundle has no entry 'train', it has 'prefill', 'decode', 'whole'" in
            braid("run", module, "--entry", "train", *common, expect=BAD_INPUT).err)
    entry = ["--entry", "decode", *common]
    np.save(tmp_path / "half.npy", np.zeros(CACHE, np.float16))
    assert (f"error: state 'keys.0' expects f32 {list(CACHE)}, got f16 {list(CACHE)} in '{tmp_path / 'half.npy'}'" in
            braid_run(bundles["tp=2"], *entry, "--state", f"keys.0={tmp_path / 'half.npy'}", expect=BAD_INPUT).err)
    assert ("error: the entry has no state 'keys', it has 'keys.0' f32 " in
            braid_run(bundles["tp=2"], *entry, "--state", f"keys={tmp_path / 'half.npy'}", expect=BAD_INPUT).err)
    assert ("--state 'x': the entry has no states" in
            braid_run(bundles["tp=2"], "--entry", "whole", *common, "--state", "x", expect=BAD_INPUT).err)
    np.save(tmp_path / "position.npy", np.full(BATCH, CAPACITY, np.int32))
    for target in ("cpu", "program-interpreter", "reference"):
        err = braid("run", bundles["tp=2"], *entry, "--input", f"position={tmp_path / 'position.npy'}", "--target", target,
                    expect=BAD_INPUT).err
        assert f"position {CAPACITY} of row 0 is outside of [0, {CAPACITY - 1}], for a capacity of {CAPACITY}" in err, err


def test_explain_tells_of_states(bundles):
    out = braid("explain", bundles["tp=2"]).out
    for name in STATES:
        assert out.count(f"keeps '{name}'") + out.count(f"keeps {name}") == 2, out
    assert "in 4 states" in out


@pytest.fixture(scope="module")
def on_host(module, tmp_path_factory):
    """The bundle for GPUs, on a machine without one."""
    findings = json.loads(braid("doctor", "--json").out)["findings"]
    if any(finding["name"] == "CUDA compiler" and finding["state"] == "absent" for finding in findings):
        pytest.skip("this machine has no compiler for CUDA; scripts/setup.sh installs NVRTC")
    folder = tmp_path_factory.mktemp("on_host")
    braid("compile", module, "--mesh", "tp=2", "--target", "cuda:sm_90a", "-o", folder / "gpu.braid")
    run("braid-test-cuda-on-host", folder / "gpu.braid", "-o", folder / "host.braid")
    return folder / "host.braid"


@pytest.mark.parametrize("entry,transport", [("prefill", "threads"), ("decode", "nccl")])
def test_null_device(on_host, entry, transport):
    out = braid("run", on_host, "--entry", entry, "--target", "cuda", "--transport", transport, "--cuda-library",
                BUILD / "lib/libBraidNullDevice.so", "--random-weights", 3, "--random-inputs", 1, "--check", "reference").out
    assert len(re.findall(r"^check .*: passed$", out, re.MULTILINE)) == 1 + len(STATES) and "failed" not in out, out


@pytest.mark.parametrize("graph", [0, 1], ids=["streams", "graph"])
@pytest.mark.parametrize("transport", ["threads", "nccl"])
def test_tokens_on_the_null_device(on_host, transport, graph):
    generate_apart(on_host, transport, target=b"cuda", cuda_graph=graph, cuda_library=bytes(BUILD / "lib/libBraidNullDevice.so"))


@pytest.mark.parametrize("entry", ["prefill", "decode"])
def test_every_order_gives_the_results(module, entry):
    out = braid("run", module, "--mesh", "tp=2", "--entry", entry, "--target", "program-interpreter", "--schedules", 100,
                "--random-weights", 3, "--random-inputs", 1, "--check", "reference").out
    assert "order: no two commands that share memory are unordered" in out and "100 orders of" in out
    assert len(re.findall(r"^check .*: passed$", out, re.MULTILINE)) == 1 + len(STATES), out


def test_bytes_and_memory(module, tmp_path):
    """On two ranks: the embedding and two projections of each layer are reduced, and a rank has half of the heads of the cache."""
    braid("run", module, "--mesh", "tp=2", "--entry", "decode", "--random-weights", 3, "--random-inputs", 1, "--report",
          tmp_path / "report.json")
    report = json.loads((tmp_path / "report.json").read_text())
    row = BATCH * GENERATION.HIDDEN * 4
    assert report["bytes_sent_per_rank"] == (1 + 2 * GENERATION.LAYERS) * row
    rt = braid("compile", module, "--mesh", "tp=2", "--emit=rt").out
    states = re.findall(r"%\S+: memref<(\S+)xf32(?:, #rt.space<symmetric>)?> \{rt.state", re.search(r"rt.procedure entry @decode\(.*", rt).group())
    assert states == [f"{BATCH}x{CAPACITY}x{GENERATION.KV_HEADS // 2}x{GENERATION.HEAD_DIM}"] * len(STATES)
