//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Runtime/Safetensors.h"
#include "braid/Base/Float16.h"
#include "braid/Base/HostTensor.h"
#include "braid/Base/Weights.h"

#include "Testing.h"

#include <fcntl.h>
#include <limits>
#include <numeric>
#include <unistd.h>

using namespace braid::runtime;
using namespace braid::runtime::testing;

namespace {

/// Equal for NaNs of one payload, and different for zeros of different signs.
uint32_t bitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

std::string lengthBytes(uint64_t length) {
  std::string text;
  for (int i = 0; i < 8; ++i)
    text += static_cast<char>(length >> (8 * i) & 0xff);
  return text;
}
std::string file(const std::string &header, const std::string &data) {
  return lengthBytes(header.size()) + header + data;
}
std::string entry(const std::string &name, const std::string &dtype, const std::string &shape,
                  const std::string &offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
         ",\"data_offsets\":" + offsets + "}";
}
std::string iota(int count, int first = 0) {
  std::vector<float> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), float(first));
  return {reinterpret_cast<const char *>(values.data()), values.size() * sizeof(float)};
}

class Safetensors : public ::testing::Test {
protected:
  Status open(const std::string &content) {
    put(path, content);
    return openSafetensors(path).status();
  }
  void expectError(const std::string &content, const std::string &message) {
    EXPECT_ERROR(open(content), "cannot read weights from '" + path + "': " + message);
  }
  TemporaryFolder folder;
  std::string path = folder.path("model.safetensors");
};

Parameter whole(const std::string &tensor, std::vector<int64_t> shape) {
  Parameter result;
  result.name = "p." + tensor;
  result.globalShape = shape;
  std::vector<int64_t> zero(shape.size(), 0);
  result.slices.push_back({tensor, shape, {}, zero, zero, shape});
  return result;
}

Result<std::vector<float>> readBox(WeightSource &source, const Parameter &parameter,
                                   const Box &box) {
  HostTensor tensor = HostTensor::zeros(parameter.dtype, box.sizes);
  // Memory that is not written must be zero too.
  std::fill(tensor.data.begin(), tensor.data.end(), std::byte(0xab));
  if (Status status = source.read(parameter, box, tensor.data.data()); !status.ok())
    return status;
  return std::vector<float>(tensor.as<float>(), tensor.as<float>() + tensor.numElements());
}

TEST_F(Safetensors, ReadsTensors) {
  // A header of odd length, so the data are not aligned; a scalar, an empty tensor, metadata, and
  // spaces at the end.
  put(path,
      file("{\"__metadata__\":{\"format\":\"pt\"}," + entry("b", "F32", "[2,2]", "[4,20]") + "," +
               entry("s", "F32", "[]", "[0,4]") + "," + entry("empty", "I64", "[0,3]", "[4,4]") +
               "," + entry("half", "BF16", "[3]", "[20,26]") + "}   ",
           iota(5) + "abcdef"));
  Result<std::unique_ptr<WeightSource>> source = openSafetensors(path);
  ASSERT_OK(source);
  EXPECT_EQ((*source)->describe(), path);
  std::vector<TensorInfo> tensors = (*source)->tensors();
  ASSERT_EQ(tensors.size(), 4u);
  EXPECT_EQ(tensors[0].name, "s") << "in the order of the file";
  EXPECT_EQ(tensors[1].name, "empty");
  EXPECT_EQ(tensors[2].name, "b");
  EXPECT_EQ(tensors[2].dtype, "F32");
  EXPECT_EQ(tensors[2].shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(tensors[3].dtype, "BF16");
  EXPECT_EQ(*readBox(**source, whole("b", {2, 2}), {{0, 0}, {2, 2}}),
            (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(*readBox(**source, whole("s", {}), {{}, {}}), (std::vector<float>{0}));
}

TEST_F(Safetensors, OpensDirectories) {
  put(path, file("{}", ""));
  EXPECT_OK(openSafetensors(folder.path("")));
  std::filesystem::remove(path);
  std::string directory = folder.path("");
  EXPECT_ERROR(openSafetensors(directory),
               "directory '" + directory +
                   "' has no model.safetensors and no model.safetensors.index.json");
  EXPECT_ERROR(openSafetensors(path),
               "cannot read weights from '" + path + "': No such file or directory");
  EXPECT_ERROR(openSafetensors("/dev/null"),
               "cannot read weights from '/dev/null': expects a regular file");
}

TEST_F(Safetensors, ReadsSeveralFilesByTheirIndex) {
  put(folder.path("b.safetensors"), file("{" + entry("x", "F32", "[2]", "[0,8]") + "," +
                                             entry("unlisted", "F32", "[1]", "[8,12]") + "}",
                                         iota(3)));
  put(folder.path("a.safetensors"),
      file("{" + entry("z", "F32", "[1]", "[0,4]") + "," + entry("y", "F32", "[2]", "[4,12]") + "}",
           iota(3, 10)));
  const std::string index = path + ".index.json";
  put(index, "{\"metadata\": {\"total_size\": 20}, \"weight_map\": {\"x\": \"b.safetensors\", "
             "\"y\": \"a.safetensors\", \"z\": \"a.safetensors\"}}");
  for (const std::string &name : {index, folder.path("")}) {
    Result<std::unique_ptr<WeightSource>> source = openSafetensors(name);
    ASSERT_OK(source);
    EXPECT_EQ((*source)->describe(), index);
    std::vector<std::string> names;
    for (const TensorInfo &info : (*source)->tensors())
      names.push_back(info.name);
    EXPECT_EQ(names, (std::vector<std::string>{"z", "y", "x"}));
    // A parameter with slices from both files.
    Parameter joined;
    joined.name = "joined";
    joined.globalShape = {4};
    joined.slices = {{"y", {2}, {}, {0}, {0}, {2}}, {"x", {2}, {}, {0}, {2}, {2}}};
    EXPECT_EQ(*readBox(**source, joined, {{1}, {3}}), (std::vector<float>{12, 0, 1}));
    EXPECT_ERROR(readBox(**source, whole("unlisted", {1}), {{0}, {1}}),
                 "weight 'unlisted' in '" + index +
                     "' is missing; parameter 'p.unlisted' needs it");
    EXPECT_ERROR(readBox(**source, whole("y", {3}), {{0}, {3}}),
                 "weight 'y' in '" + folder.path("a.safetensors") +
                     "': expects shape [3], got [2]");
  }
}

TEST_F(Safetensors, RefusesBadIndices) {
  const std::string index = path + ".index.json";
  auto expectIndexError = [&](const std::string &content, const std::string &message) {
    put(index, content);
    EXPECT_ERROR(openSafetensors(index), "cannot read weights from '" + index + "': " + message);
  };
  auto map = [](const std::string &file) { return "{\"weight_map\": {\"x\": " + file + "}}"; };
  for (const char *content : {"{}", "[]", "{\"weight_map\": []}"})
    expectIndexError(content, "bad index: expects an object 'weight_map'");
  for (const char *name : {"3", "\"\"", "\"..\"", "\"../x.safetensors\"", "\"/etc/passwd\""})
    expectIndexError(map(name),
                     "bad index: tensor 'x': expects the name of a file beside the index");
  expectIndexError(map("\"a.safetensors\""),
                   "'a.safetensors', which has tensor 'x': No such file or directory");
  put(folder.path("a.safetensors"), file("{" + entry("y", "F32", "[1]", "[0,4]") + "}", iota(1)));
  expectIndexError(map("\"a.safetensors\""),
                   "'a.safetensors': tensor 'x' is missing, though the index says it is there");
  put(folder.path("a.safetensors"), "abc");
  expectIndexError(map("\"a.safetensors\""),
                   "'a.safetensors', which has tensor 'x': expects at least 8 bytes, got 3");
  put(index, "{\"weight_map\": ");
  EXPECT_ERROR_HAS(openSafetensors(index), "cannot read weights from '" + index + "': bad index: ");
}

TEST_F(Safetensors, RefusesBadLengths) {
  expectError("", "the file is empty");
  expectError("abc", "expects at least 8 bytes, got 3");
  expectError(lengthBytes(uint64_t(1) << 60) + "{}",
              "expects a header of 1152921504606846976 bytes, got a file of 10 bytes");
  expectError(lengthBytes(~uint64_t(0)) + "{}",
              "expects a header of 18446744073709551615 bytes, got a file of 10 bytes");
  expectError(lengthBytes(3) + "{}", "expects a header of 3 bytes, got a file of 10 bytes");
  // A sparse file as long as its header claims.
  put(path, lengthBytes(200 << 20));
  ASSERT_EQ(::truncate(path.c_str(), 300 << 20), 0);
  EXPECT_ERROR(openSafetensors(path),
               "cannot read weights from '" + path +
                   "': expects a header of at most 104857600 bytes, got 209715200");
}

TEST_F(Safetensors, RefusesBadJson) {
  EXPECT_ERROR_HAS(open(file("{\"a\": ", "")), "': bad header: parse error at line 1, column 7");
  EXPECT_ERROR_HAS(open(file("", "")), "': bad header: parse error at line 1, column 1");
  EXPECT_ERROR_HAS(open(file("{} {}", "")), "': bad header: parse error");
  EXPECT_ERROR_HAS(open(file("{\"\xff\": 1}", "")), "': bad header: parse error");
  expectError(file("[]", ""), "bad header: expects an object, got array");
  expectError(
      file("{" + entry("x", "F32", "[1]", "[0,4]") + "," + entry("x", "F32", "[1]", "[4,8]") + "}",
           iota(2)),
      "bad header: duplicate name 'x'");
  expectError(file("{\"x\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", ""),
              "bad header: duplicate name 'dtype'");
  expectError(file(std::string(100000, '['), ""), "bad header: nested more than 32 levels deep");
  expectError(file("{\"__metadata__\":{\"format\":1}}", ""),
              "bad header: expects texts in '__metadata__'");
}

TEST_F(Safetensors, RefusesBadTensors) {
  auto one = [](const std::string &dtype, const std::string &shape, const std::string &offsets) {
    return file("{" + entry("x", dtype, shape, offsets) + "}", iota(2));
  };
  expectError(file("{\"x\":3}", ""), "tensor 'x': expects an object, got number");
  expectError(file("{\"x\":{}}", ""), "tensor 'x': expects a string 'dtype'");
  expectError(one("F31", "[2]", "[0,8]"), "tensor 'x': unknown type 'F31'");
  expectError(file("{\"x\":{\"dtype\":\"F32\"}}", ""), "tensor 'x': expects an array 'shape'");
  for (const char *shape : {"[-1]", "[1.5]", "[\"2\"]", "[18446744073709551615]"})
    expectError(one("F32", shape, "[0,8]"), "tensor 'x': expects sizes of at least 0 in 'shape'");
  expectError(one("F32", "[4294967296,4294967296]", "[0,8]"),
              "tensor 'x': shape [4294967296, 4294967296] is too large");
  expectError(one("F32", "[4611686018427387904]", "[0,8]"),
              "tensor 'x': shape [4611686018427387904] is too large");
  for (const char *offsets : {"[0]", "[0,8,9]", "3", "[0,\"8\"]", "[0,8.0]"})
    expectError(one("F32", "[2]", offsets), "tensor 'x': expects two integers 'data_offsets'");
  expectError(one("F32", "[2]", "[8,0]"), "tensor 'x': expects rising 'data_offsets', got [8, 0]");
  expectError(one("F32", "[2]", "[-8,0]"),
              "tensor 'x': expects rising 'data_offsets', got [-8, 0]");
  expectError(one("F32", "[3]", "[0,12]"),
              "tensor 'x': 'data_offsets' [0, 12] go beyond the 8 bytes of data");
  expectError(one("F32", "[1]", "[0,8]"),
              "tensor 'x': expects 4 bytes for shape [1] of type F32, got 8");
  expectError(one("F64", "[2]", "[0,8]"),
              "tensor 'x': expects 16 bytes for shape [2] of type F64, got 8");
  expectError(one("F4", "[3]", "[0,1]"),
              "tensor 'x': shape [3] of type F4 is not a multiple of 8 bits");
}

TEST_F(Safetensors, RefusesOverlapsAndGaps) {
  expectError(
      file("{" + entry("x", "F32", "[2]", "[0,8]") + "," + entry("y", "F32", "[2]", "[4,12]") + "}",
           iota(3)),
      "tensor 'y' overlaps tensor 'x'");
  expectError(
      file("{" + entry("x", "F32", "[2]", "[0,8]") + "," + entry("y", "F32", "[2]", "[0,8]") + "}",
           iota(2)),
      "tensor 'y' overlaps tensor 'x'");
  expectError(
      file("{" + entry("x", "F32", "[1]", "[0,4]") + "," + entry("y", "F32", "[1]", "[8,12]") + "}",
           iota(3)),
      "a gap of 4 bytes before tensor 'y'");
  expectError(file("{" + entry("x", "F32", "[1]", "[4,8]") + "}", iota(2)),
              "a gap of 4 bytes before tensor 'x'");
  expectError(file("{" + entry("x", "F32", "[1]", "[0,4]") + "}", iota(2)),
              "the tensors end after 4 bytes of data, the file after 8");
}

TEST_F(Safetensors, RefusesEveryTruncation) {
  const std::string good =
      file("{" + entry("x", "F32", "[2]", "[0,8]") + "," + entry("y", "F32", "[1]", "[8,12]") + "}",
           iota(3));
  EXPECT_OK(open(good));
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(open(good.substr(0, size)).ok()) << size;
}

TEST_F(Safetensors, SurvivesEveryChangedHeaderByte) {
  const std::string good = file("{" + entry("x", "F32", "[2]", "[0,8]") + "}", iota(2));
  for (size_t i = 0; i + 8 < good.size(); ++i)
    for (char c : {'\0', '0', '9', '"', '}', '[', '\xff'}) {
      std::string bad = good;
      bad[i] = c;
      put(path, bad);
      Result<std::unique_ptr<WeightSource>> source = openSafetensors(path);
      if (source.ok())
        (void)readBox(**source, whole("x", {2}), {{0}, {2}});
    }
}

TEST_F(Safetensors, RefusesWhatTheParameterDoesNotExpect) {
  put(path,
      file("{" + entry("x", "I16", "[2]", "[0,4]") + "," + entry("y", "F32", "[2]", "[4,12]") + "}",
           iota(3)));
  Result<std::unique_ptr<WeightSource>> source = openSafetensors(path);
  ASSERT_OK(source);
  auto error = [&](const Parameter &parameter, const Box &box) {
    return readBox(**source, parameter, box).status();
  };
  EXPECT_ERROR(error(whole("x", {2}), {{0}, {2}}),
               "weight 'x' in '" + path + "': expects F32, BF16 or F16, got I16");
  EXPECT_ERROR(error(whole("y", {3}), {{0}, {3}}),
               "weight 'y' in '" + path + "': expects shape [3], got [2]");
  EXPECT_ERROR(error(whole("y", {1, 2}), {{0, 0}, {1, 2}}),
               "weight 'y' in '" + path + "': expects shape [1, 2], got [2]");
  EXPECT_ERROR(error(whole("z", {2}), {{0}, {2}}),
               "weight 'z' in '" + path + "' is missing; parameter 'p.z' needs it");
  // Also if the rank needs nothing of that slice.
  Parameter joined = whole("y", {2});
  joined.globalShape = {4};
  joined.slices.push_back({"z", {2}, {}, {0}, {2}, {2}});
  EXPECT_ERROR(error(joined, {{0}, {2}}),
               "weight 'z' in '" + path + "' is missing; parameter 'p.y' needs it");
  EXPECT_ERROR(error(whole("y", {2}), {{1}, {2}}),
               "parameter 'p.y': expects a box inside of [2], got sizes [2] at [1]");
}

TEST_F(Safetensors, RefusesBadSlices) {
  put(path, file("{" + entry("x", "F32", "[2,4]", "[0,32]") + "}", iota(8)));
  Result<std::unique_ptr<WeightSource>> source = openSafetensors(path);
  ASSERT_OK(source);
  auto error = [&](const std::function<void(Parameter &)> &change) {
    Parameter parameter = whole("x", {2, 4});
    change(parameter);
    return readBox(**source, parameter, {{0, 0}, {1, 1}}).status();
  };
  const std::string slice = "parameter 'p.x': slice 0 of tensor 'x' ";
  EXPECT_OK(error([](Parameter &) {}));
  EXPECT_ERROR(error([](Parameter &p) { p.slices.clear(); }),
               "parameter 'p.x': expects 1 to 4096 slices, got 0");
  EXPECT_ERROR(error([](Parameter &p) { p.slices[0].tensor = ""; }),
               "parameter 'p.x': slice 0 of tensor '' expects the name of a tensor");
  EXPECT_ERROR(error([](Parameter &p) { p.slices[0].sizes = {2}; }),
               slice + "expects sizes of rank 2, got [2]");
  EXPECT_ERROR(error([](Parameter &p) { p.slices[0].tensorShape = {2, -4}; }),
               slice + "expects sizes of at least 1, got shape [2, -4]");
  for (const std::vector<int64_t> &permutation : {std::vector<int64_t>{0}, {0, 0}, {0, 2}, {-1, 0}})
    EXPECT_ERROR(error([&](Parameter &p) { p.slices[0].permutation = permutation; }),
                 slice + "expects a permutation of 2 dimensions, got " + shapeString(permutation));
  EXPECT_ERROR(error([](Parameter &p) { p.slices[0].sourceOffsets = {0, 1}; }),
               slice + "takes 4 from offset 1 in dimension 1, which has size 4 in the tensor");
  EXPECT_ERROR(error([](Parameter &p) { p.slices[0].sourceOffsets = {-1, 0}; }),
               slice + "takes 2 from offset -1 in dimension 0, which has size 2 in the tensor");
  EXPECT_ERROR(error([](Parameter &p) { p.slices[0].permutation = {1, 0}; }),
               slice + "takes 4 from offset 0 in dimension 1, which has size 2 in the tensor");
  EXPECT_ERROR(error([](Parameter &p) { p.slices[0].destOffsets = {0, INT64_MAX}; }),
               slice + "puts 4 at offset 9223372036854775807 in dimension 1, which has size 4 in "
                       "the parameter");
  EXPECT_ERROR(error([](Parameter &p) { p.globalShape = {2, 3}; }),
               slice + "puts 4 at offset 0 in dimension 1, which has size 3 in the parameter");
  EXPECT_ERROR(error([](Parameter &p) {
                 p.slices[0].sizes = {1, 4};
                 p.slices.push_back({"x", {2, 4}, {}, {0, 0}, {0, 3}, {2, 1}});
               }),
               "parameter 'p.x': slice 1 of tensor 'x' overlaps slice 0");
}

/// Three tensors joined with one transposed and a row of zeros, over several meshes: every rank has
/// exactly the shard of its coordinates.
TEST_F(Safetensors, LoadsEveryShardingOfJoinedSlices) {
  put(path, file("{" + entry("q", "F32", "[4,8]", "[0,128]") + "," +
                     entry("k", "F32", "[8,4]", "[128,256]") + "," +
                     entry("v", "F32", "[3,10]", "[256,376]") + "}",
                 iota(32, 100) + iota(32, 200) + iota(30, 300)));
  Result<std::unique_ptr<WeightSource>> source = openSafetensors(path);
  ASSERT_OK(source);
  Parameter joined;
  joined.name = "qkv";
  joined.globalShape = {12, 8};
  joined.slices = {{"q", {4, 8}, {}, {0, 0}, {0, 0}, {4, 8}},
                   {"k", {8, 4}, {1, 0}, {0, 0}, {4, 0}, {4, 8}},
                   {"v", {3, 10}, {0, 1}, {0, 2}, {8, 0}, {3, 8}}};
  HostTensor expected = HostTensor::zeros(DType::f32, {12, 8});
  for (int64_t i = 0; i < 12; ++i)
    for (int64_t j = 0; j < 8; ++j)
      expected.as<float>()[i * 8 + j] = static_cast<float>(i < 4    ? 100 + i * 8 + j
                                                           : i < 8  ? 200 + j * 4 + (i - 4)
                                                           : i < 11 ? 300 + (i - 8) * 10 + j + 2
                                                                    : 0);

  struct Case {
    std::vector<Mesh::Axis> axes;
    std::vector<int64_t> order;
    Sharding sharding;
  };
  const Case cases[] = {
      {{{"tp", 1}}, {}, {}},
      {{{"tp", 2}}, {}, {{{{"tp"}}, {}}}},
      {{{"tp", 4}}, {}, {{{}, {{"tp"}}}}},
      {{{"dp", 2}, {"tp", 2}}, {}, {{{{"tp"}}, {}}}},
      {{{"dp", 2}, {"tp", 2}}, {}, {{{{"tp"}}, {{"dp"}}}}},
      {{{"dp", 2}, {"tp", 2}}, {3, 1, 0, 2}, {{{{"tp"}, {"dp"}}, {}}}},
      {{{"tp", 12}}, {}, {{{{"tp", 2, 3}}, {{"tp", 6, 2}}}}},
      {{{"tp", 8}}, {7, 0, 6, 1, 5, 2, 4, 3}, {{{{"tp", 4, 2}}, {{"tp", 2, 2}, {"tp", 1, 2}}}}},
  };
  for (const Case &test : cases) {
    Mesh mesh;
    mesh.axes = test.axes;
    mesh.order = test.order;
    joined.sharding = test.sharding;
    for (int64_t rank = 0; rank < mesh.numRanks(); ++rank) {
      Result<Box> box = localBox(mesh, rank, joined.globalShape, joined.sharding);
      ASSERT_OK(box);
      HostTensor part = HostTensor::zeros(DType::f32, box->sizes);
      std::fill(part.data.begin(), part.data.end(), std::byte(0xab));
      std::vector<std::pair<size_t, size_t>> progress;
      ASSERT_OK(loadParameters(
          **source, mesh, rank, {joined, joined}, [&](size_t) { return part.data.data(); },
          [&](size_t done, size_t all) { progress.emplace_back(done, all); }));
      EXPECT_EQ(part.data, extractBox(expected, *box).data) << "rank " << rank;
      EXPECT_EQ(progress, (std::vector<std::pair<size_t, size_t>>{{1, 2}, {2, 2}}));
    }
  }
  Mesh mesh;
  mesh.axes = {{"tp", 5}};
  joined.sharding = {{{{"tp"}}, {}}};
  auto place = [](size_t) -> void * { return nullptr; };
  EXPECT_ERROR(loadParameters(**source, mesh, 0, {joined}, place),
               "parameter 'qkv': dimension 0 of size 12 does not divide into 5 shards");
  EXPECT_ERROR(loadParameters(**source, mesh, 5, {}, place), "expects a rank below 5, got 5");
}

TEST_F(Safetensors, PermutesHigherRanks) {
  put(path, file("{" + entry("x", "F32", "[2,3,40,5]", "[0,4800]") + "}", iota(1200)));
  Result<std::unique_ptr<WeightSource>> source = openSafetensors(path);
  ASSERT_OK(source);
  const int64_t shape[] = {2, 3, 40, 5}, strides[] = {600, 200, 5, 1};
  std::vector<int64_t> permutation = {0, 1, 2, 3};
  do {
    Parameter p;
    p.name = "p";
    for (int64_t dim : permutation)
      p.globalShape.push_back(shape[dim]);
    p.slices.push_back(
        {"x", {2, 3, 40, 5}, permutation, {0, 0, 0, 0}, {0, 0, 0, 0}, p.globalShape});
    Result<std::vector<float>> values = readBox(**source, p, {{0, 0, 0, 0}, p.globalShape});
    ASSERT_OK(values);
    size_t next = 0;
    bool same = true;
    for (int64_t a = 0; a < p.globalShape[0]; ++a)
      for (int64_t b = 0; b < p.globalShape[1]; ++b)
        for (int64_t c = 0; c < p.globalShape[2]; ++c)
          for (int64_t d = 0; d < p.globalShape[3]; ++d)
            same &= (*values)[next++] ==
                    float(a * strides[permutation[0]] + b * strides[permutation[1]] +
                          c * strides[permutation[2]] + d * strides[permutation[3]]);
    EXPECT_TRUE(same) << shapeString(permutation);
  } while (std::next_permutation(permutation.begin(), permutation.end()));
}

/// The tensor is too large to read in full: only the shard that a rank needs is read.
TEST_F(Safetensors, ReadsOnlyWhatARankNeeds) {
  const int64_t rows = int64_t(1) << 24, columns = 1024; // 64 GiB in a sparse file
  const std::string header = "{" + entry("x", "F32", "[16777216,1024]", "[0,68719476736]") + "}";
  put(path, lengthBytes(header.size()) + header);
  const int64_t begin = static_cast<int64_t>(8 + header.size());
  if (::truncate(path.c_str(), begin + rows * columns * 4) != 0)
    GTEST_SKIP() << "no sparse files of 64 GiB here";
  int fd = ::open(path.c_str(), O_WRONLY);
  const float value = 5;
  ASSERT_EQ(::pwrite(fd, &value, 4, begin + ((rows - 1) * columns + 7) * 4), 4);
  ::close(fd);
  Result<std::unique_ptr<WeightSource>> source = openSafetensors(path);
  ASSERT_OK(source);
  Result<std::vector<float>> values =
      readBox(**source, whole("x", {rows, columns}), {{rows - 2, 6}, {2, 2}});
  ASSERT_OK(values);
  EXPECT_EQ(*values, (std::vector<float>{0, 0, 0, 5}));
}

// 1, -2, infinity and the smallest subnormal; the last two as a transposed column of a matrix.
TEST_F(Safetensors, WidensHalfPrecision) {
  const uint16_t bf16[] = {0x3f80, 0xc000, 0x7f80, 0x0001},
                 f16[] = {0x3c00, 0xc000, 0x7c00, 0x0001};
  auto text = [](const uint16_t (&bits)[4]) {
    return std::string(reinterpret_cast<const char *>(bits), sizeof bits);
  };
  // A header of odd length, so that nothing is aligned.
  put(path, file("{" + entry("b", "BF16", "[2,2]", "[0,8]") + "," +
                     entry("h", "F16", "[2,2]", "[8,16]") + "} ",
                 text(bf16) + text(f16)));
  Result<std::unique_ptr<WeightSource>> source = openSafetensors(path);
  ASSERT_OK(source);
  const float infinity = std::numeric_limits<float>::infinity();
  for (auto [name, smallest] : {std::pair("b", 0x1p-133f), std::pair("h", 0x1p-24f)}) {
    EXPECT_EQ(*readBox(**source, whole(name, {2, 2}), {{0, 0}, {2, 2}}),
              (std::vector<float>{1, -2, infinity, smallest}));
    Parameter column = whole(name, {2, 2});
    column.globalShape = {3, 2};
    column.slices[0].permutation = {1, 0};
    column.slices[0].destOffsets = {1, 0};
    EXPECT_EQ(*readBox(**source, column, {{0, 1}, {3, 1}}),
              (std::vector<float>{0, infinity, smallest}));
    Parameter narrow = whole(name, {2, 2});
    narrow.dtype = DType::f64;
    EXPECT_ERROR((*source)->read(narrow, {{0, 0}, {2, 2}}, nullptr),
                 "weight '" + std::string(name) + "' in '" + path + "': expects F64, got " +
                     (name[0] == 'b' ? "BF16" : "F16"));
  }
}

/// Every 16-bit value, in rows whose size is not a multiple of the vector size.
TEST_F(Safetensors, WidensEveryHalf) {
  std::string halves;
  for (uint32_t bits = 0; bits < 65536; ++bits)
    halves += {static_cast<char>(bits & 0xff), static_cast<char>(bits >> 8)};
  put(path, file("{" + entry("f", "F16", "[65536]", "[0,131072]") + "," +
                     entry("b", "BF16", "[65536]", "[131072,262144]") + "}",
                 halves + halves));
  auto source = openSafetensors(path);
  ASSERT_OK(source);
  for (const char *name : {"f", "b"})
    for (int64_t step : {65536, 77}) {
      Parameter parameter = whole(name, {65536});
      for (int64_t begin = 0; begin < 65536; begin += step) {
        const int64_t count = std::min<int64_t>(step, 65536 - begin);
        std::vector<float> values(static_cast<size_t>(count));
        ASSERT_OK((*source)->read(parameter, {{begin}, {count}}, values.data()));
        for (int64_t i = 0; i < count; ++i) {
          const auto bits = static_cast<uint16_t>(begin + i);
          const float expected = name[0] == 'f' ? f16ToFloat(bits) : bf16ToFloat(bits);
          ASSERT_EQ(bitsOf(values[static_cast<size_t>(i)]), bitsOf(expected))
              << name << " " << bits;
        }
      }
    }
}

/// Large slices take several reads.
TEST_F(Safetensors, ReadsLargeParts) {
  constexpr int64_t kRows = 1500, kColumns = 900; // 5.4 MB
  put(path,
      file("{" + entry("w", "F32", "[1500,900]", "[0,5400000]") + "}", iota(kRows * kColumns)));
  auto source = openSafetensors(path);
  ASSERT_OK(source);
  Parameter straight = whole("w", {kRows, kColumns}), transposed = straight;
  transposed.globalShape = {kColumns, kRows};
  transposed.slices[0].permutation = {1, 0};
  transposed.slices[0].sizes = {kColumns, kRows};
  for (bool isTransposed : {false, true})
    for (const Box &box :
         {Box{{0, 0}, {900, 900}}, Box{{3, 450}, {890, 449}}, Box{{1, 2}, {5, 7}}}) {
      auto read = readBox(**source, isTransposed ? transposed : straight, box);
      ASSERT_OK(read);
      for (int64_t i = 0; i < box.sizes[0]; ++i)
        for (int64_t j = 0; j < box.sizes[1]; ++j) {
          int64_t row = box.offsets[0] + i, column = box.offsets[1] + j;
          if (isTransposed)
            std::swap(row, column);
          ASSERT_EQ((*read)[static_cast<size_t>(i * box.sizes[1] + j)],
                    static_cast<float>(row * kColumns + column));
        }
    }
}

/// A file that is truncated while it is in use is an error, not a signal.
TEST_F(Safetensors, NoticesAFileThatBecomesShorter) {
  const std::string content =
      file("{" + entry("w", "F32", "[20000]", "[0,80000]") + "}", iota(20000));
  put(path, content);
  auto source = openSafetensors(path);
  ASSERT_OK(source);
  ASSERT_EQ(truncate(path.c_str(), 4096), 0);
  EXPECT_ERROR(readBox(**source, whole("w", {20000}), {{0}, {20000}}),
               "cannot read weight 'w' from '" + path +
                   "': the file ends after 4096 bytes, it had " + std::to_string(content.size()) +
                   " when it was opened");
  EXPECT_OK(readBox(**source, whole("w", {20000}), {{0}, {100}}));
}

/// One rank's rows of a key's projection: columns, transposed, of a tensor that holds query, key
/// and value side by side.
TEST_F(Safetensors, ReadsOnlyASliceOfWhatIsFusedAndTransposed) {
  const int64_t in = 1024, out = int64_t(1) << 22; // 48 GiB in a sparse file
  const std::string header = "{" + entry("x", "F32", "[1024,12582912]", "[0,51539607552]") + "}";
  put(path, lengthBytes(header.size()) + header);
  const int64_t begin = static_cast<int64_t>(8 + header.size());
  if (::truncate(path.c_str(), begin + in * 3 * out * 4) != 0)
    GTEST_SKIP() << "no sparse files of 48 GiB here";
  int fd = ::open(path.c_str(), O_WRONLY);
  const float value = 5, other = 6;
  // Row out - 1 and column 7 of the key; the neighbour belongs to the value.
  ASSERT_EQ(::pwrite(fd, &value, 4, begin + (7 * 3 * out + 2 * out - 1) * 4), 4);
  ASSERT_EQ(::pwrite(fd, &other, 4, begin + (7 * 3 * out + 2 * out) * 4), 4);
  ::close(fd);
  Parameter key;
  key.name = "key";
  key.globalShape = {out, in};
  key.slices = {{"x", {in, 3 * out}, {1, 0}, {out, 0}, {0, 0}, {out, in}}};
  Result<std::unique_ptr<WeightSource>> source = openSafetensors(path);
  ASSERT_OK(source);
  Result<std::vector<float>> values = readBox(**source, key, {{out - 2, 6}, {2, 2}});
  ASSERT_OK(values);
  EXPECT_EQ(*values, (std::vector<float>{0, 0, 0, 5}));
}

} // namespace
