//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "NullDevice.h"

using namespace braid::null;

extern "C" {

CUresult cuStreamBeginCapture_v2(CUstream stream, int) {
  Guard guard(world().mutex);
  auto *origin = reinterpret_cast<Stream *>(stream);
  if (!world().streams.count(origin) || origin->capture)
    return result("a capture begins on a stream that is being captured or does not exist");
  auto *graph = new Graph;
  graph->lanes.push_back(world().newLane(origin->lane.name, origin->device));
  graph->order.emplace_back();
  graph->streams.push_back(origin);
  origin->capture = graph;
  origin->captureLane = 0;
  world().graphs.insert(graph);
  return kSuccess;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *result) {
  Guard guard(world().mutex);
  auto *origin = reinterpret_cast<Stream *>(stream);
  if (!world().streams.count(origin) || !origin->capture || origin->captureLane != 0)
    return braid::null::result("a capture ends on a stream that it did not begin on");
  Graph *graph = origin->capture;
  graph->capturing = false;
  std::string unjoined;
  for (size_t lane = 0; lane < graph->lanes.size(); ++lane)
    if (graph->order[0].at(lane) < graph->order[lane].at(lane))
      unjoined = graph->lanes[lane].name + " has not come back to the one that a capture began on";
  for (Stream *member : graph->streams)
    if (world().streams.count(member))
      member->capture = nullptr;
  *result = reinterpret_cast<CUgraph>(graph);
  return braid::null::result(unjoined);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long) {
  Guard guard(world().mutex);
  auto *captured = reinterpret_cast<Graph *>(graph);
  if (!world().graphs.count(captured) || captured->capturing)
    return result("a graph is made executable that does not exist or is being captured");
  auto *copy = new Graph(*captured);
  world().executables.insert(copy);
  *exec = reinterpret_cast<CUgraphExec>(copy);
  return kSuccess;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  Guard guard(world().mutex);
  auto *graph = reinterpret_cast<Graph *>(exec);
  if (!world().executables.count(graph))
    return result("a graph is launched that does not exist");
  return result(submit(reinterpret_cast<Stream *>(stream),
                       [graph](const std::vector<Lane *> &lanes) -> std::string {
                         Lane &outer = *lanes.front();
                         for (Lane &lane : graph->lanes) {
                           lane.clock.join(outer.clock);
                           lane.stuck = outer.stuck;
                         }
                         for (const Graph::Node &node : graph->nodes) {
                           std::vector<Lane *> own;
                           bool stuck = false;
                           for (size_t number : node.lanes) {
                             own.push_back(&graph->lanes[number]);
                             stuck |= own.back()->stuck;
                           }
                           if (std::string error = node.action(own); !stuck && !error.empty()) {
                             for (const Lane &lane : graph->lanes)
                               outer.clock.join(lane.clock);
                             return error;
                           }
                         }
                         outer.clock.join(graph->lanes[0].clock);
                         outer.stuck |= graph->lanes[0].stuck;
                         return {};
                       }));
}

CUresult cuGraphDestroy(CUgraph graph) {
  Guard guard(world().mutex);
  auto *captured = reinterpret_cast<Graph *>(graph);
  if (!world().graphs.erase(captured))
    return result("a graph is destroyed that does not exist");
  delete captured;
  return kSuccess;
}
CUresult cuGraphExecDestroy(CUgraphExec exec) {
  Guard guard(world().mutex);
  auto *graph = reinterpret_cast<Graph *>(exec);
  if (!world().executables.erase(graph))
    return result("an executable graph is destroyed that does not exist");
  delete graph;
  return kSuccess;
}

} // extern "C"
