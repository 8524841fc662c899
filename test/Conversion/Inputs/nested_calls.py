# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints functions each of which calls the one before it twice: 2^31 operations with all calls expanded."""
TENSOR = "tensor<4xf32>"
print(f"func.func @f0(%x: {TENSOR}) -> {TENSOR} {{\n  return %x : {TENSOR}\n}}")
for i in range(1, 32):
    print(f"func.func @f{i}(%x: {TENSOR}) -> {TENSOR} {{")
    print(f"  %0 = func.call @f{i - 1}(%x) : ({TENSOR}) -> {TENSOR}")
    print(f"  %1 = func.call @f{i - 1}(%0) : ({TENSOR}) -> {TENSOR}")
    print(f"  return %1 : {TENSOR}\n}}")
