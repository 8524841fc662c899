# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bounds of what encodings lose, in NumPy, by the text of runtime/include/braid/Base/Encoding.h."""
import re

import numpy as np

# Mantissa bits, the smallest normal number, the largest one.
FLOATS = {"fp8e4m3": (3, 2**-6, 448), "fp8e5m2": (2, 2**-14, 57344), "fp6e3m2": (2, 2**-2, 28), "fp6e2m3": (3, 1, 7.5),
          "fp4e2m1": (1, 1, 6), "nvfp4": (1, 1, 6)}
CASTS = {"bf16": (2**-8, 2**-133), "f16": (2**-11, 2**-24)}


def halves(encoding):
    """Of the reduce and of the gather half."""
    reduce, _, gather = encoding.partition("/")
    return reduce, gather or reduce


def bound(encoding, x, slack=0.0):
    """The largest error of each element of x, whose last dimension are rows. Elements may differ from x by `slack`."""
    name, group, options = re.fullmatch(r"(\w+)(?::(\d+))?((?:\+[\w-]+)*)", encoding).groups()
    x = x.astype(np.float64)
    slack = np.broadcast_to(slack, x.shape).astype(np.float64)
    if name in CASTS:
        step, least = CASTS[name]
        return (np.abs(x) + slack) * step + least
    size = 32 if name.startswith("mx") else 16 if name == "nvfp4" else int(group or 128)
    row = np.abs(x).max(axis=-1, keepdims=True) + slack.max(axis=-1, keepdims=True)
    whole = x.shape[-1] // size * size
    result, options = np.empty_like(x), options.split("+")[1:]
    if whole > 0:
        groups = (*x.shape[:-1], whole // size, size)
        error = bound_of_groups(name, options, x[..., :whole].reshape(groups), slack[..., :whole].reshape(groups), row[..., None])
        result[..., :whole] = error.reshape(*x.shape[:-1], whole)
    if whole < x.shape[-1]:
        result[..., whole:] = bound_of_groups(name, options, x[..., whole:], slack[..., whole:], row)
    return result


def bound_of_groups(name, options, values, slack, row):
    """Of groups as last dimension, in rows whose largest magnitude is `row`."""
    rotation = next((int(option[len("hadamard"):]) for option in options if option.startswith("hadamard")), 0)
    # The unit of the last place of scales and offsets, and their smallest step.
    unit, least = (2**-7, 2**-126) if "bf16-scale" in options else (2**-10, 2**-24)
    off = slack.max(axis=-1, keepdims=True)
    magnitude = np.abs(values).max(axis=-1, keepdims=True) + off
    if rotation:
        values, off = rotated(values, rotation), off * rotation**0.5
    low, high = values.min(axis=-1, keepdims=True) - off, values.max(axis=-1, keepdims=True) + off
    most, x_most = np.maximum(np.abs(low), np.abs(high)), np.abs(values) + off
    if name.startswith("int"):
        levels = 2**int(name[3:]) - 1
        offset = 0.0
        if "symmetric" in options:
            steps = most / (levels // 2)
        elif "zero-point" in options:
            steps = (np.maximum(high, 0) - np.minimum(low, 0)) / levels
        else:
            offset = np.abs(low) * (1 + unit) + least
            steps = (high - low + np.abs(low) * unit + least) / levels
        error = (steps * (1 + unit) + least) * (0.5 + 2**-12) + 2**-22 * (x_most + offset)
    else:
        mantissa, normal, largest = FLOATS["fp4e2m1" if name == "mxfp4" else name.removeprefix("mx")]
        more = 0.0
        if name.startswith("mx"):
            top = 2.0**np.floor(np.log2(largest))
            scale = np.exp2(np.floor(np.log2(np.maximum(most, 2.0**-126)))) / top
            more = 1 - largest / (2 * top)
        elif name == "nvfp4":
            scale = most / 6 * (1 + 2**-3) + row * (rotation**0.5 if rotation else 1) / (448 * 6) * 2**-9
        else:
            scale = most / largest * (1 + unit) + least
        half = 2.0**-(mantissa + 1)
        error = x_most * (half + 2**-22 + more) + scale * normal * half
    if rotation:
        # Turned back, an element has a share of the errors of its block.
        return np.broadcast_to(error.max(axis=-1, keepdims=True) * rotation**0.5 + 2**-18 * magnitude, values.shape)
    return error


def rotated(x, size):
    """Whole blocks of x in the order of Sylvester's matrix."""
    matrix = np.ones((1, 1))
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    x, whole = x.copy(), x.shape[-1] // size * size
    blocks = x[..., :whole].reshape(*x.shape[:-1], whole // size, size)
    x[..., :whole] = (blocks @ matrix / size**0.5).reshape(*x.shape[:-1], whole)
    return x
