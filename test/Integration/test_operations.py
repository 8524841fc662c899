# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations of decoders, in hand-written modules: the CPU target gives the interpreter's result."""
import numpy as np
import pytest

import models
from braidtest import braid

X, HEADS = "tensor<3x7x48xf32>", "tensor<3x7x4x12xf32>"

# name -> operands (name, type), body, type of the result %r
CASES = {
    "rms_norm": ([("x", X), ("w", "tensor<48xf32>")],
                 f"%r = nn.rms_norm %x, %w epsilon 1.0e-5 : {X}, tensor<48xf32> -> {X}", X),
    "silu": ([("x", X)], f"%r = nn.activation silu %x : {X}", X),
    "silu_mul": ([("x", X), ("y", X)], f"%a = nn.activation silu %x : {X}\n%r = nn.mul %a, %y : {X}, {X} -> {X}", X),
    "mul_broadcast": ([("x", X), ("w", "tensor<7x48xf32>")], f"%r = nn.mul %x, %w : {X}, tensor<7x48xf32> -> {X}", X),
    "softmax": ([("x", X)], f"%r = nn.softmax %x : {X}", X),
    # The vector widths of the target do not divide the rows.
    "softmax_narrow": ([("x", "tensor<5x13xf32>")], "%r = nn.softmax %x : tensor<5x13xf32>", "tensor<5x13xf32>"),
    "rms_norm_narrow": ([("x", "tensor<5x13xf32>"), ("w", "tensor<13xf32>")],
                        "%r = nn.rms_norm %x, %w epsilon 1.0e-6 : tensor<5x13xf32>, tensor<13xf32> -> tensor<5x13xf32>",
                        "tensor<5x13xf32>"),
    "rotary": ([("x", HEADS)],
               "%c, %s = nn.rotary_table [1.0, 0.5, 0.1, 0.01, 0.001, 0.0] scale 1.1 : tensor<7x6xf32>\n"
               f"%r = nn.rotary %x, %c, %s : {HEADS}, tensor<7x6xf32>", HEADS),
    "rotary_offset": ([("x", HEADS), ("offset", "tensor<3xi64>")],
                      "%c, %s = nn.rotary_table [1.0, 0.5, 0.1, 0.01, 0.001, 0.0] position_offset %offset : tensor<3xi64>"
                      f" : tensor<3x7x6xf32>\n%r = nn.rotary %x, %c, %s : {HEADS}, tensor<3x7x6xf32>", HEADS),
    "position_ids": ([("ids", "tensor<3x7xi64>"), ("w", "tensor<10x4xf32>")],
                     "%p = nn.position_ids %ids padding 2 : tensor<3x7xi64>\n"
                     "%r = nn.embedding %p, %w : tensor<3x7xi64>, tensor<10x4xf32> -> tensor<3x7x4xf32>", "tensor<3x7x4xf32>"),
    "grouped_query_attention": (
        [("q", HEADS), ("k", "tensor<3x7x2x12xf32>"), ("v", "tensor<3x7x2x12xf32>"), ("mask", "tensor<3x7xi64>")],
        "%r = nn.attention causal %q, %k, %v mask %mask : tensor<3x7xi64> scale 0.29"
        f" : {HEADS}, tensor<3x7x2x12xf32>, tensor<3x7x2x12xf32> -> {HEADS}", HEADS),
    # One kernel of three operations.
    "map": ([("x", X), ("w", "tensor<48xf32>")],
            f"%a = nn.activation silu %x : {X}\n%b = nn.map %a, %w : {X}, tensor<48xf32> -> {X} {{\n"
            "^bb0(%p: f32, %q: f32):\n%half = arith.constant 0.5 : f32\n%t = math.tanh %p : f32\n"
            "%m = arith.mulf %t, %q : f32\n%s = arith.addf %m, %half : f32\nnn.yield %s : f32\n}\n"
            f"%r = nn.add %b, %x : {X}, {X} -> {X}", X),
    # Rows of 3 x 7, and of 7 where an addend has no batch.
    "map_rows": ([("x", X), ("m", "tensor<3x7xf32>")],
                 f"%r = nn.map %x rows(%m) : {X} rows(tensor<3x7xf32>) -> {X} {{\n"
                 "^bb0(%a: f32, %b: f32):\n%d = arith.subf %a, %b : f32\n%e = math.exp %d : f32\nnn.yield %e : f32\n}", X),
    "map_rows_of_two": ([("x", X), ("m", "tensor<3x7xf32>"), ("y", "tensor<7x48xf32>")],
                        f"%a = nn.add %x, %y : {X}, tensor<7x48xf32> -> {X}\n"
                        f"%r = nn.map %a rows(%m) : {X} rows(tensor<3x7xf32>) -> {X} {{\n"
                        "^bb0(%p: f32, %q: f32):\n%d = arith.mulf %p, %q : f32\nnn.yield %d : f32\n}", X),
    # The values of rows lie apart.
    "map_rows_of_a_slice": (
        [("x", "tensor<3x7x1x48xf32>"), ("m", "tensor<3x7x4xf32>")],
        "%s = nn.slice %m dim 2 from 1 size 1 : tensor<3x7x4xf32> -> tensor<3x7x1xf32>\n"
        "%r = nn.map %x rows(%s) : tensor<3x7x1x48xf32> rows(tensor<3x7x1xf32>) -> tensor<3x7x1x48xf32> {\n"
        "^bb0(%a: f32, %b: f32):\n%d = arith.subf %a, %b : f32\nnn.yield %d : f32\n}", "tensor<3x7x1x48xf32>"),
    # The logarithm of the sum of exponentials: over rows, over columns, over both.
    **{f"log_sum_exp_{name}": (
        [("x", X)], f"%m, %s = nn.reduce max %x dims {dims} : {X} -> {type}, {type}\n"
        f"%r = nn.map %m, %s : {type}, {type} -> {type} {{\n"
        "^bb0(%a: f32, %b: f32):\n%l = math.log %b : f32\n%t = arith.addf %a, %l : f32\nnn.yield %t : f32\n}", type)
       for name, dims, type in [("rows", [2], "tensor<3x7xf32>"), ("columns", [1], "tensor<3x48xf32>"),
                                ("all_columns", [0, 1], "tensor<48xf32>")]},
    # The first sequence's queries see up to 7 keys, the second one's the first key.
    "attention_log_sum": (
        [("q", HEADS), ("k", "tensor<3x7x2x12xf32>"), ("mask", "tensor<3x7xi64>")],
        "%a, %r = nn.attention causal %q, %k, %k mask %mask : tensor<3x7xi64> scale 0.29"
        f" : {HEADS}, tensor<3x7x2x12xf32>, tensor<3x7x2x12xf32> -> {HEADS}, tensor<3x7x4xf32>", "tensor<3x7x4xf32>"),
    "attention_of_longer_values": (
        [("q", HEADS), ("k", "tensor<3x7x2x12xf32>"), ("v", "tensor<3x7x2x20xf32>"), ("mask", "tensor<3x7xi64>")],
        "%r = nn.attention causal %q, %k, %v mask %mask : tensor<3x7xi64> scale 0.29"
        f" : {HEADS}, tensor<3x7x2x12xf32>, tensor<3x7x2x20xf32> -> tensor<3x7x4x20xf32>", "tensor<3x7x4x20xf32>"),
    "top_k": ([("x", "tensor<3x7x48xf32>")],
              "%r, %i = nn.top_k %x : tensor<3x7x48xf32> -> tensor<3x7x5xf32>, tensor<3x7x5xi32>", "tensor<3x7x5xf32>"),
    "top_k_indices": ([("x", "tensor<3x7x48xf32>"), ("w", "tensor<48x4xf32>")],
                      "%v, %i = nn.top_k %x : tensor<3x7x48xf32> -> tensor<3x7x48xf32>, tensor<3x7x48xi64>\n"
                      "%r = nn.embedding %i, %w : tensor<3x7x48xi64>, tensor<48x4xf32> -> tensor<3x7x48x4xf32>",
                      "tensor<3x7x48x4xf32>"),
    "last_token": ([("x", X), ("mask", "tensor<3x7xi64>")],
                   f"%r = nn.last_token %x mask %mask : {X}, tensor<3x7xi64> -> tensor<3x1x48xf32>", "tensor<3x1x48xf32>"),
    # To a cache that the caller gives, and so keeps.
    "append": ([("x", "tensor<3x2x48xf32>"), ("cache", X), ("position", "tensor<3xi64>")],
               f"%r = nn.append %x to %cache dim 1 at %position : tensor<3x2x48xf32>, {X}, tensor<3xi64>", X),
    # Along the last dimension, of integers.
    "append_columns": (
        [("x", "tensor<3x7x5xi32>"), ("cache", "tensor<3x7x9xi32>"), ("position", "tensor<3xi32>"), ("w", "tensor<4x4xf32>")],
        "%t = nn.append %x to %cache dim 2 at %position : tensor<3x7x5xi32>, tensor<3x7x9xi32>, tensor<3xi32>\n"
        "%r = nn.embedding %t, %w : tensor<3x7x9xi32>, tensor<4x4xf32> -> tensor<3x7x9x4xf32>", "tensor<3x7x9x4xf32>"),
    "attention_with_i32": (
        [("q", HEADS), ("mask", "tensor<3x7xi32>"), ("length", "tensor<3xi32>"), ("offset", "tensor<3xi32>")],
        "%c, %s = nn.rotary_table [1.0, 0.5, 0.1, 0.01, 0.001, 0.0] position_offset %offset : tensor<3xi32>"
        f" : tensor<3x7x6xf32>\n%t = nn.rotary %q, %c, %s : {HEADS}, tensor<3x7x6xf32>\n"
        "%r = nn.attention causal %t, %t, %q mask %mask : tensor<3x7xi32> valid_length %length : tensor<3xi32>"
        f" position_offset %offset : tensor<3xi32> scale 0.29 : {HEADS}, {HEADS}, {HEADS} -> {HEADS}", HEADS),
}


def shape_of(type):
    return [int(size) for size in type[len("tensor<"):].split("x")[:-1]]


@pytest.mark.parametrize("name", CASES)
def test_operation(tmp_path, name):
    operands, body, result = CASES[name]
    arguments = ", ".join(f'%{operand}: {type} {{nn.name = "{operand}"}}' for operand, type in operands)
    model = tmp_path / "model.mlir"
    model.write_text(f'func.func @main({arguments}) -> ({result} {{nn.name = "r"}}) attributes {{nn.entry}} {{\n'
                     f"{body}\nreturn %r : {result}\n}}\n")
    rng = np.random.default_rng(7)
    values = {}
    for operand, type in operands:
        shape = shape_of(type)
        if operand == "mask":
            values[operand] = (np.arange(shape[1])[None, :] < np.array([7, 1, 4])[:, None]).astype(np.int64)
        elif operand == "length":
            values[operand] = np.array([7, 4, 3])
        elif operand == "position":
            values[operand] = np.array([0, 4, 1])
        elif name == "append_columns" and type.endswith("i32>"):
            values[operand] = rng.integers(0, 4, shape)
        elif operand == "ids":
            values[operand] = rng.integers(0, 5, shape)
        elif type.endswith("i64>"):
            values[operand] = rng.integers(0, 8192, shape)
        elif type.endswith("i32>"):
            values[operand] = rng.integers(-1, 4, shape)
        else:
            values[operand] = (2 * rng.standard_normal(shape)).astype(np.float32)
        if type.endswith("i32>"):
            values[operand] = values[operand].astype(np.int32)
    inputs = [arg for operand, path in models.write_inputs(values, tmp_path / "inputs").items()
              for arg in ("--input", f"{operand}={path}")]
    out = tmp_path / "out"
    braid("run", model, "--mesh", "dp=1", "--ranks", 1, "--target", "cpu", "--random-weights", 1, *inputs,
          "--output", out, "--check", "reference")
    value = np.load(out / "r.npy")
    assert list(value.shape) == shape_of(result) and np.abs(value).max() > 0.1
