# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""nn.matmul, accumulation and nn.reduce: the CPU target gives NumPy's result and the interpreter's."""
import numpy as np
import pytest

import models
from braidtest import braid

# name -> operands (name, shape), body, shape of the result %r, NumPy's function of the operands
CASES = {
    "plain": ([("x", (5, 7, 24)), ("w", (24, 33))],
              "%r = nn.matmul %x, %w : tensor<5x7x24xf32>, tensor<24x33xf32> -> tensor<5x7x33xf32>", (5, 7, 33),
              lambda x, w: x @ w),
    "weight_gradient": ([("dy", (40, 24)), ("x", (40, 33)), ("before", (24, 33))],
                        "%r = nn.matmul %dy transposed, %x plus %before : tensor<24x33xf32>"
                        " : tensor<40x24xf32>, tensor<40x33xf32> -> tensor<24x33xf32>", (24, 33),
                        lambda dy, x, before: before + dy.T @ x),
    "scores": ([("q", (2, 3, 9, 16)), ("k", (2, 3, 11, 16))],
               "%r = nn.matmul %q, %k transposed : tensor<2x3x9x16xf32>, tensor<2x3x11x16xf32> -> tensor<2x3x9x11xf32>",
               (2, 3, 9, 11), lambda q, k: q @ k.swapaxes(-1, -2)),
    "both_transposed": ([("x", (3, 16, 9)), ("w", (3, 11, 16))],
                        "%r = nn.matmul %x transposed, %w transposed"
                        " : tensor<3x16x9xf32>, tensor<3x11x16xf32> -> tensor<3x9x11xf32>", (3, 9, 11),
                        lambda x, w: x.swapaxes(-1, -2) @ w.swapaxes(-1, -2)),
    "groups": ([("x", (4, 70, 16)), ("w", (4, 16, 11)), ("counts", (4,))],
               "%r = nn.matmul %x, %w counts %counts : tensor<4xi32>"
               " : tensor<4x70x16xf32>, tensor<4x16x11xf32> -> tensor<4x70x11xf32>", (4, 70, 11),
               lambda x, w, counts: (x @ w) * (np.arange(70)[None, :, None] < counts[:, None, None])),
    # The sum is a kernel of its own, so the second product adds in the first one's memory.
    "accumulated": ([("x", (6, 16)), ("y", (6, 24)), ("v", (33, 16)), ("w", (33, 24))],
                    "%a = nn.linear %x, %v : tensor<6x16xf32>, tensor<33x16xf32> -> tensor<6x33xf32>\n"
                    "%b = nn.linear %y, %w : tensor<6x24xf32>, tensor<33x24xf32> -> tensor<6x33xf32>\n"
                    "%r = nn.add %a, %b : tensor<6x33xf32>, tensor<6x33xf32> -> tensor<6x33xf32>", (6, 33),
                    lambda x, y, v, w: x @ v.T + y @ w.T),
    "bias_gradient": ([("dy", (5, 7, 300))], "%r = nn.reduce sum %dy dims [0, 1] : tensor<5x7x300xf32> -> tensor<300xf32>",
                      (300,), lambda dy: dy.sum((0, 1))),
    "maximum": ([("x", (5, 7, 30))], "%r = nn.reduce max %x dims [2] : tensor<5x7x30xf32> -> tensor<5x7xf32>", (5, 7),
                lambda x: x.max(2)),
    "minimum": ([("x", (5, 7, 30))], "%r = nn.reduce min %x dims [1] : tensor<5x7x30xf32> -> tensor<5x30xf32>", (5, 30),
                lambda x: x.min(1)),
}


def type_of(name, shape):
    return f"tensor<{'x'.join(map(str, shape))}x{'i32' if name == 'counts' else 'f32'}>"


def run(tmp_path, operands, body, result, mesh, values, shardings={}):
    def argument(name, shape):
        sharding = f", comm.sharding = #comm.sharding<@mesh, {shardings[name]}>" if name in shardings else ""
        return f'%{name}: {type_of(name, shape)} {{nn.name = "{name}"{sharding}}}'

    model = tmp_path / "model.mlir"
    declared = "comm.mesh @mesh <" + mesh.replace("=", " = ") + ">\n" if shardings else ""
    model.write_text(f"{declared}func.func @main({', '.join(argument(*operand) for operand in operands)})"
                     f' -> ({type_of("r", result)} {{nn.name = "r"}}) attributes {{nn.entry}} {{\n'
                     f"{body}\nreturn %r : {type_of('r', result)}\n}}\n")
    inputs = [arg for operand, path in models.write_inputs(values, tmp_path / "inputs").items()
              for arg in ("--input", f"{operand}={path}")]
    options = [] if shardings else ["--mesh", mesh]
    braid("run", model, *options, "--target", "cpu", "--random-weights", 1, *inputs, "--output", tmp_path / "out", "--check",
          "reference")
    return np.load(tmp_path / "out" / "r.npy")


def random_values(operands):
    rng = np.random.default_rng(5)
    return {name: np.array([70, 0, 64, 5], np.int32) if name == "counts" else rng.standard_normal(shape).astype(np.float32)
            for name, shape in operands}


@pytest.mark.parametrize("name", CASES)
def test_equals_numpy(tmp_path, name):
    operands, body, result, function = CASES[name]
    values = random_values(operands)
    got = run(tmp_path, operands, body, result, "dp=1", values)
    expected = function(*(value.astype(np.float64) if value.dtype == np.float32 else value for value in values.values()))
    assert got.shape == result
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


# A reduced dimension that is sharded: partial sums, and partial maxima, are combined.
@pytest.mark.parametrize("kind", ["sum", "max"])
def test_reduces_over_ranks(tmp_path, kind):
    operands = [("x", (8, 6))]
    values = random_values(operands)
    got = run(tmp_path, operands, f"%r = nn.reduce {kind} %x dims [0] : tensor<8x6xf32> -> tensor<6xf32>", (6,), "dp=2", values,
              {"x": "[{dp}, {}]"})
    np.testing.assert_allclose(got, getattr(values["x"], kind)(0), rtol=1e-5, atol=1e-6)
