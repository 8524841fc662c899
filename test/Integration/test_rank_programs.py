# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Hand-written per-rank programs at the levels comm and scheduled: every way to run them gives NumPy's result."""
import numpy as np
import pytest
from safetensors.numpy import save_file

import models
from braidtest import BAD_INPUT, RANK_FAILED, ROOT, braid, braid_run

# The time limit without progress: many times what these programs need.
LIMIT = 60

WAYS = {
    "threads": ["--target", "cpu"],
    "shm": ["--target", "cpu", "--transport", "shm"],
    "program-interpreter": ["--target", "program-interpreter", "--schedules", 5],
    "reference": ["--target", "reference"],
}


def run_program(tmp_path, text, inputs, expected, way, *options, weights=None):
    """Runs the module in one way. Results must equal `expected`, integers exactly, and pass --check reference."""
    model, out = tmp_path / "program.mlir", tmp_path / "out"
    model.write_text(text)
    args = [arg for name, path in models.write_inputs(inputs, tmp_path / "inputs").items() for arg in ("--input", f"{name}={path}")]
    if weights is not None:
        save_file(weights, tmp_path / "weights.safetensors")
        args += ["--weights", tmp_path / "weights.safetensors"]
    done = braid("run", model, *args, *WAYS[way], "--time-limit", LIMIT, "--check", "reference", "--output", out, *options)
    assert done.out.count(": passed") == len(expected), done
    for name, value in expected.items():
        got = np.load(out / f"{name}.npy")
        assert got.dtype == value.dtype and got.shape == value.shape
        if np.issubdtype(value.dtype, np.integer):
            np.testing.assert_array_equal(got, value)
        else:
            assert models.relative_l2(got, value) < 2e-6
    return done


def random_values(*shape, seed=5):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


# --- pipeline of three stages ------------------------------------------------------------------------------------

STAGE = "tensor<6x16xf32>"
PIPELINE = f"""
comm.mesh @mesh <pp = 3>
func.func @main(%x: {STAGE} {{nn.name = "x"}}) -> ({STAGE} {{nn.name = "y"}}) attributes {{nn.entry}} {{
  %w = nn.parameter "w" of tensor<48x16xf32> sharded <@mesh, [{{pp}}, {{}}]> : tensor<16x16xf32>
  %0 = nn.linear %x, %w : {STAGE}, tensor<16x16xf32> -> {STAGE}
  comm.send(%0) pairs [0 -> 1, 1 -> 2] over <@mesh, {{pp}}> tag 4 : {STAGE}
  %1 = comm.recv pairs [0 -> 1, 1 -> 2] over <@mesh, {{pp}}> tag 4 : {STAGE}
  %2 = nn.linear %1, %w : {STAGE}, tensor<16x16xf32> -> {STAGE}
  comm.send(%2) pairs [0 -> 1, 1 -> 2] over <@mesh, {{pp}}> tag 4 : {STAGE}
  %3 = comm.recv pairs [0 -> 1, 1 -> 2] over <@mesh, {{pp}}> tag 4 : {STAGE}
  %4 = nn.linear %3, %w : {STAGE}, tensor<16x16xf32> -> {STAGE}
  %5 = comm.broadcast(%4) from 2 over <@mesh, {{pp}}> : {STAGE}
  return %5 : {STAGE}
}}
"""


@pytest.mark.parametrize("way", WAYS)
def test_pipeline_hand_off(tmp_path, way):
    x, w = random_values(6, 16), random_values(48, 16, seed=6)
    y = x.astype(np.float64)
    for stage in np.split(w.astype(np.float64), 3):
        y = y @ stage.T
    run_program(tmp_path, PIPELINE, {"x": x}, {"y": y.astype(np.float32)}, way, "--mesh", "pp=3", "--ranks", 3, weights={"w": w})


# --- all_to_all_v ------------------------------------------------------------------------------------------------

RANKS, BLOCKS, CAPACITY, WIDTH = 2, 4, 5, 3


def cut(tensor, axes, whole):
    """A per-rank type, and the attributes of an argument or result that describe its sharding."""
    return tensor, f"comm.sharding = #comm.sharding<@mesh, [{axes}]>, comm.global_type = {whole}"


def counted_program():
    rows, cut_rows = cut(f"tensor<{BLOCKS}x{CAPACITY}x{WIDTH}xf32>", "{ep}, {}, {}", f"tensor<{RANKS * BLOCKS}x{CAPACITY}x{WIDTH}xf32>")
    counts, cut_counts = cut(f"tensor<{BLOCKS}xi32>", "{ep}", f"tensor<{RANKS * BLOCKS}xi32>")
    return f"""
comm.mesh @mesh <ep = {RANKS}>
func.func @main(%x: {rows} {{nn.name = "x", {cut_rows}}}, %n: {counts} {{nn.name = "n", {cut_counts}}})
    -> ({rows} {{nn.name = "y", {cut_rows}}}, {counts} {{nn.name = "m", {cut_counts}}}) attributes {{nn.entry}} {{
  %y, %m = comm.all_to_all_v(%x) counts %n : {counts} over <@mesh, {{ep}}> role "dispatch" : {rows}
  return %y, %m : {rows}, {counts}
}}
"""


@pytest.mark.parametrize("way", WAYS)
def test_all_to_all_v(tmp_path, way):
    x = random_values(RANKS * BLOCKS, CAPACITY, WIDTH)
    n = np.array([0, 5, 2, 1, 3, 0, 4, 5], np.int32)
    sent = np.where(np.arange(CAPACITY)[None, :, None] < n[:, None, None], x, 0)
    # [sender, receiver, block, ...] -> [receiver, sender, block, ...]
    turn = lambda value: value.reshape(RANKS, RANKS, BLOCKS // RANKS, *value.shape[1:]).swapaxes(0, 1).reshape(value.shape)
    run_program(tmp_path, counted_program(), {"x": x, "n": n}, {"y": turn(sent), "m": turn(n)}, way)


def test_a_count_beyond_the_capacity(tmp_path):
    model = tmp_path / "program.mlir"
    model.write_text(counted_program())
    values = {"x": random_values(RANKS * BLOCKS, CAPACITY, WIDTH), "n": np.array([0, 1, 2, CAPACITY + 1, 0, 0, 0, 0], np.int32)}
    args = [arg for name, path in models.write_inputs(values, tmp_path / "inputs").items() for arg in ("--input", f"{name}={path}")]
    done = braid("run", model, *args, "--time-limit", LIMIT, "--output", tmp_path / "out", expect=RANK_FAILED)
    assert "all_to_all_v 'dispatch' (30 f32 and 2 i32, role 'dispatch') in @main expects counts in [0, 5], got 6 at block 3" in done.err
    assert not (tmp_path / "out").exists()


# --- ring ---------------------------------------------------------------------------------------------------------

PART, WHOLE = "tensor<4x6xf32>", "tensor<16x6xf32>"
CUT = f"comm.sharding = #comm.sharding<@mesh, [{{tp}}, {{}}]>, comm.global_type = {WHOLE}"
RING = "pairs [0 -> 1, 1 -> 2, 2 -> 3, 3 -> 0] over <@mesh, {tp}>"


def ring_values():
    """Every rank multiplies each value that it receives by its own shard and adds the results."""
    x, y = random_values(16, 6), random_values(16, 6, seed=8)
    parts = np.split(x.astype(np.float64), 4)
    return {"x": x, "y": y}, {"z": (y * np.tile(sum(parts), (4, 1))).astype(np.float32)}


def ring_program(step):
    """`step(i)` returns the text that computes %p<i+1>, the neighbour's %p<i>, and %s<i+1>, which is %s<i> plus the
    result for %p<i>."""
    return f"""
comm.mesh @mesh <tp = 4>
func.func @main(%p0: {PART} {{nn.name = "x", {CUT}}}, %y: {PART} {{nn.name = "y", {CUT}}}) -> ({PART} {{nn.name = "z", {CUT}}})
    attributes {{nn.entry}} {{
  %s1 = nn.mul %p0, %y : {PART}, {PART} -> {PART}
{"".join(step(i) for i in range(3))}
  return %s4 : {PART}
}}
"""


def matmul(i):
    return (f"  %m{i} = nn.mul %p{i}, %y : {PART}, {PART} -> {PART}\n"
            f"  %s{i + 1} = nn.add %s{i}, %m{i} : {PART}, {PART} -> {PART}\n")


def blocking_step(i):
    return f"  %p{i + 1} = comm.permute(%p{i}) {RING} role \"ring\" : {PART}\n" + matmul(i + 1)


def overlapped_step(i):
    """At the level scheduled: the next shard is received while this one is multiplied."""
    return (f"  %h{i} = comm.start (%a = %p{i}) : {PART} -> !comm.handle<{PART}> {{\n"
            f"    %b = comm.permute(%a) {RING} role \"ring\" : {PART}\n    comm.yield %b : {PART}\n  }}\n"
            + (matmul(i) if i else "")
            + f"  %p{i + 1} = comm.wait %h{i} keeping %p{i} : !comm.handle<{PART}>, {PART} -> {PART}\n"
            + (matmul(i + 1) if i == 2 else ""))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("step", [blocking_step, overlapped_step])
def test_permute_ring(tmp_path, way, step):
    inputs, expected = ring_values()
    run_program(tmp_path, ring_program(step), inputs, expected, way)


# --- sub-axes -----------------------------------------------------------------------------------------------------

PART_OF, SUB_AXES_CUT = cut("tensor<1x5xf32>", "{dp, tp}, {}", "tensor<12x5xf32>")
SUB_AXES = f"""
comm.mesh @mesh <dp = 2, tp = 6>
func.func @main(%x: {PART_OF} {{nn.name = "x", {SUB_AXES_CUT}}})
    -> ({PART_OF} {{nn.name = "major", {cut(PART_OF, "{dp, tp:(2)3}, {}", "tensor<6x5xf32>")[1]}}},
        {PART_OF} {{nn.name = "minor", {cut(PART_OF, "{dp, tp:(1)2}, {}", "tensor<4x5xf32>")[1]}}}) attributes {{nn.entry}} {{
  %0 = comm.all_reduce sum(%x) over <@mesh, {{tp:(1)2}}> role "major" : {PART_OF}
  %1 = comm.all_reduce max(%x) over <@mesh, {{tp:(2)3}}> role "minor" : {PART_OF}
  return %0, %1 : {PART_OF}, {PART_OF}
}}
"""


@pytest.mark.parametrize("way", WAYS)
def test_sub_axis_all_reduce(tmp_path, way):
    x = random_values(12, 5)
    grid = x.reshape(2, 2, 3, 5)  # dp, the sub-axis of size 2, the sub-axis of size 3, the row of each rank
    run_program(tmp_path, SUB_AXES, {"x": x}, {"major": grid.sum(1).reshape(6, 5), "minor": grid.max(2).reshape(4, 5)}, way)


# --- bundles, passes and checks -----------------------------------------------------------------------------------


def test_bundle_is_as_good_as_the_module(tmp_path):
    inputs, expected = ring_values()
    model, bundle, out = tmp_path / "ring.mlir", tmp_path / "ring.braid", tmp_path / "out"
    model.write_text(ring_program(overlapped_step))
    args = [arg for name, path in models.write_inputs(inputs, tmp_path / "inputs").items() for arg in ("--input", f"{name}={path}")]
    braid("compile", model, "-o", bundle)
    braid_run(bundle, *args, "--transport", "shm", "--time-limit", LIMIT, "--output", out)
    assert models.relative_l2(np.load(out / "z.npy"), expected["z"]) < 2e-6
    braid("run", bundle, *args, "--target", "reference", "--check", out / "z.npy", "--check", "reference")
    braid("compile", model, "--strip", "-o", bundle)
    done = braid("run", bundle, *args, "--check", "reference", expect=BAD_INPUT)
    assert "the bundle carries no module (it was compiled with --strip)" in done.err


def test_passes_run_on_it(tmp_path):
    """A pass splits a hand-written all_reduce, and the results stay the same."""
    part, cut_x = cut("tensor<2x3xf32>", "{}, {tp}", "tensor<2x6xf32>")
    text = f"""
comm.mesh @mesh <tp = 2>
func.func @main(%x: {part} {{nn.name = "x", {cut_x}}}) -> (tensor<2x4xf32> {{nn.name = "y"}}) attributes {{nn.entry}} {{
  %w = nn.parameter "w" of tensor<4x6xf32> sharded <@mesh, [{{}}, {{tp}}]> : tensor<4x3xf32>
  %0 = nn.linear %x, %w : {part}, tensor<4x3xf32> -> tensor<2x4xf32>
  %1 = comm.all_reduce sum(%0) over <@mesh, {{tp}}> role "sum" : tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}}
"""
    x, w = random_values(2, 6), random_values(4, 6, seed=6)
    done = run_program(tmp_path, text, {"x": x}, {"y": x @ w.T}, "threads", "--passes", "braid-split-all-reduce", weights={"w": w})
    assert "reduce_scatter @main/sum/reduce_scatter:" in done.out and "all_gather @main/sum/all_gather:" in done.out and "all_reduce" not in done.out


def test_ranks_that_disagree(tmp_path):
    """A result without a sharding must be the same on all ranks; a program of which that is not known is refused."""
    model = tmp_path / "program.mlir"
    model.write_text(f"""
comm.mesh @mesh <tp = 4>
func.func @main(%x: {PART} {{nn.name = "x", {CUT}}}) -> ({PART} {{nn.name = "y"}}) attributes {{nn.entry}} {{
  %0 = nn.activation gelu %x : {PART}
  return %0 : {PART}
}}
""")
    done = braid("compile", model, "-o", tmp_path / "out.braid", expect=BAD_INPUT)
    assert "expects the same value over axis 'tp' in result 0 ('y'), as 'main' declares, got parts along dimension 0" in done.err
    assert "note: this is in parts over axis 'tp', as argument 0 of 'main' is declared" in done.err
    assert not (tmp_path / "out.braid").exists()


def test_example(tmp_path):
    """Runs the file of examples/write-your-own, and the output of --emit=scheduled for it."""
    from math import erf
    values = {"first": random_values(32, 64), "second": random_values(32, 64, seed=9)}
    weights = {"stages.weight": random_values(128, 64, seed=10) / 8, "stages.bias": random_values(128, seed=11)}

    def pipeline(x):
        for w, b in zip(np.split(weights["stages.weight"], 2), np.split(weights["stages.bias"], 2)):
            x = x.astype(np.float64) @ w.T.astype(np.float64) + b
            x = 0.5 * x * (1 + np.vectorize(erf)(x / np.sqrt(2)))
        return x.astype(np.float32)

    expected = {f"{name}_result": pipeline(value) for name, value in values.items()}
    example = ROOT / "examples/write-your-own/pipeline.mlir"
    scheduled = braid("compile", example, "--emit=scheduled").out
    assert scheduled.count("comm.start") == 6
    for level, text in (("comm", example.read_text()), ("scheduled", scheduled)):
        directory = tmp_path / level
        directory.mkdir()
        run_program(directory, text, values, expected, "threads", weights=weights)
