//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Runtime/ManifestJson.h"
#include "braid/Base/StatusMacros.h"

#include "Json.h"

namespace braid::runtime {

template <typename Io> static void fields(Io &io, Mesh::Axis &axis) {
  io.field("name", axis.name);
  io.field("size", axis.size);
}

template <typename Io> static void fields(Io &io, Mesh &mesh) {
  io.field("name", mesh.name);
  io.field("axes", mesh.axes);
  io.field("order", mesh.order);
}

template <typename Io> static void fields(Io &io, Slice &slice) {
  io.field("tensor", slice.tensor);
  io.field("tensor_shape", slice.tensorShape);
  io.field("permutation", slice.permutation);
  io.field("source_offsets", slice.sourceOffsets);
  io.field("dest_offsets", slice.destOffsets);
  io.field("sizes", slice.sizes);
}

template <typename Io> static void fields(Io &io, RankSet::Axis &axis) {
  io.field("axis", axis.axis);
  io.field("coordinates", axis.coordinates);
}

template <typename Io> static void fields(Io &io, Parameter &parameter) {
  io.field("name", parameter.name);
  io.field("dtype", parameter.dtype);
  io.field("init", parameter.init);
  io.field("shape", parameter.globalShape);
  io.field("sharding", parameter.sharding.dims);
  io.field("slices", parameter.slices);
  io.optional("quantized", parameter.quantized);
  io.optional("on", parameter.on.axes);
}

template <typename Io> static void fields(Io &io, EntryValue &value) {
  io.field("name", value.name);
  io.field("dtype", value.dtype);
  io.field("shape", value.globalShape);
  io.field("sharding", value.sharding.dims);
  io.optional("on", value.on.axes);
  io.optional("padded_shape", value.paddedShape);
  io.optional("default", value.defaultValue);
  io.optional("below", value.below);
}

template <typename Io> static void fields(Io &io, Entry &entry) {
  io.field("name", entry.name);
  io.field("parameters", entry.parameters);
  io.optional("states", entry.states);
  io.field("operands", entry.operands);
  io.field("results", entry.results);
}

template <typename Io> static void fields(Io &io, KernelLibrary &library) {
  io.field("target", library.target);
  io.field("triple", library.triple);
  io.field("isa", library.isa);
  io.field("features", library.features);
  io.field("member", library.member);
  io.optional("launches", library.launchesMember);
  io.optional("source", library.sourceMember);
}

template <typename Io> static void fields(Io &io, EncodedFor &place) {
  io.field("machine", place.machine);
  io.field("ranks_of_hosts", place.ranksOfHosts);
}

template <typename Io> static void fields(Io &io, ErrorBudget &budget) {
  io.field("metric", budget.metric);
  io.field("bound", budget.bound);
  io.field("measured", budget.measured);
  io.field("percentile_95", budget.percentile95);
  io.field("batches", budget.batches);
  io.field("encodings", budget.encodings);
}

template <typename Io> static void fields(Io &io, Manifest &manifest) {
  io.field("format_version", manifest.formatVersion);
  io.field("producer", manifest.producer);
  io.field("model", manifest.modelName);
  io.field("mesh", manifest.mesh);
  io.field("entries", manifest.entries);
  io.field("kernels", manifest.kernels);
  io.field("transports", manifest.transports);
  io.field("program", manifest.programMember);
  io.optional("check_tolerance", manifest.checkTolerance);
  io.optional("encoded_for", manifest.encodedFor);
  io.optional("error_budget", manifest.errorBudget);
  io.optional("module", manifest.moduleMember);
}

static FieldWriter::OrderedJson toJson(Manifest manifest, const Digests *digests) {
  FieldWriter writer;
  fields(writer, manifest);
  if (digests)
    writer.json["sha256"] = *digests;
  return std::move(writer.json);
}

Result<std::string> manifestToJson(const Manifest &manifest, const Digests *digests) {
  try {
    return toJson(manifest, digests).dump(1) + "\n";
  } catch (const FieldWriter::OrderedJson::exception &) {
    return Status::error("expects every name to be UTF-8");
  }
}

Result<Manifest> manifestFromJson(const std::string &text, Digests *digests) {
  ASSIGN_OR_RETURN(Json json, parseJson(text.data(), text.data() + text.size()));
  FieldReader reader(json, "");
  // Another version may have other fields; the message then names the version.
  int64_t version = 0;
  reader.field("format_version", version);
  if (version != Manifest::kFormatVersion)
    reader.fail("expects format version " + std::to_string(Manifest::kFormatVersion) + ", got " +
                std::to_string(version));
  Manifest manifest;
  fields(reader, manifest);
  Digests read;
  reader.optional("sha256", read);
  RETURN_IF_ERROR(reader.finish());
  for (const auto &[member, digest] : read)
    if (digest.size() != 64 || digest.find_first_not_of("0123456789abcdef") != std::string::npos)
      return Status::error("field ", inQuotes("sha256." + member),
                           " expects 64 lower-case hexadecimal digits");
  if (digests)
    *digests = std::move(read);
  RETURN_IF_ERROR(manifest.verify());
  return manifest;
}

std::string toJson(const Manifest &manifest) {
  return toJson(manifest, nullptr)
             .dump(1, ' ', false, FieldWriter::OrderedJson::error_handler_t::replace) +
         "\n";
}

} // namespace braid::runtime
