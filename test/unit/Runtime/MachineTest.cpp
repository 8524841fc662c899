//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Machine files: what is written can be read, and everything wrong is refused by its place.
//
//===----------------------------------------------------------------------===//
#include "SampleMachine.h"
#include "Testing.h"
#include "braid/Runtime/Files.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <cstdlib>

using namespace braid::cost;
using namespace braid::cost::testing;
using braid::runtime::Status;
using Json = nlohmann::ordered_json;

namespace {

/// The sample with a change.
Status after(const std::function<void(Json &)> &change) {
  Json json = Json::parse(machineToJson(sampleMachine()));
  change(json);
  return machineFromJson(json.dump()).status();
}

Status published(const std::function<void(Json &)> &change) {
  Json json = Json::parse(machineToJson(*openMachine("h100")));
  change(json);
  return machineFromJson(json.dump()).status();
}

} // namespace

TEST(MachineFile, IsTheSameAfterItWasWrittenAndRead) {
  const std::string text = machineToJson(sampleMachine());
  braid::runtime::Result<Machine> machine = machineFromJson(text);
  ASSERT_OK(machine.status());
  EXPECT_EQ(machineToJson(*machine), text);
  EXPECT_EQ(machine->measurement->missing.at("ucx"), "not measured yet");
  EXPECT_EQ(machine->measurement->endOverBegin, 1.03);
  EXPECT_FALSE(machine->transports[0].coreToCoreSeconds);
  EXPECT_EQ(machine->transports[1].coreToCoreSeconds, 3e-8);
  EXPECT_EQ(machine->compute[1].matmul.size(), 8u);
}

TEST(MachineFile, ReadsVersionsWithoutTablesOfCollectives) {
  Machine machine = sampleMachine();
  machine.formatVersion = 1;
  for (Transport &transport : machine.transports) {
    transport.collectives.clear();
    transport.cold.clear();
  }
  for (Link &link : machine.links)
    link.cold.clear();
  const std::string text = machineToJson(machine);
  EXPECT_EQ(text.find("\"cold\""), std::string::npos);
  braid::runtime::Result<Machine> read = machineFromJson(text);
  ASSERT_OK(read.status());
  EXPECT_EQ(machineToJson(*read), text);
}

// Files of versions that had no table of them tell of the shortest exchange.
TEST(MachineFile, ReadsExchangesOfVersion2) {
  Json json = Json::parse(machineToJson(sampleMachine()));
  json["format_version"] = 2;
  json["links"][0].erase("exchanges");
  braid::runtime::Result<Machine> without = machineFromJson(json.dump());
  ASSERT_OK(without.status());
  EXPECT_TRUE(without->links[0].exchanges.empty());
  json["links"][0]["exchange_seconds"] = 7e-5;
  braid::runtime::Result<Machine> with = machineFromJson(json.dump());
  ASSERT_OK(with.status());
  ASSERT_EQ(with->links[0].exchanges.size(), 1u);
  EXPECT_EQ(with->links[0].exchanges[0].bytes, 8);
  EXPECT_EQ(with->links[0].exchanges[0].seconds, 7e-5);
  json["links"][0]["exchange_seconds"] = "slow";
  EXPECT_ERROR(machineFromJson(json.dump()).status(),
               "field 'links[0].exchanges[0].seconds' expects a number, got string");
  json["links"][0]["exchange_seconds"] = 70; // microseconds
  EXPECT_ERROR(machineFromJson(json.dump()).status(),
               "field 'links[0].exchanges[0].seconds' expects 0 to 10 seconds, got 70");
  json["links"][0]["exchanges"] = 3; // which such files do not have
  EXPECT_ERROR(machineFromJson(json.dump()).status(),
               "field 'links[0].exchanges' expects an array, got 3");
  json["links"] = {3};
  EXPECT_ERROR(machineFromJson(json.dump()).status(), "field 'links[0]' expects an object, got 3");
  json["links"] = 3;
  EXPECT_ERROR(machineFromJson(json.dump()).status(), "field 'links' expects an array, got 3");
}

TEST(MachineFile, RefusesWhatIsNoMachine) {
  EXPECT_ERROR(machineFromJson("").status(),
               "parse error at line 1, column 1: syntax error while parsing value - unexpected end "
               "of input; expected '[', '{', or a literal");
  EXPECT_ERROR(machineFromJson("[]").status(), "expects an object, got array");
  EXPECT_ERROR(machineFromJson("{}").status(), "field 'format_version' is missing");
  EXPECT_ERROR(after([](Json &j) { j["format_version"] = 4; }),
               "expects format version 1 to 3, got 4");
  EXPECT_ERROR(after([](Json &j) { j["transports"][1]["collectives"][0]["kind"] = "sum"; }),
               "field 'transports[1].collectives[0].kind' expects a collective, got 'sum'");
  EXPECT_ERROR(after([](Json &j) { j["transports"][1]["collectives"][1]["bytes"] = 1000; }),
               "field 'transports[1].collectives[1]' expects ascending bytes of 'all_reduce', got "
               "1000 behind 1000");
  // As where copies begin to go around the caches, which is at one size.
  EXPECT_OK(after([](Json &j) { j["transports"][1]["collectives"][1]["seconds"] = 1e-6; }));
  EXPECT_ERROR(after([](Json &j) {
                 j["transports"][1]["collectives"][1]["seconds"] = 1e-6;
                 j["transports"][1]["collectives"][2] = {
                     {"kind", "all_reduce"}, {"bytes", 201000}, {"seconds", 1e-7}};
               }),
               "field 'transports[1].collectives[2]' takes less time than fewer bytes do, as do "
               "101000 bytes: expects at most one such size of 'all_reduce'");
  EXPECT_ERROR(after([](Json &j) { j["transports"][1]["cold"][1]["seconds"] = 1e-7; }),
               "field 'transports[1].cold[1]' expects no less time than fewer bytes take");
  EXPECT_ERROR(after([](Json &j) { j["transports"][1]["cold"].erase(3); }),
               "field 'transports[1].cold' expects every combination of its between_bytes and "
               "bytes, 4 in all, got 3");
  EXPECT_ERROR(after([](Json &j) {
                 auto &cold = j["transports"][1]["cold"];
                 std::swap(cold[0], cold[3]);
               }),
               "field 'transports[1].cold[1]' expects ascending between_bytes, and bytes for each "
               "of them");
  EXPECT_ERROR(after([](Json &j) {
                 auto &cold = j["links"][0]["cold"];
                 std::swap(cold[0], cold[1]);
               }),
               "field 'links[0].cold[1]' expects ascending between_bytes, and bytes for each of "
               "them");
  EXPECT_ERROR(after([](Json &j) { j["links"][0]["exchanges"][1]["bytes"] = 8; }),
               "field 'links[0].exchanges' expects ascending bytes, got 8 behind 8");
  EXPECT_ERROR(after([](Json &j) { j["links"][0]["exchanges"][1]["seconds"] = 70; }),
               "field 'links[0].exchanges[1].seconds' expects 0 to 10 seconds, got 70");
  EXPECT_ERROR(after([](Json &j) { j["links"][0]["exchanges"][1]["seconds"] = 1e-6; }),
               "field 'links[0].exchanges[1]' expects no less time than fewer bytes take");
  EXPECT_ERROR(after([](Json &j) { j["links"][0]["exchange_seconds"] = 7e-5; }),
               "'links[0]': unknown field 'exchange_seconds'");
  EXPECT_ERROR(after([](Json &j) { j.erase("name"); }), "field 'name' is missing");
  EXPECT_ERROR(after([](Json &j) { j["color"] = "red"; }), "unknown field 'color'");
  EXPECT_ERROR(after([](Json &j) { j["compute"][0]["memory"][1]["speed"] = 3; }),
               "'compute[0].memory[1]': unknown field 'speed'");
  EXPECT_ERROR(after([](Json &j) { j["processor"]["cores"] = "two"; }),
               "field 'processor.cores' expects an integer, got string");
  EXPECT_ERROR(after([](Json &j) { j["compute"][0]["attention"][1]["causal"] = 1; }),
               "field 'compute[0].attention[1].causal' expects true or false, got 1");
  EXPECT_ERROR(after([](Json &j) { j["links"][0]["bytes_per_second"] = "fast"; }),
               "field 'links[0].bytes_per_second' expects a number, got string");
}

TEST(MachineFile, RefusesOtherUnits) {
  const std::pair<const char *, const char *> other[] = {
      {"bandwidth_gbps", "bytes_per_second"},
      {"bandwidth_gb_per_second", "bytes_per_second"},
      {"latency_us", "seconds"},
      {"latency_ms", "seconds"},
      {"latency_ns", "seconds"},
      {"latency_s", "seconds"},
      {"peak_tflops", "flops_per_second"},
      {"size_gib", "bytes"}};
  for (const auto &[field, unit] : other)
    EXPECT_ERROR(after([&, name = field](Json &j) { j["links"][0][name] = 1; }),
                 "field 'links[0]." + std::string(field) + "' expects a unit of machine files, '" +
                     unit + "', at the end of its name");
}

TEST(MachineFile, RefusesImplausibleNumbers) {
  EXPECT_ERROR(after([](Json &j) { j["links"][0]["bytes_per_second"] = 1e3; }),
               "field 'links[0].bytes_per_second' expects 100000 to 1e+14 bytes per second, got "
               "1000");
  EXPECT_ERROR(after([](Json &j) { j["links"][0]["latency_seconds"] = -1e-6; }),
               "field 'links[0].latency_seconds' expects 0 to 10 seconds, got -1e-06");
  EXPECT_ERROR(after([](Json &j) { j["links"][0]["latency_seconds"] = 50; }), // microseconds
               "field 'links[0].latency_seconds' expects 0 to 10 seconds, got 50");
  EXPECT_ERROR(after([](Json &j) { j["measurement"]["end_over_begin"] = 0; }),
               "field 'measurement.end_over_begin' expects 0.001 to 1000 times as long, got 0");
  EXPECT_ERROR(after([](Json &j) { j["transports"][1]["core_to_core_seconds"] = 35; }), // ns
               "field 'transports[1].core_to_core_seconds' expects 1e-10 to 0.01 seconds, got 35");
  EXPECT_ERROR(after([](Json &j) { j["overheads"]["command_seconds"] = -1; }),
               "field 'overheads.command_seconds' expects 0 to 0.01 seconds, got -1");
  EXPECT_ERROR(after([](Json &j) { j["compute"][1]["matmul"][2]["flops_per_second"] = 40; }),
               "field 'compute[1].matmul[2].flops_per_second' expects 100000 to 1e+17 FLOPs per "
               "second, got 40");
  EXPECT_ERROR(
      after([](Json &j) { j["compute"][0]["row_operations"][0]["elements_per_second"] = 0; }),
      "field 'compute[0].row_operations[0].elements_per_second' expects 10000 to 1e+14 "
      "elements per second, got 0");
  EXPECT_ERROR(after([](Json &j) { j["compute"][1]["row_overlap_efficiency"] = 1.5; }),
               "field 'compute[1].row_overlap_efficiency' expects 0.01 to 1 of what can be "
               "reached, got 1.5");
  EXPECT_ERROR(after([](Json &j) { j["processor"]["cores"] = 0; }),
               "field 'processor.cores' expects 1 to 1e9, got 0");
  EXPECT_ERROR(after([](Json &j) { j["interference"][0]["kind"] = "thought"; }),
               "field 'interference[0].kind' expects 'matmul' or 'memory', got 'thought'");
  EXPECT_ERROR(after([](Json &j) { j["interference"][1]["kind"] = "matmul"; }),
               "field 'interference' has 'matmul' beside 'threads' of 2 ranks twice");
  EXPECT_ERROR(after([](Json &j) { j["links"][0]["messages"][1]["bytes"] = 1024; }),
               "field 'links[0].messages' expects ascending bytes, got 1024 behind 1024");
  EXPECT_ERROR(after([](Json &j) { j["links"][0]["host_bytes_per_second"] = 1; }),
               "field 'links[0].host_bytes_per_second' expects 100000 to 1e+14 bytes per second, "
               "got 1");
  EXPECT_ERROR(after([](Json &j) { j["interference"][0]["compute_slowdown"] = 0.1; }),
               "field 'interference[0].compute_slowdown' expects 0.5 to 1000 times as long as "
               "alone, got 0.1");
  EXPECT_ERROR(published([](Json &j) { j["gpu"]["matmul_efficiency"] = 80; }),
               "field 'gpu.matmul_efficiency' expects 0.01 to 1 of what can be reached, got 80");
}

TEST(MachineFile, RefusesCodecsThatAreNone) {
  EXPECT_ERROR(after([](Json &j) { j["compute"][0]["codecs"][0]["encoding"] = "int9"; }),
               "field 'compute[0].codecs[0].encoding': encoding 'int9': expects integers of 2 to 8 "
               "bits, got 9");
  // Every encoding has one name.
  EXPECT_ERROR(after([](Json &j) { j["compute"][0]["codecs"][0]["encoding"] = "int8"; }),
               "field 'compute[0].codecs[0].encoding' expects 'int8:128', got 'int8'");
  EXPECT_ERROR(after([](Json &j) { j["compute"][0]["codecs"].erase(7); }),
               "field 'compute[0].codecs' expects every combination of its encodings and elements, "
               "10 in all, got 9");
  EXPECT_ERROR(after([](Json &j) { j["compute"][0]["codecs"][5] = j["compute"][0]["codecs"][0]; }),
               "field 'compute[0].codecs' has a combination of encodings and elements twice");
  EXPECT_ERROR(
      after([](Json &j) { j["compute"][1]["codecs"][2]["add_elements_per_second"] = 3; }),
      "field 'compute[1].codecs[2].add_elements_per_second' expects 10000 to 1e+14 elements per "
      "second, got 3");
  EXPECT_ERROR(after([](Json &j) { j["compute"][0]["codecs"][0]["elements"] = 0; }),
               "field 'compute[0].codecs[0].elements' expects 1 to 1e9, got 0");
  EXPECT_ERROR(after([](Json &j) { j["compute"][0]["codecs"][0]["encode_gbps"] = 1; }),
               "field 'compute[0].codecs[0].encode_gbps' expects a unit of machine files, "
               "'bytes_per_second', at the end of its name");
  // Files that were written before have none.
  EXPECT_OK(after([](Json &j) {
    for (Json &rates : j["compute"])
      rates.erase("codecs");
  }));
}

TEST(MachineFile, RefusesTablesThatCannotBeInterpolated) {
  EXPECT_ERROR(after([](Json &j) { j["compute"][0]["matmul"].erase(3); }),
               "field 'compute[0].matmul' expects every combination of its m, n and k, 8 in all, "
               "got 7");
  EXPECT_ERROR(after([](Json &j) { j["compute"][0]["matmul"][3] = j["compute"][0]["matmul"][2]; }),
               "field 'compute[0].matmul' has a combination of m, n and k twice");
  EXPECT_ERROR(after([](Json &j) {
                 j["compute"][0]["int8_matmul"] = j["compute"][0]["matmul"];
                 j["compute"][0]["int8_matmul"].erase(3);
               }),
               "field 'compute[0].int8_matmul' expects every combination of its m, n and k, 8 in "
               "all, got 7");
  EXPECT_ERROR(after([](Json &j) {
                 Json &reads = j["compute"][0]["weight_reads"] = Json::array();
                 for (const auto &[rows, bytes] : {std::pair(1, 10), {1, 20}, {16, 10}})
                   reads.push_back({{"rows", rows}, {"bytes", bytes}, {"bytes_per_second", 1e9}});
               }),
               "field 'compute[0].weight_reads' expects every combination of its rows and bytes, 4 "
               "in all, got 3");
  EXPECT_ERROR(after([](Json &j) { j["compute"][0]["attention"].erase(0); }),
               "field 'compute[0].attention' expects every combination of its rows, keys, head_dim "
               "and causal, 4 in all, got 3");
  EXPECT_ERROR(after([](Json &j) { j["compute"][0]["memory"][1]["bytes"] = 4096; }),
               "field 'compute[0].memory' expects ascending bytes, got 4096 behind 4096");
  EXPECT_ERROR(after([](Json &j) { j["compute"][1]["busy_cores"] = 1; }),
               "field 'compute' expects ascending busy_cores, got 1 behind 1");
  EXPECT_ERROR(after([](Json &j) { j["compute"][0]["row_operations"][1]["operation"] = "simple"; }),
               "field 'compute[0].row_operations' has 'simple' twice");
  EXPECT_ERROR(after([](Json &j) { j["transports"].push_back(j["transports"][0]); }),
               "field 'transports' has 'threads' of 2 ranks twice");
  EXPECT_ERROR(after([](Json &j) { j["transports"][0]["transfers"] = Json::array(); }),
               "field 'transports[0].transfers' expects at least one size, got none");
  EXPECT_ERROR(after([](Json &j) { j["transports"][0]["transfers"][1]["copy_seconds"] = 0; }),
               "field 'transports[0].transfers[1]' expects no less time than fewer bytes take");
}

TEST(MachineFile, EveryPublishedNumberHasASource) {
  EXPECT_ERROR(published([](Json &j) { j["source_of"].erase("gpu"); }),
               "field 'gpu.memory_bytes' has no source in 'source_of'");
  EXPECT_ERROR(published([](Json &j) { j["source_of"]["gpu"] = "hearsay"; }),
               "field 'source_of.gpu' expects a name in 'sources', got 'hearsay'");
  EXPECT_ERROR(published([](Json &j) { j["source_of"]["gpu.wings"] = "paper"; }),
               "field 'source_of.gpu.wings' is of no number");
  EXPECT_ERROR(after([](Json &j) { j["source_of"] = {{"links", "paper"}}; }),
               "field 'source_of' is for machines without 'measurement'");
}

TEST(MachineFile, KnownMachines) {
  EXPECT_THAT(knownMachines(), ::testing::UnorderedElementsAre("a100", "b200", "h100", "h200"));
  for (const std::string &name : knownMachines()) {
    braid::runtime::Result<Machine> machine = openMachine(name);
    ASSERT_OK(machine.status());
    ASSERT_TRUE(machine->gpu && machine->gpu->nvlink && machine->gpu->network) << name;
    EXPECT_FALSE(machine->measurement) << name;
  }
  // Numbers as the data sheets sum them up: both directions of all links.
  auto nvlink = [](const char *name) {
    const NvLink link = *openMachine(name)->gpu->nvlink;
    return 2 * static_cast<double>(link.links) * link.linkBytesPerSecond;
  };
  EXPECT_EQ(nvlink("a100"), 600e9);
  EXPECT_EQ(nvlink("h100"), 900e9);
  EXPECT_EQ(nvlink("h200"), 900e9);
  EXPECT_EQ(nvlink("b200"), 1800e9);
}

TEST(MachineFile, IsFoundByNameOrPath) {
  EXPECT_ERROR(openMachine("z9").status(),
               "no machine 'z9': expects a100, b200, h100, h200, or the path of a machine file, as "
               "`braid calibrate -o` writes it");
  const std::string path = ::testing::TempDir() + "/machine.json";
  const std::string text = "{\"format_version\": 7}";
  ASSERT_OK(braid::runtime::writeFile(path, {{text.data(), text.size()}}));
  EXPECT_ERROR(openMachine(path).status(),
               "machine file '" + path + "': expects format version 1 to 3, got 7");
  EXPECT_FALSE(openMachine(path + ".other").ok());
  ASSERT_EQ(setenv("BRAID_CACHE_DIR", "/some/where", 1), 0);
  EXPECT_EQ(defaultMachinePath(), "/some/where/machine.json");
  ASSERT_EQ(setenv("BRAID_CACHE_DIR", "", 1), 0);
  EXPECT_EQ(defaultMachinePath(), "");
}

TEST(MachineFile, SaysOnWhichMachineItWasMeasured) {
  const Machine machine = sampleMachine();
  EXPECT_EQ(differenceFrom(machine, *machine.processor), "");
  EXPECT_EQ(differenceFrom(machine, Processor{"Other", 1, "avx512", {}}),
            "'sample' was measured on 'Sample Processor' with 2 cores and avx2, this is 'Other' "
            "with 1 core and avx512");
  EXPECT_EQ(differenceFrom(*openMachine("h100"), Processor{"Other", 1, "avx512", {}}), "");
}
