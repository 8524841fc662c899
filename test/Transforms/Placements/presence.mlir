// RUN: braid-opt %s --braid-check-placements --split-input-file --verify-diagnostics

// Calls on some ranks, and what reads their results.

// Stages talk by send and recv; collectives over other axes work as everywhere.
comm.mesh @mesh <pp = 2, tp = 2>
func.func private @first(%x: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nn.add %x, %w : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  comm.send(%0) pairs [0 -> 1] over <@mesh, {pp}> : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @last(%w: tensor<2xf32>) -> tensor<4xf32> {
  %0 = comm.recv pairs [0 -> 1] over <@mesh, {pp}> : tensor<4xf32>
  %1 = comm.all_gather(%w) dim 0 over <@mesh, {tp}> : tensor<2xf32> -> tensor<4xf32>
  %2 = nn.add %0, %1 : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
func.func @accepted(%x: tensor<4xf32> {nn.name = "x", comm.on = #comm.place<@mesh, {pp = [0]}>})
    -> (tensor<4xf32> {nn.name = "y", comm.on = #comm.place<@mesh, {pp = [1]}>},
        tensor<4xf32> {nn.name = "z", comm.on = #comm.place<@mesh, {pp = [0], tp = [1]}>}) attributes {nn.entry} {
  %w0 = nn.parameter "w0" on <@mesh, {pp = [0]}> : tensor<4xf32>
  %w1 = nn.parameter "w1" of tensor<4xf32> sharded <@mesh, [{tp}]> on <@mesh, {pp = [1]}> : tensor<2xf32>
  %a = func.call @first(%x, %w0) {comm.on = #comm.place<@mesh, {pp = [0]}>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %y = func.call @last(%w1) {comm.on = #comm.place<@mesh, {pp = [1]}>} : (tensor<2xf32>) -> tensor<4xf32>
  return %y, %a : tensor<4xf32>, tensor<4xf32>
}

// -----

comm.mesh @mesh <pp = 2>
func.func private @stage(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func @other_stage(%x: tensor<4xf32> {nn.name = "x"}) -> (tensor<4xf32> {nn.name = "y", comm.on = #comm.place<@mesh, {pp = [1]}>}) attributes {nn.entry} {
  // expected-note @+1 {{it is defined here}}
  %a = func.call @stage(%x) {comm.on = #comm.place<@mesh, {pp = [0]}>} : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error @+1 {{'func.call' op on {pp = [1]} reads result 0 of the call of 'stage', which only {pp = [0]} have}}
  %b = func.call @stage(%a) {comm.on = #comm.place<@mesh, {pp = [1]}>} : (tensor<4xf32>) -> tensor<4xf32>
  return %b : tensor<4xf32>
}

// -----

comm.mesh @mesh <pp = 2>
func.func @parameter(%x: tensor<4xf32> {nn.name = "x"}) -> (tensor<4xf32> {nn.name = "y"}) attributes {nn.entry} {
  // expected-note @+1 {{it is defined here}}
  %w = nn.parameter "w" on <@mesh, {pp = [1]}> : tensor<4xf32>
  // expected-error @+1 {{'nn.add' op on all ranks reads parameter 'w', which only {pp = [1]} have}}
  %y = nn.add %x, %w : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

comm.mesh @mesh <pp = 2>
func.func @argument(%x: tensor<4xf32> {nn.name = "x", comm.on = #comm.place<@mesh, {pp = [0]}>}) -> (tensor<4xf32> {nn.name = "y"}) attributes {nn.entry} {
  // expected-error @+1 {{'comm.all_reduce' op on all ranks reads argument 0, which only {pp = [0]} have}}
  %y = comm.all_reduce sum(%x) over <@mesh, {pp}> : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

comm.mesh @mesh <pp = 2>
func.func private @stage(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func @result(%x: tensor<4xf32> {nn.name = "x"}) -> (tensor<4xf32> {nn.name = "y"}) attributes {nn.entry} {
  // expected-note @+1 {{it is defined here}}
  %y = func.call @stage(%x) {comm.on = #comm.place<@mesh, {pp = [0]}>} : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error @+1 {{'func.return' op expects result 0 of 'result' on all ranks, got result 0 of the call of 'stage', which only {pp = [0]} have}}
  return %y : tensor<4xf32>
}

// -----

// A function gives what all ranks have that run it.
comm.mesh @mesh <pp = 2, tp = 2>
func.func private @inner(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func private @outer(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-note @+1 {{it is defined here}}
  %y = func.call @inner(%x) {comm.on = #comm.place<@mesh, {tp = [0]}>} : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error @+1 {{'func.return' op expects result 0 of 'outer' on {pp = [0]}, got result 0 of the call of 'inner', which only {pp = [0], tp = [0]} have}}
  return %y : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32> {nn.name = "x"}) -> (tensor<4xf32> {nn.name = "y", comm.on = #comm.place<@mesh, {pp = [0]}>}) attributes {nn.entry} {
  // expected-note @+1 {{'outer' is called here}}
  %y = func.call @outer(%x) {comm.on = #comm.place<@mesh, {pp = [0]}>} : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

comm.mesh @mesh <pp = 2>
func.func private @stage(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'comm.all_reduce' op expects all ranks along axis 'pp', got {pp = [0]}, which run 'stage'}}
  %y = comm.all_reduce sum(%x) over <@mesh, {pp}> : tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func @collective(%x: tensor<4xf32> {nn.name = "x"}) -> (tensor<4xf32> {nn.name = "y", comm.on = #comm.place<@mesh, {pp = [0]}>}) attributes {nn.entry} {
  // expected-note @+1 {{'stage' is called here}}
  %y = func.call @stage(%x) {comm.on = #comm.place<@mesh, {pp = [0]}>} : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// Groups of a sub-axis are complete on some of the axis's coordinates.
comm.mesh @mesh <pp = 4>
func.func private @stage(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = comm.all_gather(%x) dim 0 over <@mesh, {pp:(2)2}> : tensor<4xf32> -> tensor<8xf32>
  %z = comm.part %y dim 0 over <@mesh, {pp:(2)2}> : tensor<8xf32> -> tensor<4xf32>
  return %z : tensor<4xf32>
}
func.func private @halves(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'comm.all_gather' op expects all ranks along axis 'pp', got {pp = [0, 1]}, which run 'halves'}}
  %y = comm.all_gather(%x) dim 0 over <@mesh, {pp:(1)2}> : tensor<4xf32> -> tensor<8xf32>
  %z = comm.part %y dim 0 over <@mesh, {pp:(1)2}> : tensor<8xf32> -> tensor<4xf32>
  return %z : tensor<4xf32>
}
func.func @sub_axis(%x: tensor<4xf32> {nn.name = "x", comm.on = #comm.place<@mesh, {pp = [0, 1]}>}) -> (tensor<4xf32> {nn.name = "y", comm.on = #comm.place<@mesh, {pp = [0]}>}) attributes {nn.entry} {
  %y = func.call @stage(%x) {comm.on = #comm.place<@mesh, {pp = [0, 1]}>} : (tensor<4xf32>) -> tensor<4xf32>
  // expected-note @+1 {{'halves' is called here}}
  %z = func.call @halves(%x) {comm.on = #comm.place<@mesh, {pp = [0, 1]}>} : (tensor<4xf32>) -> tensor<4xf32>
  return %z : tensor<4xf32>
}

// -----

// A call on ranks of which none runs the caller.
comm.mesh @mesh <pp = 2>
func.func private @inner(%x: tensor<4xf32>) {
  return
}
func.func private @outer(%x: tensor<4xf32>) {
  // expected-error @+1 {{'func.call' op on {pp = [1]} is never run: only {pp = [0]} run 'outer'}}
  func.call @inner(%x) {comm.on = #comm.place<@mesh, {pp = [1]}>} : (tensor<4xf32>) -> ()
  return
}
func.func @never(%x: tensor<4xf32> {nn.name = "x"}) -> (tensor<4xf32> {nn.name = "y"}) attributes {nn.entry} {
  // expected-note @+1 {{'outer' is called here}}
  func.call @outer(%x) {comm.on = #comm.place<@mesh, {pp = [0]}>} : (tensor<4xf32>) -> ()
  return %x : tensor<4xf32>
}

// -----

// A state moves to another rank.
comm.mesh @mesh <pp = 2>
// expected-error @+1 {{'func.func' op expects the new value of state 'sum' on {pp = [0]}, where the state is, got {pp = [1]}}}
func.func @moves(%sum: tensor<4xf32> {nn.name = "sum", nn.state, comm.on = #comm.place<@mesh, {pp = [0]}>})
    -> (tensor<4xf32> {nn.name = "sum", comm.on = #comm.place<@mesh, {pp = [1]}>}) attributes {nn.entry} {
  %w = nn.parameter "w" on <@mesh, {pp = [1]}> : tensor<4xf32>
  return %w : tensor<4xf32>
}
