//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "CpuFeatures.h"

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace braid::runtime {

namespace {
/// Which registers the operating system must save for a feature to be usable, the widest last.
enum Saved { none, ymm, zmm, amx };

/// The widest registers that BRAID_MAX_ISA allows.
Result<Saved> allowedRegisters() {
  const char *name = std::getenv("BRAID_MAX_ISA");
  const std::string limit = name ? name : "";
  if (limit.empty())
    return amx;
  if (limit == "avx512")
    return zmm;
  if (limit == "avx2")
    return ymm;
  if (limit == "generic")
    return none;
  return Status::error("BRAID_MAX_ISA expects generic, avx2 or avx512, got '", limit, "'");
}
} // namespace

Status checkMaxISA() { return allowedRegisters().status(); }

#if defined(__x86_64__)
namespace {

enum Register { EAX, EBX, ECX, EDX };
/// The features that one register of one leaf reports: each bit and its feature.
struct FeatureWord {
  uint32_t leaf, subleaf;
  Register reg;
  const char *bits;
};

// Intel SDM volume 2A, CPUID; AMD APM volume 3, appendix E. Names as `llc -mattr=help` lists them.
const FeatureWord kFeatureWords[] = {
    {1, 0, EDX, "0 x87 8 cx8 15 cmov 23 mmx 24 fxsr 25 sse 26 sse2"},
    {1, 0, ECX,
     "0 sse3 1 pclmul 9 ssse3 12 fma 13 cx16 19 sse4.1 20 sse4.2 20 crc32 22 movbe 23 popcnt 25 "
     "aes 27 xsave 28 avx 29 f16c 30 rdrnd"},
    {7, 0, EBX,
     "0 fsgsbase 2 sgx 3 bmi 5 avx2 8 bmi2 10 invpcid 11 rtm 16 avx512f 17 avx512dq 18 rdseed 19 "
     "adx 21 avx512ifma 23 clflushopt 24 clwb 28 avx512cd 29 sha 30 avx512bw 31 avx512vl"},
    {7, 0, ECX,
     "1 avx512vbmi 4 pku 5 waitpkg 6 avx512vbmi2 7 shstk 8 gfni 9 vaes 10 vpclmulqdq 11 avx512vnni "
     "12 avx512bitalg 14 avx512vpopcntdq 22 rdpid 25 cldemote 27 movdiri 28 movdir64b 29 enqcmd"},
    {7, 0, EDX,
     "5 uintr 8 avx512vp2intersect 14 serialize 16 tsxldtrk 18 pconfig 22 amx-bf16 23 avx512fp16 "
     "24 amx-tile 25 amx-int8"},
    {7, 1, EAX, "4 avxvnni 5 avx512bf16 7 cmpccxadd 21 amx-fp16 22 hreset 23 avxifma"},
    {7, 1, EDX, "4 avxvnniint8 5 avxneconvert 10 avxvnniint16 14 prefetchi"},
    {0xD, 1, EAX, "0 xsaveopt 1 xsavec 3 xsaves"},
    {0x14, 0, EBX, "4 ptwrite"},
    {0x80000001, 0, ECX, "0 sahf 5 lzcnt 6 sse4a 8 prfchw 11 xop 15 lwp 16 fma4 21 tbm 29 mwaitx"},
    {0x80000001, 0, EDX, "29 64bit"},
    {0x80000008, 0, EBX, "0 clzero 4 rdpru 9 wbnoinvd"},
};

uint32_t cpuid(uint32_t leaf, uint32_t subleaf, Register reg) {
  uint32_t r[4] = {0, 0, 0, 0};
  if (!__get_cpuid_count(leaf, subleaf, &r[0], &r[1], &r[2], &r[3]))
    return 0;
  // A leaf may exist without the subleaf.
  if (leaf == 7 && subleaf > 0) {
    uint32_t top[4];
    __get_cpuid_count(7, 0, &top[0], &top[1], &top[2], &top[3]);
    if (subleaf > top[0])
      return 0;
  }
  return r[reg];
}

/// The registers that a feature's instructions use.
Saved registersOf(const std::string &feature) {
  auto begins = [&](const char *prefix) { return feature.rfind(prefix, 0) == 0; };
  if (begins("amx-") || begins("avx512"))
    return begins("amx-") ? amx : zmm;
  for (const char *prefix : {"avx", "fma", "f16c", "xop", "vaes", "vpclmulqdq"})
    if (begins(prefix))
      return ymm;
  return none;
}

bool saves(Saved what) {
  if (what == none)
    return true;
  if (!(cpuid(1, 0, ECX) >> 27 & 1)) // OSXSAVE
    return false;
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  const uint32_t needed = what == ymm ? 0x6 : what == zmm ? 0xE6 : 0x60000;
  return (low & needed) == needed;
}

/// The features that the processor and the operating system have. In a virtual machine each
/// instruction that asks leaves it, so this asks once.
const std::set<std::string> &featuresOfHost() {
  static const std::set<std::string> features = [] {
    const bool saved[] = {saves(none), saves(ymm), saves(zmm), saves(amx)};
    std::set<std::string> found;
    for (const FeatureWord &word : kFeatureWords) {
      const uint32_t value = cpuid(word.leaf, word.subleaf, word.reg);
      std::istringstream bits(word.bits);
      int bit;
      for (std::string name; bits >> bit >> name;)
        if ((value >> bit & 1) != 0 && saved[registersOf(name)])
          found.insert(name);
    }
    return found;
  }();
  return features;
}

} // namespace

bool hostHasFeature(const std::string &feature) {
  Result<Saved> allowed = allowedRegisters();
  return registersOf(feature) <= (allowed.ok() ? *allowed : none) &&
         featuresOfHost().count(feature) > 0;
}

const char *hostArchitecture() { return "x86_64"; }

#else

bool hostHasFeature(const std::string &) { return false; }

const char *hostArchitecture() {
#if defined(__aarch64__)
  return "aarch64";
#else
  return "unknown";
#endif
}

#endif

std::string hostCpuModel() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("model name", 0) == 0 && line.find(':') != std::string::npos) {
      size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
      return begin == std::string::npos ? "" : line.substr(begin);
    }
  return hostArchitecture();
}

} // namespace braid::runtime
