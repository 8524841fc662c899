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
// mapping. A checkpoint in several files has an index beside them:
//   { "metadata": ..., "weight_map": {"name": "model-00001-of-00002.safetensors", ...} }
//
//===----------------------------------------------------------------------===//
#include "Json.h"
#include "Slices.h"
#include "StridedCopy.h"
#include "Support.h"
#include "braid/Runtime/Files.h"
#include "braid/Runtime/Float16.h"
#include "braid/Runtime/Weights.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <string_view>
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

/// Which types of a file a parameter is read from; those of 16 bits widen to f32 without loss.
std::string readableTypes(DType type) {
  return type == DType::f32 ? "F32, BF16 or F16" : fileTypeName(type);
}
bool isReadable(const std::string &fileType, DType type) {
  return fileType == fileTypeName(type) ||
         (type == DType::f32 && (fileType == "BF16" || fileType == "F16"));
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

/// One file, mapped and its header read.
class File {
public:
  Status open(const std::string &file) {
    path = file;
    Status status = mapping.open(path);
    return status.ok() ? parseHeader() : status;
  }

  std::string path;
  const char *data = nullptr;
  std::vector<FileTensor> tensors; ///< by offset

private:
  Status parseHeader();

  Mapping mapping;
};

Status File::parseHeader() {
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
    FileTensor &tensor = tensors.emplace_back();
    tensor.info.name = name;
    if (Status status = parseTensor(json, dataBytes, tensor); !status.ok())
      return Status::error("tensor " + inQuotes(name) + ": " + status.message());
  }

  std::sort(tensors.begin(), tensors.end(), [](const FileTensor &a, const FileTensor &b) {
    return std::tie(a.begin, a.end, a.info.name) < std::tie(b.begin, b.end, b.info.name);
  });
  int64_t end = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const FileTensor &tensor = tensors[i];
    if (tensor.begin < end)
      return Status::error("tensor " + inQuotes(tensor.info.name) + " overlaps tensor " +
                           inQuotes(tensors[i - 1].info.name));
    if (tensor.begin > end)
      return Status::error("a gap of " + std::to_string(tensor.begin - end) +
                           " bytes before tensor " + inQuotes(tensor.info.name));
    end = tensor.end;
  }
  if (end != dataBytes)
    return Status::error("the tensors end after " + std::to_string(end) +
                         " bytes of data, the file after " + std::to_string(dataBytes));
  return {};
}

class SafetensorsSource : public WeightSource {
public:
  Status openFile(const std::string &path);
  Status openIndex(const std::string &path);

  std::string describe() const override { return path; }
  std::vector<TensorInfo> tensors() const override {
    std::vector<TensorInfo> result;
    for (const std::unique_ptr<File> &file : files)
      for (const FileTensor &tensor : file->tensors)
        if (auto found = byName.find(tensor.info.name);
            found != byName.end() && found->second.tensor == &tensor)
          result.push_back(tensor.info);
    return result;
  }
  Status read(const Parameter &parameter, const Box &box, void *dest) override;

private:
  struct Located {
    const File *file;
    const FileTensor *tensor;
  };
  Status readIndex(const std::string &indexPath);
  Result<Located> find(const Parameter &parameter, const Slice &slice) const;

  std::string path; ///< of the file or the index
  std::vector<std::unique_ptr<File>> files;
  std::map<std::string, Located> byName;
};

Status SafetensorsSource::openFile(const std::string &file) {
  path = file;
  files.push_back(std::make_unique<File>());
  if (Status status = files.back()->open(path); !status.ok())
    return Status::error("cannot read weights from " + inQuotes(path) + ": " + status.message());
  for (const FileTensor &tensor : files.back()->tensors)
    byName[tensor.info.name] = {files.back().get(), &tensor};
  return {};
}

Status SafetensorsSource::openIndex(const std::string &index) {
  path = index;
  if (Status status = readIndex(index); !status.ok())
    return Status::error("cannot read weights from " + inQuotes(path) + ": " + status.message());
  return {};
}

Status SafetensorsSource::readIndex(const std::string &indexPath) {
  constexpr uint64_t kMaxIndexBytes = 100 << 20; // as much as a header may have
  Result<Bytes> bytes = readFile(indexPath, kMaxIndexBytes);
  if (!bytes.ok())
    return bytes.status();
  const char *text = reinterpret_cast<const char *>(bytes->data());
  Result<Json> index = parseJson(text, text + bytes->size());
  if (!index.ok())
    return Status::error("bad index: " + index.status().message());
  auto map = index->is_object() ? index->find("weight_map") : index->end();
  if (map == index->end() || !map->is_object())
    return Status::error("bad index: expects an object 'weight_map'");

  std::map<std::string, std::vector<std::string>> tensorsOf; // by file
  for (const auto &[tensor, file] : map->items()) {
    std::string name = file.is_string() ? file.get<std::string>() : std::string();
    // An index must not lead to files elsewhere.
    if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos)
      return Status::error("bad index: tensor " + inQuotes(tensor) +
                           ": expects the name of a file beside the index");
    tensorsOf[name].push_back(tensor);
  }
  std::string folder = indexPath.substr(0, indexPath.rfind('/') + 1);
  for (const auto &[name, tensors] : tensorsOf) {
    files.push_back(std::make_unique<File>());
    const File &file = *files.back();
    if (Status status = files.back()->open(folder + name); !status.ok())
      return Status::error(inQuotes(name) + ", which has tensor " + inQuotes(tensors.front()) +
                           ": " + status.message());
    std::map<std::string, const FileTensor *> present;
    for (const FileTensor &tensor : file.tensors)
      present[tensor.info.name] = &tensor;
    for (const std::string &tensor : tensors) {
      auto found = present.find(tensor);
      if (found == present.end())
        return Status::error(inQuotes(name) + ": tensor " + inQuotes(tensor) +
                             " is missing, though the index says it is there");
      byName[tensor] = {&file, found->second};
    }
  }
  return {};
}

Result<SafetensorsSource::Located> SafetensorsSource::find(const Parameter &parameter,
                                                           const Slice &slice) const {
  auto found = byName.find(slice.tensor);
  if (found == byName.end())
    return Status::error("weight " + inQuotes(slice.tensor) + " in " + inQuotes(path) +
                         " is missing; parameter " + inQuotes(parameter.name) + " needs it");
  const TensorInfo &info = found->second.tensor->info;
  std::string which =
      "weight " + inQuotes(slice.tensor) + " in " + inQuotes(found->second.file->path);
  if (!isReadable(info.dtype, parameter.dtype))
    return Status::error(which + ": expects " + readableTypes(parameter.dtype) + ", got " +
                         info.dtype);
  if (info.shape != slice.tensorShape)
    return Status::error(which + ": expects shape " + shapeString(slice.tensorShape) + ", got " +
                         shapeString(info.shape));
  return found->second;
}

Status SafetensorsSource::read(const Parameter &parameter, const Box &box, void *dest) {
  if (Status status = verifyRead(parameter, box); !status.ok())
    return status;
  int64_t bytes = byteSize(parameter.dtype);
  int64_t boxElements = *checkedNumElements(box.sizes), covered = 0;
  std::vector<std::pair<SlicePart, Located>> parts;
  for (const Slice &slice : parameter.slices) {
    // A slice outside of the box is checked too: all ranks refuse a bad checkpoint, not only some.
    Result<Located> tensor = find(parameter, slice);
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
  std::vector<int64_t> destStrides = rowMajorStrides(box.sizes);
  for (const auto &[part, from] : parts) {
    char *to = static_cast<char *>(dest) + part.destOffset * bytes;
    const char *source = from.file->data + from.tensor->begin;
    const std::string &type = from.tensor->info.dtype;
    if (type == fileTypeName(parameter.dtype))
      stridedCopy(to, destStrides, source + part.sourceOffset * bytes, part.sourceStrides,
                  part.sizes, bytes);
    else
      stridedWiden(to, destStrides, source + part.sourceOffset * 2, part.sourceStrides, part.sizes,
                   type == "BF16" ? bf16ToFloat : f16ToFloat);
  }
  return {};
}

} // namespace

Result<std::unique_ptr<WeightSource>> WeightSource::safetensors(const std::string &path) {
  struct stat info;
  auto exists = [&](const std::string &file) { return ::stat(file.c_str(), &info) == 0; };
  std::string file = path;
  if (exists(path) && S_ISDIR(info.st_mode)) {
    file = path + (path.back() == '/' ? "" : "/") + "model.safetensors";
    if (!exists(file))
      file += ".index.json";
    if (!exists(file))
      return Status::error("directory " + inQuotes(path) +
                           " has no model.safetensors and no model.safetensors.index.json");
  }
  auto source = std::make_unique<SafetensorsSource>();
  constexpr std::string_view kIndex = ".json";
  bool index = file.size() > kIndex.size() &&
               file.compare(file.size() - kIndex.size(), kIndex.size(), kIndex) == 0;
  if (Status status = index ? source->openIndex(file) : source->openFile(file); !status.ok())
    return status;
  return std::unique_ptr<WeightSource>(std::move(source));
}

} // namespace braid::runtime
