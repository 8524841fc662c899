//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// From the third run on, no thread or process allocates memory, except inside oneDNN. An allocator
// in front of the C library's one counts allocations, in memory that forked ranks share.
//
//===----------------------------------------------------------------------===//
#include "CollectiveTable.h"
#include "CudaPrograms.h"
#include "FeedForward.h"
#include "StatePrograms.h"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <link.h>
#include <new>
#include <sys/mman.h>
#include <thread>

namespace {

struct Counts {
  std::atomic<bool> counting{false};
  std::atomic<int64_t> ours{0}, ofDnnl{0};
};
Counts *counts = nullptr;
uintptr_t dnnlBegin = 0, dnnlEnd = 0;

void note(const void *caller) {
  if (!counts || !counts->counting.load(std::memory_order_relaxed))
    return;
  auto address = reinterpret_cast<uintptr_t>(caller);
  (address >= dnnlBegin && address < dnnlEnd ? counts->ofDnnl : counts->ours).fetch_add(1);
}

} // namespace

// NOLINTBEGIN: the names are the C library's.
extern "C" {
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void *malloc(size_t bytes) {
  note(__builtin_return_address(0));
  return __libc_malloc(bytes);
}
void *calloc(size_t count, size_t bytes) {
  note(__builtin_return_address(0));
  return __libc_calloc(count, bytes);
}
void *realloc(void *memory, size_t bytes) {
  note(__builtin_return_address(0));
  return __libc_realloc(memory, bytes);
}
void *aligned_alloc(size_t alignment, size_t bytes) {
  note(__builtin_return_address(0));
  return __libc_memalign(alignment, bytes);
}
void *memalign(size_t alignment, size_t bytes) {
  note(__builtin_return_address(0));
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void **memory, size_t alignment, size_t bytes) {
  note(__builtin_return_address(0));
  *memory = __libc_memalign(alignment, bytes);
  return *memory ? 0 : ENOMEM;
}
}
void *operator new(size_t bytes) {
  note(__builtin_return_address(0));
  if (void *memory = __libc_malloc(bytes))
    return memory;
  throw std::bad_alloc();
}
void *operator new[](size_t bytes) {
  note(__builtin_return_address(0));
  if (void *memory = __libc_malloc(bytes))
    return memory;
  throw std::bad_alloc();
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete[](void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }
void operator delete[](void *memory, size_t) noexcept { std::free(memory); }
// NOLINTEND

using namespace braid::runtime;
using namespace braid::runtime::testing;

namespace {

int findDnnl(dl_phdr_info *info, size_t, void *) {
  if (std::string(info->dlpi_name).find("libdnnl") == std::string::npos)
    return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i)
    if (info->dlpi_phdr[i].p_type == PT_LOAD) {
      dnnlBegin = info->dlpi_addr;
      dnnlEnd = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
    }
  return 1;
}

class Allocations : public ::testing::TestWithParam<const char *> {
protected:
  static void SetUpTestSuite() {
    dl_iterate_phdr(findDnnl, nullptr);
    ASSERT_GT(dnnlEnd, dnnlBegin);
    void *shared =
        mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(shared, MAP_FAILED);
    counts = new (shared) Counts;
  }

  WorldOptions options() const {
    WorldOptions options;
    options.transport = GetParam();
    return options;
  }

  void expectNone(Session &session) {
    for (int run = 0; run < 2; ++run)
      ASSERT_OK(session.run());
    int64_t ofDnnl = -1;
    for (int run = 0; run < 3; ++run) {
      counts->ours = counts->ofDnnl = 0;
      counts->counting = true;
      Status status = session.run();
      counts->counting = false;
      ASSERT_OK(status);
      EXPECT_EQ(counts->ours.load(), 0);
      // oneDNN allocates tables of a matmul's arguments whenever it runs one, the same number each
      // time.
      if (ofDnnl >= 0)
        EXPECT_EQ(counts->ofDnnl.load(), ofDnnl);
      ofDnnl = counts->ofDnnl.load();
    }
    RecordProperty("ofDnnl", std::to_string(ofDnnl));
  }
};

TEST_P(Allocations, AreCounted) { // otherwise the other tests would check nothing
  counts->ours = 0;
  counts->counting = true;
  std::thread([] { std::make_unique<std::vector<char>>(100)->front() = 1; }).join();
  counts->counting = false;
  EXPECT_GE(counts->ours.load(), 2);
}

TEST_P(Allocations, NoneForProductsAndKernels) {
  for (int64_t tp : {1, 2})
    for (int64_t threads : {1, 2}) {
      SCOPED_TRACE("tp " + std::to_string(tp) + ", threads " + std::to_string(threads));
      WorldOptions o = options();
      o.threadsPerRank = threads;
      auto session = feedForward(1, tp).session(o);
      ASSERT_OK(session);
      ASSERT_OK((*session)->loadWeights(*WeightSource::random(7)));
      std::vector<float> x = randomValues(kBatch * kHidden, 1);
      ASSERT_OK((*session)->setInput("x", DType::f32, {kBatch, kHidden}, x.data()));
      expectNone(**session);
    }
}

TEST_P(Allocations, NoneForLibraryKernels) {
  auto session = libraryCalls().session(options());
  ASSERT_OK(session);
  ASSERT_OK((*session)->loadWeights(*WeightSource::random(7)));
  ASSERT_OK(setLibraryInputs(**session, {1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2}));
  expectNone(**session);
}

TEST_P(Allocations, NoneForEntriesThatTakeTurns) {
  auto session = Session::create(cacheProgram().bundle(), options(), "write");
  ASSERT_OK(session);
  ASSERT_OK((*session)->loadWeights(*WeightSource::random(7)));
  const std::vector<float> x(4, 1);
  const int32_t position = 1;
  ASSERT_OK((*session)->setInput("x", DType::f32, {1, 1, 4}, x.data()));
  ASSERT_OK((*session)->setInput("position", DType::i32, {1}, &position));
  Execution *read = *(*session)->model().execution("read");
  for (int run = 0; run < 5; ++run) {
    counts->ours = 0;
    counts->counting = run >= 2;
    Status status = (*session)->run();
    if (status.ok())
      status = read->run();
    counts->counting = false;
    ASSERT_OK(status);
    EXPECT_EQ(counts->ours.load(), 0);
  }
}

TEST_P(Allocations, NoneForAnyCollective) {
  constexpr int64_t kRanks = 2;
  ProgramBuilder b({{"tp", kRanks}});
  Layout layout;
  uint32_t events = 0;
  std::vector<std::function<void(ProcedureBuilder &)>> steps;
  for (const Row &row : kRows)
    for (const Use &use : row.uses(kRanks)) {
      std::vector<V> inputs, outputs;
      std::vector<Shape> shapes = outputShapes(use, f32, kRanks);
      for (size_t i = 0; i < use.inputs.size(); ++i) {
        inputs.push_back(layout.place(use.inputType(i, f32), use.inputs[i]));
        outputs.push_back(layout.place(use.inputType(i, f32), shapes[i]));
      }
      Events own(use, events);
      std::string name = std::string(braid::runtime::name(use.kind())) + std::to_string(events);
      steps.push_back([=](ProcedureBuilder &p) {
        start(p, name, use, {{"tp"}}, inputs, outputs, own);
        wait(p, name, use, own);
      });
    }
  auto p = b.procedure("main", 0, 0, layout.bytes(), events);
  for (const auto &step : steps)
    step(p);
  auto session = b.session(options());
  ASSERT_OK(session);
  expectNone(**session);
}

INSTANTIATE_TEST_SUITE_P(On, Allocations, ::testing::Values("threads", "shm"),
                         [](const auto &info) { return std::string(info.param); });

} // namespace
