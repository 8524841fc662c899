# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of encoded collectives: kinds of collectives, and cases of them with encodings, types, sizes and kernels around. The
cases of a number of ranks are one program. Used by test_encoded_collectives.py, and by test/gpu for programs that run on a GPU.

BRAID_COVERING_SEED draws other cases.
"""
import dataclasses
import os
import typing

import numpy as np

from codec_bounds import halves
from covering import covering_array

SEED = int(os.environ.get("BRAID_COVERING_SEED", 15))


@dataclasses.dataclass
class Kind:
    """A rank gives each rank, or all, r rows of c columns; x has them by ranks."""
    text: str                                 # of the collective of %x
    operand: typing.Callable                  # n, r, c -> a rank's shape
    move: typing.Callable                     # x, n, r, c -> the whole result, of sums too
    result: typing.Callable = None            # a rank's shape, if not that of the operand
    split: int | None = None                  # the dimension of the whole result of which a rank has a part
    rows: typing.Callable = lambda x, n, r, c: x  # x with the rows that are encoded as its last dimension
    half: str = "gather"


def blocks(x, n, r, c):
    """What all_to_all_v hands on: [sender, receiver, ...] as [receiver, sender, ...], without rows beyond the counts."""
    sent = np.where(np.arange(r)[None, :, None] < counts(n, r)[:, None, None], x, 0)
    return sent.reshape(n, n, r, c).swapaxes(0, 1).reshape(n * n, r, c)


def counts(n, r):
    return (np.arange(n * n, dtype=np.int32) * 5 + 3) % (r + 1)


def following(x, n, r, c):
    return np.concatenate([np.zeros_like(x[:1]), x[:-1]])


def whole(n, r, c):
    return [1, r, c]


def pieces(x, n, r, c):
    """Each rank gets a piece of every row."""
    return x.reshape(-1, n, c)


PAIRS = "pairs [{chain}] over <@mesh, {{r}}>"
KINDS = {
    "all_reduce": Kind("{y} = comm.all_reduce sum({x}) over <@mesh, {{r}}> {end} : {operand}", whole,
                       lambda x, n, r, c: x.sum(axis=0, keepdims=True), half="both"),
    "reduce_scatter": Kind("{y} = comm.reduce_scatter sum({x}) dim 1 over <@mesh, {{r}}> {end} : {operand} -> {result}",
                           lambda n, r, c: [1, n * r, c], lambda x, n, r, c: x.sum(axis=0, keepdims=True), whole, 1, half="reduce"),
    "reduce_scatter-columns": Kind("{y} = comm.reduce_scatter sum({x}) dim 2 over <@mesh, {{r}}> {end} : {operand} -> {result}",
                                   lambda n, r, c: [1, r, n * c], lambda x, n, r, c: x.sum(axis=0, keepdims=True), whole, 2, pieces, "reduce"),
    "reduce_scatter-vector": Kind("{y} = comm.reduce_scatter sum({x}) dim 0 over <@mesh, {{r}}> {end} : {operand} -> {result}",
                                  lambda n, r, c: [n * c], lambda x, n, r, c: x.reshape(n, n * c).sum(axis=0), lambda n, r, c: [c], 0,
                                  pieces, "reduce"),
    "all_gather": Kind("{y} = comm.all_gather({x}) dim 0 over <@mesh, {{r}}> {end} : {operand} -> {result}", whole,
                       lambda x, n, r, c: x, lambda n, r, c: [n, r, c]),
    "all_gather-columns": Kind("{y} = comm.all_gather({x}) dim 2 over <@mesh, {{r}}> {end} : {operand} -> {result}", whole,
                               lambda x, n, r, c: np.concatenate(list(x[:, None]), axis=2), lambda n, r, c: [1, r, n * c]),
    "all_gather-vector": Kind("{y} = comm.all_gather({x}) dim 0 over <@mesh, {{r}}> {end} : {operand} -> {result}", lambda n, r, c: [c],
                              lambda x, n, r, c: x, lambda n, r, c: [n * c], rows=lambda x, n, r, c: x.reshape(n, c)),
    "all_to_all": Kind("{y} = comm.all_to_all({x}) split 1 concat 0 over <@mesh, {{r}}> {end} : {operand} -> {result}",
                       lambda n, r, c: [1, n * r, c], lambda x, n, r, c: x, lambda n, r, c: [n, r, c], 1),
    "all_to_all-columns": Kind("{y} = comm.all_to_all({x}) split 2 concat 0 over <@mesh, {{r}}> {end} : {operand} -> {result}",
                               lambda n, r, c: [1, r, n * c], lambda x, n, r, c: x, lambda n, r, c: [n, r, c], 2, pieces),
    "all_to_all-joined": Kind("{y} = comm.all_to_all({x}) split 1 concat 2 over <@mesh, {{r}}> {end} : {operand} -> {result}",
                              lambda n, r, c: [1, n * r, c], lambda x, n, r, c: np.concatenate(list(x[:, None]), axis=2),
                              lambda n, r, c: [1, r, n * c], 1),
    "all_to_all_v": Kind("{y}, {y}.counts = comm.all_to_all_v({x}) counts %x{number}.counts : tensor<{n}xi32> over <@mesh, {{r}}> {end} : {operand}",
                         lambda n, r, c: [n, r, c], blocks, split=0),
    # Rows of one number.
    "all_to_all_v-numbers": Kind("{y}, {y}.counts = comm.all_to_all_v({x}) counts %x{number}.counts : tensor<{n}xi32> over <@mesh, {{r}}> {end} : {operand}",
                                 lambda n, r, c: [n, r], lambda x, n, r, c: blocks(x[..., None], n, r, 1)[..., 0], split=0,
                                 rows=lambda x, n, r, c: x[..., None]),
    "broadcast": Kind("{y} = comm.broadcast({x}) from {last} over <@mesh, {{r}}> {end} : {operand}", whole, lambda x, n, r, c: x[-1:]),
    # The first rank is no target, and gets zeros.
    "permute": Kind("{y} = comm.permute({x}) " + PAIRS + " {end} : {operand}", whole, following, split=0),
    "send_recv": Kind("comm.send({x}) " + PAIRS + " tag {number} {end} : {operand}\n"
                      "  {y} = comm.recv " + PAIRS + " tag {number} {end} : {operand}", whole, following, split=0),
}

AXES = {
    "encoding": [
        "bf16", "f16", "int8:128", "int7:32+spikes", "int6:128+bf16-scale", "int5:64", "int4:128", "int3:40", "int2:32+spikes",
        "int8:8192", "int8:128+symmetric", "int4:128+zero-point", "int6:64+hadamard64", "int5:256+symmetric+bf16-scale+hadamard16+spikes",
        "int4:512+spikes", "fp8e4m3:128", "fp8e5m2:128+bf16-scale", "fp6e3m2:64+spikes", "fp6e2m3:32", "fp4e2m1:32+hadamard32",
        "mxfp8e4m3", "mxfp8e5m2", "mxfp6e3m2", "mxfp6e2m3", "mxfp4+hadamard16", "nvfp4", "int4:128/int8:128", "int4:128+spikes/int8:64",
        "fp8e4m3:64/bf16"],
    "kind": list(KINDS),
    "type": ["f32", "bf16", "f16"],
    # Rows that most numbers of ranks do not divide, tails of groups and of bytes, rows of less than a group.
    "size": [(1, 1), (1, 192), (1, 4099), (7, 200), (8, 128), (37, 9)],
    "ranks": list(range(1, 9)),
    # Kernels before and after the collective, which may take its codecs into themselves.
    "around": ["nothing", "kernels"],
}


def is_possible(case):
    """One rank has no pairs to send in, and kernels of the CPU compute in f32."""
    return ((case.get("ranks") != 1 or case.get("kind") not in ("permute", "send_recv")) and
            (case.get("around") != "kernels" or case.get("type", "f32") == "f32"))


CASES, COVERED = covering_array(AXES, SEED, is_possible)


def tensor(shape, dtype):
    return f"tensor<{'x'.join(map(str, shape))}x{dtype}>"


def value(name, dtype, shape, split):
    """`shape` is of the whole; `split` the dimension of which each rank has a part."""
    axes = ", ".join("{r}" if index == split else "{}" for index in range(len(shape)))
    return f'{{nn.name = "{name}", comm.global_type = {tensor(shape, dtype)}, comm.sharding = #comm.sharding<@mesh, [{axes}]>}}'


def encoding_of(case):
    """Kinds with one half take that of the pair."""
    half = KINDS[case["kind"]].half
    return case["encoding"] if half == "both" else halves(case["encoding"])[half == "gather"]


def program(cases, n):
    """Its text, and by the names of inputs what they are."""
    operands, results, lines, names, types, inputs = [], [], [], [], [], {}

    def give(name, result, dtype, shape, split, part):
        names.append(name)
        types.append(tensor(part, dtype))
        results.append(f"{types[-1]} {value(result, dtype, shape, split)}")

    for number, case in enumerate(cases):
        kind, dtype, (r, c) = KINDS[case["kind"]], case["type"], case["size"]
        operand = kind.operand(n, r, c)
        result = (kind.result or kind.operand)(n, r, c)
        given = [n * operand[0], *operand[1:]]
        total = [size * n if index == kind.split else size for index, size in enumerate(result)]
        operands.append(f"%x{number}: {tensor(operand, dtype)} {value(f'x{number}', dtype, given, 0)}")
        inputs[f"x{number}"] = given
        # What the tool drew, in the type.
        give(f"%x{number}", f"given{number}", dtype, given, 0, operand)
        if case["kind"].startswith("all_to_all_v"):
            operands.append(f"%x{number}.counts: tensor<{n}xi32> {value(f'x{number}.counts', 'i32', [n * n], 0)}")
            inputs[f"x{number}.counts"] = counts(n, r)
        x, y = f"%x{number}", f"%y{number}"
        end = f'role "{case["kind"]}.{number}" {{comm.encoding = #comm.encoding<"{encoding_of(case)}">}}'
        doubled = "  {y} = nn.add {x}, {x} : {type}, {type} -> {type}"
        if case["around"] == "kernels":
            x, y = f"%x{number}.twice", f"%z{number}"
            lines.append(doubled.format(x=f"%x{number}", y=x, type=tensor(operand, dtype)))
        lines.append("  " + kind.text.format(x=x, y=y, n=n, last=n - 1, number=number, end=end, operand=tensor(operand, dtype),
                                             chain=", ".join(f"{i} -> {i + 1}" for i in range(n - 1)), result=tensor(result, dtype)))
        if case["around"] == "kernels":
            lines.append(doubled.format(x=y, y=f"%y{number}", type=tensor(result, dtype)))
        give(f"%y{number}", f"y{number}", dtype, total, kind.split, result)
    return "\n".join([f"comm.mesh @mesh <r = {n}>", f"func.func @main({', '.join(operands)})", f"    -> ({', '.join(results)})",
                      "    attributes {nn.entry} {", *lines, f"  return {', '.join(names)} : {', '.join(types)}", "}", ""]), inputs
