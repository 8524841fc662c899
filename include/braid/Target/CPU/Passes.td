//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef BRAID_TARGET_CPU_PASSES_TD
#define BRAID_TARGET_CPU_PASSES_TD

include "mlir/Pass/PassBase.td"

def CPULowerKernels : Pass<"braid-cpu-lower-kernels", "::mlir::ModuleOp"> {
  let summary = "Lower rt.kernel to loops over rows and vectors of columns, on memrefs";
  let description = [{
    Each kernel becomes a function of its arguments and results as memrefs, with one loop per row dimension around
    *sweeps* over the columns. A sweep computes every value whose inputs are known: reductions of a sweep are known to
    the next one. The sweeps of a layer norm:

    ```mlir
    rt.kernel @norm(%x: tensor<?x384xf32>) -> (tensor<?x384xf32>) { ... }
    // becomes
    func.func @norm(%x: memref<?x384xf32, strided<[?, 1], offset: ?>>,
                    %out: memref<?x384xf32, strided<[?, 1], offset: ?>>) {
      scf.for %row = ... {
        %sums:2 = scf.for %c = 0 to 384 step 32 iter_args(...) -> (vector<16xf32>, vector<16xf32>) ...
        // halve the vectors to a scalar, the mean; a second sweep for the variance
        scf.for %c = 0 to 384 step 16 { ... vector.store ... }
      }
    }
    ```

    The remainder columns are one masked vector, so that every width is vectorized. Values of an earlier sweep are
    recomputed if that is cheap, otherwise kept in a row buffer on the stack (up to `max-kept-bytes`) or read again from
    the kernel's result. The order of sums depends only on the number of columns and the options, so that any range of
    rows gives the same bits.

    Results may alias operands of equal type in kernels without reductions. The innermost dimension of operands must be
    contiguous; other strides are free.

    A kernel that cannot be vectorized is computed by scalars, with a remark that says why.

    Why not upstream's tile-and-fuse, vectorization and bufferization: with them, remainder columns become scalar loops
    unless every loop is peeled, buffers of intermediate rows have to be hoisted by hand, and the order of sums depends
    on how loops were split. The schedule of sweeps also fits one thread block per row.
  }];
  let options = [
    Option<"vectorWidth", "vector-width", "int64_t", /*default=*/"16", "Columns per vector; a power of two">,
    Option<"accumulators", "accumulators", "int64_t", /*default=*/"2",
           "Independent vectors that a reduction runs on">,
    Option<"maxKeptBytes", "max-kept-bytes", "uint64_t", /*default=*/"65536",
           "Bytes of the row buffers of one kernel, at most">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
  let statistics = [
    Statistic<"numVectorized", "num-vectorized", "Number of kernels computed by vectors">,
    Statistic<"numScalar", "num-scalar", "Number of kernels computed by scalars">
  ];
}

def CPUApproximateMath : Pass<"braid-cpu-approximate-math"> {
  let summary = "Replace transcendental functions by polynomials";
  let description = [{
    Replaces math operations without an instruction by polynomials on the same vectors, instead of one call of the C
    library per element:

    ```mlir
    %y = math.erf %x : vector<16xf32>
    // becomes arith and math.fma operations on vector<16xf32>
    ```

    Relative errors: exp and log 8e-8, erf 3e-7, tanh 2.8e-7. sin and cos lose accuracy as the argument grows
    (2e-4 at 4096).
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::vector::VectorDialect"];
}

def CPUKernelABI : Pass<"braid-cpu-kernel-abi", "::mlir::ModuleOp"> {
  let summary = "Give kernels the signature that the runtime calls";
  let description = [{
    A function on memrefs becomes one of a single pointer, to an array of pointers to the memrefs' descriptors:

    ```mlir
    func.func @add(%x: memref<?x384xf32>, %out: memref<?x384xf32>)
    // becomes void add(void *const *descriptors)
    func.func @add(%descriptors: !llvm.ptr)
    ```

    A kernel without a body becomes one that calls the library's function with the same pointer and the scalars:

    ```mlir
    rt.kernel @norm(tensor<?x64xf32>) -> tensor<?x64xf32> attributes {library_symbol = "my_norm", scalars = [32 : i64]}
    // becomes
    llvm.func @my_norm(!llvm.ptr, i64)
    llvm.func @norm(%descriptors: !llvm.ptr)
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

#endif // BRAID_TARGET_CPU_PASSES_TD
