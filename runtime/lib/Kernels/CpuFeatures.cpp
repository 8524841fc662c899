//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "CpuFeatures.h"

#include <cstdint>
#include <cstdlib>
#include <fstream>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace braid::runtime {

namespace {
/// Which registers the operating system must save for a feature to be usable, the widest last.
enum Saved { none, ymm, zmm, amx };

/// The widest registers that BRAID_MAX_ISA allows for.
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

Status checkMaxISA() {
  Result<Saved> allowed = allowedRegisters();
  return allowed.ok() ? Status() : allowed.status();
}

#if defined(__x86_64__)
namespace {

enum Register { EAX, EBX, ECX, EDX };
struct Feature {
  const char *name;
  uint32_t leaf, subleaf;
  Register reg;
  int bit;
  Saved saved;
};

// Intel SDM volume 2A, CPUID; AMD APM volume 3, appendix E. Names as `llc -mattr=help` lists them.
const Feature kFeatures[] = {
    {"x87", 1, 0, EDX, 0, none},
    {"cx8", 1, 0, EDX, 8, none},
    {"cmov", 1, 0, EDX, 15, none},
    {"mmx", 1, 0, EDX, 23, none},
    {"fxsr", 1, 0, EDX, 24, none},
    {"sse", 1, 0, EDX, 25, none},
    {"sse2", 1, 0, EDX, 26, none},
    {"sse3", 1, 0, ECX, 0, none},
    {"pclmul", 1, 0, ECX, 1, none},
    {"ssse3", 1, 0, ECX, 9, none},
    {"fma", 1, 0, ECX, 12, ymm},
    {"cx16", 1, 0, ECX, 13, none},
    {"sse4.1", 1, 0, ECX, 19, none},
    {"sse4.2", 1, 0, ECX, 20, none},
    {"crc32", 1, 0, ECX, 20, none},
    {"movbe", 1, 0, ECX, 22, none},
    {"popcnt", 1, 0, ECX, 23, none},
    {"aes", 1, 0, ECX, 25, none},
    {"xsave", 1, 0, ECX, 27, none},
    {"avx", 1, 0, ECX, 28, ymm},
    {"f16c", 1, 0, ECX, 29, ymm},
    {"rdrnd", 1, 0, ECX, 30, none},
    {"fsgsbase", 7, 0, EBX, 0, none},
    {"sgx", 7, 0, EBX, 2, none},
    {"bmi", 7, 0, EBX, 3, none},
    {"avx2", 7, 0, EBX, 5, ymm},
    {"bmi2", 7, 0, EBX, 8, none},
    {"invpcid", 7, 0, EBX, 10, none},
    {"rtm", 7, 0, EBX, 11, none},
    {"avx512f", 7, 0, EBX, 16, zmm},
    {"avx512dq", 7, 0, EBX, 17, zmm},
    {"rdseed", 7, 0, EBX, 18, none},
    {"adx", 7, 0, EBX, 19, none},
    {"avx512ifma", 7, 0, EBX, 21, zmm},
    {"clflushopt", 7, 0, EBX, 23, none},
    {"clwb", 7, 0, EBX, 24, none},
    {"avx512cd", 7, 0, EBX, 28, zmm},
    {"sha", 7, 0, EBX, 29, none},
    {"avx512bw", 7, 0, EBX, 30, zmm},
    {"avx512vl", 7, 0, EBX, 31, zmm},
    {"avx512vbmi", 7, 0, ECX, 1, zmm},
    {"pku", 7, 0, ECX, 4, none},
    {"waitpkg", 7, 0, ECX, 5, none},
    {"avx512vbmi2", 7, 0, ECX, 6, zmm},
    {"shstk", 7, 0, ECX, 7, none},
    {"gfni", 7, 0, ECX, 8, none},
    {"vaes", 7, 0, ECX, 9, ymm},
    {"vpclmulqdq", 7, 0, ECX, 10, ymm},
    {"avx512vnni", 7, 0, ECX, 11, zmm},
    {"avx512bitalg", 7, 0, ECX, 12, zmm},
    {"avx512vpopcntdq", 7, 0, ECX, 14, zmm},
    {"rdpid", 7, 0, ECX, 22, none},
    {"cldemote", 7, 0, ECX, 25, none},
    {"movdiri", 7, 0, ECX, 27, none},
    {"movdir64b", 7, 0, ECX, 28, none},
    {"enqcmd", 7, 0, ECX, 29, none},
    {"uintr", 7, 0, EDX, 5, none},
    {"avx512vp2intersect", 7, 0, EDX, 8, zmm},
    {"serialize", 7, 0, EDX, 14, none},
    {"tsxldtrk", 7, 0, EDX, 16, none},
    {"pconfig", 7, 0, EDX, 18, none},
    {"amx-bf16", 7, 0, EDX, 22, amx},
    {"avx512fp16", 7, 0, EDX, 23, zmm},
    {"amx-tile", 7, 0, EDX, 24, amx},
    {"amx-int8", 7, 0, EDX, 25, amx},
    {"avxvnni", 7, 1, EAX, 4, ymm},
    {"avx512bf16", 7, 1, EAX, 5, zmm},
    {"cmpccxadd", 7, 1, EAX, 7, none},
    {"amx-fp16", 7, 1, EAX, 21, amx},
    {"hreset", 7, 1, EAX, 22, none},
    {"avxifma", 7, 1, EAX, 23, ymm},
    {"avxvnniint8", 7, 1, EDX, 4, ymm},
    {"avxneconvert", 7, 1, EDX, 5, ymm},
    {"avxvnniint16", 7, 1, EDX, 10, ymm},
    {"prefetchi", 7, 1, EDX, 14, none},
    {"xsaveopt", 0xD, 1, EAX, 0, none},
    {"xsavec", 0xD, 1, EAX, 1, none},
    {"xsaves", 0xD, 1, EAX, 3, none},
    {"ptwrite", 0x14, 0, EBX, 4, none},
    {"sahf", 0x80000001, 0, ECX, 0, none},
    {"lzcnt", 0x80000001, 0, ECX, 5, none},
    {"sse4a", 0x80000001, 0, ECX, 6, none},
    {"prfchw", 0x80000001, 0, ECX, 8, none},
    {"xop", 0x80000001, 0, ECX, 11, ymm},
    {"lwp", 0x80000001, 0, ECX, 15, none},
    {"fma4", 0x80000001, 0, ECX, 16, ymm},
    {"tbm", 0x80000001, 0, ECX, 21, none},
    {"mwaitx", 0x80000001, 0, ECX, 29, none},
    {"64bit", 0x80000001, 0, EDX, 29, none},
    {"clzero", 0x80000008, 0, EBX, 0, none},
    {"rdpru", 0x80000008, 0, EBX, 4, none},
    {"wbnoinvd", 0x80000008, 0, EBX, 9, none},
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

} // namespace

bool hostHasFeature(const std::string &feature) {
  Result<Saved> allowed = allowedRegisters();
  const Saved widest = allowed.ok() ? *allowed : none;
  for (const Feature &f : kFeatures)
    if (feature == f.name)
      return f.saved <= widest && saves(f.saved) && (cpuid(f.leaf, f.subleaf, f.reg) >> f.bit & 1);
  return false;
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
