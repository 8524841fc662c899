//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "braid/Runtime/Npy.h"

#include "braid/Base/Float16.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Base/StridedCopy.h"
#include "braid/Base/Support.h"
#include "braid/Runtime/Files.h"

#include <algorithm>
#include <cstring>

namespace braid::runtime {

namespace {

struct NpyType {
  const char *descr;
  DType type;
};
/// Files are written with the first entry of a type.
constexpr NpyType kTypes[] = {{"<f4", DType::f32}, {"<f2", DType::f16}, {"<f8", DType::f64},
                              {"<i4", DType::i32}, {"<i8", DType::i64}, {"|i1", DType::i8},
                              {"<i1", DType::i8},  {"|b1", DType::i8}};

/// Parses the header: a Python dictionary with three keys, and nothing else of Python.
class HeaderParser {
public:
  explicit HeaderParser(std::string text) : text(std::move(text)) {}

  bool parse() {
    bool hasDescr = false, hasOrder = false, hasShape = false;
    if (!take('{'))
      return fail("expects a dictionary");
    while (!take('}')) {
      std::string key;
      if (!string(key) || !take(':'))
        return fail("expects a key and a colon");
      bool *seen = key == "descr"           ? &hasDescr
                   : key == "fortran_order" ? &hasOrder
                   : key == "shape"         ? &hasShape
                                            : nullptr;
      if (!seen || *seen)
        return fail((seen ? "repeated key " : "unknown key ") + inQuotes(key));
      *seen = true;
      if (seen == &hasDescr) {
        skipSpace();
        if (position < text.size() && text[position] == '[')
          return fail("structured types are not supported");
      }
      if (seen == &hasDescr   ? !string(descr)
          : seen == &hasOrder ? !boolean(fortranOrder)
                              : !tuple())
        return fail("bad value of " + inQuotes(key));
      if (!take(',') && !peek('}'))
        return fail("expects a comma or the end of the dictionary");
    }
    skipSpace();
    if (position != text.size())
      return fail("text after the dictionary");
    if (!hasDescr || !hasOrder || !hasShape)
      return fail("expects the keys 'descr', 'fortran_order' and 'shape'");
    return true;
  }

  std::string descr, error;
  bool fortranOrder = false;
  std::vector<int64_t> shape;

private:
  bool fail(std::string message) {
    if (error.empty())
      error = std::move(message);
    return false;
  }
  void skipSpace() {
    while (position < text.size() && std::strchr(" \t\r\n", text[position]) && text[position])
      ++position;
  }
  bool peek(char c) {
    skipSpace();
    return position < text.size() && text[position] == c;
  }
  bool take(char c) { return peek(c) && ++position; }
  bool string(std::string &result) {
    char quote = peek('\'') ? '\'' : '"';
    if (!take(quote))
      return false;
    size_t end = text.find_first_of(std::string{quote, '\\'}, position);
    if (end == std::string::npos || text[end] != quote)
      return false;
    result = text.substr(position, end - position);
    position = end + 1;
    return true;
  }
  bool boolean(bool &result) {
    skipSpace();
    for (bool value : {false, true}) {
      std::string word = value ? "True" : "False";
      if (text.compare(position, word.size(), word) == 0) {
        position += word.size();
        result = value;
        return true;
      }
    }
    return false;
  }
  bool tuple() {
    constexpr size_t kMaxRank = 64; // NumPy's own limit
    if (!take('('))
      return false;
    bool comma = true;
    while (!take(')')) {
      int64_t size = 0;
      if (!comma || shape.size() == kMaxRank || !integer(size))
        return false;
      shape.push_back(size);
      comma = take(',');
    }
    return true;
  }
  bool integer(int64_t &result) {
    skipSpace();
    size_t first = position;
    for (; position < text.size() && text[position] >= '0' && text[position] <= '9'; ++position) {
      std::optional<int64_t> shifted = checkedMul<int64_t>(result, 10);
      std::optional<int64_t> next =
          shifted ? checkedAdd<int64_t>(*shifted, text[position] - '0') : std::nullopt;
      if (!next)
        return false;
      result = *next;
    }
    if (position == first)
      return false;
    if (position < text.size() && text[position] == 'L') // Python 2 wrote 3L
      ++position;
    return true;
  }

  std::string text;
  size_t position = 0;
};

uint32_t littleEndian(const std::byte *bytes, size_t count) {
  uint32_t value = 0;
  for (size_t i = count; i-- > 0;)
    value = value << 8 | std::to_integer<uint32_t>(bytes[i]);
  return value;
}

Result<HostTensor> parseNpy(const Bytes &file) {
  constexpr char kMagic[] = "\x93NUMPY";
  if (file.size() < 10 || std::memcmp(file.data(), kMagic, 6) != 0)
    return Status::error("not a .npy file");
  uint32_t version = std::to_integer<uint32_t>(file[6]);
  if (version < 1 || version > 3)
    return Status::error("expects format version 1, 2 or 3, got ", version);
  size_t lengthBytes = version == 1 ? 2 : 4, headerBegin = 8 + lengthBytes;
  size_t headerBytes = file.size() < headerBegin ? SIZE_MAX : littleEndian(&file[8], lengthBytes);
  if (headerBytes > file.size() - std::min(file.size(), headerBegin))
    return Status::error("truncated header");

  HeaderParser header(
      std::string(reinterpret_cast<const char *>(file.data()) + headerBegin, headerBytes));
  if (!header.parse())
    return Status::error("bad header: ", header.error);
  const NpyType *type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                     [&](const NpyType &t) { return header.descr == t.descr; });
  if (type == std::end(kTypes))
    return Status::error("unsupported type ", inQuotes(header.descr),
                         ", expects one of <f2, <f4, <f8, |i1, <i4, <i8, |b1");

  std::optional<int64_t> count = checkedNumElements(header.shape);
  std::optional<int64_t> bytes = count ? checkedMul(*count, byteSize(type->type)) : std::nullopt;
  if (!bytes)
    return Status::error("shape ", shapeString(header.shape), " is too large");
  size_t dataBegin = headerBegin + headerBytes;
  if (static_cast<uint64_t>(*bytes) != file.size() - dataBegin)
    return Status::error("expects ", *bytes, " bytes of data for shape ", shapeString(header.shape),
                         ", got ", file.size() - dataBegin);

  HostTensor tensor = HostTensor::zeros(type->type, header.shape);
  if (tensor.data.empty())
    return tensor;
  const std::byte *source = file.data() + dataBegin;
  if (!header.fortranOrder) {
    std::memcpy(tensor.data.data(), source, tensor.data.size());
    return tensor;
  }
  std::vector<int64_t> columnMajor(tensor.shape.size());
  int64_t stride = 1;
  for (size_t d = 0; d < columnMajor.size(); ++d) {
    columnMajor[d] = stride;
    stride *= tensor.shape[d];
  }
  stridedCopy(tensor.data.data(), rowMajorStrides(tensor.shape), source, columnMajor, tensor.shape,
              byteSize(tensor.dtype));
  return tensor;
}

} // namespace

Result<HostTensor> readNpy(const std::string &path) {
  ASSIGN_OR_RETURN(Bytes file, readFile(path));
  return parseNpy(file).within("cannot read " + inQuotes(path));
}

Status writeNpy(const std::string &path, const HostTensor &tensor) {
  std::optional<int64_t> count = checkedNumElements(tensor.shape);
  std::optional<int64_t> bytes = count ? checkedMul(*count, byteSize(tensor.dtype)) : std::nullopt;
  if (!bytes || static_cast<uint64_t>(*bytes) != tensor.data.size())
    return Status::error("cannot write ", inQuotes(path), ": a tensor of shape ",
                         shapeString(tensor.shape), " and type ", name(tensor.dtype),
                         " does not have ", tensor.data.size(), " bytes");

  std::vector<float> widened;
  ByteSpan data{tensor.data.data(), tensor.data.size()};
  DType written = tensor.dtype;
  if (tensor.dtype == DType::bf16) {
    widened.resize(static_cast<size_t>(*count));
    std::transform(tensor.as<uint16_t>(), tensor.as<uint16_t>() + *count, widened.begin(),
                   bf16ToFloat);
    data = {widened.data(), widened.size() * sizeof(float)};
    written = DType::f32;
  }
  const NpyType *type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                     [&](const NpyType &t) { return t.type == written; });
  if (type == std::end(kTypes))
    return Status::error("cannot write ", inQuotes(path), ": the format has no type ",
                         name(written));

  std::string header =
      std::string("{'descr': '") + type->descr + "', 'fortran_order': False, 'shape': (";
  for (int64_t size : tensor.shape)
    header += std::to_string(size) + ", ";
  header += "), }";
  // The format requires data at a multiple of 64 bytes, after spaces and a newline.
  constexpr size_t kPrefix = 10, kAlignment = 64;
  size_t unpadded = kPrefix + header.size() + 1;
  header.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  header += '\n';
  if (header.size() > 0xffff)
    return Status::error("cannot write ", inQuotes(path), ": too many dimensions");
  std::string prefix("\x93NUMPY\x01\x00", 8);
  prefix += static_cast<char>(header.size() & 0xff);
  prefix += static_cast<char>(header.size() >> 8);
  return writeFile(path, {{prefix.data(), prefix.size()}, {header.data(), header.size()}, data});
}

} // namespace braid::runtime
