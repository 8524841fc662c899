//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_RUNTIME_TESTING_H
#define BRAID_TEST_UNIT_RUNTIME_TESTING_H

#include "braid/Base/Mesh.h"
#include "braid/Base/Status.h"
#include "braid/Runtime/Bundle.h"
#include "braid/Runtime/Files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

namespace braid::runtime::testing {

/// Whether this is the build with the thread sanitizer. It is the slowest one; the address
/// sanitizer's build runs the same tests, so that samples of what takes long suffice here.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define BRAID_THREAD_SANITIZER
#endif
#endif
#ifdef BRAID_THREAD_SANITIZER
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

/// A folder that is removed after the test.
class TemporaryFolder {
public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "braid-XXXXXX").string();
    if (!::mkdtemp(pattern.data()))
      std::abort();
    folder = pattern;
  }
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
  std::string path(const std::string &name) const { return (folder / name).string(); }
  size_t numFiles() const {
    auto files = std::filesystem::directory_iterator(folder);
    return static_cast<size_t>(std::distance(begin(files), end(files)));
  }

private:
  std::filesystem::path folder;
};

inline void put(const std::string &path, const std::string &text) {
  Status status = writeFile(path, {{text.data(), text.size()}});
  ASSERT_TRUE(status.ok()) << status.message();
}

inline std::string get(const std::string &path) {
  Result<Bytes> bytes = readFile(path);
  if (!bytes.ok())
    return {};
  return std::string(reinterpret_cast<const char *>(bytes->data()), bytes->size());
}

inline Bytes toBytes(const std::string &text) {
  Bytes bytes(text.size());
  if (!text.empty())
    std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

inline Mesh meshOf(std::vector<Mesh::Axis> axes, std::vector<int64_t> order = {}) {
  Mesh mesh;
  mesh.axes = std::move(axes);
  mesh.order = std::move(order);
  return mesh;
}

inline Status statusOf(Status status) { return status; }
template <typename T> Status statusOf(const Result<T> &result) { return result.status(); }

} // namespace braid::runtime::testing

#define EXPECT_OK(expression)                                                                      \
  do {                                                                                             \
    ::braid::runtime::Status braidStatus = ::braid::runtime::testing::statusOf(expression);        \
    EXPECT_TRUE(braidStatus.ok()) << braidStatus.message();                                        \
  } while (false)
#define ASSERT_OK(expression)                                                                      \
  do {                                                                                             \
    ::braid::runtime::Status braidStatus = ::braid::runtime::testing::statusOf(expression);        \
    ASSERT_TRUE(braidStatus.ok()) << braidStatus.message();                                        \
  } while (false)
/// Compares the full message: a test that accepts a wrong message would not detect a wrong check.
#define EXPECT_ERROR(expression, expected)                                                         \
  do {                                                                                             \
    ::braid::runtime::Status braidStatus = ::braid::runtime::testing::statusOf(expression);        \
    EXPECT_FALSE(braidStatus.ok());                                                                \
    EXPECT_EQ(braidStatus.message(), expected);                                                    \
  } while (false)
#define EXPECT_ERROR_HAS(expression, part)                                                         \
  do {                                                                                             \
    ::braid::runtime::Status braidStatus = ::braid::runtime::testing::statusOf(expression);        \
    EXPECT_FALSE(braidStatus.ok());                                                                \
    EXPECT_THAT(braidStatus.message(), ::testing::HasSubstr(part));                                \
  } while (false)

namespace braid::runtime::testing {

inline Result<std::shared_ptr<const Bundle>> makeBundle(BundleContents contents) {
  Result<Bundle> bundle = Bundle::create(std::move(contents));
  if (!bundle.ok())
    return bundle.status();
  return std::make_shared<const Bundle>(std::move(*bundle));
}

/// A bundle of valid contents.
inline std::shared_ptr<const Bundle> bundleOf(BundleContents contents) {
  Result<std::shared_ptr<const Bundle>> bundle = makeBundle(std::move(contents));
  EXPECT_OK(bundle);
  return bundle.ok() ? *bundle : nullptr;
}

} // namespace braid::runtime::testing

#endif // BRAID_TEST_UNIT_RUNTIME_TESTING_H
