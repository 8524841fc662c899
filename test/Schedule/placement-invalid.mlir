// A policy whose placement is not one of the block's commands is refused before the module changes.
// DEFINE: %{fault} =
// DEFINE: %{place} = not braid-test-opt %s --test-place-collectives=policy=%{fault} 2>&1 | FileCheck %s --check-prefix
// REDEFINE: %{fault} = no-wait
// RUN: %{place} NO-WAIT
// NO-WAIT: error: 'func.func' op gets a placement in which command 1 (nn.activation) stands before command 0, whose result it needs
// REDEFINE: %{fault} = no-start
// RUN: %{place} NO-START
// NO-START: error: 'func.func' op gets a placement in which command 0 (comm.all_reduce) is waited for when it is not in flight
// REDEFINE: %{fault} = early-use
// RUN: %{place} EARLY
// EARLY: error: 'func.func' op gets a placement in which command 1 (nn.activation) stands before command 0, whose result it needs
// REDEFINE: %{fault} = twice
// RUN: %{place} RUN-COLLECTIVE
// RUN-COLLECTIVE: error: 'func.func' op gets a placement in which command 0 (comm.all_reduce) is run, but is a collective, which is started
// REDEFINE: %{fault} = order
// RUN: %{place} ORDER
// ORDER: error: 'func.func' op gets a placement in which command 2 (comm.all_reduce) stands before command 0, behind which it communicates
// REDEFINE: %{fault} = end
// RUN: %{place} TERMINATOR
// TERMINATOR: error: 'func.func' op gets a placement in which command 3 (func.return) stands before command 1, whose result it needs
// REDEFINE: %{fault} = queue
// RUN: %{place} QUEUE
// QUEUE: error: 'func.func' op gets a placement in which command 0 (comm.all_reduce) expects a communication queue below 8, got 8
// REDEFINE: %{fault} = beyond
// RUN: %{place} BEYOND
// BEYOND: error: 'func.func' op gets a placement in which command 1000 is not one of 4

comm.mesh @mesh <tp = 2>
func.func @main(%x: tensor<2x2xf32>, %y: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  %a = comm.all_reduce sum(%x) over <@mesh, {tp}> : tensor<2x2xf32>
  %g = nn.activation gelu %a : tensor<2x2xf32>
  %b = comm.all_reduce sum(%y) over <@mesh, {tp}> : tensor<2x2xf32>
  return %g, %b : tensor<2x2xf32>, tensor<2x2xf32>
}
