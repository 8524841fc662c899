//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Runtime/CudaKernels.h"

#include "Json.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Program/Program.h"
#include "braid/library_arguments.h"

#include <set>

namespace braid::runtime {

template <typename Io> static void fields(Io &io, CudaOperand &operand) {
  io.field("name", operand.name);
  io.field("dtype", operand.dtype);
  io.field("shape", operand.shape);
  io.field("alignment", operand.alignment);
  io.optional("codec", operand.codec);
}

template <typename Io> static void fields(Io &io, CudaKernel &kernel) {
  io.field("symbol", kernel.symbol);
  io.field("function", kernel.function);
  io.field("threads", kernel.threads);
  io.field("shared_bytes", kernel.sharedBytes);
  io.field("items_per_row", kernel.itemsPerRow);
  io.field("items_per_block", kernel.itemsPerBlock);
  io.field("outputs", kernel.outputs);
  io.field("operands", kernel.operands);
}

/// `version` is the table's format version.
template <typename Io> static void fields(Io &io, CudaLaunchTable &table, int64_t &version) {
  io.field("format_version", version);
  io.field("architecture", table.architecture);
  io.field("kernels", table.kernels);
}

namespace {

constexpr int64_t kMaxThreads = 1024;
/// Limits of a block on every architecture.
constexpr int64_t kMaxSharedBytes = 232448;
constexpr int64_t kMaxAlignment = 128;

Status inRange(const char *what, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most)
    return {};
  return Status::error(inQuotes(what), " expects ", least, " to ", most, ", got ", value);
}

Status verifyOperand(const CudaOperand &operand) {
  if (operand.shape.size() > kMaxViewRank)
    return Status::error("expects at most ", kMaxViewRank, " dimensions, got ",
                         operand.shape.size());
  for (size_t d = 0; d < operand.shape.size(); ++d)
    if (operand.shape[d] < 0 && !(d == 0 && operand.shape[d] == kLaunchRows))
      return Status::error("'shape' expects extents of 0 or more, of which the first may be ",
                           kLaunchRows, ", got ", operand.shape[d]);
  const int64_t alignment = operand.alignment;
  if (alignment < 1 || alignment > kMaxAlignment || (alignment & (alignment - 1)) != 0)
    return Status::error("'alignment' expects a power of two of at most ", kMaxAlignment, ", got ",
                         alignment);
  if (!operand.codec.empty() && (!operand.isRow() || operand.shape.size() < 2))
    return Status::error("'codec' expects a shape of rows and columns, got ",
                         shapeString(operand.shape));
  return {};
}

Status verifyKernel(const CudaKernel &kernel) {
  if (kernel.symbol.empty() || kernel.function.empty())
    return Status::error("expects a symbol and a function");
  for (const Status &status :
       {inRange("threads", kernel.threads, 1, kMaxThreads),
        inRange("shared_bytes", kernel.sharedBytes, 0, kMaxSharedBytes),
        inRange("items_per_row", kernel.itemsPerRow, 1, INT32_MAX),
        inRange("items_per_block", kernel.itemsPerBlock, 1, INT32_MAX),
        inRange("outputs", kernel.outputs, 0, static_cast<int64_t>(kernel.operands.size()))})
    RETURN_IF_ERROR(status);
  for (size_t i = 0; i < kernel.operands.size(); ++i)
    RETURN_IF_ERROR(
        verifyOperand(kernel.operands[i])
            .within("operand " + std::to_string(i) + " " + inQuotes(kernel.operands[i].name)));
  return {};
}

} // namespace

std::vector<size_t> CudaKernel::parameterBytes() const {
  std::vector<size_t> bytes;
  for (const CudaOperand &operand : operands)
    if (operand.codec.empty())
      bytes.insert(bytes.end(), 1 + operand.numStrides(), 8);
    else
      bytes.push_back(sizeof(library::Codec));
  bytes.push_back(4);
  return bytes;
}

const CudaKernel *CudaLaunchTable::find(const std::string &symbol) const {
  for (const CudaKernel &kernel : kernels)
    if (kernel.symbol == symbol)
      return &kernel;
  return nullptr;
}

Status CudaLaunchTable::verify() const {
  if (architecture.empty())
    return Status::error("'architecture' expects a name");
  std::set<std::string> symbols, functions;
  for (const CudaKernel &kernel : kernels) {
    RETURN_IF_ERROR(verifyKernel(kernel).within("kernel " + inQuotes(kernel.symbol)));
    if (!symbols.insert(kernel.symbol).second)
      return Status::error("kernel ", inQuotes(kernel.symbol), " occurs twice");
    if (!functions.insert(kernel.function).second)
      return Status::error("function ", inQuotes(kernel.function), " occurs twice");
  }
  return {};
}

std::string CudaLaunchTable::toJson() const {
  FieldWriter writer;
  CudaLaunchTable table = *this;
  int64_t version = kFormatVersion;
  fields(writer, table, version);
  return writer.json.dump(1, ' ', false, FieldWriter::OrderedJson::error_handler_t::replace) + "\n";
}

Result<CudaLaunchTable> CudaLaunchTable::fromJson(const std::string &text) {
  ASSIGN_OR_RETURN(Json json, parseJson(text.data(), text.data() + text.size()));
  FieldReader reader(json, "");
  int64_t version = 0;
  reader.field("format_version", version);
  if (version != kFormatVersion)
    reader.fail("expects format version " + std::to_string(kFormatVersion) + ", got " +
                std::to_string(version));
  CudaLaunchTable table;
  fields(reader, table, version);
  RETURN_IF_ERROR(reader.finish());
  RETURN_IF_ERROR(table.verify());
  return table;
}

KernelLibrary cudaKernelLibrary(const std::string &architecture) {
  const std::string folder = "cuda-" + architecture + "/";
  KernelLibrary library;
  library.target = "cuda";
  library.triple = "nvptx64-nvidia-cuda";
  library.isa = architecture;
  library.member = folder + "kernels.cubin";
  library.launchesMember = folder + "kernels.json";
  library.sourceMember = folder + "kernels.cu";
  return library;
}

} // namespace braid::runtime
