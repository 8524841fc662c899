//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Names of hosts: lists of them, and where ranks meet.
//
//===----------------------------------------------------------------------===//
#include "Numbers.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Base/Support.h"
#include "braid/Runtime/Launch.h"

#include <algorithm>
#include <set>

namespace braid::runtime {

namespace {

constexpr size_t kMaxHostName = 255; // as in DNS
constexpr size_t kMaxListText = size_t(1) << 20;

bool isNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// One item of a node list, which no comma outside of brackets splits: text and sets of numbers in
/// turn.
class NodeItem {
public:
  NodeItem(const std::string &list, size_t begin, size_t end) : list(list), at(begin), end(end) {}

  Status expand(std::vector<std::string> &hosts) {
    std::vector<std::string> names{""};
    while (at < end) {
      if (list[at] == ']')
        return error("expects a '[' before ']'");
      if (list[at] != '[') {
        for (std::string &name : names)
          name += list[at];
        ++at;
        continue;
      }
      ++at;
      std::vector<std::string> numbers;
      RETURN_IF_ERROR(readNumbers(numbers));
      if (names.size() * numbers.size() > kMaxLaunchedRanks)
        return error("has more than " + std::to_string(kMaxLaunchedRanks) + " hosts");
      std::vector<std::string> longer;
      longer.reserve(names.size() * numbers.size());
      for (const std::string &name : names)
        for (const std::string &number : numbers)
          longer.push_back(name + number);
      names = std::move(longer);
    }
    for (std::string &name : names) {
      if (!isHostName(name))
        return error("expects names of hosts, got " + inQuotes(name));
      if (hosts.size() >= kMaxLaunchedRanks)
        return error("has more than " + std::to_string(kMaxLaunchedRanks) + " hosts");
      hosts.push_back(std::move(name));
    }
    return {};
  }

private:
  /// "01-03,7]": from after a bracket to after the bracket that closes it.
  Status readNumbers(std::vector<std::string> &numbers) {
    while (true) {
      std::string first;
      RETURN_IF_ERROR(readNumber(first));
      std::string last = first;
      if (at < end && list[at] == '-') {
        ++at;
        last.clear();
        RETURN_IF_ERROR(readNumber(last));
      }
      const int64_t from = std::stoll(first), to = std::stoll(last);
      if (from > to)
        return error("expects ranges that rise, got " + first + "-" + last);
      if (to - from >= kMaxLaunchedRanks - static_cast<int64_t>(numbers.size()))
        return error("has more than " + std::to_string(kMaxLaunchedRanks) + " hosts");
      for (int64_t number = from; number <= to; ++number) {
        std::string digits = std::to_string(number);
        // Numbers of a range are as wide as its first one: 08-11 are 08, 09, 10, 11.
        if (digits.size() < first.size())
          digits.insert(0, first.size() - digits.size(), '0');
        numbers.push_back(std::move(digits));
      }
      if (at == end)
        return error("expects a ']' for every '['");
      const char separator = list[at++];
      if (separator == ']')
        return {};
      if (separator != ',')
        return error(std::string("expects ',', '-' or ']' after a number, got ") +
                     inQuotes({separator}));
    }
  }

  Status readNumber(std::string &number) {
    while (at < end && list[at] >= '0' && list[at] <= '9')
      number += list[at++];
    constexpr size_t kMaxDigits = 18; // fits in 64 bits
    if (number.empty() || number.size() > kMaxDigits)
      return error("expects numbers of 1 to 18 digits in brackets");
    return {};
  }

  Status error(const std::string &what) const {
    return Status::error("node list ", inQuotes(list), " ", what);
  }

  const std::string &list;
  size_t at, end;
};

} // namespace

bool isHostName(const std::string &text) {
  if (text.empty() || text.size() > kMaxHostName)
    return false;
  // An IPv6 address may begin with a colon; an option begins with a dash.
  if (!isNameCharacter(text[0]) && text[0] != ':')
    return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return isNameCharacter(c) || c == '.' || c == '-' || c == ':' || c == '%';
  });
}

Result<std::vector<std::string>> expandNodeList(const std::string &list) {
  if (list.size() > kMaxListText)
    return Status::error("node list expects at most ", kMaxListText, " characters, got ",
                         list.size());
  std::vector<std::string> hosts;
  size_t begin = 0;
  bool inBrackets = false;
  for (size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '[') {
      if (inBrackets)
        return Status::error("node list ", inQuotes(list), " expects no bracket within brackets");
      inBrackets = true;
    }
    if (i < list.size() && list[i] == ']')
      inBrackets = false;
    if (i == list.size() || (list[i] == ',' && !inBrackets)) {
      RETURN_IF_ERROR(NodeItem(list, begin, i).expand(hosts));
      begin = i + 1;
    }
  }
  return hosts;
}

Result<std::vector<HostRanks>> parseHosts(const std::string &text) {
  if (text.size() > kMaxListText)
    return Status::error("list of hosts expects at most ", kMaxListText, " characters, got ",
                         text.size());
  std::vector<HostRanks> hosts;
  std::set<std::string> seen;
  int64_t total = 0;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string item = text.substr(begin, end - begin);
    begin = end + 1;
    auto error = [&] {
      return Status::error("expects hosts as HOST, HOST:RANKS or [ADDRESS]:RANKS with commas "
                           "between them, got ",
                           inQuotes(item), " in ", inQuotes(text));
    };
    const size_t at = item.find('@');
    const std::string user = at == std::string::npos ? "" : item.substr(0, at);
    std::string host = at == std::string::npos ? item : item.substr(at + 1), ranks;
    if (!host.empty() && host[0] == '[') {
      const size_t close = host.find(']');
      if (close == std::string::npos ||
          (close + 1 < host.size() && (host[close + 1] != ':' || close + 2 == host.size())))
        return error();
      ranks = close + 1 < host.size() ? host.substr(close + 2) : "";
      host = host.substr(1, close - 1);
    } else if (const size_t colon = host.find(':'); colon != std::string::npos) {
      // An address with colons needs brackets, as its last part could be a number of ranks.
      ranks = host.substr(colon + 1);
      host.resize(colon);
      if (ranks.empty())
        return error();
    }
    if (!isHostName(host) || (at != std::string::npos && !isHostName(user)))
      return error();
    HostRanks parsed{user.empty() ? host : user + "@" + host, 1};
    if (!ranks.empty()) {
      const std::optional<int64_t> number = wholeNumber(ranks, kMaxLaunchedRanks);
      if (!number || *number == 0)
        return Status::error("expects 1 to ", kMaxLaunchedRanks, " ranks on host '", host,
                             "', got ", inQuotes(ranks));
      parsed.ranks = *number;
    }
    if (!seen.insert(host).second)
      return Status::error("host '", host, "' is given twice; HOST:RANKS gives it several ranks");
    total += parsed.ranks;
    if (total > kMaxLaunchedRanks)
      return Status::error("expects at most ", kMaxLaunchedRanks, " ranks in all");
    hosts.push_back(std::move(parsed));
  }
  return hosts;
}

std::string Rendezvous::text() const {
  if (!file.empty())
    return "file:" + file;
  const bool address = host.find(':') != std::string::npos;
  return "tcp://" + (address ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<Rendezvous> parseRendezvous(const std::string &text) {
  auto error = [&](const std::string &why) {
    return Status::error("expects a rendezvous as tcp://HOST:PORT, tcp://[ADDRESS]:PORT or "
                         "file:PATH, got ",
                         inQuotes(text), why);
  };
  Rendezvous parsed;
  if (text.rfind("file:", 0) == 0) {
    parsed.file = text.substr(5);
    // Ranks may have different directories.
    if (parsed.file.empty() || parsed.file[0] != '/' || parsed.file.find('\0') != std::string::npos)
      return error(": the path must be absolute");
    return parsed;
  }
  if (text.rfind("tcp://", 0) != 0)
    return error("");
  const std::string rest = text.substr(6);
  const size_t colon = rest.rfind(':');
  if (colon == std::string::npos)
    return error(": the port is missing");
  parsed.host = rest.substr(0, colon);
  const bool brackets = !parsed.host.empty() && parsed.host[0] == '[' && parsed.host.back() == ']';
  if (brackets)
    parsed.host = parsed.host.substr(1, parsed.host.size() - 2);
  else if (parsed.host.find(':') != std::string::npos)
    return error(": an address with colons needs brackets");
  if (!isHostName(parsed.host))
    return error(": the host has no valid name");
  const std::optional<int64_t> port = wholeNumber(rest.substr(colon + 1), 65535);
  if (!port || *port == 0)
    return error(": the port must be from 1 to 65535");
  parsed.port = static_cast<uint16_t>(*port);
  return parsed;
}

} // namespace braid::runtime
