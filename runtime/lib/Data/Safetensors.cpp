//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A file is an 8-byte little-endian length, that many bytes of JSON, then the data that the JSON
// describes:
//   { "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ..., "__metadata__":
//   {"key": "text"} }
// Opening a file checks its whole header. A read then takes the bytes that it needs from the file,
// directly or through a buffer. A checkpoint in several files has an index beside them:
//   { "metadata": ..., "weight_map": {"name": "model-00001-of-00002.safetensors", ...} }
//
//===----------------------------------------------------------------------===//
#include "braid/Runtime/Safetensors.h"

#include "Json.h"
#include "braid/Base/Float16.h"
#include "braid/Base/HostTensor.h"
#include "braid/Base/Slices.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Base/StridedCopy.h"
#include "braid/Base/Support.h"
#include "braid/Runtime/Files.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <string_view>
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

/// "BF16" for bf16.
std::string fileTypeName(DType type) {
  std::string text = name(type);
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  return text;
}

/// The file types that a parameter can be read from; half precision widens to f32 without loss.
std::string readableTypes(DType type) {
  return type == DType::f32 ? "F32, BF16 or F16" : fileTypeName(type);
}
bool isReadable(const std::string &fileType, DType type) {
  return fileType == fileTypeName(type) ||
         (type == DType::f32 && (fileType == "BF16" || fileType == "F16"));
}

struct FileTensor {
  TensorInfo info;
  int64_t begin = 0, end = 0; ///< in bytes from the beginning of the data
};

/// An open file. It is read, not mapped: if it becomes shorter meanwhile, or its network fails,
/// that is an error instead of a signal.
class OpenFile {
public:
  OpenFile() = default;
  OpenFile(const OpenFile &) = delete;
  OpenFile &operator=(const OpenFile &) = delete;
  ~OpenFile() {
    if (file >= 0)
      ::close(file);
  }
  Status open(const std::string &path) {
    file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat info;
    if (file < 0 || ::fstat(file, &info) != 0)
      return Status::error(std::strerror(errno));
    if (!S_ISREG(info.st_mode))
      return Status::error("expects a regular file");
    bytes = static_cast<uint64_t>(info.st_size);
    return bytes == 0 ? Status::error("the file is empty") : Status();
  }
  Status read(void *to, uint64_t begin, uint64_t count) const {
    for (uint64_t done = 0; done < count;) {
      // One call reads at most 2 GiB.
      const ssize_t got = ::pread(file, static_cast<char *>(to) + done,
                                  std::min<uint64_t>(count - done, uint64_t(1) << 30),
                                  static_cast<off_t>(begin + done));
      if (got < 0 && errno == EINTR)
        continue;
      if (got < 0)
        return Status::error(std::strerror(errno));
      if (got == 0)
        return Status::error("the file ends after ", begin + done, " bytes, it had ", bytes,
                             " when it was opened");
      done += static_cast<uint64_t>(got);
    }
    return {};
  }
  uint64_t size() const { return bytes; }
  int descriptor() const { return file; }

private:
  int file = -1;
  uint64_t bytes = 0;
};

/// Parses one entry of the header; checks its offsets against the size of the data only.
Status parseTensor(const Json &json, int64_t dataBytes, FileTensor &tensor) {
  if (!json.is_object())
    return Status::error("expects an object, got ", json.type_name());
  // Other fields are ignored, as by every reader of this format.
  auto dtype = json.find("dtype"), shape = json.find("shape"), offsets = json.find("data_offsets");
  if (dtype == json.end() || !dtype->is_string())
    return Status::error("expects a string 'dtype'");
  tensor.info.dtype = dtype->get<std::string>();
  const FileType *type =
      std::find_if(std::begin(kFileTypes), std::end(kFileTypes),
                   [&](const FileType &known) { return tensor.info.dtype == known.name; });
  if (type == std::end(kFileTypes))
    return Status::error("unknown type ", inQuotes(tensor.info.dtype));

  if (shape == json.end() || !shape->is_array())
    return Status::error("expects an array 'shape'");
  for (const Json &size : *shape)
    if (!asInteger(size, tensor.info.shape.emplace_back()) || tensor.info.shape.back() < 0)
      return Status::error("expects sizes of at least 0 in 'shape'");
  std::optional<int64_t> count = checkedNumElements(tensor.info.shape);
  std::optional<int64_t> bits = count ? checkedMul(*count, type->bits) : std::nullopt;
  if (!bits)
    return Status::error("shape ", shapeString(tensor.info.shape), " is too large");
  if (*bits % 8 != 0)
    return Status::error("shape ", shapeString(tensor.info.shape), " of type ", tensor.info.dtype,
                         " is not a multiple of 8 bits");

  if (offsets == json.end() || !offsets->is_array() || offsets->size() != 2 ||
      !asInteger((*offsets)[0], tensor.begin) || !asInteger((*offsets)[1], tensor.end))
    return Status::error("expects two integers 'data_offsets'");
  std::string range = "[" + std::to_string(tensor.begin) + ", " + std::to_string(tensor.end) + "]";
  if (tensor.begin < 0 || tensor.end < tensor.begin)
    return Status::error("expects rising 'data_offsets', got ", range);
  if (tensor.end > dataBytes)
    return Status::error("'data_offsets' ", range, " go beyond the ", dataBytes, " bytes of data");
  if (tensor.end - tensor.begin != *bits / 8)
    return Status::error("expects ", *bits / 8, " bytes for shape ", shapeString(tensor.info.shape),
                         " of type ", tensor.info.dtype, ", got ", tensor.end - tensor.begin);
  return {};
}

/// One file, its header read.
class File {
public:
  Status open(const std::string &name) {
    path = name;
    RETURN_IF_ERROR(file.open(path));
    return parseHeader();
  }

  std::string path;
  OpenFile file;
  uint64_t dataBegin = 0;
  std::vector<FileTensor> tensors; ///< by offset

private:
  Status parseHeader();
};

Status File::parseHeader() {
  constexpr uint64_t kLengthBytes = 8, kMaxHeaderBytes = 100 << 20; // the limit of the format
  if (file.size() < kLengthBytes)
    return Status::error("expects at least 8 bytes, got ", file.size());
  unsigned char length[kLengthBytes];
  RETURN_IF_ERROR(file.read(length, 0, kLengthBytes));
  uint64_t headerBytes = 0;
  for (size_t i = kLengthBytes; i-- > 0;)
    headerBytes = headerBytes << 8 | length[i];
  if (headerBytes > file.size() - kLengthBytes)
    return Status::error("expects a header of ", headerBytes, " bytes, got a file of ", file.size(),
                         " bytes");
  if (headerBytes > kMaxHeaderBytes)
    return Status::error("expects a header of at most ", kMaxHeaderBytes, " bytes, got ",
                         headerBytes);

  dataBegin = kLengthBytes + headerBytes;
  std::string text(headerBytes, ' ');
  RETURN_IF_ERROR(file.read(text.data(), kLengthBytes, headerBytes));
  ASSIGN_OR_RETURN(Json header,
                   parseJson(text.data(), text.data() + text.size()).within("bad header"));
  if (!header.is_object())
    return Status::error("bad header: expects an object, got ", header.type_name());

  int64_t dataBytes = static_cast<int64_t>(file.size() - dataBegin);
  for (const auto &[name, json] : header.items()) {
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
    RETURN_IF_ERROR(parseTensor(json, dataBytes, tensor).within("tensor " + inQuotes(name)));
  }

  std::sort(tensors.begin(), tensors.end(), [](const FileTensor &a, const FileTensor &b) {
    return std::tie(a.begin, a.end, a.info.name) < std::tie(b.begin, b.end, b.info.name);
  });
  int64_t end = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const FileTensor &tensor = tensors[i];
    if (tensor.begin < end)
      return Status::error("tensor ", inQuotes(tensor.info.name), " overlaps tensor ",
                           inQuotes(tensors[i - 1].info.name));
    if (tensor.begin > end)
      return Status::error("a gap of ", tensor.begin - end, " bytes before tensor ",
                           inQuotes(tensor.info.name));
    end = tensor.end;
  }
  if (end != dataBytes)
    return Status::error("the tensors end after ", end, " bytes of data, the file after ",
                         dataBytes);
  return {};
}

/// Reads a box of a tensor from a file to memory.
struct Transfer {
  const OpenFile &file;
  const std::string &fileType;
  DType type;
  std::vector<int64_t> sizes, sourceStrides, destStrides; ///< strides in elements

  /// Reads from `offset` elements after byte `begin`, in pieces that fit a buffer in the
  /// processor's cache.
  Status read(uint64_t begin, int64_t offset, char *dest) {
    constexpr int64_t kBufferBytes = int64_t(1) << 20, kPageBytes = 4096;
    const bool same = fileType == fileTypeName(type);
    const int64_t width = same ? byteSize(type) : 2;
    int64_t reach = 1; // in elements, from the first to one past the last
    size_t widest = sizes.size();
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (sizes[d] == 0)
        return {};
      reach += (sizes[d] - 1) * sourceStrides[d];
      if (sizes[d] > 1 && (widest == sizes.size() || sourceStrides[d] > sourceStrides[widest]))
        widest = d;
    }
    const uint64_t at = begin + static_cast<uint64_t>(offset * width);
    if (same && isDense())
      return file.read(dest, at, static_cast<uint64_t>(reach * width));
    if (reach * width <= kBufferBytes) {
      thread_local std::vector<char> buffer;
      buffer.resize(static_cast<size_t>(reach * width));
      RETURN_IF_ERROR(file.read(buffer.data(), at, buffer.size()));
      if (same)
        stridedCopy(dest, destStrides, buffer.data(), sourceStrides, sizes, width);
      else
        stridedWiden(dest, destStrides, buffer.data(), sourceStrides, sizes, fileType == "BF16");
      return {};
    }
    const int64_t all = sizes[widest], stride = sourceStrides[widest];
    const int64_t rest = reach - (all - 1) * stride;
    // Reads row by row where many bytes between rows would be read in vain, except that rows across
    // the destination's rows are faster in blocks.
    const bool rowByRow = (stride - rest) * width >= kPageBytes && hasRows();
    const int64_t step =
        rowByRow ? 1 : std::max<int64_t>(1, (kBufferBytes / width - rest) / stride + 1);
    Status status;
    for (int64_t i = 0; i < all && status.ok(); i += step) {
      sizes[widest] = std::min(step, all - i);
      status = read(begin, offset + i * stride, dest + i * destStrides[widest] * byteSize(type));
    }
    sizes[widest] = all;
    return status;
  }

private:
  /// Whether rows that are contiguous in the file are contiguous in memory, too.
  bool hasRows() const {
    for (size_t d = 0; d < sizes.size(); ++d)
      if (sizes[d] > 1 && sourceStrides[d] == 1)
        return destStrides[d] == 1;
    return false;
  }
  /// Whether the elements are contiguous on both sides.
  bool isDense() const {
    int64_t expected = 1;
    for (size_t d = sizes.size(); d-- > 0;) {
      if (sizes[d] != 1 && (sourceStrides[d] != expected || destStrides[d] != expected))
        return false;
      expected *= sizes[d];
    }
    return true;
  }
};

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
  std::vector<int> descriptors() const override {
    std::vector<int> open;
    for (const std::unique_ptr<File> &file : files)
      open.push_back(file->file.descriptor());
    return open;
  }

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
  RETURN_IF_ERROR(files.back()->open(path).within("cannot read weights from " + inQuotes(path)));
  for (const FileTensor &tensor : files.back()->tensors)
    byName[tensor.info.name] = {files.back().get(), &tensor};
  return {};
}

Status SafetensorsSource::openIndex(const std::string &index) {
  path = index;
  return readIndex(index).within("cannot read weights from " + inQuotes(path));
}

Status SafetensorsSource::readIndex(const std::string &indexPath) {
  constexpr uint64_t kMaxIndexBytes = 100 << 20; // as much as a header may have
  ASSIGN_OR_RETURN(Bytes bytes, readFile(indexPath, kMaxIndexBytes));
  const char *text = reinterpret_cast<const char *>(bytes.data());
  ASSIGN_OR_RETURN(Json index, parseJson(text, text + bytes.size()).within("bad index"));
  auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (map == index.end() || !map->is_object())
    return Status::error("bad index: expects an object 'weight_map'");

  std::map<std::string, std::vector<std::string>> tensorsOf; // by file
  for (const auto &[tensor, file] : map->items()) {
    std::string name = file.is_string() ? file.get<std::string>() : std::string();
    // An index must not lead to files elsewhere.
    if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos)
      return Status::error("bad index: tensor ", inQuotes(tensor),
                           ": expects the name of a file beside the index");
    tensorsOf[name].push_back(tensor);
  }
  std::string folder = indexPath.substr(0, indexPath.rfind('/') + 1);
  for (const auto &[name, tensors] : tensorsOf) {
    files.push_back(std::make_unique<File>());
    const File &file = *files.back();
    RETURN_IF_ERROR(
        files.back()
            ->open(folder + name)
            .within(inQuotes(name) + ", which has tensor " + inQuotes(tensors.front())));
    std::map<std::string, const FileTensor *> present;
    for (const FileTensor &tensor : file.tensors)
      present[tensor.info.name] = &tensor;
    for (const std::string &tensor : tensors) {
      auto found = present.find(tensor);
      if (found == present.end())
        return Status::error(inQuotes(name), ": tensor ", inQuotes(tensor),
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
    return Status::error("weight ", inQuotes(slice.tensor), " in ", inQuotes(path),
                         " is missing; parameter ", inQuotes(parameter.name), " needs it");
  const TensorInfo &info = found->second.tensor->info;
  std::string which =
      "weight " + inQuotes(slice.tensor) + " in " + inQuotes(found->second.file->path);
  if (!isReadable(info.dtype, parameter.dtype))
    return Status::error(which, ": expects ", readableTypes(parameter.dtype), ", got ", info.dtype);
  if (info.shape != slice.tensorShape)
    return Status::error(which, ": expects shape ", shapeString(slice.tensorShape), ", got ",
                         shapeString(info.shape));
  return found->second;
}

Status SafetensorsSource::read(const Parameter &parameter, const Box &box, void *dest) {
  RETURN_IF_ERROR(verifyRead(parameter, box));
  int64_t bytes = byteSize(parameter.dtype);
  int64_t boxElements = *checkedNumElements(box.sizes), covered = 0;
  std::vector<std::pair<SlicePart, Located>> parts;
  for (const Slice &slice : parameter.slices) {
    // Slices outside of the box are checked, too, so that all ranks refuse a bad checkpoint.
    ASSIGN_OR_RETURN(Located tensor, find(parameter, slice));
    std::optional<SlicePart> part = intersect(slice, box);
    if (!part)
      continue;
    covered += *checkedNumElements(part->sizes);
    parts.emplace_back(std::move(*part), tensor);
  }
  // Slices do not overlap, so the number of elements tells whether any stays zero.
  if (covered != boxElements)
    std::memset(dest, 0, static_cast<size_t>(boxElements * bytes));
  std::vector<int64_t> destStrides = rowMajorStrides(box.sizes);
  for (const auto &[part, from] : parts) {
    Transfer transfer{from.file->file, from.tensor->info.dtype, parameter.dtype,
                      part.sizes,      part.sourceStrides,      destStrides};
    const uint64_t begin = from.file->dataBegin + static_cast<uint64_t>(from.tensor->begin);
    char *to = static_cast<char *>(dest) + part.destOffset * bytes;
    RETURN_IF_ERROR(transfer.read(begin, part.sourceOffset, to)
                        .within("cannot read weight " + inQuotes(from.tensor->info.name) +
                                " from " + inQuotes(from.file->path)));
  }
  return {};
}

} // namespace

Result<std::unique_ptr<WeightSource>> openSafetensors(const std::string &path) {
  struct stat info;
  auto exists = [&](const std::string &file) { return ::stat(file.c_str(), &info) == 0; };
  std::string file = path;
  if (exists(path) && S_ISDIR(info.st_mode)) {
    file = path + (path.back() == '/' ? "" : "/") + "model.safetensors";
    if (!exists(file))
      file += ".index.json";
    if (!exists(file))
      return Status::error("directory ", inQuotes(path),
                           " has no model.safetensors and no model.safetensors.index.json");
  }
  auto source = std::make_unique<SafetensorsSource>();
  constexpr std::string_view kIndex = ".json";
  bool index = file.size() > kIndex.size() &&
               file.compare(file.size() - kIndex.size(), kIndex.size(), kIndex) == 0;
  RETURN_IF_ERROR(index ? source->openIndex(file) : source->openFile(file));
  return std::unique_ptr<WeightSource>(std::move(source));
}

} // namespace braid::runtime
