//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "RandomRows.h"

using namespace braid::test;

namespace {
constexpr int64_t kInnerRows = 3;

template <typename Range, typename Fn> std::string join(const Range &range, Fn fn) {
  std::string text;
  for (const auto &one : range)
    text += (text.empty() ? "" : ", ") + fn(one);
  return text;
}
} // namespace

RandomRows::RandomRows(std::mt19937_64 &random, std::string element, int64_t columns)
    : random(random), element(std::move(element)), columns(columns) {}

std::string RandomRows::type(Kind kind, const std::string &of) const {
  std::string rows = twoRowDims ? "?x" + std::to_string(kInnerRows) + "x" : "?x",
              last = std::to_string(columns) + "x";
  switch (kind) {
  case Kind::Full:
    return "tensor<" + rows + last + of + ">";
  case Kind::Row:
    return "tensor<" + rows + of + ">";
  case Kind::Column:
    return "tensor<" + last + of + ">";
  case Kind::Inner:
    return "tensor<" + std::to_string(kInnerRows) + "x" + last + of + ">";
  }
  return "";
}

/// The indexing map of an operand in an op over (row, column), or over (row) for values without
/// columns.
std::string RandomRows::map(Kind kind, bool hasColumn) const {
  std::string rows = twoRowDims ? "b, r" : "r";
  std::string domain = hasColumn ? rows + ", c" : rows;
  std::string place = kind == Kind::Full     ? rows + ", c"
                      : kind == Kind::Row    ? rows
                      : kind == Kind::Column ? "c"
                                             : "r, c";
  return "affine_map<(" + domain + ") -> (" + place + ")>";
}

const RandomRows::Value &RandomRows::pick(bool alongColumn) {
  while (true) {
    // Prefers recent values, so that few values have no use.
    uint64_t any = draw(values.size());
    const Value &value = values[draw(2) ? any : values.size() - 1 - any / 3];
    if ((value.kind == Kind::Row) != alongColumn)
      return value;
  }
}

RandomRows::Value RandomRows::add(Kind kind, const std::string &of,
                                  const std::vector<Value> &inputs, const std::string &code,
                                  const std::string &init, bool reduces) {
  bool hasColumn = kind == Kind::Full || reduces;
  Value result{"%v" + std::to_string(numbers++), kind, of};
  std::string loops = twoRowDims ? "\"parallel\", \"parallel\"" : "\"parallel\"";
  if (hasColumn)
    loops += reduces ? ", \"reduction\"" : ", \"parallel\"";
  body += "  " + result.name + " = linalg.generic {indexing_maps = [" +
          join(inputs, [&](const Value &in) { return map(in.kind, hasColumn); }) + ", " +
          map(kind, hasColumn) + "], iterator_types = [" + loops + "]}\n      ins(" +
          join(inputs, [](const Value &in) { return in.name; }) + " : " +
          join(inputs, [&](const Value &in) { return type(in.kind, in.element); }) + ") outs(" +
          init + " : " + type(kind, of) + ") {\n  ^bb0(";
  std::string widened;
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::string number = std::to_string(i);
    body += "%a" + number + ": " + inputs[i].element + ", ";
    widened += inputs[i].element == "f32"
                   ? "    %w" + number + " = arith.addf %a" + number + ", %zero : f32\n"
                   : "    %w" + number + " = arith.extf %a" + number + " : " + inputs[i].element +
                         " to f32\n";
  }
  body += "%o: " + of + "):\n" + widened + code;
  if (of == "f32")
    body += "    linalg.yield %y : f32\n";
  else
    body += "    %stored = arith.truncf %y : f32 to " + of + "\n    linalg.yield %stored : " + of +
            "\n";
  body += "  } -> " + type(kind, of) + "\n";
  return result;
}

std::string RandomRows::combine(size_t count) {
  std::string code, last = "%w0";
  int temporaries = 0;
  auto emit = [&](const std::string &op) {
    std::string name = "%t" + std::to_string(temporaries++);
    code += "    " + name + " = " + op + "\n";
    return name;
  };
  const std::string fast = " fastmath<contract> : f32", plain = " : f32";
  for (size_t i = 1; i < count; ++i) {
    std::string other = "%w" + std::to_string(i), flags = draw(2) ? fast : plain, made;
    switch (draw(6)) {
    case 0:
      last = emit("arith.addf " + last + ", " + other + flags);
      break;
    case 1:
      made = emit("arith.mulf " + last + ", " + other + flags);
      last = emit("arith.addf " + made + ", %half" + flags);
      break;
    case 2:
      last = emit("arith.maximumf " + last + ", " + other + plain);
      break;
    case 3:
      last = emit("arith.minnumf " + last + ", " + other + plain);
      break;
    case 4:
      made = emit("arith.cmpf olt, " + last + ", " + other + plain);
      last = emit("arith.select " + made + ", " + last + ", " + other + plain);
      break;
    default:
      made = emit("arith.mulf " + other + ", " + other + flags);
      made = emit("arith.addf " + made + ", %one" + flags);
      last = emit("arith.divf " + last + ", " + made + plain);
    }
  }
  std::string made;
  switch (draw(6)) {
  case 0:
    last = emit("math.tanh " + last + plain);
    break;
  case 1:
    last = emit("math.erf " + last + plain);
    break;
  case 2:
    made = emit("math.absf " + last + plain);
    made = emit("arith.negf " + made + plain);
    last = emit("math.exp " + made + plain);
    break;
  case 3:
    made = emit("arith.mulf " + last + ", " + last + fast);
    made = emit("arith.addf " + made + ", %one" + fast);
    last = emit("math.rsqrt " + made + plain);
    break;
  default:
    last = emit("arith.divf " + last + ", %third" + fast);
  }
  code += "    %y = arith.addf " + last + ", %zero : f32\n";
  return code;
}

void RandomRows::addMap() {
  std::vector<Value> inputs{pick(true)};
  for (uint64_t more = draw(3); more-- > 0;)
    inputs.push_back(values[values.size() - 1 - draw(values.size()) / 2]);
  std::string of = draw(2) ? element : "f32";
  values.push_back(add(Kind::Full, of, inputs, combine(inputs.size()),
                       of == "f32" ? "%full32" : "%full", false));
}

void RandomRows::addRowMap() {
  std::vector<Value> inputs;
  for (size_t i = values.size(); i-- > 0 && inputs.size() < 2;)
    if (values[i].kind == Kind::Row)
      inputs.push_back(values[i]);
  if (!inputs.empty())
    values.push_back(add(Kind::Row, "f32", inputs, combine(inputs.size()), "%row32", false));
}

void RandomRows::addReduction() {
  std::vector<Value> inputs{pick(true)};
  if (draw(2))
    inputs.push_back(values[draw(values.size())]);
  std::string code = combine(inputs.size());
  code.replace(code.rfind("%y"), 2, "%term");
  switch (draw(4)) {
  case 0:
    code += "    %s = arith.mulf %term, %term fastmath<contract> : f32\n"
            "    %m = arith.mulf %s, %share fastmath<contract> : f32\n"
            "    %y = arith.addf %o, %m fastmath<contract> : f32\n";
    values.push_back(add(Kind::Row, "f32", inputs, code, "%zeros", true));
    break;
  case 1:
    code += "    %s = math.absf %term : f32\n    %m = arith.mulf %s, %share : f32\n"
            "    %y = arith.addf %m, %o : f32\n";
    values.push_back(add(Kind::Row, "f32", inputs, code, "%zeros", true));
    break;
  case 2:
    code += "    %y = arith.maximumf %o, %term : f32\n";
    values.push_back(add(Kind::Row, "f32", inputs, code, "%lows", true));
    break;
  default:
    code += "    %y = arith.minimumf %o, %term : f32\n";
    values.push_back(add(Kind::Row, "f32", inputs, code, "%highs", true));
  }
}

std::string RandomRows::text(const std::string &name) {
  twoRowDims = draw(4) == 0;
  values.clear();
  body.clear();
  numbers = 0;
  values.push_back({"%x", Kind::Full, element});
  std::vector<Value> optional{{"%z", Kind::Full, element},
                              {"%w", Kind::Column, element},
                              {"%g", Kind::Column, "f32"},
                              {"%p", Kind::Row, "f32"}};
  if (twoRowDims)
    optional.push_back({"%k", Kind::Inner, element});
  for (const Value &value : optional)
    if (draw(2))
      values.push_back(value);
  std::string arguments = join(values, [&](const Value &value) {
    return value.name + ": " + type(value.kind, value.element);
  });

  size_t first = values.size();
  addMap();
  bool reduces = draw(4) != 0;
  for (uint64_t more = 1 + draw(6); more-- > 0;)
    switch (reduces ? draw(5) : 2 + draw(2)) {
    case 0:
    case 1:
      addReduction();
      break;
    case 2:
      addRowMap();
      break;
    default:
      addMap();
    }
  addMap();

  // The last value, and random others.
  std::vector<Value> results;
  for (size_t i = first; i + 1 < values.size(); ++i)
    if (draw(4) == 0)
      results.push_back(values[i]);
  results.push_back(values.back());
  std::string types =
      join(results, [&](const Value &value) { return type(value.kind, value.element); });
  return "rt.kernel @" + name + "(" + arguments + ") -> (" + types +
         ") attributes {row_dims = " + (twoRowDims ? "2" : "1") +
         " : i64} {\n"
         "  %c0 = arith.constant 0 : index\n  %zero = arith.constant 0.0 : f32\n"
         "  %half = arith.constant 0.5 : f32\n  %one = arith.constant 1.0 : f32\n"
         "  %third = arith.constant 3.0 : f32\n"
         "  %share = arith.constant " +
         std::to_string(1.0 / static_cast<double>(columns)) +
         " : f32\n"
         "  %low = arith.constant 0xFF800000 : f32\n  %high = arith.constant 0x7F800000 : f32\n"
         "  %n = tensor.dim %x, %c0 : " +
         type(Kind::Full, element) + "\n  %full = tensor.empty(%n) : " + type(Kind::Full, element) +
         "\n  %full32 = tensor.empty(%n) : " + type(Kind::Full, "f32") +
         "\n  %row32 = tensor.empty(%n) : " + type(Kind::Row, "f32") +
         "\n  %zeros = linalg.fill ins(%zero : f32) outs(%row32 : " + type(Kind::Row, "f32") +
         ") -> " + type(Kind::Row, "f32") +
         "\n  %lows = linalg.fill ins(%low : f32) outs(%row32 : " + type(Kind::Row, "f32") +
         ") -> " + type(Kind::Row, "f32") +
         "\n  %highs = linalg.fill ins(%high : f32) outs(%row32 : " + type(Kind::Row, "f32") +
         ") -> " + type(Kind::Row, "f32") + "\n" + body + "  rt.yield " +
         join(results, [](const Value &value) { return value.name; }) + " : " + types + "\n}\n";
}
