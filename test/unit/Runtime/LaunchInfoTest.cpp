//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Runtime/Launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace braid::runtime;
using ::testing::HasSubstr;

namespace {

/// Variables as the launchers set them, seen on rank 3 of 4 with two ranks a host.
Environment torchrun() {
  return {{"RANK", "3"},
          {"WORLD_SIZE", "4"},
          {"LOCAL_RANK", "1"},
          {"LOCAL_WORLD_SIZE", "2"},
          {"MASTER_ADDR", "node1"},
          {"MASTER_PORT", "29500"},
          {"TORCHELASTIC_RUN_ID", "none"}};
}
Environment openMpi() {
  return {{"OMPI_COMM_WORLD_RANK", "3"},
          {"OMPI_COMM_WORLD_SIZE", "4"},
          {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
          {"PMIX_RANK", "3"},
          {"PMIX_NAMESPACE", "1769799681"},
          {"OMPI_MCA_ess_base_jobid", "1769799681"}};
}
Environment hydra() {
  return {{"PMI_RANK", "3"},
          {"PMI_SIZE", "4"},
          {"PMI_FD", "9"},
          {"MPI_LOCALRANKID", "1"},
          {"MPI_LOCALNRANKS", "2"}};
}
Environment slurm() {
  return {{"SLURM_PROCID", "3"},
          {"SLURM_NTASKS", "4"},
          {"SLURM_STEP_NUM_TASKS", "4"},
          {"SLURM_LOCALID", "1"},
          {"SLURM_JOB_ID", "200505"},
          {"SLURM_STEP_ID", "0"},
          {"SLURM_STEP_NODELIST", "gnode[10,20-21]"},
          {"SLURM_JOB_NODELIST", "gnode[08,10,20-21]"}};
}
Environment ownLauncher() {
  return {{"BRAID_RANK", "3"},
          {"BRAID_SIZE", "4"},
          {"BRAID_LOCAL_RANK", "1"},
          {"BRAID_LOCAL_SIZE", "2"},
          {"BRAID_JOB", "8c1f"},
          {"BRAID_JOB_SECRET", "5ecre7"},
          {"BRAID_RENDEZVOUS", "tcp://node1:4711"}};
}

/// `changes` over `base`; an empty value takes a variable away.
Environment with(Environment base, const Environment &changes) {
  for (const auto &[variable, value] : changes)
    base[variable] = value;
  return base;
}

LaunchInfo infoOf(const Environment &environment, const std::string &rendezvous = "") {
  Result<std::optional<LaunchInfo>> info = launchInfo(environment, rendezvous);
  if (!info.ok() || !*info) {
    ADD_FAILURE() << (info.ok() ? "no launcher" : info.status().message());
    return {};
  }
  return **info;
}

std::string errorOf(const Environment &environment, const std::string &rendezvous = "") {
  return launchInfo(environment, rendezvous).status().message();
}

TEST(LaunchInfo, NoLauncher) {
  Result<std::optional<LaunchInfo>> info = launchInfo({{"HOME", "/root"}, {"RANK", ""}});
  ASSERT_TRUE(info.ok());
  EXPECT_FALSE(info->has_value());
}

TEST(LaunchInfo, NumbersOfEveryLauncher) {
  const std::string meet = "tcp://node1:1";
  for (const auto &[launcher, environment] :
       std::vector<std::pair<Launcher, Environment>>{{Launcher::braid, ownLauncher()},
                                                     {Launcher::torchrun, torchrun()},
                                                     {Launcher::openMpi, openMpi()},
                                                     {Launcher::pmi, hydra()},
                                                     {Launcher::slurm, slurm()}}) {
    SCOPED_TRACE(name(launcher));
    const LaunchInfo info = infoOf(environment, meet);
    EXPECT_EQ(info.launcher, launcher);
    EXPECT_EQ(info.rank, 3);
    EXPECT_EQ(info.size, 4);
    EXPECT_EQ(info.localRank, 1);
    if (launcher == Launcher::slurm)
      EXPECT_EQ(info.localSize, std::nullopt);
    else
      EXPECT_EQ(info.localSize, 2);
    EXPECT_EQ(info.rendezvous->text(), meet);
    EXPECT_EQ(info.describe(), std::string("rank 3 of 4, started by ") + name(launcher));
  }
}

TEST(LaunchInfo, NumbersOnTheHostMayBeMissing) {
  const LaunchInfo info =
      infoOf({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}});
  EXPECT_EQ(info.localRank, std::nullopt);
  EXPECT_EQ(info.localSize, std::nullopt);
}

TEST(LaunchInfo, TorchrunsAgentKeepsItsPort) {
  EXPECT_EQ(infoOf(torchrun()).rendezvous->text(), "tcp://node1:29501");
  EXPECT_EQ(infoOf(with(torchrun(), {{"BRAID_PORT", "7000"}})).rendezvous->text(),
            "tcp://node1:7000");
  EXPECT_EQ(
      infoOf(with(torchrun(), {{"BRAID_PORT", "7000"}, {"MASTER_PORT", ""}})).rendezvous->port,
      7000);
  EXPECT_THAT(errorOf(with(torchrun(), {{"MASTER_PORT", "65535"}})),
              HasSubstr("MASTER_PORT=65535 has no port after it: set BRAID_PORT"));
  EXPECT_EQ(infoOf(torchrun()).jobId, "none");
}

TEST(LaunchInfo, AddressesWithColons) {
  for (const char *address : {"fd77::1", "[fd77::1]"})
    EXPECT_EQ(infoOf(with(torchrun(), {{"MASTER_ADDR", address}})).rendezvous->text(),
              "tcp://[fd77::1]:29501");
}

TEST(LaunchInfo, SlurmsFirstHost) {
  const LaunchInfo info = infoOf(slurm());
  EXPECT_EQ(info.rendezvous->host, "gnode10");
  EXPECT_GE(info.rendezvous->port, 61440);
  EXPECT_EQ(info.jobId, "200505.0");
  // All ranks compute the same port; other steps and jobs mostly others.
  EXPECT_EQ(infoOf(with(slurm(), {{"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}})).rendezvous,
            info.rendezvous);
  EXPECT_NE(infoOf(with(slurm(), {{"SLURM_STEP_ID", "1"}})).rendezvous, info.rendezvous);
  EXPECT_NE(infoOf(with(slurm(), {{"SLURM_JOB_ID", "200506"}})).rendezvous, info.rendezvous);
  EXPECT_EQ(infoOf(with(slurm(), {{"BRAID_PORT", "7000"}})).rendezvous->text(),
            "tcp://gnode10:7000");
}

TEST(LaunchInfo, StepHasItsOwnNumberOfTasks) {
  EXPECT_EQ(infoOf(with(slurm(), {{"SLURM_NTASKS", "16"}})).size, 4);
  EXPECT_EQ(infoOf(with(slurm(), {{"SLURM_STEP_NUM_TASKS", ""}})).size, 4);
}

/// They have a task's variables, but were not started as one of several ranks.
TEST(LaunchInfo, BatchScriptsAndShellsOfSlurm) {
  for (const Environment &changes :
       {Environment{{"SLURM_STEP_NODELIST", ""}, {"SLURM_STEP_ID", ""}, {"SLURM_PROCID", "0"}},
        Environment{{"SLURM_STEP_ID", "4294967290"}}, Environment{{"SLURM_STEP_ID", "4294967291"}},
        Environment{{"SLURM_PROCID", ""}}}) {
    Result<std::optional<LaunchInfo>> info = launchInfo(with(slurm(), changes));
    ASSERT_TRUE(info.ok()) << info.status().message();
    EXPECT_FALSE(info->has_value());
  }
}

TEST(LaunchInfo, OpenMpiOnOneHost) {
  const LaunchInfo info = infoOf(with(openMpi(), {{"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}));
  EXPECT_EQ(info.rendezvous->host, "127.0.0.1");
  EXPECT_GE(info.rendezvous->port, 61440);
  EXPECT_EQ(info.jobId, "1769799681");
  EXPECT_EQ(infoOf(with(openMpi(), {{"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}, {"PMIX_NAMESPACE", ""}}))
                .rendezvous,
            info.rendezvous);
}

TEST(LaunchInfo, OpenMpiOverHostsNeedsAPlace) {
  EXPECT_THAT(errorOf(openMpi()), HasSubstr("rank 3 of 4, started by Open MPI: Open MPI does not "
                                            "say where rank 0 is: give --rendezvous"));
  const LaunchInfo info = infoOf(with(openMpi(), {{"MASTER_ADDR", "node1"}}));
  EXPECT_EQ(info.rendezvous->host, "node1");
  EXPECT_GE(info.rendezvous->port, 61440);
  EXPECT_EQ(
      infoOf(with(openMpi(), {{"MASTER_ADDR", "node1"}, {"MASTER_PORT", "5"}})).rendezvous->text(),
      "tcp://node1:6");
}

TEST(LaunchInfo, HydraNeedsAPort) {
  EXPECT_THAT(errorOf(with(hydra(), {{"MPI_LOCALNRANKS", "4"}})),
              HasSubstr("PMI does not say which port rank 0 listens on: set BRAID_PORT"));
  EXPECT_EQ(
      infoOf(with(hydra(), {{"MPI_LOCALNRANKS", "4"}, {"BRAID_PORT", "7000"}})).rendezvous->text(),
      "tcp://127.0.0.1:7000");
  EXPECT_THAT(errorOf(hydra()), HasSubstr("PMI does not say where rank 0 is"));
}

/// srun --mpi=pmi2 gives the same ranks twice, so Slurm knows where rank 0 is; Hydra's proxies on
/// Slurm's hosts are tasks with other numbers.
TEST(LaunchInfo, PmiUnderSlurm) {
  const Environment both = with(hydra(), slurm());
  EXPECT_EQ(infoOf(both).launcher, Launcher::pmi);
  EXPECT_EQ(infoOf(both).rendezvous, infoOf(slurm()).rendezvous);
  EXPECT_THAT(errorOf(with(both, {{"SLURM_PROCID", "1"}})),
              HasSubstr("PMI does not say where rank 0 is"));
  EXPECT_THAT(errorOf(with(both, {{"SLURM_STEP_NUM_TASKS", "2"}})),
              HasSubstr("PMI does not say where rank 0 is"));
}

TEST(LaunchInfo, InnerLaunchersComeFirst) {
  Environment environment = with(slurm(), hydra());
  EXPECT_EQ(infoOf(environment, "tcp://a:1").launcher, Launcher::pmi);
  environment = with(environment, openMpi());
  EXPECT_EQ(infoOf(environment, "tcp://a:1").launcher, Launcher::openMpi);
  environment = with(environment, torchrun());
  EXPECT_EQ(infoOf(environment, "tcp://a:1").launcher, Launcher::torchrun);
  environment = with(environment, {{"BRAID_RANK", "0"}, {"BRAID_SIZE", "1"}});
  EXPECT_EQ(infoOf(environment).launcher, Launcher::braid);
  EXPECT_EQ(infoOf(environment).size, 1);
}

TEST(LaunchInfo, PlacesInTheirOrder) {
  const Environment all = with(torchrun(), {{"BRAID_RENDEZVOUS", "file:/shared/meet"}});
  EXPECT_EQ(infoOf(all, "tcp://[::1]:9").rendezvous->text(), "tcp://[::1]:9");
  EXPECT_EQ(infoOf(all).rendezvous->text(), "file:/shared/meet");
  EXPECT_EQ(infoOf(with(slurm(), {{"MASTER_ADDR", "a"}})).rendezvous->host, "a");
}

TEST(LaunchInfo, OneRankMeetsNobody) {
  EXPECT_EQ(infoOf({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).rendezvous, std::nullopt);
  EXPECT_EQ(infoOf({{"RANK", "0"}, {"WORLD_SIZE", "1"}}, "tcp://a:1").rendezvous->host, "a");
  EXPECT_THAT(errorOf({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"BRAID_RENDEZVOUS", "a"}}),
              HasSubstr("variable BRAID_RENDEZVOUS: expects a rendezvous as"));
}

TEST(LaunchInfo, OwnLauncher) {
  const LaunchInfo info = infoOf(ownLauncher());
  EXPECT_EQ(info.rendezvous->text(), "tcp://node1:4711");
  EXPECT_EQ(info.jobId, "8c1f");
  EXPECT_EQ(info.secret, "5ecre7");
  EXPECT_THAT(errorOf(with(ownLauncher(), {{"BRAID_RENDEZVOUS", ""}})),
              HasSubstr("Braid does not say where rank 0 is"));
}

TEST(LaunchInfo, ASecretInAFile) {
  const LaunchInfo info = infoOf(
      with(ownLauncher(), {{"BRAID_JOB_SECRET", ""}, {"BRAID_JOB_SECRET_FILE", "/run/secret"}}));
  EXPECT_EQ(info.secret, "");
  EXPECT_EQ(info.secretFile, "/run/secret");
  EXPECT_THAT(errorOf(with(ownLauncher(), {{"BRAID_JOB_SECRET_FILE", "/run/secret"}})),
              HasSubstr("variables BRAID_JOB_SECRET and BRAID_JOB_SECRET_FILE are both set"));
}

TEST(LaunchInfo, HalfOfTheVariables) {
  const std::vector<std::pair<const char *, const char *>> pairs{
      {"BRAID_RANK", "BRAID_SIZE"},
      {"RANK", "WORLD_SIZE"},
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
      {"PMI_RANK", "PMI_SIZE"}};
  for (const auto &[rank, size] : pairs) {
    EXPECT_THAT(errorOf({{rank, "0"}}),
                HasSubstr(std::string("variable ") + rank + " is set without " + size));
    EXPECT_THAT(errorOf({{size, "1"}}),
                HasSubstr(std::string("variable ") + size + " is set without " + rank));
  }
  EXPECT_THAT(errorOf(with(slurm(), {{"SLURM_NTASKS", ""}, {"SLURM_STEP_NUM_TASKS", ""}})),
              HasSubstr("variable SLURM_PROCID is set without SLURM_NTASKS"));
  EXPECT_THAT(errorOf({{"PMIX_RANK", "0"}}), HasSubstr("set BRAID_RANK and BRAID_SIZE"));
}

TEST(LaunchInfo, EveryNumberMustBeOne) {
  const std::vector<std::pair<Environment, std::vector<const char *>>> launchers{
      {ownLauncher(), {"BRAID_RANK", "BRAID_SIZE", "BRAID_LOCAL_RANK", "BRAID_LOCAL_SIZE"}},
      {torchrun(), {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_PORT"}},
      {openMpi(),
       {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_RANK"}},
      {hydra(), {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"}},
      {slurm(), {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "BRAID_PORT"}}};
  for (const auto &[environment, variables] : launchers)
    for (const char *variable : variables)
      for (const char *value : {"x", "-1", "+1", " 1", "1 ", "1.5", "0x1", "99999999999999999999",
                                "999999999999", "1e3"})
        EXPECT_THAT(errorOf(with(environment, {{variable, value}})),
                    HasSubstr(std::string("variable ") + variable + " expects a whole number from"))
            << variable << "=" << value;
  for (const char *size : {"WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_PORT"})
    EXPECT_THAT(errorOf(with(torchrun(), {{size, "0"}})), HasSubstr("whole number from 1 to"));
  EXPECT_THAT(errorOf(with(torchrun(), {{"BRAID_PORT", "65536"}})),
              HasSubstr("variable BRAID_PORT expects a whole number from 1 to 65535, got '65536'"));
}

TEST(LaunchInfo, Contradictions) {
  auto contradicts = [](const Environment &environment, const std::string &first,
                        const std::string &second) {
    EXPECT_THAT(errorOf(environment),
                HasSubstr("variables " + first + " and " + second + " contradict each other"));
  };
  contradicts(with(torchrun(), {{"RANK", "4"}}), "RANK=4", "WORLD_SIZE=4");
  contradicts(with(torchrun(), {{"LOCAL_RANK", "2"}}), "LOCAL_RANK=2", "LOCAL_WORLD_SIZE=2");
  contradicts(with(torchrun(), {{"LOCAL_WORLD_SIZE", "5"}}), "LOCAL_WORLD_SIZE=5", "WORLD_SIZE=4");
  contradicts(with(torchrun(), {{"RANK", "0"}}), "LOCAL_RANK=1", "RANK=0");
  contradicts(with(slurm(), {{"SLURM_PROCID", "4"}}), "SLURM_PROCID=4", "SLURM_STEP_NUM_TASKS=4");
  contradicts(with(openMpi(), {{"PMIX_RANK", "2"}}), "PMIX_RANK=2", "OMPI_COMM_WORLD_RANK=3");
  contradicts(with(slurm(), {{"PMIX_RANK", "2"}}), "PMIX_RANK=2", "SLURM_PROCID=3");
}

TEST(LaunchInfo, BadPlaces) {
  EXPECT_THAT(errorOf(with(torchrun(), {{"MASTER_ADDR", "-oProxyCommand=x"}})),
              HasSubstr("variable MASTER_ADDR expects a host's name or address"));
  EXPECT_THAT(errorOf(with(slurm(), {{"SLURM_STEP_NODELIST", "a[1-"}})),
              HasSubstr("variable SLURM_STEP_NODELIST: node list 'a[1-'"));
  EXPECT_THAT(errorOf(torchrun(), "nowhere"), HasSubstr("expects a rendezvous as"));
  EXPECT_THAT(errorOf({}, "nowhere"), HasSubstr("expects a rendezvous as"));
  EXPECT_THAT(errorOf({}, "tcp://a:1"), HasSubstr("nothing says which rank this process is"));
}

TEST(LaunchInfo, VariablesOfThisProcess) {
  ASSERT_EQ(setenv("BRAID_TEST_VARIABLE", "a=b", 1), 0);
  EXPECT_EQ(processEnvironment()["BRAID_TEST_VARIABLE"], "a=b");
  ASSERT_EQ(unsetenv("BRAID_TEST_VARIABLE"), 0);
}

} // namespace
