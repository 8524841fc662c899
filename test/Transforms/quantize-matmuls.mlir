// DEFINE: %{matmuls} =
// DEFINE: %{quantize} = braid-opt %s --braid-quantize-matmuls=matmuls=%{matmuls}
// REDEFINE: %{matmuls} = "*=int8"
// RUN: %{quantize} | FileCheck %s
// RUN: %{quantize} --remark-format=emitRemark --remarks-filter=kernels -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// REMARK-DAG: nn.linear 'mlp.up': multiplies 8-bit integers, as '*' says
// REMARK-DAG: nn.linear 'given': its weight is argument 1 of @main, expects a parameter
// REMARK-DAG: nn.linear 'scaled': its weight is the result of nn.mul, expects a parameter
// REMARK-DAG: nn.linear 'half': it is of bf16, expects f32
// REMARK-DAG: nn.linear 'long': it sums 131072 products, expects at most 131071, whose sum is within 32 bits
// The last one counts.
// REDEFINE: %{matmuls} = "*=int8,mlp.*=none,lm_head=none"
// RUN: %{quantize} | FileCheck %s --check-prefix=SOME
// REDEFINE: %{matmuls} = "mlp.upp=int8"
// RUN: not %{quantize} 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: expects linear operations that 'mlp.upp' names, found none among 'mlp.gate', 'mlp.up', 'mlp.down', 'given', 'scaled', 'half', 'long', 'lm_head'
// REDEFINE: %{matmuls} = "mlp.upp=none"
// RUN: not %{quantize} 2>&1 | FileCheck %s --check-prefix=NONE
// REDEFINE: %{matmuls} = "given=int8"
// RUN: not %{quantize} 2>&1 | FileCheck %s --check-prefix=GIVEN
// GIVEN: error: 'nn.linear' op 'given' cannot be quantized: its weight is argument 1 of @main, expects a parameter
// REDEFINE: %{matmuls} = "hal*=int8"
// RUN: not %{quantize} 2>&1 | FileCheck %s --check-prefix=HALF
// HALF: error: expects a linear operation that 'hal*' names and that can be quantized, found none: 'half': it is of bf16, expects f32
// REDEFINE: %{matmuls} = "*=int4"
// RUN: not %{quantize} 2>&1 | FileCheck %s --check-prefix=TYPE
// TYPE: error: expects a list of PATTERN=int8 or PATTERN=none to quantize matmuls, such as '*=int8,lm_head=none', got '*=int4'
// REDEFINE: %{matmuls} = "int8"
// RUN: not %{quantize} 2>&1 | FileCheck %s --check-prefix=FORM
// FORM: error: expects a list of PATTERN=int8 or PATTERN=none to quantize matmuls, such as '*=int8,lm_head=none', got 'int8'
// REDEFINE: %{matmuls} = "mlp[=int8"
// RUN: not %{quantize} 2>&1 | FileCheck %s --check-prefix=GLOB
// GLOB: error: expects a list of PATTERN=int8 or PATTERN=none to quantize matmuls, such as '*=int8,lm_head=none', got 'mlp[=int8': invalid glob pattern

comm.mesh @mesh <tp = 2>

// A function passes the two parts on. Both linear operations take one quantized input, and the bias joins.
// CHECK-LABEL: func.func private @layer(
// CHECK-SAME: %[[X:.*]]: tensor<4x64xf32>, %[[B:.*]]: tensor<32xf32>, %[[GV:[^:]*]]: tensor<32x64xi8>, %[[GT:[^:]*]]: tensor<32xf32>, %[[UV:[^:]*]]: tensor<32x64xi8>, %[[UT:[^:]*]]: tensor<32xf32>, %[[DV:[^:]*]]: tensor<64x32xi8>, %[[DT:[^:]*]]: tensor<64xf32>)
// SOME-LABEL: func.func private @layer(
// SOME-NOT: nn.quantize
func.func private @layer(%x: tensor<4x64xf32>, %g: tensor<32x64xf32>, %b: tensor<32xf32>, %u: tensor<32x64xf32>, %d: tensor<64x32xf32>) -> tensor<4x64xf32> {
  // CHECK: %[[Q:.*]], %[[S:.*]] = nn.quantize_rows %[[X]]
  // CHECK-NEXT: %[[GATE:.*]] = nn.quantized_linear %[[Q]] scales %[[S]], %[[GV]] scales %[[GT]] bias %[[B]] role "mlp.gate"
  %0 = nn.linear %x, %g role "mlp.gate" : tensor<4x64xf32>, tensor<32x64xf32> -> tensor<4x32xf32>
  %1 = nn.add %0, %b : tensor<4x32xf32>, tensor<32xf32> -> tensor<4x32xf32>
  // CHECK-NEXT: %[[UP:.*]] = nn.quantized_linear %[[Q]] scales %[[S]], %[[UV]] scales %[[UT]] role "mlp.up"
  %2 = nn.linear %x, %u role "mlp.up" : tensor<4x64xf32>, tensor<32x64xf32> -> tensor<4x32xf32>
  // CHECK-NEXT: %[[H:.*]] = nn.mul %[[GATE]], %[[UP]]
  %3 = nn.mul %1, %2 : tensor<4x32xf32>, tensor<4x32xf32> -> tensor<4x32xf32>
  // CHECK-NEXT: %[[HQ:.*]], %[[HS:.*]] = nn.quantize_rows %[[H]]
  // CHECK-NEXT: nn.quantized_linear %[[HQ]] scales %[[HS]], %[[DV]] scales %[[DT]] role "mlp.down"
  %4 = nn.linear %3, %d role "mlp.down" : tensor<4x32xf32>, tensor<64x32xf32> -> tensor<4x64xf32>
  return %4 : tensor<4x64xf32>
}

// CHECK-LABEL: func.func @main
// SOME-LABEL: func.func @main
func.func @main(%x: tensor<4x64xf32> {nn.name = "x"}, %w: tensor<64x64xf32> {nn.name = "w"}) -> (tensor<4x100xf32> {nn.name = "y"}) attributes {nn.entry} {
  // CHECK: %[[GV:.*]] = nn.parameter "g.int8" slices ["g"[64, 64]] quantized values of tensor<64x64xi8> sharded <@mesh, [{tp}, {}]> : tensor<32x64xi8>
  // CHECK-NEXT: %[[GT:.*]] = nn.parameter "g.scales" slices ["g"[64, 64]] quantized scales of tensor<64xf32> sharded <@mesh, [{tp}]> : tensor<32xf32>
  %g = nn.parameter "g" of tensor<64x64xf32> sharded <@mesh, [{tp}, {}]> : tensor<32x64xf32>
  %b = nn.parameter "b" of tensor<64xf32> sharded <@mesh, [{tp}]> : tensor<32xf32>
  %u = nn.parameter "u" of tensor<64x64xf32> sharded <@mesh, [{tp}, {}]> : tensor<32x64xf32>
  // A padded weight that is sharded along its rows.
  // CHECK: nn.parameter "d.int8" slices ["d"[64, 60]] quantized values of tensor<64x64xi8> sharded <@mesh, [{}, {tp}]> : tensor<64x32xi8>
  // CHECK-NEXT: nn.parameter "d.scales" slices ["d"[64, 60]] quantized scales of tensor<64xf32> sharded <@mesh, [{}]> : tensor<64xf32>
  %d = nn.parameter "d" slices ["d"[64, 60]] of tensor<64x64xf32> sharded <@mesh, [{}, {tp}]> : tensor<64x32xf32>
  %s = nn.parameter "s" : tensor<64xf32>
  %c = nn.parameter "c" : tensor<64x64xf32>
  // CHECK: call @layer(%{{[^,]*}}, %{{[^,]*}}, %[[GV]], %[[GT]], %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}})
  %0 = call @layer(%x, %g, %b, %u, %d) : (tensor<4x64xf32>, tensor<32x64xf32>, tensor<32xf32>, tensor<32x64xf32>, tensor<64x32xf32>) -> tensor<4x64xf32>
  %1 = call @layer(%0, %g, %b, %u, %d) : (tensor<4x64xf32>, tensor<32x64xf32>, tensor<32xf32>, tensor<32x64xf32>, tensor<64x32xf32>) -> tensor<4x64xf32>
  // CHECK: nn.linear %{{.*}} role "given"
  %2 = nn.linear %1, %w role "given" : tensor<4x64xf32>, tensor<64x64xf32> -> tensor<4x64xf32>
  %3 = nn.mul %c, %s : tensor<64x64xf32>, tensor<64xf32> -> tensor<64x64xf32>
  // CHECK: nn.linear %{{.*}} role "scaled"
  %4 = nn.linear %2, %3 role "scaled" : tensor<4x64xf32>, tensor<64x64xf32> -> tensor<4x64xf32>
  %h = nn.parameter "h" : tensor<8x64xbf16>
  %hx = nn.parameter "hx" : tensor<4x64xbf16>
  // CHECK: nn.linear %{{.*}} role "half"
  %5 = nn.linear %hx, %h role "half" : tensor<4x64xbf16>, tensor<8x64xbf16> -> tensor<4x8xbf16>
  %l = nn.parameter "l" : tensor<8x131072xf32>
  %lx = nn.parameter "lx" : tensor<4x131072xf32>
  // CHECK: nn.linear %{{.*}} role "long"
  %6 = nn.linear %lx, %l role "long" : tensor<4x131072xf32>, tensor<8x131072xf32> -> tensor<4x8xf32>
  // A table that the embedding needs too.
  // CHECK: nn.parameter "table" : tensor<100x64xf32>
  // CHECK: nn.parameter "table.int8" slices ["table"[100, 64]] quantized values : tensor<100x64xi8>
  %t = nn.parameter "table" : tensor<100x64xf32>
  %ids = arith.constant dense<1> : tensor<4xi64>
  %e = nn.embedding %ids, %t : tensor<4xi64>, tensor<100x64xf32> -> tensor<4x64xf32>
  %7 = nn.add %4, %e : tensor<4x64xf32>, tensor<4x64xf32> -> tensor<4x64xf32>
  // CHECK: nn.quantized_linear {{.*}} role "lm_head"
  // SOME: nn.linear {{.*}} role "lm_head"
  %8 = nn.linear %7, %t role "lm_head" : tensor<4x64xf32>, tensor<100x64xf32> -> tensor<4x100xf32>
  return %8 : tensor<4x100xf32>
}
