//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Compiles CUDA source to a library for the host, with cuda_on_host.h.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_LIB_CUDAONHOST_HOSTCOMPILER_H
#define BRAID_TEST_LIB_CUDAONHOST_HOSTCOMPILER_H

#include <string>
#include <vector>

namespace braid::test {

/// The kernels of braid/library.cuh.
inline constexpr const char *kLibraryKernels[] = {
    "braid_copy",
    "braid_gather",
    "braid_append",
    "braid_copy_counted",
    "braid_check_counts",
    "braid_rotary_table_f32",
    "braid_rotary_table_f16",
    "braid_rotary_table_bf16",
    "braid_rotary_f32",
    "braid_rotary_f16",
    "braid_rotary_bf16",
    "braid_position_ids",
    "braid_top_k",
    "braid_last_token",
    "braid_reduce_dims",
    "braid_attention_f32",
    "braid_attention_f16",
    "braid_attention_bf16",
    "braid_reduce",
    "braid_quantize_rows",
    "braid_int8_matmul",
};

/// The kernels of braid/codec.cuh that a source has (braid/Runtime/CudaCodec.h).
std::vector<std::string> codecKernels(const std::string &source);

/// Compiles `text`, which includes headers as <braid/...>, into the shared library `path`. Returns
/// the compiler's output on failure, otherwise empty.
std::string compileForHost(const std::string &text, const std::string &path);

} // namespace braid::test
#endif // BRAID_TEST_LIB_CUDAONHOST_HOSTCOMPILER_H
