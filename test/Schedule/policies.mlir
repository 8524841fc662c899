// Policies decide the order of a block, given its commands. The two of this test are the tests' own.
// RUN: braid-test-opt %s --test-place-collectives=policy=blocking | FileCheck %s --check-prefix=BLOCKING
// RUN: braid-test-opt %s --test-place-collectives=policy=list | FileCheck %s --check-prefix=LIST
// RUN: braid-test-opt %s --test-place-collectives=policy=list --test-interpret | FileCheck %s --check-prefix=RESULT
// RUN: braid-test-opt %s --braid-start-collectives=policy=eager --test-interpret | FileCheck %s --check-prefix=RESULT
// RUN: not braid-test-opt %s --braid-start-collectives=policy=lazy 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: error: expects policy 'eager', got 'lazy'

comm.mesh @mesh <tp = 2>

// The list policy starts both sums before it computes anything, and runs the expensive matmul first.
// BLOCKING-LABEL: func.func @main
// BLOCKING: comm.start
// BLOCKING: comm.wait
// BLOCKING-NEXT: nn.activation relu
// BLOCKING-NEXT: nn.mul
// BLOCKING-NEXT: comm.start
// BLOCKING: comm.wait
// BLOCKING-NEXT: nn.linear
// BLOCKING-NEXT: nn.add
// BLOCKING-NEXT: return
// LIST-LABEL: func.func @main
// LIST-SAME: (%[[X:[a-z0-9]+]]: {{.*}}, %[[Y:[a-z0-9]+]]: {{.*}}, %[[W:[a-z0-9]+]]: {{.*}})
// LIST-NEXT: %[[H:.*]] = comm.start (%{{.*}} = %[[X]])
// LIST: %[[I:.*]] = comm.start (%{{.*}} = %[[Y]])
// LIST: %[[M:.*]] = nn.linear %[[X]], %[[W]]
// LIST-NEXT: %[[G:.*]] = nn.activation relu %[[X]]
// LIST-NEXT: %[[A:.*]] = comm.wait %[[H]] keeping %[[X]]
// LIST-NEXT: %[[P:.*]] = nn.mul %[[A]], %[[G]]
// LIST-NEXT: %[[B:.*]] = comm.wait %[[I]] keeping %[[Y]]
// LIST-NEXT: nn.add %[[B]], %[[M]]
// RESULT: result0 = f32[2, 2] [4, 6, 4, 6]
func.func @main(%x: tensor<2x2xf32> {test.input = dense<[[0.0, 0.0], [0.0, 0.0]]> : tensor<2x2xf32>},
                %y: tensor<2x2xf32> {test.input = dense<[[2.0, 3.0], [2.0, 3.0]]> : tensor<2x2xf32>},
                %w: tensor<2x2xf32> {test.input = dense<[[1.0, 0.0], [0.0, 1.0]]> : tensor<2x2xf32>})
    -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  %a = comm.all_reduce sum(%x) over <@mesh, {tp}> : tensor<2x2xf32>
  %g = nn.activation relu %x : tensor<2x2xf32>
  %p = nn.mul %a, %g : tensor<2x2xf32>, tensor<2x2xf32> -> tensor<2x2xf32>
  %b = comm.all_reduce sum(%y) over <@mesh, {tp}> : tensor<2x2xf32>
  %m = nn.linear %x, %w : tensor<2x2xf32>, tensor<2x2xf32> -> tensor<2x2xf32>
  %s = nn.add %b, %m : tensor<2x2xf32>, tensor<2x2xf32> -> tensor<2x2xf32>
  return %s, %p : tensor<2x2xf32>, tensor<2x2xf32>
}
