# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints a program that is too large to be planned.

usage: large_frames.py bytes|commands
"""
import sys


def too_many_bytes():
    """1025 buffers of 2^51 bytes each, all in use at once."""
    print("rt.procedure @large() {")
    memory = "memref<281474976710656xf64, #rt.space<local>>"
    for i in range(1025):
        print(f"  %a{i} = rt.alloc : {memory}")
    for i in [*range(1, 1025), *range(1, 1025)]:
        print(f"  rt.copy ins(%a0 : {memory}) outs(%a{i} : {memory})")
    print("  rt.return\n}")


def too_many_commands():
    """Every procedure calls the one before it twice: 2^31 commands."""
    print("rt.procedure @p0() {\n  %e = rt.record on compute\n  rt.return\n}")
    for i in range(1, 32):
        print(f"rt.procedure @p{i}() {{\n  rt.call @p{i - 1}()\n  rt.call @p{i - 1}()\n  rt.return\n}}")


{"bytes": too_many_bytes, "commands": too_many_commands}[sys.argv[1]]()
