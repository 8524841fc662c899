//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reads a bundle's archive. An accepted archive is accepted again after it was written.
//
//===----------------------------------------------------------------------===//
#include "braid/Runtime/Bundle.h"
#include "Fuzz.h"
#include "ProgramMutator.h"

#include <nlohmann/json.hpp>
#include <openssl/evp.h>
#include <zip.h>

#include <map>

using namespace braid::runtime;
using namespace braid::fuzz;
using Json = nlohmann::json;

namespace {

using Members = std::map<std::string, std::string>;
constexpr char kManifest[] = "manifest.json", kProgram[] = "program.brpg";

bool readMembers(const uint8_t *data, size_t size, Members &members) {
  zip_source_t *source = zip_source_buffer_create(data, size, 0, nullptr);
  zip_t *archive = source ? zip_open_from_source(source, ZIP_RDONLY, nullptr) : nullptr;
  if (!archive) {
    zip_source_free(source);
    return false;
  }
  const zip_int64_t count = zip_get_num_entries(archive, 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    zip_stat_t info;
    const auto index = static_cast<zip_uint64_t>(i);
    if (zip_stat_index(archive, index, 0, &info) != 0 || !info.name || info.size > size)
      continue;
    std::string text(info.size, '\0');
    zip_file_t *file = zip_fopen_index(archive, index, 0);
    if (file && zip_fread(file, text.data(), text.size()) >= 0)
      members[info.name] = text;
    if (file)
      zip_fclose(file);
  }
  zip_discard(archive);
  return !members.empty();
}

std::string archiveOf(const Members &members) {
  zip_source_t *target = zip_source_buffer_create(nullptr, 0, 0, nullptr);
  zip_t *archive = zip_open_from_source(target, ZIP_TRUNCATE, nullptr);
  zip_source_keep(target);
  for (const auto &[name, text] : members) {
    zip_source_t *source = zip_source_buffer(archive, text.data(), text.size(), 0);
    const zip_int64_t index = zip_file_add(archive, name.c_str(), source, ZIP_FL_OVERWRITE);
    if (index < 0)
      zip_source_free(source);
    else
      zip_set_file_compression(archive, static_cast<zip_uint64_t>(index), ZIP_CM_STORE, 0);
  }
  std::string result;
  zip_stat_t info;
  if (zip_close(archive) != 0) {
    zip_discard(archive);
  } else if (zip_source_stat(target, &info) == 0 && zip_source_open(target) == 0) {
    result.resize(info.size);
    zip_source_read(target, result.data(), result.size());
    zip_source_close(target);
  }
  zip_source_free(target);
  return result;
}

std::string sha256(const std::string &text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  EVP_Digest(text.data(), text.size(), digest, &length, EVP_sha256(), nullptr);
  std::string hex;
  for (unsigned i = 0; i < length; ++i)
    for (int half : {digest[i] >> 4, digest[i] & 15})
      hex += "0123456789abcdef"[half];
  return hex;
}

/// Recomputes the digests, so that mutated members pass the checksums.
void renewDigests(Members &members) {
  auto manifest = members.find(kManifest);
  if (manifest == members.end())
    return;
  Json json = Json::parse(manifest->second, nullptr, false);
  if (!json.is_object() || !json.contains("sha256") || !json["sha256"].is_object())
    return;
  for (const auto &[name, text] : members)
    if (name != kManifest)
      json["sha256"][name] = sha256(text);
  manifest->second = json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void change(Members &members, Random &random) {
  auto member = members.begin();
  std::advance(member, random.below(members.size()));
  switch (random.below(6)) {
  case 0: {
    std::string text = member->second, name = mutateText(member->first, 64);
    if (random.oneIn(2))
      members.erase(member);
    members[name] = text;
    return;
  }
  case 1:
    members.erase(member);
    return;
  case 2:
    member->second = mutateText(member->second, member->second.size() + 64);
    return;
  case 3:
    if (auto program = members.find(kProgram); program != members.end()) {
      const auto *begin = reinterpret_cast<const std::byte *>(program->second.data());
      Bytes changed = mutateProgram(Bytes(begin, begin + program->second.size()), random);
      program->second.assign(reinterpret_cast<const char *>(changed.data()), changed.size());
    }
    return;
  default:
    if (auto manifest = members.find(kManifest); manifest != members.end())
      manifest->second = mutateJson(manifest->second, random);
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Result<Bundle> bundle = Bundle::parse(data, size, "input");
  if (!bundle.ok())
    return 0;
  Result<Bytes> written = bundle->serialize();
  require(written.ok(), "what was read can be written: " + written.status().message());
  Result<Bundle> back = Bundle::parse(written->data(), written->size(), "written");
  require(back.ok(), "what was written can be read: " + back.status().message());
  require(back->members() == bundle->members(), "members are the same after writing and reading");
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize,
                                          unsigned seed) {
  Random random(seed);
  Members members;
  if (random.oneIn(3) || !readMembers(data, size, members))
    return LLVMFuzzerMutate(data, size, maxSize);
  change(members, random);
  if (!random.oneIn(4))
    renewDigests(members);
  std::string archive = archiveOf(members);
  return put(archive.data(), archive.size(), data, size, maxSize);
}
