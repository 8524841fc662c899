//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// cuBLASLt's matmuls as plain loops.
//
//===----------------------------------------------------------------------===//
#include "NullDevice.h"
#include "braid/Base/Float16.h"

#include <cstring>

namespace braid::runtime::cuda {
struct cublasLtContext {};
struct cublasLtMatmulDescOpaque_t {
  int compute, scale;
  int32_t transA = kOpN, transB = kOpN;
  uint32_t epilogue = kEpilogueDefault;
  const void *bias = nullptr;
  int32_t biasType = -1;
  int64_t biasBatch = 0;
};
struct cublasLtMatrixLayoutOpaque_t {
  int type;
  uint64_t rows, columns;
  int64_t leading;
  int32_t batch = 1;
  int64_t batchStride = 0;
};
struct cublasLtMatmulPreferenceOpaque_t {
  uint64_t workspace = 0;
  uint32_t alignment[4] = {256, 256, 256, 256};
};
} // namespace braid::runtime::cuda

using namespace braid::null;
namespace runtime = braid::runtime;

namespace {

constexpr uint64_t kMark = 0xB2A1D;
constexpr cublasStatus_t kNotSupported = 15;

cublasStatus_t fail(const std::string &message) {
  return braid::null::result(message) == kSuccess ? 0 : kLibraryError;
}

int64_t sizeOf(int type) {
  return type == kReal32F || type == kReal32I ? 4 : type == kReal8I ? 1 : 2;
}
float load(const void *data, int type, int64_t i) {
  if (type == kReal32F)
    return static_cast<const float *>(data)[i];
  const uint16_t bits = static_cast<const uint16_t *>(data)[i];
  return type == kReal16F ? runtime::f16ToFloat(bits) : runtime::bf16ToFloat(bits);
}
void store(void *data, int type, int64_t i, float value) {
  if (type == kReal32F)
    static_cast<float *>(data)[i] = value;
  else
    static_cast<uint16_t *>(data)[i] =
        type == kReal16F ? runtime::floatToF16(value) : runtime::floatToBf16(value);
}

/// Whether cuBLASLt multiplies integers in this form: rows of a and columns of b along k, with
/// sizes and strides that are multiples of 4, and no epilogue.
bool isOfIntegers(cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                  cublasLtMatrixLayout_t out) {
  const bool types = d->compute == kCompute32I && d->scale == kReal32I && a->type == kReal8I &&
                     b->type == kReal8I && out->type == kReal32I;
  const uint64_t bits = a->rows | a->columns | static_cast<uint64_t>(a->leading) |
                        static_cast<uint64_t>(b->leading) | static_cast<uint64_t>(out->leading);
  return types && d->transA == kOpT && d->transB == kOpN && bits % 4 == 0 &&
         d->epilogue == kEpilogueDefault;
}
bool isOfFloats(cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                cublasLtMatrixLayout_t out) {
  auto isFloat = [](int type) { return type == kReal32F || type == kReal16F || type == kReal16BF; };
  return d->compute == kCompute32F && d->scale == kReal32F && isFloat(a->type) &&
         isFloat(b->type) && isFloat(out->type);
}

/// Adds the accesses to the columns of a column-major matrix.
void addMatrix(std::vector<Access> &accesses, bool writes, const void *data,
               const cublasLtMatrixLayout_t &m) {
  const int64_t size = sizeOf(m->type);
  addRows(accesses, writes, data,
          {m->batch, static_cast<int64_t>(m->columns), static_cast<int64_t>(m->rows)},
          {m->batchStride * size, m->leading * size, size}, size);
}

/// Empty if out = op(a) op(b) is a matmul with these shapes, else what is wrong.
std::string shapeProblem(cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                         cublasLtMatrixLayout_t out) {
  for (auto m : {a, b, out})
    if (m->leading < static_cast<int64_t>(m->rows) || m->rows == 0 || m->columns == 0)
      return "a matrix of " + std::to_string(m->rows) + " rows has columns every " +
             std::to_string(m->leading) + " elements";
  if (a->batch != out->batch || b->batch != out->batch)
    return "batches of " + std::to_string(a->batch) + " and " + std::to_string(b->batch) +
           " matrices do not give " + std::to_string(out->batch);
  const uint64_t m = d->transA == kOpT ? a->columns : a->rows;
  const uint64_t k = d->transA == kOpT ? a->rows : a->columns;
  const uint64_t n = d->transB == kOpT ? b->rows : b->columns;
  const uint64_t k2 = d->transB == kOpT ? b->columns : b->rows;
  if (k != k2 || out->rows != m || out->columns != n || a->type != b->type)
    return "matrices of " + std::to_string(m) + "x" + std::to_string(k) + " and " +
           std::to_string(k2) + "x" + std::to_string(n) + " do not give " +
           std::to_string(out->rows) + "x" + std::to_string(out->columns);
  return {};
}

} // namespace

extern "C" {

const char *cublasLtGetStatusString(cublasStatus_t status) {
  Guard guard(world().mutex);
  return status == kLibraryError ? world().lastError.c_str() : "CUBLAS_STATUS_NOT_SUPPORTED";
}
cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
  Guard guard(world().mutex);
  *handle = new runtime::cuda::cublasLtContext;
  world().handles.insert(*handle);
  return 0;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  Guard guard(world().mutex);
  if (!world().handles.erase(handle))
    return fail("a handle is destroyed that does not exist");
  delete handle;
  return 0;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, int compute, int scale) {
  *desc = new runtime::cuda::cublasLtMatmulDescOpaque_t{compute, scale};
  return 0;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  delete desc;
  return 0;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, int attribute,
                                              const void *value, size_t bytes) {
  auto set = [&](auto &field) -> cublasStatus_t {
    if (bytes != sizeof field)
      return fail("an attribute of a matmul has " + std::to_string(bytes) + " bytes, expects " +
                  std::to_string(sizeof field));
    std::memcpy(static_cast<void *>(&field), value, bytes);
    return 0;
  };
  switch (attribute) {
  case kDescTransA:
    return set(desc->transA);
  case kDescTransB:
    return set(desc->transB);
  case kDescEpilogue:
    return set(desc->epilogue);
  case kDescBiasPointer:
    return set(desc->bias);
  case kDescBiasDataType:
    return set(desc->biasType);
  case kDescBiasBatchStride:
    return set(desc->biasBatch);
  default:
    return fail("an attribute of a matmul is unknown: " + std::to_string(attribute));
  }
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, int type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
  *layout = new runtime::cuda::cublasLtMatrixLayoutOpaque_t{type, rows, columns, leading};
  return 0;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout, int attribute,
                                                const void *value, size_t bytes) {
  if (attribute == kLayoutBatchCount && bytes == sizeof layout->batch)
    std::memcpy(&layout->batch, value, bytes);
  else if (attribute == kLayoutBatchStride && bytes == sizeof layout->batchStride)
    std::memcpy(&layout->batchStride, value, bytes);
  else
    return fail("an attribute of a matrix is unknown or of another size: " +
                std::to_string(attribute));
  return 0;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return 0;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference) {
  *preference = new runtime::cuda::cublasLtMatmulPreferenceOpaque_t;
  return 0;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return 0;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    int attribute, const void *value,
                                                    size_t bytes) {
  if (attribute == kPreferenceMaxWorkspace && bytes == 8)
    std::memcpy(&preference->workspace, value, bytes);
  else if (attribute >= kPreferenceAlignmentA && attribute <= kPreferenceAlignmentD && bytes == 4)
    std::memcpy(&preference->alignment[attribute - kPreferenceAlignmentA], value, bytes);
  else
    return fail("a preference is unknown or of another size: " + std::to_string(attribute));
  return 0;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t out,
                                              cublasLtMatmulPreference_t preference, int asked,
                                              cublasLtMatmulHeuristicResult_t *results,
                                              int *found) {
  Guard guard(world().mutex);
  *found = 0;
  if (std::string problem = shapeProblem(desc, a, b, out); !problem.empty() || asked < 1)
    return fail(problem);
  if (!isOfFloats(desc, a, b, out) && !isOfIntegers(desc, a, b, out))
    return kNotSupported;
  auto &best = results[0];
  best = {};
  // The algorithm records the shapes and alignments for which it is valid.
  best.algo = {{kMark, a->rows, a->columns, b->rows, b->columns, preference->alignment[0],
                preference->alignment[1], preference->alignment[3]}};
  best.workspaceSize = std::min<uint64_t>(preference->workspace, 1 << 20);
  *found = 1;
  return 0;
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void *alpha,
                              const void *A, cublasLtMatrixLayout_t a, const void *B,
                              cublasLtMatrixLayout_t b, const void *beta, const void *C,
                              cublasLtMatrixLayout_t c, void *D, cublasLtMatrixLayout_t d,
                              const cublasLtMatmulAlgo_t *algo, void *workspace,
                              size_t workspaceBytes, CUstream stream) {
  Guard guard(world().mutex);
  if (std::string problem = shapeProblem(desc, a, b, d); !problem.empty())
    return fail(problem);
  const uint64_t expected[5] = {kMark, a->rows, a->columns, b->rows, b->columns};
  if (!algo || std::memcmp(algo->data, expected, sizeof expected) != 0)
    return fail("a matmul is given an algorithm that was chosen for another one");
  const void *addresses[3] = {A, B, D};
  for (int i = 0; i < 3; ++i)
    if (reinterpret_cast<uintptr_t>(addresses[i]) % algo->data[5 + i] != 0)
      return fail("a matrix is not aligned to the " + std::to_string(algo->data[5 + i]) +
                  " bytes that its algorithm was chosen for");
  const bool integers = desc->compute == kCompute32I;
  auto scalar = [&](const void *value) {
    return integers ? static_cast<float>(*static_cast<const int32_t *>(value))
                    : *static_cast<const float *>(value);
  };
  const float addend = scalar(beta);
  if (scalar(alpha) != 1 || (integers && addend != 0) ||
      (addend != 0 && (addend != 1 || C != D || c != d)))
    return kNotSupported;
  const bool hasBias = desc->epilogue == kEpilogueBias;
  std::vector<Access> accesses;
  addMatrix(accesses, false, A, a);
  addMatrix(accesses, false, B, b);
  if (addend != 0)
    addMatrix(accesses, false, D, d);
  addMatrix(accesses, true, D, d);
  for (int32_t batch = 0; hasBias && batch < d->batch; ++batch)
    accesses.push_back({reinterpret_cast<uint64_t>(desc->bias) +
                            static_cast<uint64_t>(batch * desc->biasBatch * sizeOf(desc->biasType)),
                        d->rows * static_cast<uint64_t>(sizeOf(desc->biasType)), false});
  accesses.push_back({reinterpret_cast<uint64_t>(workspace), workspaceBytes, true});
  const auto la = *a, lb = *b, ld = *d;
  const auto op = *desc;
  auto multiplyIntegers = [=] {
    for (int32_t batch = 0; batch < ld.batch; ++batch)
      for (uint64_t column = 0; column < ld.columns; ++column)
        for (uint64_t row = 0; row < ld.rows; ++row) {
          const auto i = static_cast<int64_t>(row), j = static_cast<int64_t>(column);
          const auto *x = static_cast<const int8_t *>(A) + i * la.leading + batch * la.batchStride;
          const auto *y = static_cast<const int8_t *>(B) + j * lb.leading + batch * lb.batchStride;
          int32_t sum = 0;
          for (uint64_t k = 0; k < la.rows; ++k)
            sum += x[k] * y[k];
          static_cast<int32_t *>(D)[i + j * ld.leading + batch * ld.batchStride] = sum;
        }
  };
  auto multiplyFloats = [=] {
    const auto inner = static_cast<int64_t>(op.transA == kOpT ? la.rows : la.columns);
    for (int64_t batch = 0; batch < ld.batch; ++batch)
      for (int64_t column = 0; column < static_cast<int64_t>(ld.columns); ++column)
        for (int64_t row = 0; row < static_cast<int64_t>(ld.rows); ++row) {
          double sum = hasBias ? load(op.bias, op.biasType, row + batch * op.biasBatch) : 0;
          for (int64_t k = 0; k < inner; ++k) {
            const int64_t i = op.transA == kOpT ? k + row * la.leading : row + k * la.leading;
            const int64_t j = op.transB == kOpT ? column + k * lb.leading : k + column * lb.leading;
            sum += double(load(A, la.type, i + batch * la.batchStride)) *
                   double(load(B, lb.type, j + batch * lb.batchStride));
          }
          const int64_t at = row + column * ld.leading + batch * ld.batchStride;
          if (addend != 0)
            sum += load(D, ld.type, at);
          store(D, ld.type, at, static_cast<float>(sum));
        }
  };
  std::function<void()> run;
  if (integers)
    run = multiplyIntegers;
  else
    run = multiplyFloats;
  return fail(
      submit(reinterpret_cast<Stream *>(stream), checked("a matmul", std::move(accesses), run)));
}

} // extern "C"
