//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs CUDA kernels on a CPU, for tests: the threads of a block are fibers that take turns in a
// random order drawn from a seed, one block after the other. Kernels are compiled as C++ with this
// header included first, and its directory before runtime/kernels/cuda in the include path.
// Behaviour that is undefined on a GPU is an error here: a barrier that some threads do not reach,
// a shuffle that some of its lanes do not execute, a misaligned access. Shared memory holds NaN
// when a block begins.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cmath>
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <sys/mman.h>
#include <tuple>
#include <ucontext.h>
#include <utility>
#include <vector>

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
// All fibers of the running block share one object, as in shared memory.
#define __shared__ __attribute__((section("braid_shared"))) static

struct uint3 {
  unsigned x = 0, y = 0, z = 0;
};
/// The indices of the running fiber; only x is used.
static uint3 threadIdx, blockIdx, blockDim, gridDim;

extern "C" {
extern char __start_braid_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_braid_shared[] __attribute__((weak, visibility("hidden")));
}

namespace braid::on_host {

constexpr unsigned kWarp = 32;
constexpr size_t kStackBytes = 64 << 10;

/// The reason why a fiber is suspended.
enum class Stop { None, Barrier, Shuffle, End };
enum class Shuffle { Xor, Index, Down, Sync };

struct Fiber {
  jmp_buf state;
  ucontext_t start;
  bool started = false;
  Stop stop = Stop::None;
  Shuffle shuffle = Shuffle::Sync;
  unsigned lanes = 0, argument = 0; ///< The arguments of the shuffle.
  uint64_t value = 0;               ///< The lane's value, then the result.
};

class Block;
static Block *running = nullptr;
static void enter();

/// Runs one block at a time.
class Block {
public:
  Block(unsigned threads, uint64_t seed) : fibers(threads), random(seed * 2 + 1) {
    stacks = static_cast<char *>(mmap(nullptr, threads * kStackBytes, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (stacks == MAP_FAILED)
      std::abort();
  }
  ~Block() { munmap(stacks, fibers.size() * kStackBytes); }
  Block(const Block &) = delete;

  unsigned draw(unsigned count) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    return static_cast<unsigned>((random >> 16) % count);
  }

  /// Runs `body` on all threads. Returns an error, or empty.
  template <class Body> std::string run(Body &body) {
    invoke = [](void *b) { (*static_cast<Body *>(b))(); };
    closure = &body;
    std::memset(__start_braid_shared, 0xff, __stop_braid_shared - __start_braid_shared);
    ready.clear();
    ended = waiting = 0;
    for (unsigned i = 0; i < fibers.size(); ++i) {
      fibers[i].started = false;
      go(i);
    }
    running = this;
    while (!ready.empty() && error.empty()) {
      unsigned at = draw(static_cast<unsigned>(ready.size()));
      current = ready[at];
      ready[at] = ready.back();
      ready.pop_back();
      resume();
      if (error.empty())
        release(fibers[current]);
    }
    if (error.empty() && ended != fibers.size())
      explain();
    return std::move(error);
  }

  uint64_t stop(Stop why) {
    Fiber &fiber = fibers[current];
    fiber.stop = why;
    if (_setjmp(fiber.state) == 0)
      _longjmp(scheduler, 1);
    return fibers[current].value;
  }

  uint64_t shuffle(Shuffle kind, unsigned lanes, unsigned argument, uint64_t value) {
    if (!(lanes >> (current % kWarp) & 1))
      return fail(thread(current) + " shuffles among lanes that it is not one of");
    Fiber &fiber = fibers[current];
    fiber.shuffle = kind;
    fiber.lanes = lanes;
    fiber.argument = argument;
    fiber.value = value;
    return stop(Stop::Shuffle);
  }

  /// Ends the run. The kernel's effects so far remain.
  uint64_t fail(std::string message) {
    error = std::move(message);
    return stop(Stop::None);
  }
  std::string thread(unsigned number) const {
    return "block " + std::to_string(blockIdx.x) + ", thread " + std::to_string(number);
  }

  void main() {
    invoke(closure);
    stop(Stop::End);
  }

private:
  // Not inlined, so that no local variable of a caller is live across setjmp.
  __attribute__((noinline)) void resume() {
    Fiber &fiber = fibers[current];
    threadIdx.x = current;
    if (_setjmp(scheduler) != 0)
      return;
    if (fiber.started)
      _longjmp(fiber.state, 1);
    fiber.started = true;
    getcontext(&fiber.start);
    fiber.start.uc_stack.ss_sp = stacks + current * kStackBytes;
    fiber.start.uc_stack.ss_size = kStackBytes;
    fiber.start.uc_link = nullptr;
    makecontext(&fiber.start, enter, 0);
    setcontext(&fiber.start);
  }

  void go(unsigned number) {
    fibers[number].stop = Stop::None;
    ready.push_back(number);
  }

  /// Resumes the fibers that only waited for the fiber that has just stopped.
  void release(const Fiber &stopped) {
    if (stopped.stop == Stop::End) {
      ++ended;
    } else if (stopped.stop == Stop::Barrier) {
      if (++waiting != fibers.size())
        return;
      waiting = 0;
      for (unsigned i = 0; i < fibers.size(); ++i)
        go(i);
    } else if (stopped.stop == Stop::Shuffle) {
      exchange(current / kWarp * kWarp, stopped.lanes);
    }
  }

  void exchange(unsigned first, unsigned lanes) {
    uint64_t given[kWarp];
    const Fiber &like = fibers[current];
    for (unsigned lane = 0; lane < kWarp; ++lane) {
      if (!(lanes >> lane & 1))
        continue;
      if (first + lane >= fibers.size()) {
        error = thread(current) + " shuffles with lane " + std::to_string(lane) +
                ", which its block does not have";
        return;
      }
      const Fiber &other = fibers[first + lane];
      if (other.stop != Stop::Shuffle)
        return;
      if (other.lanes != lanes || other.shuffle != like.shuffle ||
          (like.shuffle != Shuffle::Index && other.argument != like.argument)) {
        error = thread(current) + " and thread " + std::to_string(first + lane) +
                " of a warp take part in different shuffles";
        return;
      }
      given[lane] = other.value;
    }
    for (unsigned lane = 0; lane < kWarp; ++lane) {
      if (!(lanes >> lane & 1))
        continue;
      Fiber &fiber = fibers[first + lane];
      unsigned from = lane;
      switch (fiber.shuffle) {
      case Shuffle::Xor:
        from = lane ^ fiber.argument;
        break;
      case Shuffle::Index:
        from = fiber.argument % kWarp;
        break;
      case Shuffle::Down:
        from = lane + fiber.argument < kWarp ? lane + fiber.argument : lane;
        break;
      case Shuffle::Sync:
        break;
      }
      if (from >= kWarp || !(lanes >> from & 1)) {
        error = thread(first + lane) + " reads lane " + std::to_string(from) +
                ", which does not take part in the shuffle";
        return;
      }
      fiber.value = given[from];
      go(first + lane);
    }
  }

  /// Sets the error that says why no thread can continue.
  void explain() {
    auto state = [](const Fiber &fiber) {
      return fiber.stop == Stop::End       ? "has ended"
             : fiber.stop == Stop::Barrier ? "waits at a barrier"
                                           : "waits at a shuffle";
    };
    for (unsigned i = 0; i < fibers.size(); ++i) {
      if (fibers[i].stop != Stop::Shuffle)
        continue;
      for (unsigned lane = 0, first = i / kWarp * kWarp; lane < kWarp; ++lane)
        if (fibers[i].lanes >> lane & 1 && fibers[first + lane].stop != Stop::Shuffle) {
          error = thread(i) + " waits at a shuffle with thread " + std::to_string(first + lane) +
                  ", which " + state(fibers[first + lane]);
          return;
        }
    }
    for (unsigned i = 0; i < fibers.size(); ++i)
      for (unsigned k = 0; k < fibers.size(); ++k)
        if (fibers[i].stop == Stop::Barrier && fibers[k].stop != Stop::Barrier) {
          error = thread(i) + " waits at a barrier for thread " + std::to_string(k) + ", which " +
                  state(fibers[k]);
          return;
        }
  }

  std::vector<Fiber> fibers;
  std::vector<unsigned> ready;
  unsigned current = 0, ended = 0, waiting = 0;
  uint64_t random;
  char *stacks;
  jmp_buf scheduler;
  void (*invoke)(void *) = nullptr;
  void *closure = nullptr;
  std::string error;
};

static void enter() { running->main(); }

/// Runs a kernel as cuLaunchKernel does: `arguments` points to the addresses of its arguments.
/// Returns an error, or null; it is valid until the next launch.
template <class... Parameters>
const char *launch(void (*kernel)(Parameters...), unsigned blocks, unsigned threads,
                   void *const *arguments, uint64_t seed) {
  static std::string error;
  error.clear();
  Block block(threads, seed);
  gridDim.x = blocks;
  blockDim.x = threads;
  // The order of blocks is random too.
  std::vector<unsigned> order(blocks);
  for (unsigned i = 0; i < blocks; ++i) {
    unsigned at = block.draw(i + 1);
    order[i] = order[at];
    order[at] = i;
  }
  auto body = [&] {
    [&]<size_t... I>(std::index_sequence<I...>) {
      kernel(*static_cast<std::remove_reference_t<Parameters> *>(arguments[I])...);
    }(std::index_sequence_for<Parameters...>());
  };
  for (unsigned number : order) {
    blockIdx.x = number;
    error = block.run(body);
    if (!error.empty())
      break;
  }
  return error.empty() ? nullptr : error.c_str();
}

/// One launch at a time, since thread indices are globals of the library.
inline std::mutex launching;

/// For callers without error handling: prints the error and ends the process. $BRAID_FIBER_SEED
/// selects the order of threads.
template <class... Parameters>
void launchOrAbort(void (*kernel)(Parameters...), unsigned blocks, unsigned threads,
                   void *const *arguments) {
  std::lock_guard<std::mutex> lock(launching);
  const char *chosen = std::getenv("BRAID_FIBER_SEED");
  const uint64_t seed = chosen ? std::strtoull(chosen, nullptr, 10) : 1;
  if (const char *error = launch(kernel, blocks, threads, arguments, seed)) {
    std::fprintf(stderr, "error: CUDA on the host, seed %llu: %s\n",
                 static_cast<unsigned long long>(seed), error);
    std::abort();
  }
}
} // namespace braid::on_host

//===----------------------------------------------------------------------===//
// Declarations that CUDA provides without a header.
//===----------------------------------------------------------------------===//

inline void __syncthreads() { braid::on_host::running->stop(braid::on_host::Stop::Barrier); }

namespace braid::on_host {
template <class T> T shuffled(Shuffle kind, unsigned lanes, T value, unsigned argument) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = running->shuffle(kind, lanes, argument, bits);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}
} // namespace braid::on_host

inline void __syncwarp(unsigned lanes = 0xffffffffu) {
  braid::on_host::running->shuffle(braid::on_host::Shuffle::Sync, lanes, 0, 0);
}
template <class T> T __shfl_xor_sync(unsigned lanes, T value, int mask) {
  return braid::on_host::shuffled(braid::on_host::Shuffle::Xor, lanes, value, mask);
}
template <class T> T __shfl_sync(unsigned lanes, T value, int lane) {
  return braid::on_host::shuffled(braid::on_host::Shuffle::Index, lanes, value, lane);
}
template <class T> T __shfl_down_sync(unsigned lanes, T value, unsigned delta) {
  return braid::on_host::shuffled(braid::on_host::Shuffle::Down, lanes, value, delta);
}
// A plain addition is enough, since fibers are not preempted.
template <class T> T atomicAdd(T *at, T value) {
  T before = *at;
  *at = before + value;
  return before;
}

template <class T> T atomicCAS(T *at, T expected, T value) {
  T before = *at;
  if (before == expected)
    *at = value;
  return before;
}

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline int __float2int_rn(float x) { return static_cast<int>(nearbyintf(x)); }
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fdividef(float a, float b) { return a / b; }
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline float __uint_as_float(unsigned bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}
inline float __int_as_float(int bits) { return __uint_as_float(static_cast<unsigned>(bits)); }
inline int __float_as_int(float value) {
  int bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}
inline unsigned __float_as_uint(float value) {
  return static_cast<unsigned>(__float_as_int(value));
}
/// The low word of both, shifted right by less than 32.
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((uint64_t(high) << 32 | low) >> (shift % 32));
}
