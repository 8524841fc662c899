//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A file is an 8-byte little-endian length, that many bytes of JSON, then the data that the JSON
// describes:
//   { "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ..., "__metadata__":
//   {"key": "text"} }
// Everything the JSON says is checked when the file is opened. After that a read is a copy out of a
// mapping.
//
//===----------------------------------------------------------------------===//
#include "Json.h"
#include "Slices.h"
#include "StridedCopy.h"
#include "Support.h"
#include "braid/Runtime/Weights.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace braid::runtime {

namespace {

struct FileType {
  const char *name;
  int64_t bits;
};
constexpr FileType kFileTypes[] = {{"BOOL", 8},    {"F4", 4},   {"F6_E2M3", 6}, {"F6_E3M2", 6},
                                   {"U8", 8},      {"I8", 8},   {"F8_E5M2", 8}, {"F8_E4M3", 8},
                                   {"F8_E8M0", 8}, {"I16", 16}, {"U16", 16},    {"F16", 16},
                                   {"BF16", 16},   {"I32", 32}, {"U32", 32},    {"F32", 32},
                                   {"C64", 64},    {"F64", 64}, {"I64", 64},    {"U64", 64}};

const char *fileTypeName(DType type) {
  switch (type) {
  case DType::f32:
    return "F32";
  case DType::f16:
    return "F16";
  case DType::bf16:
    return "BF16";
  case DType::f64:
    return "F64";
  case DType::i32:
    return "I32";
  case DType::i64:
    return "I64";
  case DType::i8:
    return "I8";
  }
  return "";
}

struct FileTensor {
  TensorInfo info;
  int64_t begin = 0, end = 0; ///< in bytes from the begin of the data
};

/// The whole file, mapped for reading. What changes it meanwhile changes the weights; shortening it
/// is fatal.
class Mapping {
public:
  Mapping() = default;
  Mapping(const Mapping &) = delete;
  Mapping &operator=(const Mapping &) = delete;
  ~Mapping() {
    if (base)
      ::munmap(base, bytes);
  }
  Status open(const std::string &path) {
    int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat info;
    if (fd < 0 || ::fstat(fd, &info) != 0)
      return close(fd, std::strerror(errno));
    if (!S_ISREG(info.st_mode))
      return close(fd, "expects a regular file");
    bytes = static_cast<size_t>(info.st_size);
    if (bytes == 0)
      return close(fd, "the file is empty");
    void *address = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (address == MAP_FAILED)
      return close(fd, std::strerror(errno));
    base = address;
    ::close(fd);
    return {};
  }
  const char *data() const { return static_cast<const char *>(base); }
  size_t size() const { return bytes; }

private:
  static Status close(int fd, const char *reason) {
    std::string text = reason;
    if (fd >= 0)
      ::close(fd);
    return Status::error(text);
  }
  void *base = nullptr;
  size_t bytes = 0;
};

/// One entry of the header; offsets against the size of the data only.
Status parseTensor(const Json &json, int64_t dataBytes, FileTensor &tensor) {
  if (!json.is_object())
    return Status::error(std::string("expects an object, got ") + json.type_name());
  // Fields that are not ours to know are left alone, as every reader of this format does.
  auto dtype = json.find("dtype"), shape = json.find("shape"), offsets = json.find("data_offsets");
  if (dtype == json.end() || !dtype->is_string())
    return Status::error("expects a string 'dtype'");
  tensor.info.dtype = dtype->get<std::string>();
  const FileType *type =
      std::find_if(std::begin(kFileTypes), std::end(kFileTypes),
                   [&](const FileType &known) { return tensor.info.dtype == known.name; });
  if (type == std::end(kFileTypes))
    return Status::error("unknown type " + inQuotes(tensor.info.dtype));

  if (shape == json.end() || !shape->is_array())
    return Status::error("expects an array 'shape'");
  for (const Json &size : *shape)
    if (!asInteger(size, tensor.info.shape.emplace_back()) || tensor.info.shape.back() < 0)
      return Status::error("expects sizes of at least 0 in 'shape'");
  std::optional<int64_t> count = checkedNumElements(tensor.info.shape);
  std::optional<int64_t> bits = count ? checkedMul(*count, type->bits) : std::nullopt;
  if (!bits)
    return Status::error("shape " + shapeString(tensor.info.shape) + " is too large");
  if (*bits % 8 != 0)
    return Status::error("shape " + shapeString(tensor.info.shape) + " of type " +
                         tensor.info.dtype + " does not end at a whole byte");

  if (offsets == json.end() || !offsets->is_array() || offsets->size() != 2 ||
      !asInteger((*offsets)[0], tensor.begin) || !asInteger((*offsets)[1], tensor.end))
    return Status::error("expects two integers 'data_offsets'");
  std::string range = "[" + std::to_string(tensor.begin) + ", " + std::to_string(tensor.end) + "]";
  if (tensor.begin < 0 || tensor.end < tensor.begin)
    return Status::error("expects rising 'data_offsets', got " + range);
  if (tensor.end > dataBytes)
    return Status::error("'data_offsets' " + range + " go beyond the " + std::to_string(dataBytes) +
                         " bytes of data");
  if (tensor.end - tensor.begin != *bits / 8)
    return Status::error("expects " + std::to_string(*bits / 8) + " bytes for shape " +
                         shapeString(tensor.info.shape) + " of type " + tensor.info.dtype +
                         ", got " + std::to_string(tensor.end - tensor.begin));
  return {};
}

class SafetensorsSource : public WeightSource {
public:
  Status open(const std::string &file);
  std::string describe() const override { return path; }
  std::vector<TensorInfo> tensors() const override {
    std::vector<TensorInfo> result;
    result.reserve(inFile.size());
    for (const FileTensor &tensor : inFile)
      result.push_back(tensor.info);
    return result;
  }
  Status read(const Parameter &parameter, const Box &box, void *dest) override;

private:
  Status parseHeader();
  Result<const FileTensor *> find(const Parameter &parameter, const Slice &slice) const;

  std::string path;
  Mapping mapping;
  const char *data = nullptr;
  std::vector<FileTensor> inFile; ///< by offset
  std::map<std::string, size_t> byName;
};

Status SafetensorsSource::open(const std::string &file) {
  path = file;
  Status status = mapping.open(path);
  if (status.ok())
    status = parseHeader();
  if (!status.ok())
    return Status::error("cannot read weights from " + inQuotes(path) + ": " + status.message());
  return {};
}

Status SafetensorsSource::parseHeader() {
  constexpr uint64_t kLengthBytes = 8, kMaxHeaderBytes = 100 << 20; // the limit of the format
  if (mapping.size() < kLengthBytes)
    return Status::error("expects at least 8 bytes, got " + std::to_string(mapping.size()));
  uint64_t headerBytes = 0;
  for (size_t i = kLengthBytes; i-- > 0;)
    headerBytes = headerBytes << 8 | static_cast<unsigned char>(mapping.data()[i]);
  if (headerBytes > mapping.size() - kLengthBytes)
    return Status::error("expects a header of " + std::to_string(headerBytes) +
                         " bytes, got a file of " + std::to_string(mapping.size()) + " bytes");
  if (headerBytes > kMaxHeaderBytes)
    return Status::error("expects a header of at most " + std::to_string(kMaxHeaderBytes) +
                         " bytes, got " + std::to_string(headerBytes));

  const char *begin = mapping.data() + kLengthBytes;
  data = begin + headerBytes;
  Result<Json> header = parseJson(begin, data);
  if (!header.ok())
    return Status::error("bad header: " + header.status().message());
  if (!header->is_object())
    return Status::error(std::string("bad header: expects an object, got ") + header->type_name());

  int64_t dataBytes = static_cast<int64_t>(mapping.size() - kLengthBytes - headerBytes);
  for (const auto &[name, json] : header->items()) {
    if (name == "__metadata__") {
      bool texts = json.is_object() && std::all_of(json.begin(), json.end(), [](const Json &value) {
                     return value.is_string();
                   });
      if (!texts)
        return Status::error("bad header: expects texts in '__metadata__'");
      continue;
    }
    FileTensor &tensor = inFile.emplace_back();
    tensor.info.name = name;
    if (Status status = parseTensor(json, dataBytes, tensor); !status.ok())
      return Status::error("tensor " + inQuotes(name) + ": " + status.message());
  }

  std::sort(inFile.begin(), inFile.end(), [](const FileTensor &a, const FileTensor &b) {
    return std::tie(a.begin, a.end, a.info.name) < std::tie(b.begin, b.end, b.info.name);
  });
  int64_t end = 0;
  for (size_t i = 0; i < inFile.size(); ++i) {
    const FileTensor &tensor = inFile[i];
    if (tensor.begin < end)
      return Status::error("tensor " + inQuotes(tensor.info.name) + " overlaps tensor " +
                           inQuotes(inFile[i - 1].info.name));
    if (tensor.begin > end)
      return Status::error("a gap of " + std::to_string(tensor.begin - end) +
                           " bytes before tensor " + inQuotes(tensor.info.name));
    end = tensor.end;
    byName[tensor.info.name] = i;
  }
  if (end != dataBytes)
    return Status::error("the tensors end after " + std::to_string(end) +
                         " bytes of data, the file after " + std::to_string(dataBytes));
  return {};
}

Result<const FileTensor *> SafetensorsSource::find(const Parameter &parameter,
                                                   const Slice &slice) const {
  auto found = byName.find(slice.tensor);
  std::string which = "weight " + inQuotes(slice.tensor) + " in " + inQuotes(path);
  if (found == byName.end())
    return Status::error(which + " is missing; parameter " + inQuotes(parameter.name) +
                         " needs it");
  const TensorInfo &info = inFile[found->second].info;
  if (info.dtype != fileTypeName(parameter.dtype))
    return Status::error(which + ": expects " + fileTypeName(parameter.dtype) + ", got " +
                         info.dtype);
  if (info.shape != slice.tensorShape)
    return Status::error(which + ": expects shape " + shapeString(slice.tensorShape) + ", got " +
                         shapeString(info.shape));
  return &inFile[found->second];
}

Status SafetensorsSource::read(const Parameter &parameter, const Box &box, void *dest) {
  if (Status status = verifyRead(parameter, box); !status.ok())
    return status;
  int64_t bytes = byteSize(parameter.dtype);
  int64_t boxElements = *checkedNumElements(box.sizes), covered = 0;
  std::vector<std::pair<SlicePart, const FileTensor *>> parts;
  for (const Slice &slice : parameter.slices) {
    // A slice outside of the box is checked too: all ranks refuse a bad checkpoint, not only some.
    Result<const FileTensor *> tensor = find(parameter, slice);
    if (!tensor.ok())
      return tensor.status();
    std::optional<SlicePart> part = intersect(slice, box);
    if (!part)
      continue;
    covered += *checkedNumElements(part->sizes);
    parts.emplace_back(std::move(*part), *tensor);
  }
  // Slices do not overlap, so that the number of elements tells whether any is left for zero.
  if (covered != boxElements)
    std::memset(dest, 0, static_cast<size_t>(boxElements * bytes));
  for (const auto &[part, tensor] : parts)
    stridedCopy(static_cast<char *>(dest) + part.destOffset * bytes, rowMajorStrides(box.sizes),
                data + tensor->begin + part.sourceOffset * bytes, part.sourceStrides, part.sizes,
                bytes);
  return {};
}

} // namespace

Result<std::unique_ptr<WeightSource>> WeightSource::safetensors(const std::string &path) {
  struct stat info;
  std::string file = path;
  if (::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
    file = path + (path.back() == '/' ? "" : "/") + "model.safetensors";
    if (::stat(file.c_str(), &info) != 0) {
      bool sharded = ::stat((file + ".index.json").c_str(), &info) == 0;
      return Status::error("directory " + inQuotes(path) + " has no model.safetensors" +
                           (sharded ? "; a checkpoint in several files, as its "
                                      "model.safetensors.index.json lists, is not supported"
                                    : ""));
    }
  }
  auto source = std::make_unique<SafetensorsSource>();
  if (Status status = source->open(file); !status.ok())
    return status;
  return std::unique_ptr<WeightSource>(std::move(source));
}

} // namespace braid::runtime
