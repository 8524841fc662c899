//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What tests of the start of a job share.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_BOOTSTRAPTESTING_H
#define BRAID_TEST_BOOTSTRAPTESTING_H

#include "NetTesting.h"
#include "ProcessTesting.h"
#include "runtime/lib/Net/Bootstrap.h"
#include "runtime/lib/Net/Host.h"

namespace braid::runtime::net::testing {

using namespace braid::runtime::testing;

/// The addresses of a job's ranks and a number made of its key, or the error.
inline std::string start(const JobOptions &options, const std::vector<std::string> &addresses) {
  const int64_t begin = nowNs();
  Result<Job> job = startJob(options, addresses);
  const double took = static_cast<double>(nowNs() - begin) * 1e-9;
  if (took > options.timeLimitSeconds + 2)
    return "took " + std::to_string(took) + " s";
  if (!job.ok())
    return job.status().message();
  std::string text;
  for (const Member &member : job->members) {
    for (const std::string &address : member.addresses)
      text += address + " ";
    if (member.hostId != hostId() || member.host != hostName())
      text += "of another host ";
  }
  return text + std::to_string(std::hash<std::string>()(job->key));
}

inline std::string start(const JobOptions &options) {
  return start(options, {"a" + std::to_string(options.rank), "b" + std::to_string(options.rank)});
}

/// What each of the ranks says; `change` makes their options differ.
inline std::vector<std::string> startAll(int64_t ranks,
                                         const std::function<void(int64_t, JobOptions &)> &change,
                                         uint16_t port = freePort()) {
  RankProcessesOfTest processes(ranks, [&](int64_t rank) {
    JobOptions options = optionsOf(rank, ranks, onLoopback(port));
    change(rank, options);
    return start(options);
  });
  std::vector<std::string> results;
  for (int64_t rank = 0; rank < ranks; ++rank)
    results.push_back(processes.result(rank));
  return results;
}

inline void expectStarted(const std::vector<std::string> &results) {
  std::string all;
  for (size_t rank = 0; rank < results.size(); ++rank)
    all += "a" + std::to_string(rank) + " b" + std::to_string(rank) + " ";
  EXPECT_THAT(results[0], ::testing::MatchesRegex(all + "[0-9]+"));
  for (const std::string &result : results)
    EXPECT_EQ(result, results[0]);
}

} // namespace braid::runtime::net::testing

#endif // BRAID_TEST_BOOTSTRAPTESTING_H
