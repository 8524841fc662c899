//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Base/Encoding.h"

#include "braid/Base/StatusMacros.h"
#include "braid/Base/Support.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

namespace braid::runtime {

namespace {

using Element = Encoding::Element;
using Form = Encoding::Form;
using Scale = Encoding::Scale;

constexpr int64_t kSmallestGroup = 32, kLargestGroup = 8192, kDefaultGroup = 128;
/// The unit of the last place of a number of m mantissa bits is 2^-m of it for powers of two and
/// 2^-(m + 1) just below; this is about the mean in L2.
constexpr double kUnitOfFloats = 0.75;
constexpr int64_t kSmallestRotation = 16, kLargestRotation = 256;

/// Names that stand for one form of codes.
struct NamedForm {
  const char *name;
  Element element;
  int64_t bits;
  Scale scale = Scale::f16;
  int64_t group = kDefaultGroup; ///< the only one, unless the scale is f16
};
constexpr NamedForm kForms[] = {
    {"bf16", Element::bf16, 16, Scale::f16, 0},
    {"f16", Element::f16, 16, Scale::f16, 0},
    {"fp8e4m3", Element::e4m3, 8},
    {"fp8e5m2", Element::e5m2, 8},
    {"fp6e3m2", Element::e3m2, 6},
    {"fp6e2m3", Element::e2m3, 6},
    {"fp4e2m1", Element::e2m1, 4},
    {"mxfp8e4m3", Element::e4m3, 8, Scale::e8m0, 32},
    {"mxfp8e5m2", Element::e5m2, 8, Scale::e8m0, 32},
    {"mxfp6e3m2", Element::e3m2, 6, Scale::e8m0, 32},
    {"mxfp6e2m3", Element::e2m3, 6, Scale::e8m0, 32},
    {"mxfp4", Element::e2m1, 4, Scale::e8m0, 32},
    {"nvfp4", Element::e2m1, 4, Scale::nvfp4, 16},
};

/// Whether group sizes and types of scales can be chosen.
bool isScaledAlike(Scale a, Scale b) {
  auto wide = [](Scale s) { return s == Scale::f16 || s == Scale::bf16; };
  return a == b || (wide(a) && wide(b));
}

const NamedForm *formOf(const Encoding &e) {
  for (const NamedForm &form : kForms)
    if (form.element == e.element && isScaledAlike(form.scale, e.scale))
      return &form;
  return nullptr;
}

bool hasFreeGroup(const Encoding &e) {
  return !e.isCast() && (e.scale == Scale::f16 || e.scale == Scale::bf16);
}

std::string expectedNames() {
  std::string names = "int2 to int8";
  for (const NamedForm &form : kForms)
    names += std::string(&form == std::end(kForms) - 1 ? " or " : ", ") + form.name;
  return names;
}

/// A number of few digits, without sign and leading zeros.
Result<int64_t> parseNumber(const std::string &text, const std::string &what) {
  const bool isNumber =
      !text.empty() && text.size() <= 6 && text[0] != '0' &&
      std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!isNumber)
    return Status::error("expects ", what, ", got ", inQuotes(text));
  return std::stoll(text);
}

bool isPowerOfTwo(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

/// Whether the parts fit each other.
Status check(const Encoding &e) {
  const bool isInteger = e.element == Element::integer;
  if (isInteger && (e.bits < 2 || e.bits > 8))
    return Status::error("expects integers of 2 to 8 bits, got ", e.bits);
  const NamedForm *form = isInteger ? nullptr : formOf(e);
  if (isInteger ? !hasFreeGroup(e) : !form || form->bits != e.bits)
    return Status::error("expects ", expectedNames());
  if (e.isCast()) {
    if (e.group != 0 || e.rotation != 0 || e.spikes || e.scale != Scale::f16)
      return Status::error("a cast has no groups and no options");
  } else if (!hasFreeGroup(e)) {
    if (e.group != form->group)
      return Status::error(form->name, " expects groups of ", form->group, ", got ", e.group);
    if (e.spikes)
      return Status::error(form->name, " has no spikes");
  } else if (e.group < kSmallestGroup || e.group > kLargestGroup || e.group % 8 != 0) {
    return Status::error("expects a group of ", kSmallestGroup, " to ", kLargestGroup,
                         " elements that 8 divides, got ", e.group);
  }
  if (!isInteger && e.form != Form::asymmetric)
    return Status::error("symmetric and zero-point are options of integers");
  if (e.rotation != 0) {
    if (e.rotation < kSmallestRotation || e.rotation > kLargestRotation ||
        !isPowerOfTwo(e.rotation))
      return Status::error("expects hadamard of a power of two from ", kSmallestRotation, " to ",
                           kLargestRotation, ", got ", e.rotation);
    if (e.group % e.rotation != 0)
      return Status::error("hadamard", e.rotation, " does not divide the group of ", e.group);
  }
  return {};
}

Status readOption(const std::string &option, Encoding &e) {
  auto setForm = [&](Form form) -> Status {
    if (e.form != Form::asymmetric)
      return Status::error("expects one of symmetric and zero-point");
    e.form = form;
    return {};
  };
  if (option == "symmetric")
    return setForm(Form::symmetric);
  if (option == "zero-point")
    return setForm(Form::zeroPoint);
  const std::string hadamard = "hadamard";
  const bool rotates = option.compare(0, hadamard.size(), hadamard) == 0;
  if ((option == "spikes" && e.spikes) || (rotates && e.rotation != 0) ||
      (option == "bf16-scale" && e.scale == Scale::bf16))
    return Status::error("the option ", inQuotes(option), " stands twice");
  if (option == "spikes") {
    e.spikes = true;
  } else if (option == "bf16-scale") {
    if (!hasFreeGroup(e))
      return Status::error("bf16-scale is an option of encodings with a scale in f16");
    e.scale = Scale::bf16;
  } else if (rotates) {
    ASSIGN_OR_RETURN(e.rotation, parseNumber(option.substr(hadamard.size()),
                                             "a number of elements after 'hadamard'"));
  } else {
    return Status::error("expects an option symmetric, zero-point, bf16-scale, hadamardN or "
                         "spikes, got ",
                         inQuotes(option));
  }
  return {};
}

Result<Encoding> parseParts(const std::string &text) {
  const size_t options = std::min(text.find('+'), text.size());
  const size_t colon = std::min(text.find(':'), options);
  const std::string name = text.substr(0, colon);
  Encoding e;
  if (name.compare(0, 3, "int") == 0) {
    ASSIGN_OR_RETURN(e.bits, parseNumber(name.substr(3), "integers of 2 to 8 bits"));
  } else {
    const NamedForm *form = nullptr;
    for (const NamedForm &known : kForms)
      if (name == known.name)
        form = &known;
    if (!form)
      return Status::error("expects ", expectedNames());
    e.element = form->element;
    e.bits = form->bits;
    e.scale = form->scale;
    e.group = form->group;
  }
  if (colon < options) {
    if (e.isCast())
      return Status::error("a cast has no groups and no options");
    ASSIGN_OR_RETURN(e.group, parseNumber(text.substr(colon + 1, options - colon - 1),
                                          "a number of elements after ':'"));
  }
  for (size_t begin = options; begin < text.size();) {
    const size_t end = std::min(text.find('+', begin + 1), text.size());
    RETURN_IF_ERROR(readOption(text.substr(begin + 1, end - begin - 1), e));
    begin = end;
  }
  RETURN_IF_ERROR(check(e));
  return e;
}

int64_t log2Of(int64_t powerOfTwo) { return __builtin_ctzll(static_cast<uint64_t>(powerOfTwo)); }

template <typename T> void put(std::byte *to, T value) { std::memcpy(to, &value, sizeof value); }
template <typename T> T get(const std::byte *from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

} // namespace

int64_t Encoding::groupHeaderBytes(DType type) const {
  if (isCast())
    return 0;
  int64_t bytes = hasFreeGroup(*this) ? 2 : 1;
  if (element == Element::integer)
    bytes += form == Form::asymmetric ? 2 : form == Form::zeroPoint ? 1 : 0;
  if (spikes)
    bytes += 2 * byteSize(type) + (group > 256 ? 4 : 2);
  return bytes;
}

double Encoding::expectedError() const {
  // The deviation of a number that is uniform in a step.
  const double uniform = 1 / std::sqrt(12.0);
  switch (element) {
  case Element::integer: {
    const double steps = form == Form::symmetric ? std::exp2(bits) - 2 : std::exp2(bits) - 1;
    return uniform * 2 * std::sqrt(2 * std::log(static_cast<double>(group))) / steps;
  }
  case Element::bf16:
    return uniform * std::exp2(-7) * kUnitOfFloats;
  case Element::f16:
    return uniform * std::exp2(-10) * kUnitOfFloats;
  case Element::e4m3:
  case Element::e2m3:
    return uniform * std::exp2(-3) * kUnitOfFloats;
  case Element::e5m2:
  case Element::e3m2:
    return uniform * std::exp2(-2) * kUnitOfFloats;
  case Element::e2m1:
    break;
  }
  return uniform * std::exp2(-1) * kUnitOfFloats;
}

std::string Encoding::str() const {
  std::string text =
      element == Element::integer ? "int" + std::to_string(bits) : std::string(formOf(*this)->name);
  if (hasFreeGroup(*this))
    text += ":" + std::to_string(group);
  if (form == Form::symmetric)
    text += "+symmetric";
  if (form == Form::zeroPoint)
    text += "+zero-point";
  if (scale == Scale::bf16)
    text += "+bf16-scale";
  if (rotation != 0)
    text += "+hadamard" + std::to_string(rotation);
  if (spikes)
    text += "+spikes";
  return text;
}

Result<Encoding> Encoding::parse(const std::string &text) {
  return parseParts(text).within("encoding " + inQuotes(text));
}

// Bits 0-3 element, 4-7 bits - 1, 8-9 form, 10-11 scale, 12 spikes, 13-16 log2 of the rotation or
// 0, 17-27 group / 8.
uint32_t Encoding::code() const {
  return static_cast<uint32_t>(element) | static_cast<uint32_t>(bits - 1) << 4 |
         static_cast<uint32_t>(form) << 8 | static_cast<uint32_t>(scale) << 10 |
         static_cast<uint32_t>(spikes) << 12 |
         static_cast<uint32_t>(rotation == 0 ? 0 : log2Of(rotation)) << 13 |
         static_cast<uint32_t>(group / 8) << 17;
}

Result<Encoding> Encoding::fromCode(uint32_t code) {
  auto field = [&](int at, int bits) { return code >> at & ((1u << bits) - 1); };
  Encoding e;
  e.element = static_cast<Element>(field(0, 4));
  e.bits = field(4, 4) + 1;
  e.form = static_cast<Form>(field(8, 2));
  e.scale = static_cast<Scale>(field(10, 2));
  e.spikes = field(12, 1) != 0;
  e.rotation = field(13, 4) == 0 ? 0 : int64_t(1) << field(13, 4);
  e.group = int64_t(field(17, 11)) * 8;
  if (code >> 28 != 0 || e.element > Element::e2m1 || e.form > Form::zeroPoint || !check(e).ok())
    return Status::error("expects the code of an encoding, got ", code);
  return e;
}

std::string EncodingPair::str() const {
  return reduce == gather ? reduce.str() : reduce.str() + "/" + gather.str();
}

Result<EncodingPair> EncodingPair::parse(const std::string &text) {
  const size_t slash = text.find('/');
  EncodingPair pair;
  ASSIGN_OR_RETURN(pair.reduce, Encoding::parse(text.substr(0, slash)));
  pair.gather = pair.reduce;
  if (slash != std::string::npos) {
    ASSIGN_OR_RETURN(pair.gather, Encoding::parse(text.substr(slash + 1)));
  }
  return pair;
}

Result<PayloadLayout> PayloadLayout::of(const Encoding &encoding, DType type, int64_t rows,
                                        int64_t columns, int64_t parts) {
  if (type != DType::f32 && type != DType::f16 && type != DType::bf16)
    return Status::error("an encoding expects f32, f16 or bf16, got ", name(type));
  if (rows < 1 || columns < 1 || parts < 1)
    return Status::error("an encoding expects at least one row, column and part, got ", rows, ", ",
                         columns, " and ", parts);
  PayloadLayout layout{encoding, type, rows, columns, parts};
  layout.rowsPerPart = rows / parts + (rows % parts != 0);
  // Elements beyond 2^48 are refused everywhere; below, the sums here fit.
  constexpr int64_t kMost = int64_t(1) << 48;
  const std::optional<int64_t> rowsThatFit = checkedMul(layout.rowsPerPart, parts);
  const std::optional<int64_t> elements =
      rowsThatFit ? checkedMul(*rowsThatFit, columns) : std::nullopt;
  if (!elements || *elements > kMost || columns > UINT32_MAX || layout.rowsPerPart > UINT32_MAX)
    return Status::error("an encoding expects at most 2^48 elements, and rows and columns below "
                         "2^32, got ",
                         rows, " rows of ", columns, " in ", parts, " parts");
  const int64_t group = encoding.isCast() ? columns : encoding.group;
  layout.groups = columns / group + (columns % group != 0);
  layout.groupHeaderBytes = encoding.groupHeaderBytes(type);
  layout.codesOffset =
      (encoding.scale == Encoding::Scale::nvfp4 ? 4 : 0) + layout.groups * layout.groupHeaderBytes;
  // All groups but the last have a multiple of 8 codes.
  layout.rowBytes = layout.codesOffset + (columns * encoding.bits + 7) / 8;
  const std::optional<int64_t> payload = checkedMul(layout.rowsPerPart, layout.rowBytes);
  const std::optional<int64_t> padded =
      payload ? checkedAdd(*payload, kHeaderBytes + 15) : std::nullopt;
  const std::optional<int64_t> all = padded ? checkedMul(*padded, parts) : std::nullopt;
  if (!all)
    return Status::error("a payload of ", parts, " parts of ", layout.rowsPerPart, " rows of ",
                         layout.rowBytes, " bytes is too large");
  layout.partBytes = *padded & ~int64_t(15);
  layout.bytes = layout.partBytes * parts;
  return layout;
}

int64_t PayloadLayout::rowsOf(int64_t part) const {
  return std::clamp<int64_t>(rows - part * rowsPerPart, 0, rowsPerPart);
}

void PayloadLayout::writeHeader(std::byte *header, int64_t part) const {
  put<uint16_t>(header, 0x5142);
  put<uint8_t>(header + 2, kVersion);
  put<uint8_t>(header + 3, static_cast<uint8_t>(type));
  put<uint32_t>(header + 4, encoding.code());
  put<uint32_t>(header + 8, static_cast<uint32_t>(rowsOf(part)));
  put<uint32_t>(header + 12, static_cast<uint32_t>(columns));
}

Status PayloadLayout::checkHeader(const std::byte *header, int64_t least) const {
  if (const auto magic = get<uint16_t>(header); magic != 0x5142)
    return Status::error("expects a payload that begins with 0x5142, got ", magic);
  if (const auto version = get<uint8_t>(header + 2); version != kVersion)
    return Status::error("expects a payload of version ", kVersion, ", got ", version);
  if (const auto got = get<uint8_t>(header + 3); got != static_cast<uint8_t>(type))
    return Status::error("expects a payload of ", name(type), ", got type ", got);
  if (const auto code = get<uint32_t>(header + 4); code != encoding.code()) {
    const Result<Encoding> other = Encoding::fromCode(code);
    return Status::error("expects a payload of ", encoding.str(), ", got ",
                         other.ok() ? other->str() : "encoding " + std::to_string(code));
  }
  if (const auto got = get<uint32_t>(header + 8); got < least || got > rowsPerPart)
    return Status::error("expects a payload of ", least, " to ", rowsPerPart, " rows, got ", got);
  if (const auto got = get<uint32_t>(header + 12); got != columns)
    return Status::error("expects a payload of ", columns, " columns, got ", got);
  return {};
}

} // namespace braid::runtime
