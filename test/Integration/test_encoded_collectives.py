# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Encoded collectives on every transport: a covering array over encoding, collective, type, size, number of ranks, and what
stands around the collective. Results have the same bits on all transports and in both interpreters, in one chunk and in many,
and are as near to NumPy's as the bounds of their encodings say.

The cases of a number of ranks are one program. Every run has some numbers of ranks, --long has all; BRAID_COVERING_SEED draws
other cases.
"""
import numpy as np
import pytest

from braidtest import braid, braid_run
from codec_bounds import bound, halves
from covering import pairs_of
from encoded_cases import AXES, CASES, COVERED, KINDS, SEED, is_possible, program

pytestmark = pytest.mark.usefixtures("ucx")
RANKS_IN_EVERY_RUN = [2, 3]
# Half of the distance between numbers just above 1, and of the smallest ones.
ROUNDING = {"f32": (2**-24, 2**-150), "bf16": (2**-8, 2**-134), "f16": (2**-11, 2**-25)}


def test_every_pair_is_covered():
    print(f"BRAID_COVERING_SEED={SEED}: {len(CASES)} cases for {COVERED} pairs")
    assert len(set().union(*map(pairs_of, CASES))) == COVERED
    assert all(is_possible(case) for case in CASES)
    assert len(CASES) < 1.5 * len(AXES["encoding"]) * len(AXES["kind"])


def check(case, n, given, got):
    kind, (r, c), dtype = KINDS[case["kind"]], case["size"], case["type"]
    times = 2 if case["around"] == "kernels" else 1
    x = given.astype(np.float64) * times
    reduce, gather = halves(case["encoding"])
    expected = kind.move(x, n, r, c)
    allowed = np.zeros_like(expected)
    if n > 1:
        rows = kind.rows(x, n, r, c)
        allowed = kind.move(bound(gather if kind.half == "gather" else reduce, rows).reshape(x.shape), n, r, c)
    if kind.half != "gather":
        allowed = allowed + n * 2**-23 * kind.move(np.abs(x), n, r, c)
    if kind.half == "both" and n > 1:
        allowed = allowed + bound(gather, expected, allowed)
    step, least = ROUNDING[dtype]
    allowed = times * (allowed + (np.abs(expected) + allowed) * step + least)
    error = np.abs(got.astype(np.float64) - times * expected)
    assert np.isfinite(got).all() and got.shape == expected.shape
    worst = np.unravel_index(np.argmax(error - allowed), error.shape)
    assert (error <= allowed).all(), (case, worst, got[worst], times * expected[worst], allowed[worst])
    # What arrives is what was sent.
    assert n == 1 or error.size < 64 or np.corrcoef(got.ravel(), expected.ravel())[0, 1] > 0.8, case


@pytest.mark.parametrize("ranks", [pytest.param(n, marks=[] if n in RANKS_IN_EVERY_RUN else pytest.mark.long) for n in AXES["ranks"]])
def test_bits_are_the_interpreters_everywhere(ranks, tmp_path):
    cases = [case for case in CASES if case["ranks"] == ranks]
    text, inputs = program(cases, ranks)
    module, bundle, chunks = tmp_path / "module.mlir", tmp_path / "bundle", tmp_path / "chunks"
    module.write_text(text)
    words = ["--random-inputs", 7]
    for name, what in inputs.items():
        if isinstance(what, np.ndarray):
            np.save(tmp_path / f"{name}.npy", what)
            words += ["--input", f"{name}={tmp_path / name}.npy"]
    braid("compile", module, "-o", bundle)
    # More chunks than messages may be under way.
    many = ["--passes", "braid-expand-encoded{message-bytes=64 most-chunks=7}"]
    done = braid("compile", module, *many, "--remarks", "communication", "-o", chunks)
    assert ranks == 1 or "in 7 chunks" in done.err
    runs = {
        "threads": lambda out: braid_run(bundle, *words, "--repeat", 2, "--output", out, "--report", f"{out}.json"),
        "threads-copies": lambda out: braid_run(bundle, *words, "--repeat", 2, "--copy-payloads", "--output", out),
        "shm": lambda out: braid_run(bundle, *words, "--repeat", 2, "--transport", "shm", "--output", out, "--report", f"{out}.json"),
        "ucx": lambda out: braid_run(bundle, *words, "--repeat", 2, "--hosts", f"localhost:{ranks}", "--output", out),
        "program-interpreter": lambda out: braid("run", bundle, *words, "--target", "program-interpreter", "--schedules", 2, "--output", out),
        "threads in chunks": lambda out: braid_run(chunks, *words, "--repeat", 2, "--output", out),
        "shm in chunks": lambda out: braid_run(chunks, *words, "--repeat", 2, "--transport", "shm", "--output", out),
        "ucx in chunks": lambda out: braid_run(chunks, *words, "--repeat", 2, "--hosts", f"localhost:{ranks}", "--output", out),
        "program-interpreter in chunks": lambda out: braid("run", chunks, *words, "--target", "program-interpreter", "--schedules", 2,
                                                          "--output", out),
        "reference": lambda out: braid("run", module, *words, "--target", "reference", "--output", out),
        "reference in chunks": lambda out: braid("run", module, *many, *words, "--target", "reference", "--output", out),
    }
    bits = {}
    for way, run in runs.items():
        run(tmp_path / way)
        bits[way] = {path.stem: path.read_bytes() for path in (tmp_path / way).iterdir()}
    assert len(bits["reference"]) == 2 * len(cases)
    for way in runs:
        # Which rows a rank adds itself, and so without a loss, is a matter of the chunk that they are in.
        expected = bits["reference in chunks" if way.endswith("in chunks") else "reference"]
        assert bits[way].keys() == expected.keys()
        differing = [str(cases[int(name.lstrip("givenyx"))]) for name in expected if bits[way][name] != expected[name]]
        assert not differing, f"BRAID_COVERING_SEED={SEED}: {way} differs from the interpreter in {differing}"
    for number, case in enumerate(cases):
        check(case, ranks, np.load(tmp_path / f"threads/given{number}.npy"), np.load(tmp_path / f"threads/y{number}.npy"))
