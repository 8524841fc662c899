//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The null device detects launches, matmuls and collectives that the real libraries would execute
// wrongly.
//
//===----------------------------------------------------------------------===//
#include "../../../runtime/lib/Cuda/Blas.h"
#include "../../../runtime/lib/Cuda/Nccl.h"
#include "CudaTesting.h"
#include "NullDeviceTesting.h"
#include "Paths.h"
#include "braid/library_arguments.h"

#include <array>
#include <functional>

using namespace braid::runtime;
using namespace braid::runtime::cuda;
using braid::runtime::testing::kNullDevicePath;
using braid::runtime::testing::kNullKernelsPath;

namespace {

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

class NullKernels : public braid::runtime::testing::NullDeviceTest {
protected:
  void SetUp() override {
    NullDeviceTest::SetUp();
    auto file = readFile(kNullKernelsPath);
    ASSERT_OK(file);
    code = *file;
    load(device);
    EXPECT_EQ(fill(memory, 256, first), "");
    EXPECT_EQ(fill(other, 256, first), "");
  }
  void load(const DevicePtr &on) {
    ASSERT_OK(on->use());
    CUmodule loaded;
    ASSERT_EQ(problem(driver->cuModuleLoadData(&loaded, code.data())), "");
    module = Module(on, loaded, driver->cuModuleUnload);
    ASSERT_OK(device->use());
  }
  CUfunction find(const char *name) const {
    CUfunction function = nullptr;
    EXPECT_EQ(driver->cuModuleGetFunction(&function, module.get(), name), kSuccess);
    return function;
  }
  std::string launch(CUfunction function, unsigned grid, unsigned block, void **parameters,
                     unsigned shared = 0) const {
    return problem(driver->cuLaunchKernel(function, grid, 1, 1, block, 1, 1, shared, first.get(),
                                          parameters, nullptr));
  }
  /// Two rows of 24 floats, from `memory` to `other`; `bias` is within `memory`.
  std::string addBias(unsigned grid, unsigned block, uint64_t shift = 0,
                      int64_t stride = 24) const {
    uint64_t x = memory + shift, bias = memory, y = other;
    int64_t xStride = stride, yStride = 24;
    unsigned rows = 2;
    void *parameters[] = {&x, &xStride, &bias, &y, &yStride, &rows};
    return launch(find("braid_add_bias"), grid, block, parameters);
  }
  std::string copyUnits(braid::library::Copy arguments, unsigned grid, unsigned block) const {
    void *parameters[] = {&arguments};
    return launch(find("braid_copy"), grid, block, parameters);
  }
  braid::library::Copy rows(int unit) const { // two rows of 16 bytes, 32 apart
    braid::library::Copy copy{};
    copy.source = pointer(memory);
    copy.dest = pointer(other);
    copy.unit = unit;
    copy.rank = 1;
    copy.runUnits = 16 / unit;
    copy.units = 32 / unit;
    copy.counts[0] = 2;
    copy.sourceStrides[0] = copy.destStrides[0] = 32;
    return copy;
  }

  std::vector<std::byte> code;
  Module module;
};

TEST_F(NullKernels, ChecksGeneratedLaunches) {
  EXPECT_EQ(addBias(2, 32), "");
  EXPECT_EQ(addBias(3, 32), "'braid_add_bias' over 2 rows expects 2 blocks of 32 threads with 0 "
                            "bytes, got 3 of 32 with 0");
  EXPECT_EQ(addBias(2, 64), "'braid_add_bias' over 2 rows expects 2 blocks of 32 threads with 0 "
                            "bytes, got 2 of 64 with 0");
  EXPECT_EQ(addBias(2, 32, 4), "'braid_add_bias' expects operand 'x' aligned to 16 bytes");
  EXPECT_EQ(addBias(2, 32, 0, 25), "'braid_add_bias' expects operand 'x' aligned to 16 bytes");
  EXPECT_EQ(addBias(2, 32, 80),
            "'braid_add_bias' on stream # reads 192 bytes at 80 of allocation # "
            "(256 bytes), beyond its end");
  EXPECT_EQ(addBias(0, 32), "'braid_add_bias' is launched with blocks or threads that are not a "
                            "row");
}

TEST_F(NullKernels, ChecksDynamicSharedMemory) {
  CUfunction function = find("braid_add_bias");
  EXPECT_EQ(launch(function, 2, 32, nullptr, 48 * 1024 + 16),
            "'braid_add_bias' is launched with 49168 bytes of dynamic shared memory, it may have "
            "49152");
  EXPECT_EQ(driver->cuFuncSetAttribute(function, kMaxDynamicSharedBytes, 49168), kSuccess);
  uint64_t x = memory, bias = memory, y = other;
  int64_t stride = 24;
  unsigned rows = 2;
  void *parameters[] = {&x, &stride, &bias, &y, &stride, &rows};
  EXPECT_EQ(launch(function, 2, 32, parameters, 49168),
            "'braid_add_bias' over 2 rows expects 2 blocks of 32 threads with 0 bytes, got 2 of 32 "
            "with 49168");
}

TEST_F(NullKernels, ChecksLaunchesOfTheLibrary) {
  EXPECT_EQ(copyUnits(rows(16), 1, 256), "");
  EXPECT_EQ(copyUnits(rows(16), 2, 256),
            "'braid_copy' expects 1 blocks of 256 threads, got 2 of 256");
  EXPECT_EQ(copyUnits(rows(16), 4, 64),
            "'braid_copy' expects 1 blocks of 256 threads, got 4 of 64");
  braid::library::Copy odd = rows(16);
  odd.source = pointer(memory + 8);
  EXPECT_EQ(copyUnits(odd, 1, 256), "'braid_copy' of units of 16 bytes does not fit its sizes");
  braid::library::Copy more = rows(16);
  more.units = 3;
  EXPECT_EQ(copyUnits(more, 1, 256), "'braid_copy' of units of 16 bytes does not fit its sizes");
}

TEST_F(NullKernels, KnowsTheSizesOfParameters) {
  auto sizes = [&](const char *name) {
    std::vector<size_t> all;
    size_t offset, size;
    CUfunction function = find(name);
    while (driver->cuFuncGetParamInfo(function, all.size(), &offset, &size) == kSuccess)
      all.push_back(size);
    return all;
  };
  EXPECT_THAT(sizes("braid_add_bias"), ::testing::ElementsAre(8, 8, 8, 8, 8, 4));
  EXPECT_THAT(sizes("braid_copy"), ::testing::ElementsAre(sizeof(braid::library::Copy)));
  CUfunction function;
  EXPECT_EQ(driver->cuModuleGetFunction(&function, module.get(), "braid_subtract"), kInvalidValue);
}

TEST_F(NullKernels, ChecksCode) {
  CUmodule none;
  EXPECT_EQ(problem(driver->cuModuleLoadData(&none, "a text that is no library at all")),
            "the null device runs libraries of the host, this is none");
  std::vector<std::byte> gpu = code;
  gpu[18] = std::byte{190}; // EM_CUDA
  EXPECT_EQ(problem(driver->cuModuleLoadData(&none, gpu.data())),
            "the null device runs libraries of the host, this is code for a GPU");
}

TEST_F(NullKernels, NoticesCodeThatIsUnloadedInUse) {
  CUfunction function = find("braid_add_bias");
  EXPECT_EQ(addBias(2, 32), "");
  EXPECT_EQ(problem(driver->cuModuleUnload(module.get())),
            "code is unloaded while 'braid_add_bias' may still run");
  EXPECT_OK(device->finish(first.get()));
  CUmodule gone = module.get();
  module = {};
  EXPECT_EQ(problem(driver->cuModuleUnload(gone)), "code is unloaded that is not loaded");
  EXPECT_EQ(launch(function, 1, 32, nullptr), "a function is launched that is not loaded");
}

TEST_F(NullKernels, NoticesCodeOfAnotherDevice) {
  auto elsewhere = Device::open(driver, 1, 0);
  ASSERT_OK(elsewhere);
  load(*elsewhere);
  EXPECT_EQ(addBias(2, 32), "'braid_add_bias' was loaded on device 1, stream # is of device 0");
}

TEST_F(NullKernels, WaitsNoLongerThanTheLimit) {
  auto lost = Device::open(driver, 0, kLimitNs);
  ASSERT_OK(lost);
  Stream stream = std::move(*createStream(*lost));
  std::swap(first, stream);
  EXPECT_OK((*lost)->finish(stream.get())); // waits for the fills
  Event done = event();
  EXPECT_EQ(record(done, stream), "");
  EXPECT_EQ(wait(first, done), "");
  braid::runtime::testing::stallNullDevice("braid_add_bias");
  EXPECT_EQ(addBias(2, 32), "");
  braid::runtime::testing::stallNullDevice("");
  EXPECT_ERROR((*lost)->finish(first.get()), "work on null device has not ended within 0.1 s");
  EXPECT_ERROR((*lost)->use(), "the device 'null device' is not used any more: work on it has not "
                               "ended");
  std::swap(first, stream);
}

//===----------------------------------------------------------------------===//
// cuBLASLt
//===----------------------------------------------------------------------===//

/// other[4, 2] = memory[4, 8] (memory + 128)[2, 8]^T, in cuBLASLt's terms.
class NullBlas : public braid::runtime::testing::NullDeviceTest {
protected:
  void SetUp() override {
    NullDeviceTest::SetUp();
    auto loaded = Blas::load(kNullDevicePath);
    ASSERT_OK(loaded);
    blas = *loaded;
    ASSERT_EQ(blas->cublasLtCreate(&handle), 0);
    ASSERT_EQ(blas->cublasLtMatmulDescCreate(&matmul, kCompute32F, kReal32F), 0);
    ASSERT_EQ(set(kDescTransA, kOpT), "");
    a = layout(8, 2, 8);
    b = layout(8, 4, 8);
    d = layout(2, 4, 2);
    EXPECT_EQ(fill(memory, 256, first), "");
  }
  void TearDown() override {
    for (cublasLtMatrixLayout_t l : layouts)
      blas->cublasLtMatrixLayoutDestroy(l);
    blas->cublasLtMatmulDescDestroy(matmul);
    blas->cublasLtDestroy(handle);
    NullDeviceTest::TearDown();
  }
  std::string failure(cublasStatus_t status) const {
    return status == 0 ? "" : withoutNumbers(blas->cublasLtGetStatusString(status));
  }
  template <typename T> std::string set(int attribute, T value) const {
    return failure(blas->cublasLtMatmulDescSetAttribute(
        matmul, attribute, static_cast<const void *>(&value), sizeof value));
  }
  cublasLtMatrixLayout_t layout(uint64_t rows, uint64_t columns, int64_t leading) {
    cublasLtMatrixLayout_t result = nullptr;
    EXPECT_EQ(blas->cublasLtMatrixLayoutCreate(&result, kReal32F, rows, columns, leading), 0);
    layouts.push_back(result);
    return result;
  }
  /// The algorithm for matrices whose addresses are multiples of `alignment`.
  std::string choose(uint32_t alignment) {
    cublasLtMatmulPreference_t preference;
    EXPECT_EQ(blas->cublasLtMatmulPreferenceCreate(&preference), 0);
    for (int i : {kPreferenceAlignmentA, kPreferenceAlignmentB, kPreferenceAlignmentD})
      EXPECT_EQ(blas->cublasLtMatmulPreferenceSetAttribute(preference, i, &alignment, 4), 0);
    const uint32_t narrow = 0;
    EXPECT_EQ(failure(blas->cublasLtMatmulPreferenceSetAttribute(
                  preference, kPreferenceMaxWorkspace, &narrow, 4)),
              "a preference is unknown or of another size: 1");
    cublasLtMatmulHeuristicResult_t best{};
    int found = 0;
    const cublasStatus_t status = blas->cublasLtMatmulAlgoGetHeuristic(
        handle, matmul, a, b, d, d, preference, 1, &best, &found);
    algorithm = best.algo;
    blas->cublasLtMatmulPreferenceDestroy(preference);
    return failure(status);
  }
  std::string multiply(uint64_t shift = 0, size_t workspaceBytes = 0) const {
    const float one = 1, zero = 0;
    return failure(blas->cublasLtMatmul(handle, matmul, &one, pointer(memory + 128 + shift), a,
                                        pointer(memory), b, &zero, pointer(other), d,
                                        pointer(other), d, &algorithm, pointer(other + 128),
                                        workspaceBytes, first.get()));
  }

  std::shared_ptr<const Blas> blas;
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t matmul = nullptr;
  std::vector<cublasLtMatrixLayout_t> layouts;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, d = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
};

TEST_F(NullBlas, ChecksProducts) {
  EXPECT_EQ(multiply(), "a matmul is given an algorithm that was chosen for another one");
  EXPECT_EQ(choose(64), "");
  EXPECT_EQ(multiply(0, 128), "");
  EXPECT_EQ(multiply(0, 129), "a matmul on stream # writes 129 bytes at 128 of allocation # (256 "
                              "bytes), beyond its end");
  EXPECT_EQ(multiply(32), "a matrix is not aligned to the 64 bytes that its algorithm was chosen "
                          "for");
  EXPECT_EQ(multiply(128), "a matmul on stream # reads 64 bytes outside of any allocation");
  a = layout(8, 3, 8);
  EXPECT_EQ(multiply(), "matrices of 3x8 and 8x4 do not give 2x4");
  EXPECT_EQ(choose(64), "matrices of 3x8 and 8x4 do not give 2x4");
  a = layout(8, 2, 7);
  EXPECT_EQ(choose(64), "a matrix of 8 rows has columns every 7 elements");
}

TEST_F(NullBlas, MultipliesIntegersInOneForm) {
  blas->cublasLtMatmulDescDestroy(matmul);
  ASSERT_EQ(blas->cublasLtMatmulDescCreate(&matmul, kCompute32I, kReal32I), 0);
  const auto narrow = [&](uint64_t rows, uint64_t columns, int64_t leading) {
    cublasLtMatrixLayout_t result = nullptr;
    EXPECT_EQ(blas->cublasLtMatrixLayoutCreate(&result, kReal8I, rows, columns, leading), 0);
    layouts.push_back(result);
    return result;
  };
  cublasLtMatrixLayout_t wide = nullptr;
  EXPECT_EQ(blas->cublasLtMatrixLayoutCreate(&wide, kReal32I, 4, 3, 4), 0);
  layouts.push_back(wide);
  a = narrow(4, 8, 4);
  b = narrow(8, 3, 8);
  d = wide;
  EXPECT_EQ(choose(16), "CUBLAS_STATUS_NOT_SUPPORTED"); // a is not transposed
  EXPECT_EQ(set(kDescTransA, kOpT), "");
  a = narrow(8, 4, 8);
  EXPECT_EQ(choose(16), "");
  b = narrow(8, 3, 9);
  EXPECT_EQ(choose(16), "CUBLAS_STATUS_NOT_SUPPORTED"); // columns every 9 bytes
  a = narrow(6, 4, 8);
  b = narrow(6, 3, 8);
  EXPECT_EQ(choose(16), "CUBLAS_STATUS_NOT_SUPPORTED"); // 6 products
  b = layout(6, 3, 8);
  a = layout(6, 4, 8);
  EXPECT_EQ(choose(16), "CUBLAS_STATUS_NOT_SUPPORTED"); // of floats
}

TEST_F(NullBlas, ChecksHandles) {
  cublasLtHandle_t more = nullptr;
  ASSERT_EQ(blas->cublasLtCreate(&more), 0);
  EXPECT_EQ(failure(blas->cublasLtDestroy(more)), "");
  EXPECT_EQ(failure(blas->cublasLtDestroy(more)), "a handle is destroyed that does not exist");
}

TEST_F(NullBlas, ChecksAttributes) {
  EXPECT_EQ(set(kDescTransA, int64_t{1}), "an attribute of a matmul has 8 bytes, expects 4");
  EXPECT_EQ(set(99, int32_t{1}), "an attribute of a matmul is unknown: 99");
  EXPECT_EQ(choose(64), "");
  const void *bias = pointer(memory + 252);
  EXPECT_EQ(set(kDescEpilogue, kEpilogueBias), "");
  EXPECT_EQ(set(kDescBiasPointer, bias), "");
  EXPECT_EQ(set(kDescBiasDataType, int32_t{kReal32F}), "");
  EXPECT_EQ(multiply(), "a matmul on stream # reads 8 bytes at 252 of allocation # (256 bytes), "
                        "beyond its end");
}

//===----------------------------------------------------------------------===//
// NCCL
//===----------------------------------------------------------------------===//

/// Two ranks; `first` and `memory` are on one, `there` and `far` on the other.
class NullNccl : public braid::runtime::testing::NullDeviceTest {
protected:
  void SetUp() override {
    NullDeviceTest::SetUp();
    auto loaded = Nccl::load(kNullDevicePath);
    ASSERT_OK(loaded);
    nccl = *loaded;
    auto opened = Device::open(driver, 1, kLimitNs);
    ASSERT_OK(opened);
    elsewhere = *opened;
    there = std::move(*createStream(elsewhere));
    auto allocated = allocate(elsewhere, 256, there.get(), "memory");
    ASSERT_OK(allocated);
    far = std::move(*allocated);
    ASSERT_OK(device->use());
    EXPECT_EQ(fill(memory, 256, first), "");
    const int devices[2] = {0, 1};
    ASSERT_EQ(nccl->ncclCommInitAll(ranks.data(), 2, devices), 0);
  }
  void TearDown() override {
    for (ncclComm_t rank : ranks)
      nccl->ncclCommDestroy(rank);
    ASSERT_OK(elsewhere->use());
    EXPECT_OK(elsewhere->finish(there.get()));
    far = {};
    NullDeviceTest::TearDown();
  }
  std::string failure(ncclResult_t result) const {
    return result == 0 ? "" : withoutNumbers(nccl->ncclGetErrorString(result));
  }
  /// The result of the calls in `give` at the end of their group.
  std::string together(const std::function<void()> &give) const {
    EXPECT_EQ(nccl->ncclGroupStart(), 0);
    give();
    return failure(nccl->ncclGroupEnd());
  }
  ncclResult_t sum(int rank, size_t count, size_t offset = 0) const {
    void *data = pointer((rank == 0 ? memory : far.get()) + offset);
    return nccl->ncclAllReduce(data, data, count, kNcclFloat32, kNcclSum,
                               ranks[static_cast<size_t>(rank)],
                               rank == 0 ? first.get() : there.get());
  }
  ncclResult_t send(size_t count) const {
    return nccl->ncclSend(pointer(memory), count, kNcclFloat32, 1, ranks[0], first.get());
  }
  ncclResult_t receive(size_t count) const {
    return nccl->ncclRecv(pointer(far.get()), count, kNcclFloat32, 0, ranks[1], there.get());
  }

  std::shared_ptr<const Nccl> nccl;
  DevicePtr elsewhere;
  Stream there;
  Memory far;
  std::array<ncclComm_t, 2> ranks{};
};

TEST_F(NullNccl, ChecksCollectives) {
  EXPECT_EQ(together([&] {
              sum(0, 64);
              sum(1, 64);
            }),
            "");
  EXPECT_EQ(together([&] {
              sum(0, 64);
              sum(1, 63);
            }),
            "ranks of a communicator give different collectives: ncclAllReduce of 64 and "
            "ncclAllReduce of 63");
  EXPECT_EQ(together([&] { sum(0, 64); }), "ranks of a communicator give 1 and 0 collectives");
  EXPECT_EQ(
      together([&] {
        sum(0, 64, 4);
        sum(1, 64);
      }),
      "ncclAllReduce on stream # reads 256 bytes at 4 of allocation # (256 bytes), beyond its "
      "end");
  EXPECT_EQ(
      copy(other, memory, 4, second),
      "a copy on stream # reads 4 bytes at 0 of allocation # (256 bytes) without being ordered "
      "after ncclAllReduce on stream #, which writes them");
}

TEST_F(NullNccl, ChecksPairs) {
  EXPECT_EQ(together([&] {
              send(64);
              receive(64);
            }),
            "");
  EXPECT_EQ(together([&] {
              send(64);
              receive(32);
            }),
            "a send of 64 does not match a receive of 32");
  EXPECT_EQ(together([&] { send(64); }), "a send of rank 0 to rank 1 is not received");
  EXPECT_EQ(together([&] { receive(64); }), "a receive of rank 1 from rank 0 has no send");
}

TEST_F(NullNccl, ChecksGroupsAndCommunicators) {
  EXPECT_EQ(failure(sum(0, 64)),
            "ncclAllReduce is given outside of a group by the only thread of all ranks");
  EXPECT_EQ(failure(nccl->ncclGroupEnd()), "a group ends that has not begun");
  EXPECT_EQ(together([&] {
              void *data = pointer(memory);
              EXPECT_EQ(failure(nccl->ncclAllReduce(data, data, 64, kNcclFloat32, kNcclSum,
                                                    ranks[1], first.get())),
                        "ncclAllReduce is given a stream that is not of its communicator's device");
            }),
            "");
  ASSERT_EQ(driver->cuStreamBeginCapture_v2(first.get(), kCaptureThreadLocal), kSuccess);
  EXPECT_EQ(together([&] {
              sum(0, 64);
              sum(1, 64);
            }),
            "streams of which some are being captured are used together");
  CUgraph captured;
  EXPECT_EQ(problem(driver->cuStreamEndCapture(first.get(), &captured)), "");
  EXPECT_EQ(problem(driver->cuGraphDestroy(captured)), "");
  const int devices[2] = {1, 1};
  std::array<ncclComm_t, 2> more{};
  EXPECT_EQ(failure(nccl->ncclCommInitAll(more.data(), 2, devices)),
            "two ranks of a communicator are on one device");
}

} // namespace
