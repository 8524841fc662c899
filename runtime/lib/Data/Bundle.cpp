//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Runtime/Bundle.h"

#include "Digest.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Base/Support.h"
#include "braid/Program/Program.h"
#include "braid/Runtime/CudaKernels.h"
#include "braid/Runtime/ManifestJson.h"

#include <zip.h>

#include <cstring>
#include <memory>
#include <set>

namespace braid::runtime {

namespace {

constexpr char kManifestMember[] = "manifest.json";
constexpr size_t kAlignment = 64;
/// The size of a local header before the name.
constexpr size_t kLocalHeaderBytes = 30;
/// The kind of extra field by which Android's build tools align: the alignment in 2 bytes, then
/// zeros.
constexpr uint16_t kAlignmentField = 0xD935;
constexpr size_t kMinFieldBytes = 6;
constexpr uint64_t kMaxManifestBytes = uint64_t(256) << 20;

struct ZipErrorText {
  zip_error_t error;
  ZipErrorText() { zip_error_init(&error); }
  ZipErrorText(const ZipErrorText &) = delete;
  ZipErrorText &operator=(const ZipErrorText &) = delete;
  ~ZipErrorText() { zip_error_fini(&error); }
  std::string text() { return zip_error_strerror(&error); }
};

std::string toString(const Bytes &bytes) {
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

using ZipSource = std::unique_ptr<zip_source_t, decltype(&zip_source_free)>;
using ZipArchive = std::unique_ptr<zip_t, decltype(&zip_discard)>;
using ZipFile = std::unique_ptr<zip_file_t, decltype(&zip_fclose)>;

/// The members that a manifest lists.
std::set<std::string> expectedMembers(const Manifest &manifest) {
  std::set<std::string> members = {manifest.programMember};
  if (!manifest.moduleMember.empty())
    members.insert(manifest.moduleMember);
  for (const KernelLibrary &library : manifest.kernels)
    for (const std::string *member :
         {&library.member, &library.launchesMember, &library.sourceMember})
      if (!member->empty())
        members.insert(*member);
  return members;
}

/// Checks that exactly the manifest's members are present.
template <typename Map>
Status verifyMembers(const Manifest &manifest, const Map &present, const char *what) {
  std::set<std::string> expected = expectedMembers(manifest);
  for (const std::string &member : expected)
    if (!present.count(member))
      return Status::error(what, " of member ", inQuotes(member), " is missing");
  for (const auto &[member, unused] : present)
    if (!expected.count(member))
      return Status::error(what, " of member ", inQuotes(member),
                           ", which the manifest does not list");
  return {};
}

Status verifyLaunches(const Bytes &bytes, const KernelLibrary &library) {
  ASSIGN_OR_RETURN(CudaLaunchTable table, CudaLaunchTable::fromJson(toString(bytes)));
  if (table.architecture != library.isa)
    return Status::error("expects architecture ", inQuotes(library.isa), ", got ",
                         inQuotes(table.architecture));
  return {};
}

Status verifyContents(const BundleContents &contents) {
  const auto &[manifest, members] = contents;
  RETURN_IF_ERROR(verifyMembers(manifest, members, "data"));
  RETURN_IF_ERROR(verifyProgram(members.at(manifest.programMember), manifest)
                      .within("member " + inQuotes(manifest.programMember)));
  for (const KernelLibrary &library : manifest.kernels)
    if (!library.launchesMember.empty())
      RETURN_IF_ERROR(verifyLaunches(members.at(library.launchesMember), library)
                          .within("member " + inQuotes(library.launchesMember)));
  return {};
}

/// Appends one stored member whose data begins at a multiple of kAlignment; `offset` is the offset
/// of its header.
bool addMember(zip_t *archive, const std::string &name, const void *data, size_t size,
               uint64_t &offset) {
  zip_source_t *source = zip_source_buffer(archive, data, size, 0);
  if (!source)
    return false;
  zip_int64_t index = zip_file_add(archive, name.c_str(), source, ZIP_FL_ENC_UTF_8);
  if (index < 0) {
    zip_source_free(source);
    return false;
  }
  uint64_t end = offset + kLocalHeaderBytes + name.size() + kMinFieldBytes;
  uint64_t padding = (kAlignment - end % kAlignment) % kAlignment;
  std::vector<zip_uint8_t> field(2 + padding);
  field[0] = kAlignment;
  offset = end + padding + size;
  // 1980-01-01, the format's first day, in every file: equal bundles are equal files.
  constexpr uint16_t kTime = 0, kDate = 1 << 5 | 1;
  zip_uint64_t i = static_cast<zip_uint64_t>(index);
  return zip_set_file_compression(archive, i, ZIP_CM_STORE, 0) == 0 &&
         zip_file_set_dostime(archive, i, kTime, kDate, 0) == 0 &&
         zip_file_extra_field_set(archive, i, kAlignmentField, ZIP_EXTRA_FIELD_NEW, field.data(),
                                  static_cast<zip_uint16_t>(field.size()), ZIP_FL_LOCAL) == 0;
}

Result<Bytes> readSource(zip_source_t *source) {
  zip_stat_t info;
  zip_stat_init(&info);
  if (zip_source_stat(source, &info) != 0 || !(info.valid & ZIP_STAT_SIZE) ||
      zip_source_open(source) != 0)
    return Status::error(zip_error_strerror(zip_source_error(source)));
  Bytes bytes(info.size);
  zip_int64_t count = zip_source_read(source, bytes.data(), bytes.size());
  zip_source_close(source);
  if (count < 0 || static_cast<uint64_t>(count) != info.size)
    return Status::error(zip_error_strerror(zip_source_error(source)));
  return bytes;
}

/// Reads an archive of `archiveBytes` bytes.
class Reader {
public:
  explicit Reader(uint64_t archiveBytes) : archiveBytes(archiveBytes) {}
  /// `source` may be null, with the reason in `error`.
  Status open(zip_source_t *source, ZipErrorText &error);
  Result<BundleContents> readContents();

private:
  Result<Bytes> read(zip_uint64_t index, const zip_stat_t &info);
  Status readMembers();
  Status readManifest();

  ZipArchive archive{nullptr, &zip_discard};
  uint64_t archiveBytes;
  uint64_t memberBytes = 0; ///< read so far
  BundleContents contents;
};

Status Reader::open(zip_source_t *source, ZipErrorText &error) {
  ZipSource owned(source, &zip_source_free);
  // To libzip an empty file is an archive without members.
  if (archiveBytes == 0)
    return Status::error("damaged or truncated archive: the file is empty");
  if (source)
    archive.reset(zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &error.error));
  if (!archive)
    return Status::error("damaged or truncated archive: ", error.text());
  (void)owned.release(); // the archive owns it
  return {};
}

Result<Bytes> Reader::read(zip_uint64_t index, const zip_stat_t &info) {
  // A stored member cannot be larger than the archive; anything compressed could claim any size.
  if (!(info.valid & ZIP_STAT_COMP_METHOD) || info.comp_method != ZIP_CM_STORE ||
      !(info.valid & ZIP_STAT_ENCRYPTION_METHOD) || info.encryption_method != ZIP_EM_NONE)
    return Status::error("expects members that are stored, neither compressed nor encrypted");
  if (!(info.valid & ZIP_STAT_SIZE) || info.size > archiveBytes)
    return Status::error("expects at most ", archiveBytes, " bytes, got ", info.size);
  // Members may overlap, and together claim any size.
  memberBytes += info.size;
  if (memberBytes > archiveBytes)
    return Status::error("expects at most ", archiveBytes, " bytes in all members, got ",
                         memberBytes);
  ZipFile file(zip_fopen_index(archive.get(), index, 0), &zip_fclose);
  if (!file)
    return Status::error(zip_strerror(archive.get()));
  Bytes bytes(info.size);
  size_t done = 0;
  while (done < bytes.size()) {
    zip_int64_t count = zip_fread(file.get(), bytes.data() + done, bytes.size() - done);
    if (count <= 0)
      return Status::error(count < 0 ? zip_file_strerror(file.get()) : "unexpected end");
    done += static_cast<size_t>(count);
  }
  // libzip compares the checksum when the end is read.
  std::byte beyond;
  if (zip_fread(file.get(), &beyond, 1) != 0)
    return Status::error(zip_file_strerror(file.get()));
  return bytes;
}

Status Reader::readMembers() {
  zip_int64_t count = zip_get_num_entries(archive.get(), 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    zip_stat_t info;
    zip_uint64_t index = static_cast<zip_uint64_t>(i);
    if (zip_stat_index(archive.get(), index, 0, &info) != 0 || !(info.valid & ZIP_STAT_NAME))
      return Status::error("member ", i, ": ", zip_strerror(archive.get()));
    std::string member = info.name;
    if (!isSafeMember(member))
      return Status::error("member ", inQuotes(member), ": expects a path inside of the archive");
    ASSIGN_OR_RETURN(Bytes bytes, read(index, info).within("member " + inQuotes(member)));
    if (!contents.members.emplace(member, std::move(bytes)).second)
      return Status::error("member ", inQuotes(member), " occurs twice");
  }
  return {};
}

Status Reader::readManifest() {
  auto member = contents.members.find(kManifestMember);
  if (member == contents.members.end())
    return Status::error("member '", kManifestMember, "' is missing");
  const std::string where = "member " + inQuotes(kManifestMember);
  if (member->second.size() > kMaxManifestBytes)
    return Status::error(where, ": expects at most ", kMaxManifestBytes, " bytes, got ",
                         member->second.size());
  Digests digests;
  ASSIGN_OR_RETURN(contents.manifest,
                   manifestFromJson(toString(member->second), &digests).within(where));
  contents.members.erase(member);
  RETURN_IF_ERROR(verifyMembers(contents.manifest, digests, "SHA-256").within(where));
  for (const auto &[name, bytes] : contents.members) {
    auto expected = digests.find(name);
    if (expected != digests.end() && expected->second != sha256(bytes.data(), bytes.size()))
      return Status::error("member ", inQuotes(name),
                           ": its SHA-256 is not the one that the manifest gives");
  }
  return {};
}

Result<BundleContents> Reader::readContents() {
  RETURN_IF_ERROR(readMembers());
  RETURN_IF_ERROR(readManifest());
  RETURN_IF_ERROR(verifyContents(contents));
  return std::move(contents);
}

} // namespace

const Bytes *Bundle::find(const std::string &member) const {
  auto found = members().find(member);
  return found == members().end() ? nullptr : &found->second;
}

Result<Bundle> Bundle::create(BundleContents contents) {
  Status status = contents.manifest.verify();
  if (status.ok())
    status = verifyContents(contents);
  RETURN_IF_ERROR(status.within("bundle"));
  return Bundle(std::move(contents));
}

Result<Bundle> Bundle::parse(const void *archive, size_t bytes,
                             const std::string &nameForMessages) {
  const std::string where = "bundle " + inQuotes(nameForMessages);
  ZipErrorText error;
  Reader reader(bytes);
  RETURN_IF_ERROR(
      reader.open(zip_source_buffer_create(archive, bytes, 0, &error.error), error).within(where));
  ASSIGN_OR_RETURN(BundleContents contents, reader.readContents().within(where));
  return Bundle(std::move(contents));
}

Result<Bundle> Bundle::read(const std::string &path) {
  const std::string where = "bundle " + inQuotes(path);
  ASSIGN_OR_RETURN(InputFile file, openFile(path));
  ZipErrorText error;
  Reader reader(file.bytes);
  zip_source_t *source = zip_source_filep_create(file.stream.get(), 0, -1, &error.error);
  if (source)
    (void)file.stream.release(); // the source owns it
  RETURN_IF_ERROR(reader.open(source, error).within(where));
  ASSIGN_OR_RETURN(BundleContents contents, reader.readContents().within(where));
  return Bundle(std::move(contents));
}

static Result<Bytes> serializeContents(const BundleContents &contents) {
  const auto &[manifest, members] = contents;
  Digests digests;
  uint64_t total = 0;
  for (const auto &[member, bytes] : members) {
    digests[member] = sha256(bytes.data(), bytes.size());
    total += bytes.size();
  }
  // Larger files need further fields of the format, which would move the data. A bundle has no
  // weights.
  constexpr uint64_t kMaxBytes = uint64_t(4000) << 20;
  if (total > kMaxBytes)
    return Status::error("expects members of at most ", kMaxBytes, " bytes together, got ", total);
  ASSIGN_OR_RETURN(std::string json, manifestToJson(manifest, &digests));
  if (json.size() > kMaxManifestBytes)
    return Status::error("expects a manifest of at most ", kMaxManifestBytes, " bytes, got ",
                         json.size());

  ZipErrorText error;
  ZipSource source(zip_source_buffer_create(nullptr, 0, 0, &error.error), &zip_source_free);
  ZipArchive archive(nullptr, &zip_discard);
  if (source) {
    zip_source_keep(source.get()); // one reference for the archive, one to read the result by
    archive.reset(zip_open_from_source(source.get(), ZIP_TRUNCATE, &error.error));
    if (!archive)
      zip_source_free(source.get());
  }
  if (!archive)
    return Status::error(error.text());
  uint64_t offset = 0;
  bool added = addMember(archive.get(), kManifestMember, json.data(), json.size(), offset);
  for (auto member = members.begin(); added && member != members.end(); ++member)
    added = addMember(archive.get(), member->first, member->second.data(), member->second.size(),
                      offset);
  if (!added || zip_close(archive.get()) != 0)
    return Status::error(zip_strerror(archive.get()));
  (void)archive.release(); // closing freed it
  return readSource(source.get());
}

Result<Bytes> Bundle::serialize() const { return serializeContents(contents).within("bundle"); }

Status Bundle::write(const std::string &path) const {
  ASSIGN_OR_RETURN(Bytes bytes, serialize().within("cannot write " + inQuotes(path)));
  return writeFile(path, {{bytes.data(), bytes.size()}});
}

} // namespace braid::runtime
