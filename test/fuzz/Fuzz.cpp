//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Fuzz.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>

namespace braid::fuzz {

using Json = nlohmann::json;

int64_t otherInteger(int64_t value, Random &random) {
  using Limits = std::numeric_limits<int64_t>;
  static const int64_t edges[] = {0,
                                  1,
                                  -1,
                                  2,
                                  3,
                                  4,
                                  8,
                                  63,
                                  64,
                                  65,
                                  1 << 20,
                                  int64_t(1) << 31,
                                  1LL << 32,
                                  int64_t(1) << 61,
                                  1LL << 62,
                                  Limits::max(),
                                  Limits::min()};
  auto wrapped = [](uint64_t bits) { return static_cast<int64_t>(bits); };
  const auto bits = static_cast<uint64_t>(value);
  switch (random.below(6)) {
  case 0:
    return random.of(edges);
  case 1:
    return wrapped(bits + random.below(4));
  case 2:
    return wrapped(bits - random.below(4));
  case 3:
    return wrapped(bits * 2);
  case 4:
    return wrapped(bits / 2);
  default:
    return wrapped(bits ^ uint64_t(1) << random.below(64));
  }
}

std::string mutateText(const std::string &text, size_t maxSize) {
  std::vector<uint8_t> bytes(std::max(maxSize, text.size()) + 1);
  std::memcpy(bytes.data(), text.data(), text.size());
  size_t size = LLVMFuzzerMutate(bytes.data(), text.size(), bytes.size() - 1);
  return std::string(reinterpret_cast<const char *>(bytes.data()), size);
}

namespace {

/// A value of a document, with its parent.
struct Node {
  Json *value, *parent;
};
void collect(Json &value, Json *parent, std::vector<Node> &nodes) {
  nodes.push_back({&value, parent});
  if (value.is_structured())
    for (Json &child : value)
      collect(child, &value, nodes);
}

Json anything(Random &random) {
  static const char *const values[] = {
      "null", "true", "0", "-1", "18446744073709551615", "1e400", "0.5", "\"\"", "[]", "{}", "[0]"};
  Json value = Json::parse(values[random.below(std::size(values))], nullptr, false);
  return value.is_discarded() ? Json(1e300) : value;
}

void removeChild(Json &parent, const Json *child) {
  for (auto it = parent.begin(); it != parent.end(); ++it)
    if (&*it == child) {
      parent.erase(it);
      return;
    }
}

void change(Json &document, Random &random) {
  std::vector<Node> nodes;
  collect(document, nullptr, nodes);
  const Node node = random.of(nodes);
  Json &value = *node.value;
  const Json other = *random.of(nodes).value;
  switch (random.below(8)) {
  case 0:
    value = other;
    return;
  case 1:
    value = anything(random);
    return;
  case 2:
    if (node.parent)
      removeChild(*node.parent, &value);
    return;
  case 3: // duplicate an element
    if (value.is_array() && !value.empty())
      value.push_back(value[random.below(value.size())]);
    else if (value.is_object() && !value.empty())
      value["another"] = *value.begin();
    return;
  default: // mostly scalars, since most checks are on them
    if (value.is_number_float())
      value = value.get<double>() * (random.oneIn(2) ? -2.0 : 1e-9);
    else if (value.is_number())
      value = otherInteger(value.is_number_unsigned() ? static_cast<int64_t>(value.get<uint64_t>())
                                                      : value.get<int64_t>(),
                           random);
    else if (value.is_string())
      value =
          other.is_string() ? other : Json(mutateText(value.get_ref<const std::string &>(), 64));
    else if (value.is_boolean())
      value = !value.get<bool>();
  }
}

} // namespace

std::string mutateJson(const std::string &text, Random &random) {
  Json document = Json::parse(text, nullptr, false);
  if (document.is_discarded() || random.oneIn(20))
    return mutateText(text, text.size() + 64);
  for (size_t changes = 1 + random.below(3); changes-- > 0;)
    change(document, random);
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Folder::Folder() {
  std::error_code ignored;
  std::filesystem::path base = std::filesystem::is_directory("/dev/shm", ignored)
                                   ? std::filesystem::path("/dev/shm")
                                   : std::filesystem::temp_directory_path();
  std::string pattern = (base / "fuzz-XXXXXX").string();
  require(::mkdtemp(pattern.data()) != nullptr, "a folder for inputs can be made");
  folder = pattern;
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

void Folder::put(const std::string &name, const void *data, size_t size) const {
  std::FILE *file = std::fopen(path(name).c_str(), "wb");
  bool written = file && std::fwrite(data, 1, size, file) == size;
  written = file && std::fclose(file) == 0 && written;
  require(written, "a file for an input can be written");
}

} // namespace braid::fuzz
