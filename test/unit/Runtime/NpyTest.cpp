//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Base/HostTensor.h"

#include "Testing.h"
#include "braid/Base/Float16.h"
#include "braid/Runtime/Npy.h"

#include <sys/stat.h>

using namespace braid::runtime;
using namespace braid::runtime::testing;

namespace {

/// A file like those that NumPy writes, possibly with errors.
std::string npy(const std::string &header, const std::string &data, int version = 1) {
  std::string length;
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
    length += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return std::string("\x93NUMPY") + static_cast<char>(version) + '\0' + length + header + data;
}

std::string floatBytes(const std::vector<float> &values) {
  return {reinterpret_cast<const char *>(values.data()), values.size() * sizeof(float)};
}

class Npy : public ::testing::Test {
protected:
  Result<HostTensor> read(const std::string &content) {
    put(path, content);
    return readNpy(path);
  }
  void expectError(const std::string &content, const std::string &message) {
    EXPECT_ERROR(read(content), "cannot read '" + path + "': " + message);
  }
  TemporaryFolder folder;
  std::string path = folder.path("x.npy");
};

TEST_F(Npy, RoundTripsEveryType) {
  for (DType type : {DType::f32, DType::f16, DType::f64, DType::i32, DType::i64, DType::i8})
    for (const std::vector<int64_t> &shape :
         {std::vector<int64_t>{}, {3}, {2, 3}, {2, 0, 3}, {1, 2, 3, 4}}) {
      HostTensor tensor = HostTensor::zeros(type, shape);
      for (size_t i = 0; i < tensor.data.size(); ++i)
        tensor.data[i] = static_cast<std::byte>(i * 7 + 1);
      ASSERT_OK(writeNpy(path, tensor));
      Result<HostTensor> back = readNpy(path);
      ASSERT_OK(back);
      EXPECT_EQ(back->dtype, type);
      EXPECT_EQ(back->shape, shape);
      EXPECT_EQ(back->data, tensor.data);
      EXPECT_EQ((get(path).size() - tensor.data.size()) % 64, 0u) << "data are to be aligned";
    }
}

TEST_F(Npy, WritesWhatNumPyWrites) {
  HostTensor tensor = HostTensor::zeros(DType::f32, {2});
  ASSERT_OK(writeNpy(path, tensor));
  std::string expected = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, ), }";
  EXPECT_EQ(get(path).substr(0, 10), std::string("\x93NUMPY\1\0\x76\0", 10));
  EXPECT_EQ(get(path).substr(10, expected.size()), expected);
  EXPECT_EQ(get(path)[127], '\n');
}

TEST_F(Npy, WidensBf16) {
  HostTensor tensor = HostTensor::zeros(DType::bf16, {2});
  tensor.as<uint16_t>()[0] = floatToBf16(1.5f);
  tensor.as<uint16_t>()[1] = floatToBf16(-3);
  ASSERT_OK(writeNpy(path, tensor));
  Result<HostTensor> back = readNpy(path);
  ASSERT_OK(back);
  EXPECT_EQ(back->dtype, DType::f32);
  EXPECT_EQ(back->as<float>()[0], 1.5f);
  EXPECT_EQ(back->as<float>()[1], -3);
}

TEST_F(Npy, ReadsFortranOrder) {
  Result<HostTensor> tensor = read(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}",
                                       floatBytes({0, 3, 1, 4, 2, 5})));
  ASSERT_OK(tensor);
  EXPECT_EQ(tensor->shape, (std::vector<int64_t>{2, 3}));
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(tensor->as<float>()[i], float(i));
}

TEST_F(Npy, ReadsOtherVersionsAndSpellings) {
  for (int version : {1, 2, 3})
    EXPECT_OK(read(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }  \n",
                       floatBytes({1}), version)));
  EXPECT_OK(
      read(npy("{\"shape\":(1L,),\"fortran_order\":False,\"descr\":\"<f4\"}", floatBytes({1}))));
  Result<HostTensor> flags =
      read(npy("{'descr': '|b1', 'fortran_order': False, 'shape': (2,)}", std::string("\1\0", 2)));
  ASSERT_OK(flags);
  EXPECT_EQ(flags->dtype, DType::i8);
}

TEST_F(Npy, RefusesDamagedFiles) {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  expectError("", "not a .npy file");
  expectError("PK\3\4 something else", "not a .npy file");
  expectError(npy(good, "", 4), "expects format version 1, 2 or 3, got 4");
  expectError(std::string("\x93NUMPY\1\0\xff\xff", 10), "truncated header");
  expectError(std::string("\x93NUMPY\2\0\xff\xff\xff\xff{}", 14), "truncated header");
  expectError(std::string("\x93NUMPY\2\0\1\0", 10), "truncated header");
  expectError(npy(good, floatBytes({1})), "expects 8 bytes of data for shape [2], got 4");
  expectError(npy(good, floatBytes({1, 2, 3})), "expects 8 bytes of data for shape [2], got 12");
}

TEST_F(Npy, RefusesHostileHeaders) {
  auto header = [](const std::string &descr, const std::string &shape) {
    return npy("{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + "}", "");
  };
  expectError(npy("import os", ""), "bad header: expects a dictionary");
  expectError(npy("{", ""), "bad header: expects a key and a colon");
  expectError(npy("{'descr' '<f4'}", ""), "bad header: expects a key and a colon");
  expectError(npy("{'descr': '<f4', 'descr': '<f4'}", ""), "bad header: repeated key 'descr'");
  expectError(npy("{'code': 1}", ""), "bad header: unknown key 'code'");
  expectError(npy("{'descr': '<f4'", ""),
              "bad header: expects a comma or the end of the dictionary");
  expectError(npy("{'descr': '<f4'}", ""),
              "bad header: expects the keys 'descr', 'fortran_order' and 'shape'");
  expectError(npy("{'fortran_order': maybe}", ""), "bad header: bad value of 'fortran_order'");
  expectError(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} + {}", ""),
              "bad header: text after the dictionary");
  expectError(header("[('a', '<f4')]", "(1,)"), "bad header: structured types are not supported");
  expectError(header("'<f4\\'", "(1,)"), "bad header: bad value of 'descr'");
  const std::string known = ", expects one of <f2, <f4, <f8, |i1, <i4, <i8, |b1";
  expectError(header("'>f4'", "(1,)"), "unsupported type '>f4'" + known);
  expectError(header("'|O'", "(1,)"), "unsupported type '|O'" + known);
  expectError(header("'<f4'", "(-1,)"), "bad header: bad value of 'shape'");
  expectError(header("'<f4'", "(1.5,)"), "bad header: bad value of 'shape'");
  expectError(header("'<f4'", "(1 2)"), "bad header: bad value of 'shape'");
  expectError(header("'<f4'", "(99999999999999999999,)"), "bad header: bad value of 'shape'");
  expectError(header("'<f4'", "(4294967296, 4294967296)"),
              "shape [4294967296, 4294967296] is too large");
  expectError(header("'<f4'", "(1099511627776,)"),
              "expects 4398046511104 bytes of data for shape [1099511627776], got 0");
  std::string deep = "(";
  for (int i = 0; i < 65; ++i)
    deep += "1,";
  expectError(header("'<f4'", deep + ")"), "bad header: bad value of 'shape'");
}

TEST_F(Npy, NamesWhatCannotBeRead) {
  EXPECT_ERROR(readNpy(path), "cannot read '" + path + "': No such file or directory");
  EXPECT_ERROR(readNpy(folder.path("")), "cannot read '" + folder.path("") + "': Is a directory");
  EXPECT_ERROR(readNpy("/dev/zero"), "cannot read '/dev/zero': expects a regular file");
}

TEST_F(Npy, AFailedWriteLeavesNothing) {
  HostTensor tensor = HostTensor::zeros(DType::f32, {2});
  std::string missing = folder.path("no/such/x.npy");
  EXPECT_ERROR(writeNpy(missing, tensor),
               "cannot write '" + missing + "': No such file or directory");
  tensor.data.pop_back();
  EXPECT_ERROR(writeNpy(path, tensor),
               "cannot write '" + path +
                   "': a tensor of shape [2] and type f32 does not have 7 bytes");
  EXPECT_EQ(folder.numFiles(), 0u);
}

TEST_F(Npy, AWriteReplacesWholeFilesOnly) {
  put(path, "older");
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  std::string link = folder.path("link.npy");
  std::filesystem::create_symlink(path, link);
  HostTensor tensor = HostTensor::zeros(DType::f32, {2});
  ASSERT_OK(writeNpy(link, tensor));
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_OK(readNpy(path));
  struct stat info;
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u) << "the mode of the older file stays";
  EXPECT_EQ(folder.numFiles(), 2u) << "no temporary file is left";

  ASSERT_OK(writeNpy("/dev/null", tensor));
  ASSERT_EQ(::stat("/dev/null", &info), 0);
  EXPECT_TRUE(S_ISCHR(info.st_mode)) << "a device is written to, not replaced";
}

} // namespace
