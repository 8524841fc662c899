# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Maxima with sums of exponentials, and attention with the logarithm of its sums, over dimensions that ranks hold parts of:
random shapes, every way to run them against NumPy. A failure names the seed."""
import numpy as np
import pytest

from braidtest import run
from test_rank_programs import WAYS, run_program

SEEDS = range(6)


def tensor(shape, element="f32"):
    return f"tensor<{''.join(f'{n}x' for n in shape)}{element}>"


def sharding(dims):
    return "#comm.sharding<@mesh, [" + ", ".join("{" + ", ".join(axes) + "}" for axes in dims) + "]>"


def argument(name, shape, axes, mesh, element="f32"):
    """Of a per-rank program."""
    local = [n // int(np.prod([mesh[a] for a in cut], dtype=int)) for n, cut in zip(shape, axes)]
    return (f"%{name}: {tensor(local, element)} {{nn.name = \"{name}\", comm.sharding = {sharding(axes)}, "
            f"comm.global_type = {tensor(shape, element)}}}")


def mesh_text(mesh):
    return f"comm.mesh @mesh <{', '.join(f'{axis} = {n}' for axis, n in mesh.items())}>\n"


def options(mesh):
    return ["--mesh", ",".join(f"{axis}={n}" for axis, n in mesh.items()), "--ranks", int(np.prod(list(mesh.values())))]


def random_sharded(rng):
    """A mesh, a shape, the axes that cut each dimension, and the dimensions to reduce, one of them in parts."""
    mesh = {"a": int(rng.integers(2, 4)), "b": 2} if rng.random() < 0.5 else {"a": int(rng.integers(2, 5))}
    rank = int(rng.integers(2, 4))
    axes = [[] for _ in range(rank)]
    cut = [int(rng.integers(rank)) for _ in mesh]
    for axis, dim in zip(mesh, cut):
        axes[dim].append(axis)
    shape = [int(rng.integers(1, 6)) * int(np.prod([mesh[a] for a in dim], dtype=int)) for dim in axes]
    reduced = sorted({cut[0], *(d for d in range(rank) if rng.random() < 0.3)})
    if len(reduced) == rank:
        shape, axes, rank = [*shape, int(rng.integers(2, 6))], [*axes, []], rank + 1
    return mesh, shape, axes, reduced


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", SEEDS)
def test_softmax_sums_over_parts(tmp_path, seed, way):
    rng = np.random.default_rng(seed)
    mesh, shape, axes, reduced = random_sharded(rng)
    kept = [n for d, n in enumerate(shape) if d not in reduced]
    whole, small = tensor(shape), tensor(kept)
    unpartitioned = mesh_text(mesh) + f"""
func.func @main(%x: {whole} {{nn.name = "x", comm.sharding = {sharding(axes)}}})
    -> ({small} {{nn.name = "m", comm.sharding = {sharding([[]] * len(kept))}}},
        {small} {{nn.name = "l", comm.sharding = {sharding([[]] * len(kept))}}}) attributes {{nn.entry}} {{
  %m, %s = nn.reduce max %x dims {reduced} : {whole} -> {small}, {small}
  %l = nn.map %m, %s : {small}, {small} -> {small} {{
  ^bb0(%a: f32, %b: f32):
    %log = math.log %b : f32
    %t = arith.addf %a, %log : f32
    nn.yield %t : f32
  }}
  return %m, %l : {small}, {small}
}}
"""
    model = tmp_path / "model.mlir"
    model.write_text(unpartitioned)
    text = run("braid-opt", "--braid-propagate-shardings", "--braid-partition", model).out
    assert "comm.all_reduce max" in text and "comm.all_reduce sum" in text
    x = (10 * rng.standard_normal(shape)).astype(np.float32)
    # Ranks without an element above -infinity.
    x[x < -8] = -np.inf
    x[tuple(slice(0, n // 2) if d in reduced and n > 1 else slice(None) for d, n in enumerate(shape))] = -np.inf
    x[tuple(-1 if d in reduced else slice(None) for d in range(len(shape)))] = 1
    wide = x.astype(np.float64)
    most = wide.max(axis=tuple(reduced))
    log = most + np.log(np.exp(wide - wide.max(axis=tuple(reduced), keepdims=True)).sum(axis=tuple(reduced)))
    run_program(tmp_path, text, {"x": x}, {"m": most.astype(np.float32), "l": log.astype(np.float32)}, way, *options(mesh))


def attention(q, k, v, mask, scale):
    group = q.shape[2] // k.shape[2]
    scores = scale * np.einsum("bqhd,bkhd->bhqk", q, np.repeat(k, group, axis=2))
    scores = np.where(mask[:, None, None, :] != 0, scores, -np.inf)
    most = scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isinf(most), 0, most))
    sums = weights.sum(axis=-1, keepdims=True)
    return np.einsum("bhqk,bkhd->bqhd", weights / np.where(sums == 0, 1, sums), np.repeat(v, group, axis=2))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", SEEDS)
def test_attention_over_parts_of_the_keys(tmp_path, seed, way):
    rng = np.random.default_rng(seed)
    ranks, batch, queries, kv, group = (int(rng.integers(*bounds)) for bounds in ((2, 5), (2, 4), (1, 20), (1, 3), (1, 4)))
    own, dim, value_dim = int(rng.integers(1, 9)), int(rng.integers(1, 20)), int(rng.integers(1, 20))
    heads, keys = kv * group, ranks * own
    mesh, cut = {"cp": ranks}, [[], ["cp"], [], []]
    q_type, k_type = tensor([batch, queries, heads, dim]), tensor([batch, own, kv, dim])
    v_type, m_type = tensor([batch, own, kv, value_dim]), tensor([batch, own], "i64")
    y_type, l_type = tensor([batch, queries, heads, value_dim]), tensor([batch, queries, heads])
    arguments = [f"%q: {q_type} {{nn.name = \"q\"}}", argument("k", [batch, keys, kv, dim], cut, mesh),
                 argument("v", [batch, keys, kv, value_dim], cut, mesh), argument("mask", [batch, keys], cut[:2], mesh, "i64")]
    text = mesh_text(mesh) + f"""
func.func @main({', '.join(arguments)}) -> ({y_type} {{nn.name = "y"}}) attributes {{nn.entry}} {{
  %own, %log = nn.attention %q, %k, %v mask %mask : {m_type} scale 0.5 : {q_type}, {k_type}, {v_type} -> {y_type}, {l_type}
  %most = comm.all_reduce max(%log) over <@mesh, {{cp}}> : {l_type}
  %weight = nn.map %log, %most : {l_type}, {l_type} -> {l_type} {{
  ^bb0(%l: f32, %m: f32):
    %one = arith.constant 1.0 : f32
    %d = arith.subf %l, %m : f32
    %e = math.exp %d : f32
    %equal = arith.cmpf oeq, %l, %m : f32
    %w = arith.select %equal, %one, %e : f32
    nn.yield %w : f32
  }}
  %scaled = nn.map %own rows(%weight) : {y_type} rows({l_type}) -> {y_type} {{
  ^bb0(%a: f32, %w: f32):
    %s = arith.mulf %a, %w : f32
    nn.yield %s : f32
  }}
  %sum, %weights = comm.all_reduce sum(%scaled, %weight) over <@mesh, {{cp}}> : {y_type}, {l_type}
  %y = nn.map %sum rows(%weights) : {y_type} rows({l_type}) -> {y_type} {{
  ^bb0(%a: f32, %w: f32):
    %s = arith.divf %a, %w : f32
    nn.yield %s : f32
  }}
  return %y : {y_type}
}}
"""
    q, k, v = ((2 * rng.standard_normal(shape)).astype(np.float32)
               for shape in ([batch, queries, heads, dim], [batch, keys, kv, dim], [batch, keys, kv, value_dim]))
    mask = rng.integers(0, 2, [batch, keys])
    mask[0] = 0  # no key on any rank
    mask[1, :own], mask[1, -1] = 0, 1  # none on the first rank
    y = attention(*(x.astype(np.float64) for x in (q, k, v)), mask, 0.5).astype(np.float32)
    run_program(tmp_path, text, {"q": q, "k": k, "v": v, "mask": mask}, {"y": y}, way, *options(mesh))
