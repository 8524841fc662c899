//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Which rank this process is, of how many, and where rank 0 is, as the launcher that started the
// process says it in environment variables. Pure functions of a map of variables.
//
// A launcher that another one started is the one that counts, so the order is from the innermost
// to the outermost:
//
//   1. Braid's own        BRAID_RANK, BRAID_SIZE, BRAID_LOCAL_RANK, BRAID_LOCAL_SIZE
//   2. torchrun           RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE
//   3. Open MPI           OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE
//   4. PMI-1 (Hydra)      PMI_RANK, PMI_SIZE, MPI_LOCALRANKID, MPI_LOCALNRANKS
//   5. Slurm              SLURM_PROCID, SLURM_STEP_NUM_TASKS or SLURM_NTASKS, SLURM_LOCALID; only
//                         in a task of a step, which has SLURM_STEP_NODELIST
//
// PMIX_RANK comes without a number of ranks. It is compared with the rank of 3 or 5, and alone it
// is an error that says what is missing.
//
// Where ranks meet is taken from the first of these that exists:
//
//   1. the caller's text (--rendezvous)
//   2. BRAID_RENDEZVOUS
//   3. MASTER_ADDR, with BRAID_PORT or the port after MASTER_PORT, since torchrun's agent or
//      PyTorch's own rank 0 listens on MASTER_PORT
//   4. the launcher: the first host of SLURM_STEP_NODELIST; or this host when all ranks are on it
//
// A port that none of them states is a hash of the job's id, above the ports that a system gives
// to clients, so that all ranks find the same one and jobs rarely share one.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_RUNTIME_LAUNCH_H
#define BRAID_RUNTIME_LAUNCH_H

#include "braid/Base/Status.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace braid::runtime {

using Environment = std::map<std::string, std::string>;

/// The most ranks of a launch, and the most hosts of a list.
inline constexpr int64_t kMaxLaunchedRanks = int64_t(1) << 16;

/// Where ranks meet: rank 0 listens at an address, or writes its address to a file that all see.
struct Rendezvous {
  std::string host;  ///< a name or an address, without brackets; empty for a file
  uint16_t port = 0; ///< never 0 for a host
  std::string file;  ///< empty for a host

  /// As parseRendezvous reads it.
  std::string text() const;
  bool operator==(const Rendezvous &other) const {
    return host == other.host && port == other.port && file == other.file;
  }
  bool operator!=(const Rendezvous &other) const { return !(*this == other); }
};

/// Reads "tcp://HOST:PORT", "tcp://[ADDRESS]:PORT" or "file:PATH".
Result<Rendezvous> parseRendezvous(const std::string &text);

enum class Launcher { braid, torchrun, openMpi, pmi, slurm };
/// "torchrun", for messages.
const char *name(Launcher launcher);

struct LaunchInfo {
  Launcher launcher = Launcher::braid;
  int64_t rank = 0, size = 1;
  /// Among the ranks that the launcher started on this host; not every launcher says it.
  std::optional<int64_t> localRank, localSize;
  /// The launcher's name of the job; empty if it has none. Ranks of a job have the same.
  std::string jobId;
  /// Always there if there are several ranks.
  std::optional<Rendezvous> rendezvous;
  /// What ranks authenticate each other with (BRAID_JOB_SECRET), or the path of the file that has
  /// it (BRAID_JOB_SECRET_FILE); both empty if there is none.
  std::string secret, secretFile;

  /// "rank 3 of 8, started by torchrun"
  std::string describe() const;
};

/// Nothing if no launcher started this process. `rendezvous` is the caller's text of where ranks
/// meet; empty if there is none.
Result<std::optional<LaunchInfo>> launchInfo(const Environment &environment,
                                             const std::string &rendezvous = "");

/// The variables of this process.
Environment processEnvironment();

/// The hosts of a list as Slurm writes it: "a,gpu[01-03,7],r[1-2]n[1-2]-ib". Each is a name that
/// isHostName accepts.
Result<std::vector<std::string>> expandNodeList(const std::string &list);

/// Whether the text may be a host's name or address: letters, digits, and ".", "-", "_", ":", "%"
/// after the first character. An agent's command line must not take it for an option.
bool isHostName(const std::string &text);

/// A host and how many ranks it gets.
struct HostRanks {
  std::string host; ///< may begin with "user@"
  int64_t ranks = 1;
};

/// Reads "a,b:2,user@c,[::1]:4": hosts in the order of their ranks.
Result<std::vector<HostRanks>> parseHosts(const std::string &text);

} // namespace braid::runtime
#endif // BRAID_RUNTIME_LAUNCH_H
