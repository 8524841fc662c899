//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef BRAID_SCHEDULE_PASSES_TD
#define BRAID_SCHEDULE_PASSES_TD

include "mlir/Pass/PassBase.td"

def StartCollectives : Pass<"braid-start-collectives", "::mlir::ModuleOp"> {
  let summary = "Turn every collective into a start and a wait, placed by a policy";
  let description = [{
    A policy (`braid/Schedule/Placement.h`) is given the commands of each block, with what they cost and which of them
    need which, and returns their order, the place of each start and wait, and the communication queue of each
    collective. The order is checked against the dependences before it is applied.

    The policy `eager` places a start right after the last of its operands, or after the command before it that
    communicates (a start, or a call of a function with one), and a wait right before the first use of a result. The
    order of these starts and of all other commands does not change. The executor runs the collectives on communication
    queue 0 in that order, and the computation between start and wait hides them.

    The all_gathers of parameters, as of weights that are stored cut, have an order of their own: where other commands
    communicate, they pass these and run on queue 1; their parameters move with them. They do not move up further than to the command that uses the ones
    before them, so that the whole weights of two layers are there at a time.

    Before:
    ```mlir
    %a = rt.launch @gelu rows 8 ins(%x : tensor<8x4xf32>) -> tensor<8x4xf32>
    %b = comm.all_reduce sum(%x) over <@mesh, {tp}> : tensor<8x4xf32>
    %c = rt.launch @gelu rows 8 ins(%a : tensor<8x4xf32>) -> tensor<8x4xf32>
    %d = rt.launch @add rows 8 ins(%b, %c : tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    ```
    After:
    ```mlir
    %h = comm.start (%x0 = %x) : tensor<8x4xf32> -> !comm.handle<tensor<8x4xf32>> {
      %r = comm.all_reduce sum(%x0) over <@mesh, {tp}> : tensor<8x4xf32>
      comm.yield %r : tensor<8x4xf32>
    }
    %a = rt.launch @gelu rows 8 ins(%x : tensor<8x4xf32>) -> tensor<8x4xf32>
    %c = rt.launch @gelu rows 8 ins(%a : tensor<8x4xf32>) -> tensor<8x4xf32>
    %b = comm.wait %h keeping %x : !comm.handle<tensor<8x4xf32>>, tensor<8x4xf32> -> tensor<8x4xf32>
    %d = rt.launch @add rows 8 ins(%b, %c : tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    ```
    A remark (category `communication`) for each collective gives the FLOPs and the bytes of memory of the commands between
    its start and its wait or, where there is nothing to compute, the command that gives its operand and the one that
    needs its result.

    In the pipeline the pass runs after kernels are formed, on launches; it also accepts the operations of level `comm`.
  }];
  let options = [
    Option<"policy", "policy", "std::string", /*default=*/"\"eager\"", "how starts, waits and queues are chosen: eager">,
  ];
  let statistics = [Statistic<"numStarted", "num-started", "Collectives turned into start and wait">];
  let dependentDialects = ["::braid::comm::CommDialect"];
}

#endif
