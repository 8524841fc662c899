# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes input_ids, attention_mask and token_type_ids, and x of f32, as .npy files, without NumPy.

usage: make_inputs.py DIRECTORY BATCH SEQ [VOCABULARY]
The masks are ragged: sequence b of the batch has seq - b tokens (at least one).
"""
import os
import struct
import sys


def write_npy(path, shape, values, descr="<i8", code="q"):
    header = "{'descr': %r, 'fortran_order': False, 'shape': %r, }" % (descr, tuple(shape))
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        f.write(struct.pack("<%d%s" % (len(values), code), *values))


def main():
    directory, batch, seq = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    vocabulary = int(sys.argv[4]) if len(sys.argv) > 4 else 32
    os.makedirs(directory, exist_ok=True)
    cells = [(b, s) for b in range(batch) for s in range(seq)]
    columns = {
        "input_ids": [(7 * b + 3 * s + 1) % vocabulary for b, s in cells],
        "attention_mask": [int(s < max(1, seq - b)) for b, s in cells],
        "token_type_ids": [int(s >= seq // 2) for _, s in cells],
    }
    for name, values in columns.items():
        write_npy(os.path.join(directory, name + ".npy"), [batch, seq], values)
    floats = [((5 * b + 3 * s) % 11 - 5) / 4 for b, s in cells]
    write_npy(os.path.join(directory, "x.npy"), [batch, seq], floats, "<f4", "f")


main()
