//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Program/Manifest.h"
#include "braid/Runtime/ManifestJson.h"

#include "SampleProgram.h"
#include "Testing.h"

#include <nlohmann/json.hpp>

#include <functional>

using namespace braid::runtime;
using namespace braid::runtime::testing;
using Json = nlohmann::json;

namespace {

Manifest full() {
  Manifest manifest = sampleManifest();
  manifest.mesh.axes.push_back({"dp", 4});
  manifest.mesh.order = {7, 6, 5, 4, 3, 2, 1, 0};
  manifest.moduleMember = "module.mlirbc";
  Entry &entry = manifest.entries[0];
  entry.parameters[0].sharding.dims = {{{"dp", 2, 2}, {"tp"}}, {}};
  entry.parameters[0].init = Init::ones;
  entry.operands[0].dtype = DType::i64;
  entry.operands[0].sharding.dims = {{{"dp", 1, 2}}, {}};
  return manifest;
}

/// The sample's JSON after a change.
Status parseAfter(const std::function<void(Json &)> &change) {
  Json json = Json::parse(toJson(full()));
  change(json);
  return manifestFromJson(json.dump()).status();
}
Status verifyAfter(const std::function<void(Manifest &)> &change) {
  Manifest manifest = full();
  change(manifest);
  Status status = manifest.verify();
  EXPECT_EQ(manifestFromJson(toJson(manifest)).status().message(), status.message())
      << "reading checks the same";
  return status;
}

TEST(Manifest, RoundTrips) {
  Manifest manifest = full();
  Result<Manifest> back = manifestFromJson(toJson(manifest));
  ASSERT_OK(back);
  EXPECT_EQ(toJson(*back), toJson(manifest));
  EXPECT_EQ(back->producer, "braid 0.1.0");
  EXPECT_EQ(back->modelName, "sample");
  ASSERT_EQ(back->mesh.axes.size(), 2u);
  EXPECT_EQ(back->mesh.axes[1].name, "dp");
  EXPECT_EQ(back->mesh.axes[1].size, 4);
  EXPECT_EQ(back->mesh.order, manifest.mesh.order);
  const Parameter &w = back->entries.at(0).parameters.at(0);
  EXPECT_EQ(w.name, "w");
  EXPECT_EQ(w.init, Init::ones);
  EXPECT_EQ(w.globalShape, (std::vector<int64_t>{8, 8}));
  ASSERT_EQ(w.sharding.dims.size(), 2u);
  EXPECT_EQ(w.sharding.dims[0], (std::vector<AxisRef>{{"dp", 2, 2}, {"tp"}}));
  EXPECT_TRUE(w.sharding.dims[1].empty());
  EXPECT_EQ(w.slices.at(0).tensor, "layer.weight");
  EXPECT_EQ(w.slices.at(0).permutation, (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(w.slices.at(0).sizes, (std::vector<int64_t>{8, 8}));
  EXPECT_EQ(back->entries[0].operands.at(0).dtype, DType::i64);
  EXPECT_EQ(back->entries[0].results.at(0).name, "y");
  EXPECT_EQ(back->kernels.at(0).features, (std::vector<std::string>{"avx2", "fma"}));
  EXPECT_EQ(back->kernels.at(0).member, manifest.kernels[0].member);
  EXPECT_EQ(back->transports, (std::vector<std::string>{"threads"}));
  EXPECT_EQ(back->programMember, "program.brpg");
  EXPECT_EQ(back->moduleMember, "module.mlirbc");
}

TEST(Manifest, SaysWhatIsQuantized) {
  Manifest manifest = full();
  Entry &entry = manifest.entries[0];
  EXPECT_FALSE(manifestFromJson(toJson(manifest))->entries[0].parameters[0].quantized);
  Parameter values = entry.parameters[0], scales = values;
  values.name = "w.int8";
  values.dtype = DType::i8;
  values.quantized = QuantizedPart::values;
  scales.name = "w.scales";
  scales.globalShape = {8};
  scales.sharding.dims.pop_back();
  scales.quantized = QuantizedPart::scales;
  entry.parameters.push_back(values);
  entry.parameters.push_back(scales);
  Result<Manifest> back = manifestFromJson(toJson(manifest));
  ASSERT_OK(back);
  EXPECT_EQ(toJson(*back), toJson(manifest));
  EXPECT_EQ(back->entries[0].parameters[1].quantized, QuantizedPart::values);
  EXPECT_EQ(back->entries[0].parameters[2].quantized, QuantizedPart::scales);
  entry.parameters[2].dtype = DType::f16;
  EXPECT_ERROR(manifest.verify(), "'entries[0].parameters[2]': parameter 'w.scales': expects "
                                  "quantized scales of f32 with 1 dimension, got f16 [8]");
  Json json = Json::parse(toJson(*back));
  json["entries"][0]["parameters"][1]["quantized"] = "rows";
  EXPECT_ERROR(manifestFromJson(json.dump()), "'entries[0].parameters[1]': unknown 'quantized' "
                                              "'rows', expects values or scales");
}

TEST(Manifest, StrippedModuleHasNoField) {
  Manifest manifest = full();
  manifest.moduleMember.clear();
  EXPECT_FALSE(Json::parse(toJson(manifest)).contains("module"));
  EXPECT_EQ(manifestFromJson(toJson(manifest))->moduleMember, "");
}

TEST(Manifest, Types) {
  for (DType type :
       {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i32, DType::i64, DType::i8}) {
    Result<DType> back = parseDType(name(type));
    ASSERT_OK(back);
    EXPECT_EQ(*back, type);
  }
  EXPECT_EQ(byteSize(DType::bf16), 2);
  EXPECT_EQ(byteSize(DType::f64), 8);
  EXPECT_EQ(byteSize(DType::i8), 1);
  EXPECT_ERROR(parseDType("float"),
               "unknown type 'float', expects one of f32, f16, bf16, f64, i32, i64, i8");
}

TEST(Manifest, RefusesWhatIsNotOne) {
  EXPECT_ERROR_HAS(manifestFromJson(""), "parse error at line 1, column 1");
  EXPECT_ERROR_HAS(manifestFromJson("{\"format_version\": 1"), "parse error");
  EXPECT_ERROR(manifestFromJson("[1]"), "expects an object, got array");
  EXPECT_ERROR(manifestFromJson("{}"), "field 'format_version' is missing");
  EXPECT_ERROR(manifestFromJson("{\"a\": 1, \"a\": 1}"), "duplicate name 'a'");
}

/// Every field of every object, missing and of the wrong type.
TEST(Manifest, RefusesEveryMissingAndMistypedField) {
  const Json good = Json::parse(toJson(full()));
  struct Object {
    const char *pointer, *path;
  };
  const Object objects[] = {
      {"", ""},
      {"/mesh", "mesh."},
      {"/mesh/axes/1", "mesh.axes[1]."},
      {"/entries/0", "entries[0]."},
      {"/entries/0/parameters/0", "entries[0].parameters[0]."},
      {"/entries/0/parameters/0/slices/0", "entries[0].parameters[0].slices[0]."},
      {"/entries/0/parameters/0/sharding/0/0", "entries[0].parameters[0].sharding[0][0]."},
      {"/entries/0/operands/0", "entries[0].operands[0]."},
      {"/entries/0/results/0", "entries[0].results[0]."},
      {"/kernels/0", "kernels[0]."}};
  size_t fields = 0;
  for (const Object &object : objects) {
    const Json &original = good.at(Json::json_pointer(object.pointer));
    for (const auto &[field, value] : original.items()) {
      ++fields;
      std::string path = object.path + field;
      Json missing = good;
      missing.at(Json::json_pointer(object.pointer)).erase(field);
      if (path == "module")
        EXPECT_OK(manifestFromJson(missing.dump()));
      else
        EXPECT_ERROR(manifestFromJson(missing.dump()), "field '" + path + "' is missing");
      Json mistyped = good;
      mistyped.at(Json::json_pointer(object.pointer))[field] = true;
      const char *expected = value.is_string()   ? "a string"
                             : value.is_number() ? "an integer"
                             : value.is_array()  ? "an array"
                                                 : "an object";
      EXPECT_ERROR(manifestFromJson(mistyped.dump()),
                   "field '" + path + "' expects " + expected + ", got boolean");
    }
    Json extra = good;
    extra.at(Json::json_pointer(object.pointer))["surprise"] = 1;
    std::string where = object.path;
    if (!where.empty())
      where = "'" + where.substr(0, where.size() - 1) + "': ";
    EXPECT_ERROR(manifestFromJson(extra.dump()), where + "unknown field 'surprise'");
  }
  EXPECT_EQ(fields, 46u) << "the sample has every field; this counts that each was tried";
}

TEST(Manifest, RefusesMistypedElements) {
  EXPECT_ERROR(parseAfter([](Json &j) { j["mesh"]["order"][1] = 1.5; }),
               "field 'mesh.order[1]' expects an integer, got 1.5");
  EXPECT_ERROR(parseAfter([](Json &j) { j["mesh"]["order"][1] = ~uint64_t(0); }),
               "field 'mesh.order[1]' expects an integer, got 18446744073709551615");
  EXPECT_ERROR(parseAfter([](Json &j) { j["transports"][0] = 3; }),
               "field 'transports[0]' expects a string, got 3");
  EXPECT_ERROR(parseAfter([](Json &j) { j["kernels"][0] = "x"; }),
               "field 'kernels[0]' expects an object, got string");
  EXPECT_ERROR(parseAfter([](Json &j) { j["entries"][0]["operands"][0]["sharding"][1] = 1; }),
               "field 'entries[0].operands[0].sharding[1]' expects an array, got 1");
  EXPECT_ERROR(parseAfter([](Json &j) { j["entries"][0]["operands"][0]["sharding"][1] = {1}; }),
               "field 'entries[0].operands[0].sharding[1][0]' expects an object, got 1");
  EXPECT_ERROR(parseAfter([](Json &j) { j["entries"][0]["operands"][0]["dtype"] = "f31"; }),
               "'entries[0].operands[0]': unknown type 'f31', expects one of f32, f16, bf16, f64, "
               "i32, i64, i8");
  EXPECT_ERROR(parseAfter([](Json &j) { j["entries"][0]["parameters"][0]["init"] = "twos"; }),
               "'entries[0].parameters[0]': unknown 'init' 'twos', expects normal, ones or zeros");
  EXPECT_ERROR(parseAfter([](Json &j) { j["sha256"] = {{"program.brpg", "12"}}; }),
               "field 'sha256.program.brpg' expects 64 lower-case hexadecimal digits");
  EXPECT_ERROR(parseAfter([](Json &j) { j["format_version"] = 2; }),
               "expects format version 1, got 2");
}

TEST(Manifest, RefusesContradictions) {
  EXPECT_OK(verifyAfter([](Manifest &) {}));
  EXPECT_ERROR(verifyAfter([](Manifest &m) { m.mesh.order.pop_back(); }),
               "'mesh': mesh 'mesh' expects 'order' to be a permutation of 0..7");
  EXPECT_ERROR(verifyAfter([](Manifest &m) { m.entries.clear(); }),
               "'entries' expects at least one entry");
  EXPECT_ERROR(verifyAfter([](Manifest &m) { m.entries.push_back(m.entries[0]); }),
               "'entries' has 'main' twice");
  EXPECT_ERROR(verifyAfter([](Manifest &m) { m.entries[0].name = ""; }),
               "'entries[0]' expects a name");
  EXPECT_ERROR(verifyAfter([](Manifest &m) {
                 m.entries[0].parameters.push_back(m.entries[0].parameters[0]);
               }),
               "'entries[0].parameters' has 'w' twice");
  EXPECT_ERROR(verifyAfter([](Manifest &m) { m.entries[0].parameters[0].name = ""; }),
               "'entries[0].parameters[0]': expects a name");
  EXPECT_ERROR(
      verifyAfter([](Manifest &m) { m.entries[0].operands.push_back(m.entries[0].operands[0]); }),
      "'entries[0].operands' has 'x' twice");
  EXPECT_ERROR(verifyAfter([](Manifest &m) { m.entries[0].operands[0].globalShape = {3, 8}; }),
               "'entries[0].operands[0]': 'x': dimension 0 of size 3 does not divide into 2 "
               "shards");
  EXPECT_ERROR(verifyAfter([](Manifest &m) { m.entries[0].operands[0].globalShape = {2}; }),
               "'entries[0].operands[0]': 'x': sharding of 2 dimensions on a tensor of rank 1");
  EXPECT_ERROR(verifyAfter([](Manifest &m) { m.entries[0].operands[0].globalShape = {2, 0}; }),
               "'entries[0].operands[0]': 'x': expects sizes of at least 1, got shape [2, 0]");
  EXPECT_ERROR(
      verifyAfter([](Manifest &m) { m.entries[0].results[0].globalShape = {INT64_MAX / 2, 2}; }),
      "'entries[0].results[0]': 'y': shape [4611686018427387903, 2] is too large");
  EXPECT_ERROR(
      verifyAfter([](Manifest &m) { m.entries[0].parameters[0].sharding.dims[1] = {{"pp"}}; }),
      "'entries[0].parameters[0]': parameter 'w': unknown axis 'pp' in mesh 'mesh'");
  EXPECT_ERROR(
      verifyAfter([](Manifest &m) { m.entries[0].parameters[0].sharding.dims[1] = {{"dp"}}; }),
      "'entries[0].parameters[0]': parameter 'w': axis 'dp' is used twice");
  EXPECT_ERROR(verifyAfter([](Manifest &m) { m.entries[0].parameters[0].slices.clear(); }),
               "'entries[0].parameters[0]': parameter 'w': expects 1 to 4096 slices, got 0");
  EXPECT_ERROR(
      verifyAfter([](Manifest &m) { m.entries[0].parameters[0].slices[0].sourceOffsets = {0, 1}; }),
      "'entries[0].parameters[0]': parameter 'w': slice 0 of tensor 'layer.weight' takes "
      "8 from offset 1 in dimension 1, which has size 8 in the tensor");
  EXPECT_ERROR(verifyAfter([](Manifest &m) { m.kernels[0].isa = ""; }),
               "'kernels[0].isa' expects a name");
  EXPECT_ERROR(verifyAfter([](Manifest &m) {
                 m.kernels.push_back(m.kernels[0]);
                 m.kernels[1].member = "other.so";
               }),
               "'kernels' has two libraries for cpu x86_64-unknown-linux-gnu x86-64-v3");
  EXPECT_ERROR(verifyAfter([](Manifest &m) { m.transports = {"threads", "threads"}; }),
               "'transports[1]' occurs twice");
}

TEST(Manifest, PaddingOfAResult) {
  // Callers see y as [4, 8]; it is padded to [4, 9] for three shards.
  auto padded = [](std::vector<int64_t> shape) {
    return [shape](Manifest &m) {
      m.mesh.axes[1] = {"dp", 3};
      m.mesh.order.clear();
      m.entries[0].parameters[0].sharding.dims.clear();
      m.entries[0].operands[0].sharding.dims.clear();
      m.entries[0].results[0].globalShape = {4, 8};
      m.entries[0].results[0].paddedShape = shape;
      m.entries[0].results[0].sharding.dims = {{}, {{"dp"}}};
    };
  };
  EXPECT_OK(verifyAfter(padded({4, 9})));
  Manifest manifest = full();
  padded({4, 9})(manifest);
  Result<Manifest> back = manifestFromJson(toJson(manifest));
  ASSERT_OK(back);
  EXPECT_EQ(back->entries[0].results[0].shardedShape(), (std::vector<int64_t>{4, 9}));
  EXPECT_EQ(back->entries[0].operands[0].shardedShape(), back->entries[0].operands[0].globalShape);
  const std::string y = "'entries[0].results[0]': 'y': ";
  EXPECT_ERROR(verifyAfter(padded({})), y + "dimension 1 of size 8 does not divide into 3 shards");
  for (const char *bad : {"[3, 9]", "[4, 6]"}) {
    std::vector<int64_t> shape =
        bad[1] == '3' ? std::vector<int64_t>{3, 9} : std::vector<int64_t>{4, 6};
    EXPECT_ERROR(verifyAfter(padded(shape)),
                 y + "expects a padded shape of at least [4, 8] in every dimension, got " + bad);
  }
  EXPECT_ERROR(verifyAfter(padded({4, 8, 9})),
               y + "expects a padded shape of at least [4, 8] in every dimension, got [4, 8, 9]");
  EXPECT_ERROR(verifyAfter([](Manifest &m) {
                 m.entries[0].operands[0].paddedShape = m.entries[0].operands[0].globalShape;
               }),
               "'entries[0].operands[0]': 'x': expects a padded shape of a state or a result only");
  EXPECT_ERROR(parseAfter([](Json &j) { j["entries"][0]["results"][0]["padded_shape"] = "x"; }),
               "field 'entries[0].results[0].padded_shape' expects an array, got string");
}

TEST(Manifest, StatesOfEntries) {
  auto with = [](const std::function<void(Entry & first, Entry & second)> &change) {
    return [=](Manifest &m) {
      Entry &first = m.entries[0];
      first.states.push_back({"keys", DType::f32, {4, 8}, {{{}, {{"tp"}}}}});
      Entry second = first;
      second.name = "decode";
      m.entries.push_back(second);
      change(m.entries[0], m.entries[1]);
    };
  };
  Manifest manifest = full();
  with([](Entry &, Entry &second) { second.states.clear(); })(manifest);
  Result<Manifest> back = manifestFromJson(toJson(manifest));
  ASSERT_OK(back);
  EXPECT_EQ(toJson(*back), toJson(manifest));
  ASSERT_EQ(back->entries[0].states.size(), 1u);
  EXPECT_EQ(back->entries[0].states[0].name, "keys");
  EXPECT_TRUE(back->entries[1].states.empty());

  EXPECT_OK(verifyAfter(with([](Entry &, Entry &) {})));
  EXPECT_OK(verifyAfter(with([](Entry &first, Entry &second) {
    first.states[0].paddedShape = second.states[0].paddedShape = {4, 10};
  })));
  EXPECT_ERROR(
      verifyAfter(with([](Entry &, Entry &second) { second.states[0].dtype = DType::f16; })),
      "entry 'decode' expects state 'keys' to be f32 [4, 8] sharded [{}, {tp}] as in entry "
      "'main', got f16 [4, 8] sharded [{}, {tp}]");
  EXPECT_ERROR(
      verifyAfter(with([](Entry &, Entry &second) { second.states[0].paddedShape = {4, 10}; })),
      "entry 'decode' expects state 'keys' to be f32 [4, 8] sharded [{}, {tp}] as in entry "
      "'main', got f32 [4, 8] padded [4, 10] sharded [{}, {tp}]");
  EXPECT_ERROR(verifyAfter(with([](Entry &first, Entry &) { first.states[0].name = "x"; })),
               "'entries[0].operands' has 'x' twice");
  EXPECT_ERROR(verifyAfter(with([](Entry &first, Entry &) { first.states[0].name = "y"; })),
               "'entries[0].results' has 'y' twice");
  EXPECT_ERROR(verifyAfter(with([](Entry &first, Entry &) { first.states[0].name = "a/b"; })),
               "'entries[0].states[0]' expects a name that can be a file's, got 'a/b'");
  EXPECT_ERROR(verifyAfter(with([](Entry &first, Entry &) {
                 first.states[0].dtype = DType::i32;
                 first.states[0].defaultValue = 1;
               })),
               "'entries[0].states[0]': 'keys': expects a default and a bound of an operand of "
               "integers only");
}

TEST(Manifest, DefaultAndBoundOfAnOperand) {
  auto integers = [](std::optional<int64_t> defaultValue, std::optional<int64_t> below,
                     DType dtype = DType::i64) {
    return [=](Manifest &m) {
      EntryValue &x = m.entries[0].operands[0];
      x.dtype = dtype;
      x.defaultValue = defaultValue;
      x.below = below;
    };
  };
  Manifest manifest = full();
  integers(1, 2)(manifest);
  Result<Manifest> back = manifestFromJson(toJson(manifest));
  ASSERT_OK(back);
  EXPECT_EQ(back->entries[0].operands[0].defaultValue, 1);
  EXPECT_EQ(back->entries[0].operands[0].below, 2);
  EXPECT_EQ(back->entries[0].results[0].defaultValue, std::nullopt);
  EXPECT_OK(verifyAfter(integers(7, std::nullopt)));
  EXPECT_OK(verifyAfter(integers(std::nullopt, int64_t(1) << 40)));
  const std::string x = "'entries[0].operands[0]': 'x': ";
  EXPECT_ERROR(verifyAfter(integers(2, 2)), x + "expects a default in [0, 2), got 2");
  EXPECT_ERROR(verifyAfter(integers(-1, 2)), x + "expects a default in [0, 2), got -1");
  EXPECT_ERROR(verifyAfter(integers(std::nullopt, 0)),
               x + "expects a bound of 1 to 9223372036854775807, got 0");
  EXPECT_ERROR(verifyAfter(integers(0, int64_t(1) << 31, DType::i32)),
               x + "expects a bound of 1 to 2147483647, got 2147483648");
  EXPECT_ERROR(verifyAfter(integers(0, 1, DType::f32)),
               x + "expects a default and a bound of an operand of integers only");
  EXPECT_ERROR(verifyAfter([](Manifest &m) { m.entries[0].results[0].below = 2; }),
               "'entries[0].results[0]': 'y': expects a default and a bound of an operand of "
               "integers only");
  EXPECT_ERROR(parseAfter([](Json &j) { j["entries"][0]["operands"][0]["default"] = "x"; }),
               "field 'entries[0].operands[0].default' expects an integer, got string");
}

TEST(Manifest, RefusesNamesThatEscape) {
  for (const char *member : {"", "/etc/passwd", "../kernels.so", "a/../../b", "a//b", "a/", "./a",
                             "a\\..\\b", "c:kernels.so", "a\nb", "\xc3\xa9"}) {
    Manifest manifest = full();
    manifest.kernels[0].member = member;
    EXPECT_ERROR_HAS(manifest.verify(),
                     "'kernels[0].member' expects a path inside of the archive, got '");
    manifest = full();
    manifest.programMember = member;
    EXPECT_ERROR_HAS(manifest.verify(), "'program' expects a path inside of the archive, got '");
    if (!*member)
      continue;
    manifest = full();
    manifest.moduleMember = member;
    EXPECT_ERROR_HAS(manifest.verify(), "'module' expects a path inside of the archive, got '");
  }
  EXPECT_ERROR(verifyAfter([](Manifest &m) { m.programMember = "manifest.json"; }),
               "'program' names member 'manifest.json', which has another use");
  EXPECT_ERROR(verifyAfter([](Manifest &m) { m.moduleMember = m.programMember; }),
               "'module' names member 'program.brpg', which has another use");
  // --output DIR writes DIR/NAME.npy.
  for (const char *name : {"", "a/b", "..", ".", "/x", "../x"}) {
    Manifest manifest = full();
    manifest.entries[0].results[0].name = name;
    EXPECT_ERROR(manifest.verify(),
                 std::string("'entries[0].results[0]' expects a name that can be a file's, got '") +
                     name + "'");
  }
}

} // namespace
