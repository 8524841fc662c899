// RUN: braid-opt %s --split-input-file --test-interpret -o /dev/null | FileCheck %s

// Two stages, each a function that its ranks run. A stage has its own weight, and a result is put together from the ranks that
// have it.
comm.mesh @mesh <pp = 2, tp = 2>
// CHECK: y = f32[4] [30, 60, 90, 120]
// CHECK: z = f32[4] [3, 6, 9, 12]
func.func private @first(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = nn.add %x, %x : tensor<2xf32>, tensor<2xf32> -> tensor<2xf32>
  %1 = nn.add %0, %x : tensor<2xf32>, tensor<2xf32> -> tensor<2xf32>
  comm.send(%1) pairs [0 -> 1] over <@mesh, {pp}> tag 7 : tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @last(%f: tensor<4xf32>) -> tensor<4xf32> {
  %0 = comm.recv pairs [0 -> 1] over <@mesh, {pp}> tag 7 : tensor<2xf32>
  %1 = comm.all_gather(%0) dim 0 over <@mesh, {tp}> : tensor<2xf32> -> tensor<4xf32>
  %2 = nn.mul %1, %f : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
func.func @main(
    %x: tensor<2xf32> {nn.name = "x", comm.on = #comm.place<@mesh, {pp = [0]}>, test.input = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>,
      comm.sharding = #comm.sharding<@mesh, [{tp}]>, comm.global_type = tensor<4xf32>},
    %f: tensor<4xf32> {nn.name = "f", comm.on = #comm.place<@mesh, {pp = [1]}>, test.input = dense<10.0> : tensor<4xf32>})
    -> (tensor<4xf32> {nn.name = "y", comm.on = #comm.place<@mesh, {pp = [1]}>},
        tensor<2xf32> {nn.name = "z", comm.on = #comm.place<@mesh, {pp = [0]}>,
          comm.sharding = #comm.sharding<@mesh, [{tp}]>, comm.global_type = tensor<4xf32>}) attributes {nn.entry} {
  %y = func.call @last(%f) {comm.on = #comm.place<@mesh, {pp = [1]}>} : (tensor<4xf32>) -> tensor<4xf32>
  %z = func.call @first(%x) {comm.on = #comm.place<@mesh, {pp = [0]}>} : (tensor<2xf32>) -> tensor<2xf32>
  return %y, %z : tensor<4xf32>, tensor<2xf32>
}
