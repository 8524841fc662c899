# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How quantized collectives of public systems are known to fail: casts that do not saturate, flags of an earlier run, a
reduction that is left out, and sizes for which there is no kernel. Each test is named for the fault, which must not be there.
"""
import os
import random
import shutil
import subprocess
import sys

import numpy as np
import pytest

import test_encoded_collectives as collectives
from braidtest import ROOT, braid, braid_run
from clibrary import Runtime, Session, join
from codec_bounds import bound
from encoded_cases import program

TRANSPORTS = ["threads", "shm", "ucx"]
SEED = 8


def compiled(folder, cases, ranks):
    (folder / "module.mlir").write_text(program(cases, ranks)[0])
    braid("compile", folder / "module.mlir", "-o", folder / "bundle")
    return folder / "bundle"


def case(kind, encoding, size, dtype="f32", around="nothing"):
    return {"kind": kind, "encoding": encoding, "size": size, "type": dtype, "around": around}


def run_on(transport, bundle, ranks, *words):
    where = ["--hosts", f"localhost:{ranks}"] if transport == "ucx" else ["--transport", transport]
    return braid_run(bundle, *words, *where)


# --- a cast that does not saturate -------------------------------------------------------------------------------

LARGEST = {"f16": 65504, "bf16": np.float32(2**128 - 2**120)}


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_unsaturated_cast(transport, ucx, tmp_path):
    """Numbers beyond 65504, and beyond bf16's largest number, arrive as the largest number, infinities as they are, and no
    number becomes a NaN."""
    cases = [case(kind, encoding, (3, 40)) for encoding in LARGEST for kind in ("all_gather", "all_reduce", "permute")]
    bundle = compiled(tmp_path, cases, 2)
    words, given = [], np.zeros((2, 3, 40), np.float32)
    given[:, :, 0] = 65504
    given[:, :, 1:6] = 65519, 65520, 65536, 1e6, 3.4028235e38
    given[:, :, 6:12] = -given[:, :, :6]
    given[0, 0, 12:14] = np.inf, -np.inf
    given[0, :, 14] = np.nan
    for number in range(len(cases)):
        np.save(tmp_path / f"x{number}.npy", given)
        words += ["--input", f"x{number}={tmp_path}/x{number}.npy"]
    run_on(transport, bundle, 2, *words, "--output", tmp_path / "out")
    for number, one in enumerate(cases):
        got, largest = np.load(tmp_path / f"out/y{number}.npy"), LARGEST[one["encoding"]]
        def saturated(x):
            return np.where(np.isfinite(x), np.clip(x, -largest, largest), x)
        cast = saturated(given)
        # A sum in f32 beyond its range is an infinity, as it is without encodings.
        with np.errstate(over="ignore", invalid="ignore"):
            expected = {"all_gather": cast, "permute": np.stack([np.zeros_like(cast[0]), cast[0]]),
                        "all_reduce": saturated(cast.astype(np.float32).sum(axis=0, keepdims=True, dtype=np.float32))}[one["kind"]]
        assert (np.isnan(got) == np.isnan(expected)).all(), one
        assert (np.isinf(got) == np.isinf(expected)).all(), one
        finite = np.isfinite(expected)
        np.testing.assert_allclose(got[finite].astype(np.float64), expected[finite].astype(np.float64), rtol=2**-7, err_msg=str(one))
        assert np.abs(got[finite]).max() <= largest, one


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_unsaturated_cast_to_the_tensors_type(transport, ucx, tmp_path):
    """A sum of f16 tensors beyond 65504 is 65504, also where the encoding has a greater range than the tensor."""
    cases = [case(kind, encoding, (2, 64), "f16") for encoding in ("int8:32+bf16-scale", "fp8e4m3:32+bf16-scale", "bf16", "mxfp8e4m3")
             for kind in ("all_reduce", "reduce_scatter")]
    bundle = compiled(tmp_path, cases, 2)
    words = []
    for number, one in enumerate(cases):
        given = np.zeros((2, 2 if one["kind"] == "all_reduce" else 4, 64), np.float16)
        given[..., 0], given[..., 40] = 60000, -60000
        np.save(tmp_path / f"x{number}.npy", given)
        words += ["--input", f"x{number}={tmp_path}/x{number}.npy"]
    run_on(transport, bundle, 2, *words, "--output", tmp_path / "out")
    for number, one in enumerate(cases):
        got = np.load(tmp_path / f"out/y{number}.npy").astype(np.float32)
        assert (got[..., 0] == 65504).all() and (got[..., 40] == -65504).all(), (one, got[0, 0, 0], got[0, 0, 40])
        assert np.isfinite(got).all(), one


# --- a flag of an earlier run ------------------------------------------------------------------------------------

REPLAYED = [case("all_reduce", "int8:128", (7, 200)), case("all_reduce", "int4:128+spikes/int8:128", (1, 4099)),
            case("reduce_scatter", "fp8e4m3:128", (8, 128), around="kernels"), case("all_gather", "mxfp4", (37, 9)),
            case("all_to_all", "int6:64+hadamard64", (7, 200)), case("broadcast", "nvfp4", (1, 192)),
            case("permute", "int8:128", (8, 128)), case("send_recv", "bf16", (8, 128))]


def replay(bundle, transport, runs):
    """Runs one session again and again with inputs that differ, and compares with sessions of one run each."""
    rng, choose, runtime = np.random.default_rng(SEED), random.Random(SEED), Runtime()
    others = {"communicator": join(runtime, bundle)} if transport == "ucx" else {}
    first = Session(runtime, bundle, transport, **others)
    given = {"random": rng.standard_normal, "large": lambda shape: rng.standard_cauchy(shape) * 1000, "zeros": np.zeros,
             "damaged": lambda shape: np.full(shape, np.nan)}
    inputs = {what: {name: make(shape) for name, (_, shape) in first.inputs.items()} for what, make in given.items()}
    first.free()
    alone = {}
    for what in inputs:
        session = Session(runtime, bundle, transport, **others)
        alone[what] = session.run(inputs[what])
        session.free()
    session, sequence = Session(runtime, bundle, transport, **others), ["random", "random", "damaged", "zeros", "random"]
    sequence += choose.choices(list(inputs), k=runs - len(sequence))
    for number, what in enumerate(sequence):
        for name, value in session.run(inputs[what]).items():
            assert value.tobytes() == alone[what][name].tobytes(), f"run {number} ({what} after {sequence[:number][-1:]}): {name} differs"
    session.free()
    runtime.library.braid_communicator_free(others.get("communicator"))
    # Only the process of rank 0 has results.
    if os.environ.get("BRAID_RANK", "0") == "0":
        assert len({results["y0"].tobytes() for results in alone.values()}) == len(inputs)
        assert np.isnan(alone["damaged"]["y0"]).all() and np.isfinite(alone["random"]["y0"]).all()
    print("replayed")


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_stale_flag_on_replay(transport, ucx, tmp_path, request):
    """A run after others, with other inputs, gives what it gives alone."""
    ranks, runs = 4, 200 if request.config.getoption("--long") else 20
    bundle = compiled(tmp_path, REPLAYED, ranks)
    code = f"import test_encoded_faults as t; t.replay({str(bundle)!r}, {transport!r}, {runs})"
    launched = [{}] if transport != "ucx" else [{"BRAID_RANK": str(rank), "BRAID_SIZE": str(ranks), "BRAID_JOB_ID": "replay",
                                                 "BRAID_RENDEZVOUS": f"file:{tmp_path}/meet"} for rank in range(ranks)]
    processes = [subprocess.Popen([sys.executable, "-c", code], cwd=ROOT / "test/Integration", env={**os.environ, **variables},
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for variables in launched]
    done = [process.communicate(timeout=300) for process in processes]
    for process, (out, err) in zip(processes, done):
        assert process.returncode == 0 and out == "replayed\n", (process.returncode, err)


# --- a reduction that is left out --------------------------------------------------------------------------------

MODEL = """
func.func @main(%x: tensor<1x7x96xf32> {nn.name = "x"}) -> (tensor<1x7x96xf32> {nn.name = "y"}) attributes {nn.entry} {
  %a = nn.parameter "a" : tensor<192x96xf32>
  %b = nn.parameter "b" : tensor<96x192xf32>
  %h = nn.linear %x, %a role "mlp.up" : tensor<1x7x96xf32>, tensor<192x96xf32> -> tensor<1x7x192xf32>
  %y = nn.linear %h, %b role "mlp.down" : tensor<1x7x192xf32>, tensor<96x192xf32> -> tensor<1x7x96xf32>
  return %y : tensor<1x7x96xf32>
}
"""


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_dropped_reduction(ranks, transport, ucx, tmp_path):
    """The sum over tp is the product with the whole weights; the part of no rank is near it."""
    from safetensors.numpy import save_file
    rng = np.random.default_rng(SEED)
    x, a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((1, 7, 96), (192, 96), (96, 192)))
    save_file({"a": a, "b": b}, tmp_path / "weights.safetensors")
    np.save(tmp_path / "x.npy", x)
    (tmp_path / "model.mlir").write_text(MODEL)
    braid("compile", tmp_path / "model.mlir", "--mesh", f"tp={ranks}", "--quantize", "mlp.down=int8:32", "-o", tmp_path / "bundle")
    run_on(transport, tmp_path / "bundle", ranks, "--weights", tmp_path / "weights.safetensors", "--input", f"x={tmp_path}/x.npy",
           "--output", tmp_path / "out")
    y = np.load(tmp_path / "out/y.npy")
    hidden = x.astype(np.float64) @ a.T.astype(np.float64)
    parts = np.stack([hidden[..., begin:begin + 192 // ranks] @ b.T.astype(np.float64)[begin:begin + 192 // ranks]
                      for begin in range(0, 192, 192 // ranks)])
    expected = parts.sum(axis=0)
    allowed = bound("int8:32", parts).sum(axis=0)
    allowed = allowed + bound("int8:32", expected, allowed) + 1e-4 * np.abs(expected).max()
    assert (np.abs(y - expected) <= allowed).all()
    assert np.linalg.norm(y - expected) > 0  # it was encoded
    assert all(np.linalg.norm(part - expected) > 0.3 * np.linalg.norm(expected) for part in parts)


# --- a size that no path takes -----------------------------------------------------------------------------------

KIB, MIB = 2**10, 2**20
# Bytes of the tensor: one element, around the limits of one step, of chunks and of staged memory, and a large gap of others.
LIMITS = [64 * KIB, 128 * KIB, MIB, 8 * MIB, 16 * MIB]
BYTES = [4, 8, *(limit + off for limit in LIMITS for off in (-4, 0, 4)), 10 * MIB, 12 * MIB]
IN_EVERY_RUN = [4, 64 * KIB - 4, 64 * KIB, 128 * KIB + 4, MIB + 4, 8 * MIB + 4]
COLUMNS = 1024


def shapes(size, encoding):
    """Of a tensor of so many bytes: one row, which is one chunk, and many rows, which are cut into chunks; and of a tensor whose
    payload has about as many bytes."""
    yield 1, size // 4
    if size > COLUMNS * 4:
        yield size // 4 // COLUMNS, COLUMNS
        yield size // 4 // COLUMNS + 1, COLUMNS
    if encoding == "int8:128" and size <= MIB + 4:
        yield 1, size


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.long)])
@pytest.mark.parametrize("encoding", ["int8:128", pytest.param("int4:128+spikes/int8:128", marks=pytest.mark.long),
                                      pytest.param("bf16", marks=pytest.mark.long)])
def test_size_that_no_path_takes(encoding, ranks, transport, ucx, tmp_path, request):
    """Tensors, and payloads, of all sizes around what the choices of compiler and runtime depend on."""
    is_long = request.config.getoption("--long")
    sizes = BYTES if is_long else IN_EVERY_RUN
    # What a job with all of them at once needs would not fit the memory of a small machine.
    small = [shape for size in sizes if size <= MIB + 4 for shape in shapes(size, encoding)]
    for number, some in enumerate([small] + [list(shapes(size, encoding))[None if is_long else -1:] for size in sizes if size > MIB + 4]):
        folder = tmp_path / str(number)
        folder.mkdir()
        cases = [case("all_reduce", encoding, shape) for shape in some]
        bundle = compiled(folder, cases, ranks)
        run_on(transport, bundle, ranks, "--random-inputs", SEED, "--repeat", 2, "--output", folder / "out")
        for index, one in enumerate(cases):
            collectives.check({**one, "ranks": ranks}, ranks, np.load(folder / f"out/given{index}.npy"), np.load(folder / f"out/y{index}.npy"))
        shutil.rmtree(folder)
