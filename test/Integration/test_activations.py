# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every kind of nn.activation gives the result of transformers' function of the same name in f64."""
import numpy as np
import pytest

from braidtest import braid

KINDS = ("gelu", "silu", "quick_gelu", "gelu_10", "relu", "relu2", "relu6", "leaky_relu", "mish", "tanh", "sigmoid",
         "hardswish", "laplace")
# Maps transformers' names to kinds.
ACTIVATIONS = {**{kind: kind for kind in KINDS}, "gelu_python_tanh": "gelu_tanh"}
# Activations that become small without a difference of numbers near 1.
SMALL = {"silu", "quick_gelu", "mish", "sigmoid", "leaky_relu"}
SHAPE = "tensor<7x61xf32>"


def write_model(path):
    """Writes a module with a result for every activation. Returns its path."""
    results = ", ".join(f'{SHAPE} {{nn.name = "{name}"}}' for name in ACTIVATIONS)
    body = "".join(f"%{name} = nn.activation {kind} %x : {SHAPE}\n" for name, kind in ACTIVATIONS.items())
    path.write_text(f'func.func @main(%x: {SHAPE} {{nn.name = "x"}}) -> ({results}) attributes {{nn.entry}} {{\n{body}'
                    f"return {', '.join('%' + name for name in ACTIVATIONS)} : {', '.join([SHAPE] * len(ACTIVATIONS))}\n}}\n")
    return path


def run(model, directory, *options):
    """Returns the input and the activations' results, by transformers' name."""
    x = np.linspace(-31, 31, 7 * 61, dtype=np.float32).reshape(7, 61)
    x[0, :11] = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1e30, -1e30, 85, -85, 1e-30, -1e-30]
    directory.mkdir(exist_ok=True)
    np.save(directory / "x.npy", x)
    braid("run", model, "--ranks", 1, "--random-weights", 1, "--input", f"x={directory / 'x.npy'}", "--output",
          directory / "out", *options)
    return x, {name: np.load(directory / "out" / f"{name}.npy") for name in ACTIVATIONS}


def check(got, expected):
    for name in ACTIVATIONS:
        np.testing.assert_allclose(got[name], expected[name], rtol=1e-6, atol=1e-6, err_msg=name)
        if name in SMALL:
            np.testing.assert_allclose(got[name], expected[name], rtol=5e-6, atol=1e-35, err_msg=name)


@pytest.mark.torch
@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_values(tmp_path, target):
    import torch
    from transformers.activations import ACT2FN
    x, got = run(write_model(tmp_path / "model.mlir"), tmp_path, "--mesh", "dp=1", "--target", target)
    check(got, {name: ACT2FN[name](torch.tensor(x, dtype=torch.float64)).float().numpy() for name in ACTIVATIONS})
