#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares kernels of the CPU target with PyTorch's own operations, both on one thread, in one process.

    build/venv/bin/python test/benchmark/kernels.py [--isa host] [--rounds 40]

Results are compared before anything is timed. The two sides run alternately, for 5 ms each. The figure is the minimum
over the rounds, since other work on the machine can only add time.
"""
import argparse
import ctypes
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch
import torch.nn.functional as F

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMPILER = ROOT / "build" / "bin" / "braid-test-compile-kernels"
FLAGS = "fastmath<reassoc,contract>"


class Body:
    """Writes the body of an rt.kernel over (row, column)."""

    def __init__(self, columns):
        self.columns, self.lines, self.count = columns, [], 0
        self.full, self.row = f"tensor<?x{columns}xf32>", "tensor<?xf32>"
        self.lines += [
            "%c0 = arith.constant 0 : index",
            f"%n = tensor.dim %x, %c0 : {self.full}",
            f"%e = tensor.empty(%n) : {self.full}",
            "%er = tensor.empty(%n) : tensor<?xf32>",
        ]

    def generic(self, inputs, scalars, iterators, init, result):
        """inputs: (value, kind), kind one of full, row, column; scalars: lines on %a0 … that define %y."""
        domain = "(r, c)" if len(iterators) == 2 else "(r)"
        place = {"full": "(r, c)", "row": "(r)", "column": "(c)"}
        kinds = [kind for _, kind in inputs] + [result]
        maps = ", ".join(f"affine_map<{domain} -> {place[kind]}>" for kind in kinds)
        types = {"full": self.full, "row": self.row, "column": f"tensor<{self.columns}xf32>"}
        arguments = ", ".join([f"%a{i}: f32" for i in range(len(inputs))] + ["%acc: f32"])
        name = f"%v{self.count}"
        self.count += 1
        self.lines.append(
            f"{name} = linalg.generic {{indexing_maps = [{maps}], "
            f"iterator_types = [{', '.join(chr(34) + i + chr(34) for i in iterators)}]}} "
            f"ins({', '.join(v for v, _ in inputs)} : {', '.join(types[k] for _, k in inputs)}) "
            f"outs({init} : {types[result]}) {{\n^bb0({arguments}):\n" + "\n".join(scalars) +
            f"\nlinalg.yield %y : f32\n}} -> {types[result]}")
        return name

    def map(self, inputs, *scalars):
        return self.generic(inputs, scalars, ["parallel", "parallel"], "%e", "full")

    def row_map(self, inputs, *scalars):
        return self.generic(inputs, scalars, ["parallel"], "%er", "row")

    def reduce(self, identity, inputs, *scalars):
        init = f"%i{self.count}"
        self.lines += [f"{init}c = arith.constant {identity} : f32",
                       f"{init} = linalg.fill ins({init}c : f32) outs(%er : {self.row}) -> {self.row}"]
        return self.generic(inputs, scalars, ["parallel", "reduction"], init, "row")

    def kernel(self, arguments, result):
        kinds = {"full": self.full, "column": f"tensor<{self.columns}xf32>"}
        listed = ", ".join(f"%{name}: {kinds[kind]}" for name, kind in arguments)
        body = "\n".join(self.lines)
        return f"rt.kernel @kernel({listed}) -> {self.full} {{\n{body}\nrt.yield {result} : {self.full}\n}}\n"


def add_layer_norm(columns):
    b = Body(columns)
    h = b.map([("%x", "full"), ("%z", "full")], f"%y = arith.addf %a0, %a1 {FLAGS} : f32")
    total = b.reduce("0.0", [(h, "full")], f"%y = arith.addf %acc, %a0 {FLAGS} : f32")
    mean = b.row_map([(total, "row")], f"%k = arith.constant {columns}.0 : f32", f"%y = arith.divf %a0, %k {FLAGS} : f32")
    squares = b.reduce("0.0", [(h, "full"), (mean, "row")], f"%d = arith.subf %a0, %a1 {FLAGS} : f32",
                       f"%q = arith.mulf %d, %d {FLAGS} : f32", f"%y = arith.addf %acc, %q {FLAGS} : f32")
    scale = b.row_map([(squares, "row")], f"%k = arith.constant {columns}.0 : f32", "%eps = arith.constant 1.0e-12 : f32",
                      f"%v = arith.divf %a0, %k {FLAGS} : f32", f"%ve = arith.addf %v, %eps {FLAGS} : f32",
                      f"%y = math.rsqrt %ve {FLAGS} : f32")
    out = b.map([(h, "full"), (mean, "row"), (scale, "row"), ("%w", "column"), ("%b", "column")],
                f"%d = arith.subf %a0, %a1 {FLAGS} : f32", f"%s = arith.mulf %d, %a2 {FLAGS} : f32",
                f"%t = arith.mulf %s, %a3 {FLAGS} : f32", f"%y = arith.addf %t, %a4 {FLAGS} : f32")
    return b.kernel([("x", "full"), ("z", "full"), ("w", "column"), ("b", "column")], out)


def bias_gelu(columns, tanh):
    b = Body(columns)
    half = ["%h = arith.constant 0.5 : f32", "%one = arith.constant 1.0 : f32"]
    s = f"%s = arith.addf %a0, %a1 {FLAGS} : f32"
    if tanh:
        inner = ["%k = arith.constant 0.044715 : f32", "%p = arith.constant 0.79788456080286536 : f32",
                 f"%s2 = arith.mulf %s, %s {FLAGS} : f32", f"%ks = arith.mulf %s, %k {FLAGS} : f32",
                 f"%s3 = arith.mulf %s2, %ks {FLAGS} : f32", f"%i0 = arith.addf %s, %s3 {FLAGS} : f32",
                 f"%i = arith.mulf %i0, %p {FLAGS} : f32", f"%f = math.tanh %i {FLAGS} : f32"]
    else:
        inner = ["%k = arith.constant 0.70710678118654752 : f32", f"%i = arith.mulf %s, %k {FLAGS} : f32",
                 f"%f = math.erf %i {FLAGS} : f32"]
    out = b.map([("%x", "full"), ("%b", "column")], s, *half, *inner, f"%g = arith.addf %f, %one {FLAGS} : f32",
                f"%hs = arith.mulf %s, %h {FLAGS} : f32", f"%y = arith.mulf %hs, %g {FLAGS} : f32")
    return b.kernel([("x", "full"), ("b", "column")], out)


def softmax(columns):
    b = Body(columns)
    top = b.reduce("0xFF800000", [("%x", "full")], f"%y = arith.maximumf %acc, %a0 {FLAGS} : f32")
    exp = b.map([("%x", "full"), (top, "row")], f"%d = arith.subf %a0, %a1 {FLAGS} : f32", f"%y = math.exp %d {FLAGS} : f32")
    total = b.reduce("0.0", [(exp, "full")], f"%y = arith.addf %acc, %a0 {FLAGS} : f32")
    out = b.map([(exp, "full"), (total, "row")], f"%y = arith.divf %a0, %a1 {FLAGS} : f32")
    return b.kernel([("x", "full")], out)


CASES = [
    ("add + layer_norm", add_layer_norm, "xzwb", lambda x, z, w, b: F.layer_norm(x + z, x.shape[1:], w, b, 1e-12)),
    ("bias + gelu (erf)", lambda c: bias_gelu(c, False), "xb", lambda x, b: F.gelu(x + b)),
    ("bias + gelu (tanh)", lambda c: bias_gelu(c, True), "xb", lambda x, b: F.gelu(x + b, approximate="tanh")),
    ("softmax", softmax, "x", lambda x: torch.softmax(x, 1)),
]


def compile_kernel(text, isa, directory):
    source, library = pathlib.Path(directory) / "kernel.mlir", pathlib.Path(directory) / "kernel.so"
    source.write_text(text)
    run = subprocess.run([COMPILER, source, "-o", library, "-isa", isa, "-time"], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"kernels.py: error: {run.stderr}")
    function = ctypes.CDLL(str(library)).kernel
    function.restype = None
    return function, float(run.stdout)


def descriptors(arrays):
    """Returns an array of pointers to memref descriptors, and the objects that must outlive it."""
    words = []
    for array in arrays:
        pointer = array.ctypes.data
        strides = [stride // array.itemsize for stride in array.strides]
        words.append((ctypes.c_int64 * (3 + 2 * array.ndim))(pointer, pointer, 0, *array.shape, *strides))
    return (ctypes.c_void_p * len(words))(*[ctypes.addressof(w) for w in words]), words


def seconds(function, calls):
    start = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - start) / calls


def cpu_model():
    for line in subprocess.run(["lscpu"], capture_output=True, text=True).stdout.splitlines():
        if line.startswith("Model name:"):
            return line.split(":")[1].strip()
    return "unknown"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--isa", default="host", help="instruction set to compile for (host)")
    parser.add_argument("--rounds", type=int, default=40, help="rounds, of which the least is taken (40)")
    args = parser.parse_args()
    torch.set_num_threads(1)
    isa = subprocess.run([COMPILER, "-emit-llvm", "-isa", args.isa, "-"], input="", capture_output=True, text=True).stdout
    print(f"machine: {cpu_model()}; code for {isa.splitlines()[0].lstrip('; ')}; PyTorch {torch.__version__}, "
          f"{torch.backends.cpu.get_cpu_capability()}; one thread; least of {args.rounds} rounds\n")
    print("| kernel | rows x columns | ns per element | PyTorch | times as fast | compile |")
    print("| --- | --- | --- | --- | --- | --- |")
    generator = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as directory:
        for rows, columns in [(1024, 384), (512, 4096)]:
            arrays = {"x": (rows, columns), "z": (rows, columns), "w": (columns,), "b": (columns,)}
            arrays = {name: generator.standard_normal(shape, dtype=np.float32) for name, shape in arrays.items()}
            out = np.empty((rows, columns), np.float32)
            for number, (name, body, operands, reference) in enumerate(CASES):
                own = pathlib.Path(directory) / f"{number}-{columns}"
                own.mkdir()
                function, compile_s = compile_kernel(body(columns), args.isa, own)
                inputs = [arrays[o] for o in operands]
                pointers, _keep = descriptors([*inputs, out])
                tensors = [torch.from_numpy(a) for a in inputs]
                ours = lambda: function(pointers)
                theirs = lambda: reference(*tensors)
                with torch.inference_mode():
                    ours()
                    np.testing.assert_allclose(out, theirs().numpy(), rtol=1e-4, atol=2e-6)
                    calls = max(1, int(0.005 / seconds(theirs, 3)))
                    pairs = [(seconds(ours, calls), seconds(theirs, calls)) for _ in range(args.rounds)]
                mine, other = (min(side) for side in zip(*pairs))
                scale = 1e9 / (rows * columns)
                print(f"| {name} | {rows} x {columns} | {mine * scale:.3f} | {other * scale:.3f} | "
                      f"{other / mine:.2f} | {compile_s * 1e3:.0f} ms |", flush=True)


if __name__ == "__main__":
    main()
