# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives by kind, type, size and number of ranks on every transport: as threads, as processes in shared memory, as
processes of one host and of several that meet over UCX. Results are those of the interpreter, and the same bits everywhere.

One program has all kinds in all sizes. Every run has each type and each number of ranks once; --long has all pairs.
"""
import numpy as np
import pytest

from braidtest import BIN, braid, braid_run
from lab import Lab, LabUnavailable

pytestmark = pytest.mark.usefixtures("ucx")
TYPES = ["f32", "bf16", "f16", "f64", "i32", "i64"]
RANKS = [2, 3, 4, 8]
TOLERANCE = {"bf16": ["--tolerance", 1e-2], "f64": ["--tolerance", 1e-12]}  # where the tool has none of its own
# Elements of a rank's part: one, odd, beyond one message between hosts, and beyond one chunk of a host.
SIZES = [1, 37, 5000, 70001]
# Of a rank's row [1, ranks, size] of a value. What one rank has is broadcast to all, as it must be a result of all.
KINDS = {
    "all_reduce": "  {y} = comm.all_reduce sum({x}) over <@mesh, {{r}}> : {row}",
    "maximum": "  {y} = comm.all_reduce max({x}) over <@mesh, {{r}}> : {row}",
    "all_gather": "  {y} = comm.all_gather({x}) dim 0 over <@mesh, {{r}}> : {row} -> {all}",
    "reduce_scatter": "  {y} = comm.reduce_scatter sum({x}) dim 1 over <@mesh, {{r}}> : {row} -> {part}",
    "all_to_all": "  {y} = comm.all_to_all({x}) split 1 concat 0 over <@mesh, {{r}}> : {row} -> {column}",
    "reduce": "  {y}.sum = comm.reduce sum({x}) to {root} over <@mesh, {{r}}> : {row}\n"
              "  {y} = comm.broadcast({y}.sum) from {root} over <@mesh, {{r}}> : {row}",
    "permute": "  {y} = comm.permute({x}) pairs [{pairs}] over <@mesh, {{r}}> : {row}",
}


def is_chosen(dtype, ranks):
    return TYPES.index(dtype) % len(RANKS) == RANKS.index(ranks)


CASES = [pytest.param(dtype, ranks, id=f"{dtype}-{ranks}", marks=[] if is_chosen(dtype, ranks) else pytest.mark.long)
         for dtype in TYPES for ranks in RANKS]


def program(dtype, ranks):
    """Its text, and the shapes of its inputs, of which rank i has row i."""
    def typed(shape):
        return f"tensor<{'x'.join(map(str, shape))}x{dtype}>"

    def value(name, shape, split):
        """`split`: the dimension of which each rank has a part."""
        axes = ", ".join("{r}" if index == split else "{}" for index in range(len(shape)))
        return f'{{nn.name = "{name}", comm.global_type = {typed(shape)}, comm.sharding = #comm.sharding<@mesh, [{axes}]>}}'
    operands, results, lines, names, types, inputs = [], [], [], [], [], {}
    for size in SIZES:
        shapes = {"row": [1, ranks, size], "all": [ranks, ranks, size], "part": [1, 1, size], "column": [ranks, 1, size]}
        operands.append(f"%x{size}: {typed(shapes['row'])} {value(f'x{size}', shapes['all'], 0)}")
        inputs[f"x{size}"] = shapes["all"]
        # What a rank has of each result, and of which whole value along which dimension.
        forms = {"all_gather": ("all", "all", None), "reduce_scatter": ("part", "row", 1), "all_to_all": ("column", "all", 1),
                 "permute": ("row", "all", 0)}
        for kind, form in KINDS.items():
            own, whole, split = forms.get(kind, ("row", "row", None))
            names.append(f"%{kind}{size}")
            types.append(typed(shapes[own]))
            lines.append(form.format(x=f"%x{size}", y=names[-1], root=ranks - 1,
                                     pairs=", ".join(f"{i} -> {(i + 1) % ranks}" for i in range(ranks)),
                                     **{name: typed(shape) for name, shape in shapes.items()}))
            results.append(f"{types[-1]} {value(f'{kind}.{size}', shapes[whole], split)}")
    return "\n".join([f"comm.mesh @mesh <r = {ranks}>", f"func.func @main({', '.join(operands)})", f"    -> ({', '.join(results)})",
                      "    attributes {nn.entry} {", *lines, f"  return {', '.join(names)} : {', '.join(types)}", "}", ""]), inputs


def given(folder, dtype, shapes):
    """Floats are the tool's random ones. Sums of integers wrap around in none of the types."""
    if not dtype.startswith("i"):
        return ["--random-inputs", 7]
    random, words = np.random.default_rng(7), []
    for name, shape in shapes.items():
        np.save(folder / f"{name}.npy", random.integers(-100, 100, shape, dtype=f"int{dtype[1:]}"))
        words += ["--input", f"{name}={folder / name}.npy"]
    return words


@pytest.fixture(scope="module")
def hosts():
    try:
        with Lab(hosts=4, rate="10gbit") as made:
            yield made
    except LabUnavailable as error:
        pytest.skip(f"no test hosts here: {error}")


def places(lab, ranks):
    """As many hosts as there are, and several ranks of one where ranks are more."""
    used = min(len(lab.addresses), ranks)
    return ",".join(f"{lab.addresses[i]}:{(ranks + used - 1 - i) // used}" for i in range(used))


@pytest.mark.parametrize("dtype,ranks", CASES)
def test_bits_are_the_same_everywhere(dtype, ranks, hosts, tmp_path):
    text, shapes = program(dtype, ranks)
    module, bundle = tmp_path / "module.mlir", tmp_path / "bundle"
    module.write_text(text)
    braid("compile", module, "-o", bundle)
    words = ["--repeat", 2, *given(tmp_path, dtype, shapes)]
    braid("run", bundle, *words, "--output", tmp_path / "threads", "--check", "reference", *TOLERANCE.get(dtype, []))
    braid_run(bundle, *words, "--transport", "shm", "--output", tmp_path / "shm")
    braid_run(bundle, *words, "--hosts", f"localhost:{ranks}", "--output", tmp_path / "neighbours")
    done = hosts.run(0, [str(word) for word in [BIN / "braid-run", bundle, *words, "--hosts", places(hosts, ranks), "--agent",
                                                hosts.agent, "--output", tmp_path / "hosts"]],
                     capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    expected = {path.name: path.read_bytes() for path in (tmp_path / "threads").iterdir()}
    assert len(expected) == len(KINDS) * len(SIZES)
    for transport in "shm", "neighbours", "hosts":
        got = {path.name: path.read_bytes() for path in (tmp_path / transport).iterdir()}
        differing = sorted(name for name in expected if got.get(name) != expected[name])
        assert got.keys() == expected.keys() and not differing, (transport, differing)
