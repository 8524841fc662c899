// RUN: braid-opt %s --split-input-file --test-equivalence="pipeline=builtin.module(braid-form-kernels) tolerance=1e-7" | FileCheck %s

// A launch computes what the operations of its kernel do: over flattened rows, with a second result, and over the outermost
// rows only.
// CHECK: equivalent on 1 and 1 ranks: {{.*}}rt.launch
func.func @main(%x: tensor<2x3x8xf32>, %y: tensor<2x3x8xf32>, %p: tensor<3x8xf32>, %w: tensor<8xf32>, %b: tensor<8xf32>,
                %m: tensor<8x8xf32>) -> (tensor<2x3x8xf32>, tensor<2x3x8xf32>) {
  %0 = nn.add %x, %p : tensor<2x3x8xf32>, tensor<3x8xf32> -> tensor<2x3x8xf32>
  %1 = nn.linear %0, %m : tensor<2x3x8xf32>, tensor<8x8xf32> -> tensor<2x3x8xf32>
  %2 = nn.add %1, %y : tensor<2x3x8xf32>, tensor<2x3x8xf32> -> tensor<2x3x8xf32>
  %3 = nn.layer_norm %2, %w, %b epsilon 1.0e-5 : tensor<2x3x8xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<2x3x8xf32>
  return %2, %3 : tensor<2x3x8xf32>, tensor<2x3x8xf32>
}

// -----

// On all ranks, with collectives between the launches.
comm.mesh @mesh <tp = 2>
// CHECK: equivalent on 2 and 2 ranks: {{.*}}rt.launch
func.func @main(%x: tensor<4x8xf32>, %g: tensor<8xf32>) -> tensor<4x8xf32> {
  %0 = comm.all_reduce sum(%x) over <@mesh, {tp}> : tensor<4x8xf32>
  %1 = nn.add %0, %x : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  %2 = nn.rms_norm %1, %g epsilon 1.0e-5 : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}
