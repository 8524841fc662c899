//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Runtime/Bundle.h"
#include "braid/Runtime/ManifestJson.h"

#include "SampleProgram.h"
#include "Testing.h"

#include <nlohmann/json.hpp>
#include <zip.h>

#include <algorithm>
#include <functional>

using namespace braid::runtime;
using namespace braid::runtime::testing;

namespace {

/// Members in the order of the central directory of a ZIP archive, read here according to the
/// format's specification.
struct Member {
  std::string name;
  uint64_t method, time, date, size, offset, dataOffset;
};
uint64_t number(const Bytes &bytes, uint64_t at, int count) {
  uint64_t value = 0;
  for (int i = count; i-- > 0;)
    value = value << 8 | std::to_integer<uint64_t>(bytes.at(at + static_cast<uint64_t>(i)));
  return value;
}
std::vector<Member> listMembers(const Bytes &bytes) {
  uint64_t end = bytes.size() - 22; // no comment
  EXPECT_EQ(number(bytes, end, 4), 0x06054b50u);
  uint64_t count = number(bytes, end + 10, 2), at = number(bytes, end + 16, 4);
  std::vector<Member> members;
  for (uint64_t i = 0; i < count; ++i) {
    EXPECT_EQ(number(bytes, at, 4), 0x02014b50u);
    Member member{{},
                  number(bytes, at + 10, 2),
                  number(bytes, at + 12, 2),
                  number(bytes, at + 14, 2),
                  number(bytes, at + 24, 4),
                  number(bytes, at + 42, 4),
                  0};
    uint64_t nameSize = number(bytes, at + 28, 2);
    member.name.assign(reinterpret_cast<const char *>(&bytes.at(at + 46)), nameSize);
    EXPECT_EQ(number(bytes, member.offset, 4), 0x04034b50u);
    member.dataOffset = member.offset + 30 + number(bytes, member.offset + 26, 2) +
                        number(bytes, member.offset + 28, 2);
    members.push_back(member);
    at += 46 + nameSize + number(bytes, at + 30, 2) + number(bytes, at + 32, 2);
  }
  return members;
}

/// An archive of arbitrary members, as other tools write them.
Bytes archive(const std::vector<std::pair<std::string, Bytes>> &members,
              zip_int32_t method = ZIP_CM_STORE) {
  TemporaryFolder folder;
  std::string path = folder.path("a.zip");
  zip_t *zip = zip_open(path.c_str(), ZIP_CREATE, nullptr);
  for (const auto &[name, bytes] : members) {
    zip_source_t *source = zip_source_buffer(zip, bytes.data(), bytes.size(), 0);
    zip_int64_t index = zip_file_add(zip, name.c_str(), source, 0);
    EXPECT_GE(index, 0) << name;
    EXPECT_EQ(zip_set_file_compression(zip, static_cast<zip_uint64_t>(index), method, 0), 0);
  }
  EXPECT_EQ(zip_close(zip), 0);
  return *readFile(path);
}

/// The members of the sample bundle, manifest first.
std::vector<std::pair<std::string, Bytes>> sampleMembers() {
  Bytes bytes = *sampleBundle()->serialize();
  std::vector<std::pair<std::string, Bytes>> members;
  for (const Member &member : listMembers(bytes)) {
    auto begin = bytes.begin() + static_cast<long>(member.dataOffset);
    members.emplace_back(member.name, Bytes(begin, begin + static_cast<long>(member.size)));
  }
  return members;
}

Result<Bundle> parse(const Bytes &archive, const std::string &name) {
  return Bundle::parse(archive.data(), archive.size(), name);
}

TEST(Bundle, RoundTrips) {
  TemporaryFolder folder;
  std::string path = folder.path("x.braid");
  BundleContents contents = sampleContents();
  contents.manifest.moduleMember = "module.mlirbc";
  contents.members["module.mlirbc"] = {}; // an empty member is valid too
  ASSERT_OK(bundleOf(contents)->write(path));
  EXPECT_EQ(folder.numFiles(), 1u);
  Result<Bundle> back = Bundle::read(path);
  ASSERT_OK(back);
  EXPECT_EQ(back->members(), contents.members);
  EXPECT_EQ(toJson(back->manifest()), toJson(contents.manifest));
  ASSERT_NE(back->find("program.brpg"), nullptr);
  EXPECT_EQ(*back->find("program.brpg"), contents.members["program.brpg"]);
  EXPECT_EQ(&back->program(), back->find("program.brpg"));
  EXPECT_EQ(back->find("nothing"), nullptr);
}

TEST(Bundle, MembersAreStoredAlignedAndWithoutTime) {
  for (size_t size : {0, 1, 63, 64, 65, 100000}) {
    BundleContents contents = sampleContents();
    contents.members[contents.manifest.kernels[0].member].resize(size);
    contents.manifest.moduleMember = "module.mlirbc";
    contents.members["module.mlirbc"].resize(3 * size);
    std::shared_ptr<const Bundle> bundle = bundleOf(contents);
    Result<Bytes> bytes = bundle->serialize();
    ASSERT_OK(bytes);
    std::vector<Member> members = listMembers(*bytes);
    ASSERT_EQ(members.size(), 4u);
    EXPECT_EQ(members[0].name, "manifest.json");
    for (const Member &member : members) {
      EXPECT_EQ(member.method, 0u) << member.name;
      EXPECT_EQ(member.dataOffset % 64, 0u) << member.name;
      EXPECT_EQ(member.time, 0u);
      EXPECT_EQ(member.date, 0x21u) << "1980-01-01";
      if (member.name == "manifest.json")
        continue;
      const Bytes &expected = *bundle->find(member.name);
      ASSERT_EQ(member.size, expected.size());
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(),
                             bytes->begin() + static_cast<long>(member.dataOffset)));
    }
    EXPECT_EQ(*bundle->serialize(), *bytes) << "equal bundles are equal files";
  }
}

TEST(Bundle, ManifestHasTheSha256OfEachMember) {
  BundleContents contents = sampleContents();
  const std::string library = contents.manifest.kernels[0].member;
  contents.members[library] = toBytes("abc");
  Bytes bytes = *bundleOf(contents)->serialize();
  Member manifest = listMembers(bytes)[0];
  auto json = nlohmann::json::parse(
      std::string(reinterpret_cast<const char *>(&bytes[manifest.dataOffset]), manifest.size));
  EXPECT_EQ(json["sha256"].size(), 2u);
  // The example of FIPS 180-2.
  EXPECT_EQ(json["sha256"][library],
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Bundle, AcceptsOtherWriters) { EXPECT_OK(parse(archive(sampleMembers()), "x.braid")); }

TEST(Bundle, RefusesDamagedArchives) {
  EXPECT_ERROR(parse({}, "x.braid"),
               "bundle 'x.braid': damaged or truncated archive: the file is empty");
  EXPECT_ERROR_HAS(parse(toBytes("no archive at all, but of some length"), "x.braid"),
                   "bundle 'x.braid': damaged or truncated archive: ");
  EXPECT_ERROR(Bundle::read("/no/such.braid"),
               "cannot read '/no/such.braid': No such file or directory");
}

TEST(Bundle, RefusesEveryTruncation) {
  const Bytes good = *sampleBundle()->serialize();
  for (size_t size = 0; size < good.size(); size += 13) {
    Bytes bad(good.begin(), good.begin() + static_cast<long>(size));
    EXPECT_ERROR_HAS(parse(bad, "x.braid"), "bundle 'x.braid': ");
  }
}

/// A changed byte is refused, unless it has no meaning (padding, a time stamp).
TEST(Bundle, NoticesChangedBytes) {
  const std::shared_ptr<const Bundle> bundle = sampleBundle();
  const Bytes good = *bundle->serialize();
  std::vector<Member> members = listMembers(good);
  for (size_t i = 0; i < good.size(); i += 3) {
    Bytes bad = good;
    bad[i] ^= std::byte(0x5a);
    Result<Bundle> result = parse(bad, "x.braid");
    for (const Member &member : members)
      if (i >= member.dataOffset && i < member.dataOffset + member.size)
        EXPECT_ERROR_HAS(result, "bundle 'x.braid': member '" + member.name + "': ");
    if (result.ok())
      EXPECT_EQ(result->members(), bundle->members()) << i;
  }
}

TEST(Bundle, RefusesMembersThatTheManifestDoesNotMean) {
  auto members = sampleMembers();
  const std::string library = sampleManifest().kernels[0].member;
  auto without = members;
  without.erase(without.begin());
  EXPECT_ERROR(parse(archive(without), "x.braid"),
               "bundle 'x.braid': member 'manifest.json' is missing");
  without = members;
  without.pop_back();
  EXPECT_ERROR(parse(archive(without), "x.braid"),
               "bundle 'x.braid': data of member '" + members.back().first + "' is missing");
  auto extra = members;
  extra.emplace_back("extra.bin", toBytes("?"));
  EXPECT_ERROR(parse(archive(extra), "x.braid"),
               "bundle 'x.braid': data of member 'extra.bin', which the manifest does not list");
  auto escaping = members;
  escaping.emplace_back("../escape", toBytes("?"));
  EXPECT_ERROR(parse(archive(escaping), "x.braid"),
               "bundle 'x.braid': member '../escape': expects a path inside of the archive");
  auto changed = members;
  for (auto &[name, bytes] : changed)
    if (name == library)
      bytes[5] ^= std::byte(1);
  EXPECT_ERROR(parse(archive(changed), "x.braid"),
               "bundle 'x.braid': member '" + library +
                   "': its SHA-256 is not the one that the manifest gives");
  EXPECT_ERROR(parse(archive(members, ZIP_CM_DEFLATE), "x.braid"),
               "bundle 'x.braid': member 'manifest.json': expects members that are stored, neither "
               "compressed nor encrypted");
}

TEST(Bundle, RefusesMembersOfOneName) {
  // libzip cannot write this: a name of the same length is replaced in both headers.
  auto members = sampleMembers();
  members.emplace_back("program.brpX", members.back().second);
  Bytes bytes = archive(members);
  const std::string from = "program.brpX", to = "program.brpg";
  for (auto at = bytes.begin();;) {
    auto same = [](std::byte b, char c) { return std::to_integer<char>(b) == c; };
    at = std::search(at, bytes.end(), from.begin(), from.end(), same);
    if (at == bytes.end())
      break;
    std::memcpy(&*at, to.data(), to.size());
  }
  // Some versions of libzip detect it themselves.
  EXPECT_ERROR_HAS(parse(bytes, "x.braid"), "bundle 'x.braid': ");
}

void append(Bytes &bytes, uint64_t value, int count) {
  for (int i = 0; i < count; ++i, value >>= 8)
    bytes.push_back(static_cast<std::byte>(value));
}
void append(Bytes &bytes, const Bytes &more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
}
uint32_t crc32(const Bytes &bytes) {
  uint32_t crc = ~0U;
  for (std::byte byte : bytes) {
    crc ^= std::to_integer<uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit)
      crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320U : 0);
  }
  return ~crc;
}
/// Header fields from the required version up to the lengths of a member's name and extra field.
Bytes fields(const Bytes &data) {
  Bytes bytes;
  append(bytes, 10, 2);
  append(bytes, 0, 8); // stored, no time
  append(bytes, crc32(data), 4);
  append(bytes, data.size(), 4);
  append(bytes, data.size(), 4);
  append(bytes, 1, 2);
  append(bytes, 0, 2);
  return bytes;
}

TEST(Bundle, RefusesMembersThatLieInEachOther) {
  // 'c' has 1000 bytes; 'b' begins with the header of 'c', and 'a' with that of 'b'.
  const std::string names = "cba";
  Bytes data(1000), directory;
  const size_t last = data.size() + 2 * 31;
  for (char name : names) {
    append(directory, 0x02014b50, 4);
    append(directory, 10, 2);
    append(directory, fields(data));
    append(directory, 0, 10); // comment, disk, attributes
    append(directory, last - data.size(), 4);
    append(directory, static_cast<uint64_t>(name), 1);
    Bytes member;
    append(member, 0x04034b50, 4);
    append(member, fields(data));
    append(member, static_cast<uint64_t>(name), 1);
    append(member, data);
    data = member;
  }
  const size_t begin = data.size();
  append(data, directory);
  append(data, 0x06054b50, 4);
  append(data, 0, 4);
  append(data, names.size(), 2);
  append(data, names.size(), 2);
  append(data, directory.size(), 4);
  append(data, begin, 4);
  append(data, 0, 2);
  ASSERT_EQ(data.size(), 1256U);
  EXPECT_ERROR(parse(data, "x.braid"),
               "bundle 'x.braid': member 'b': expects at most 1256 bytes in all members, got 2031");
}

TEST(Bundle, RefusesBadManifestsAndPrograms) {
  auto members = sampleMembers();
  ASSERT_EQ(members[0].first, "manifest.json");
  std::string text(reinterpret_cast<const char *>(members[0].second.data()),
                   members[0].second.size());
  auto withManifest = [&](const std::function<void(nlohmann::json &)> &change) {
    nlohmann::json json = nlohmann::json::parse(text);
    change(json);
    auto changed = members;
    changed[0].second = toBytes(json.dump());
    return parse(archive(changed), "x.braid");
  };
  EXPECT_OK(withManifest([](nlohmann::json &) {}));
  EXPECT_ERROR(withManifest([](nlohmann::json &json) { json.erase("mesh"); }),
               "bundle 'x.braid': member 'manifest.json': field 'mesh' is missing");
  EXPECT_ERROR(withManifest([](nlohmann::json &json) { json["sha256"].erase("program.brpg"); }),
               "bundle 'x.braid': member 'manifest.json': SHA-256 of member 'program.brpg' is "
               "missing");
  EXPECT_ERROR(withManifest([](nlohmann::json &json) {
                 json["sha256"]["other"] = json["sha256"]["program.brpg"];
               }),
               "bundle 'x.braid': member 'manifest.json': SHA-256 of member 'other', which the "
               "manifest does not list");
  EXPECT_ERROR(
      withManifest([](nlohmann::json &json) { json["mesh"]["axes"][0]["size"] = 4; }),
      "bundle 'x.braid': member 'program.brpg': expects the mesh of the manifest, got another one");
}

TEST(Bundle, AFailedWriteLeavesNothing) {
  TemporaryFolder folder;
  std::string missing = folder.path("no/x.braid");
  EXPECT_ERROR(sampleBundle()->write(missing),
               "cannot write '" + missing + "': No such file or directory");
  EXPECT_EQ(folder.numFiles(), 0u);
}

TEST(Bundle, IsVerifiedWhenItIsMade) {
  BundleContents contents = sampleContents();
  EXPECT_OK(Bundle::create(contents));
  contents.members.erase("program.brpg");
  EXPECT_ERROR(Bundle::create(contents), "bundle: data of member 'program.brpg' is missing");
  contents = sampleContents();
  contents.members["extra"] = toBytes("?");
  EXPECT_ERROR(Bundle::create(contents),
               "bundle: data of member 'extra', which the manifest does not list");
  contents = sampleContents();
  contents.members["program.brpg"] = toBytes("?");
  EXPECT_ERROR(Bundle::create(contents),
               "bundle: member 'program.brpg': not a Braid program, or a damaged one");
  contents = sampleContents();
  contents.manifest.entries.clear();
  EXPECT_ERROR(Bundle::create(contents), "bundle: 'entries' expects at least one entry");
  contents = sampleContents();
  contents.manifest.modelName = "\xff";
  EXPECT_ERROR(bundleOf(contents)->serialize(), "bundle: expects every name to be UTF-8");
}

/// A bundle stays as it was read, whatever becomes of the file.
TEST(Bundle, DoesNotChangeWithItsFile) {
  TemporaryFolder folder;
  const std::string path = folder.path("x.braid");
  ASSERT_OK(sampleBundle()->write(path));
  Result<Bundle> bundle = Bundle::read(path);
  ASSERT_OK(bundle);
  std::filesystem::resize_file(path, 10);
  EXPECT_EQ(bundle->members(), sampleBundle()->members());
  EXPECT_ERROR_HAS(Bundle::read(path), "bundle '" + path + "': damaged or truncated archive: ");
  std::filesystem::resize_file(path, 0);
  EXPECT_ERROR(Bundle::read(path),
               "bundle '" + path + "': damaged or truncated archive: the file is empty");
  EXPECT_ERROR(Bundle::read("/dev/null"), "cannot read '/dev/null': expects a regular file");
}

} // namespace
