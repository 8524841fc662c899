//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Runtime/ManifestJson.h"
#include "braid/Base/StatusMacros.h"

#include "Json.h"

#include <algorithm>

namespace braid::runtime {

namespace {

/// In the order in which it is written here: a manifest is read by people too.
using OrderedJson = nlohmann::ordered_json;

constexpr const char *kInitNames[] = {"normal", "ones", "zeros"};

OrderedJson toJson(const Sharding &sharding) {
  OrderedJson dims = OrderedJson::array();
  for (const std::vector<AxisRef> &axes : sharding.dims) {
    OrderedJson &dim = dims.emplace_back(OrderedJson::array());
    for (const AxisRef &axis : axes) {
      if (axis.pre == 1 && axis.size == 0)
        dim.push_back(axis.name);
      else
        dim.push_back({{"axis", axis.name}, {"pre", axis.pre}, {"size", axis.size}});
    }
  }
  return dims;
}

OrderedJson toJson(const Mesh &mesh) {
  OrderedJson axes = OrderedJson::array();
  for (const Mesh::Axis &axis : mesh.axes)
    axes.push_back({{"name", axis.name}, {"size", axis.size}});
  return {{"name", mesh.name}, {"axes", axes}, {"order", mesh.order}};
}

OrderedJson toJson(const Slice &slice) {
  return {{"tensor", slice.tensor},
          {"tensor_shape", slice.tensorShape},
          {"permutation", slice.permutation},
          {"source_offsets", slice.sourceOffsets},
          {"dest_offsets", slice.destOffsets},
          {"sizes", slice.sizes}};
}

OrderedJson toJson(const Parameter &parameter) {
  OrderedJson slices = OrderedJson::array();
  for (const Slice &slice : parameter.slices)
    slices.push_back(toJson(slice));
  return {{"name", parameter.name},
          {"dtype", name(parameter.dtype)},
          {"init", kInitNames[static_cast<size_t>(parameter.init)]},
          {"shape", parameter.globalShape},
          {"sharding", toJson(parameter.sharding)},
          {"slices", slices}};
}

OrderedJson toJson(const std::vector<EntryValue> &values) {
  OrderedJson result = OrderedJson::array();
  for (const EntryValue &value : values) {
    OrderedJson json = {{"name", value.name},
                        {"dtype", name(value.dtype)},
                        {"shape", value.globalShape},
                        {"sharding", toJson(value.sharding)}};
    if (!value.paddedShape.empty())
      json["padded_shape"] = value.paddedShape;
    if (value.defaultValue)
      json["default"] = *value.defaultValue;
    if (value.below)
      json["below"] = *value.below;
    result.push_back(std::move(json));
  }
  return result;
}

OrderedJson toJson(const Manifest &manifest, const Digests *digests) {
  OrderedJson entries = OrderedJson::array(), kernels = OrderedJson::array();
  for (const Entry &entry : manifest.entries) {
    OrderedJson parameters = OrderedJson::array();
    for (const Parameter &parameter : entry.parameters)
      parameters.push_back(toJson(parameter));
    entries.push_back({{"name", entry.name},
                       {"parameters", parameters},
                       {"operands", toJson(entry.operands)},
                       {"results", toJson(entry.results)}});
  }
  for (const KernelLibrary &library : manifest.kernels) {
    OrderedJson &json = kernels.emplace_back(OrderedJson{{"target", library.target},
                                                         {"triple", library.triple},
                                                         {"isa", library.isa},
                                                         {"features", library.features},
                                                         {"member", library.member}});
    if (!library.launchesMember.empty())
      json["launches"] = library.launchesMember;
    if (!library.sourceMember.empty())
      json["source"] = library.sourceMember;
  }
  OrderedJson json = {{"format_version", manifest.formatVersion},
                      {"producer", manifest.producer},
                      {"model", manifest.modelName},
                      {"mesh", toJson(manifest.mesh)},
                      {"entries", entries},
                      {"kernels", kernels},
                      {"transports", manifest.transports},
                      {"program", manifest.programMember}};
  if (!manifest.moduleMember.empty())
    json["module"] = manifest.moduleMember;
  if (digests)
    json["sha256"] = *digests;
  return json;
}

AxisRef readAxis(const Json &json, const std::string &path, FieldReader &parent) {
  if (json.is_string())
    return {json.get<std::string>(), 1, 0};
  FieldReader reader(json, path);
  AxisRef axis{reader.string("axis"), reader.integer("pre"), reader.integer("size")};
  parent.adopt(reader.finish());
  return axis;
}

Sharding readSharding(FieldReader &reader) {
  Sharding sharding;
  for (const Json &dim : reader.array("sharding")) {
    std::string path = reader.path("sharding", sharding.dims.size());
    if (!dim.is_array()) {
      reader.adopt(
          Status::error("field ", inQuotes(path), " expects an array, got ", dim.type_name()));
      break;
    }
    std::vector<AxisRef> &axes = sharding.dims.emplace_back();
    for (const Json &axis : dim)
      axes.push_back(readAxis(axis, path + "[" + std::to_string(axes.size()) + "]", reader));
  }
  return sharding;
}

Mesh readMesh(FieldReader &reader) {
  Mesh mesh;
  mesh.name = reader.string("name");
  mesh.axes = reader.objects<Mesh::Axis>("axes", [](FieldReader &axis) {
    return Mesh::Axis{axis.string("name"), axis.integer("size")};
  });
  mesh.order = reader.integers("order");
  return mesh;
}

Slice readSlice(FieldReader &reader) {
  Slice slice;
  slice.tensor = reader.string("tensor");
  slice.tensorShape = reader.integers("tensor_shape");
  slice.permutation = reader.integers("permutation");
  slice.sourceOffsets = reader.integers("source_offsets");
  slice.destOffsets = reader.integers("dest_offsets");
  slice.sizes = reader.integers("sizes");
  return slice;
}

Parameter readParameter(FieldReader &reader) {
  Parameter parameter;
  parameter.name = reader.string("name");
  parameter.dtype = reader.dtype("dtype");
  std::string init = reader.string("init");
  auto found = std::find(std::begin(kInitNames), std::end(kInitNames), init);
  if (found == std::end(kInitNames))
    reader.fail("unknown 'init' " + inQuotes(init) + ", expects normal, ones or zeros");
  else
    parameter.init = static_cast<Init>(found - std::begin(kInitNames));
  parameter.globalShape = reader.integers("shape");
  parameter.sharding = readSharding(reader);
  parameter.slices = reader.objects<Slice>("slices", readSlice);
  return parameter;
}

EntryValue readValue(FieldReader &reader) {
  EntryValue value;
  value.name = reader.string("name");
  value.dtype = reader.dtype("dtype");
  value.globalShape = reader.integers("shape");
  value.sharding = readSharding(reader);
  if (reader.has("padded_shape"))
    value.paddedShape = reader.integers("padded_shape");
  if (reader.has("default"))
    value.defaultValue = reader.integer("default");
  if (reader.has("below"))
    value.below = reader.integer("below");
  return value;
}

Entry readEntry(FieldReader &reader) {
  Entry entry;
  entry.name = reader.string("name");
  entry.parameters = reader.objects<Parameter>("parameters", readParameter);
  entry.operands = reader.objects<EntryValue>("operands", readValue);
  entry.results = reader.objects<EntryValue>("results", readValue);
  return entry;
}

KernelLibrary readLibrary(FieldReader &reader) {
  KernelLibrary library;
  library.target = reader.string("target");
  library.triple = reader.string("triple");
  library.isa = reader.string("isa");
  library.features = reader.strings("features");
  library.member = reader.string("member");
  if (reader.has("launches"))
    library.launchesMember = reader.string("launches");
  if (reader.has("source"))
    library.sourceMember = reader.string("source");
  return library;
}

Digests readDigests(FieldReader &reader) {
  Digests digests;
  for (const auto &[member, digest] : reader.child("sha256").items()) {
    std::string text = digest.is_string() ? digest.get<std::string>() : "";
    if (text.size() != 64 || text.find_first_not_of("0123456789abcdef") != std::string::npos)
      reader.adopt(Status::error("field ", inQuotes("sha256." + member),
                                 " expects 64 lower-case hexadecimal digits"));
    digests[member] = text;
  }
  return digests;
}

} // namespace

Result<std::string> manifestToJson(const Manifest &manifest, const Digests *digests) {
  try {
    return toJson(manifest, digests).dump(1) + "\n";
  } catch (const OrderedJson::exception &) {
    return Status::error("expects every name to be UTF-8");
  }
}

Result<Manifest> manifestFromJson(const std::string &text, Digests *digests) {
  ASSIGN_OR_RETURN(Json json, parseJson(text.data(), text.data() + text.size()));
  FieldReader reader(json, "");
  Manifest manifest;
  // Another version may have other fields: that it is another one is the message then.
  manifest.formatVersion = reader.integer("format_version");
  if (manifest.formatVersion != Manifest::kFormatVersion)
    reader.fail("expects format version " + std::to_string(Manifest::kFormatVersion) + ", got " +
                std::to_string(manifest.formatVersion));
  manifest.producer = reader.string("producer");
  manifest.modelName = reader.string("model");
  FieldReader mesh(reader.child("mesh"), "mesh");
  manifest.mesh = readMesh(mesh);
  reader.adopt(mesh.finish());
  manifest.entries = reader.objects<Entry>("entries", readEntry);
  manifest.kernels = reader.objects<KernelLibrary>("kernels", readLibrary);
  manifest.transports = reader.strings("transports");
  manifest.programMember = reader.string("program");
  if (reader.has("module"))
    manifest.moduleMember = reader.string("module");
  if (reader.has("sha256")) {
    Digests read = readDigests(reader);
    if (digests)
      *digests = std::move(read);
  }
  Status status = reader.finish();
  if (status.ok())
    status = manifest.verify();
  if (!status.ok())
    return status;
  return manifest;
}

std::string toJson(const Manifest &manifest) {
  return toJson(manifest, nullptr).dump(1, ' ', false, OrderedJson::error_handler_t::replace) +
         "\n";
}

} // namespace braid::runtime
