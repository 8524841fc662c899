// RUN: braid-opt %s | braid-opt | FileCheck %s
// RUN: braid-opt %s --mlir-print-op-generic | braid-opt | FileCheck %s

comm.mesh @mesh <tp = 2>

// CHECK-LABEL: @quantized
func.func @quantized(%x: tensor<8x128x384xf32>, %b: tensor<1536xf32>) -> tensor<8x128x1536xf32> {
  // CHECK: nn.parameter "w.int8" slices ["w"[1536, 384]] quantized values : tensor<1536x384xi8>
  %w = nn.parameter "w.int8" slices ["w"[1536, 384]] quantized values : tensor<1536x384xi8>
  // CHECK: nn.parameter "w.scales" slices ["w"[1536, 384]] quantized scales init ones : tensor<1536xf32>
  %t = nn.parameter "w.scales" slices ["w"[1536, 384]] quantized scales init ones : tensor<1536xf32>
  // CHECK: %[[Q:.*]], %[[S:.*]] = nn.quantize_rows %{{.*}} : tensor<8x128x384xf32> -> tensor<8x128x384xi8>, tensor<8x128xf32>
  %q, %s = nn.quantize_rows %x : tensor<8x128x384xf32> -> tensor<8x128x384xi8>, tensor<8x128xf32>
  // CHECK: nn.quantized_linear %[[Q]] scales %[[S]], %{{.*}} scales %{{.*}} role "mlp.up" : tensor<8x128x384xi8>, tensor<8x128xf32>, tensor<1536x384xi8>, tensor<1536xf32> -> tensor<8x128x1536xf32>
  %y = nn.quantized_linear %q scales %s, %w scales %t role "mlp.up"
      : tensor<8x128x384xi8>, tensor<8x128xf32>, tensor<1536x384xi8>, tensor<1536xf32> -> tensor<8x128x1536xf32>
  // CHECK: nn.quantized_linear %[[Q]] scales %[[S]], %{{.*}} scales %{{.*}} bias %{{.*}} : tensor<8x128x384xi8>, tensor<8x128xf32>, tensor<1536x384xi8>, tensor<1536xf32>, tensor<1536xf32> -> tensor<8x128x1536xf32>
  %z = nn.quantized_linear %q scales %s, %w scales %t bias %b
      : tensor<8x128x384xi8>, tensor<8x128xf32>, tensor<1536x384xi8>, tensor<1536xf32>, tensor<1536xf32> -> tensor<8x128x1536xf32>
  return %z : tensor<8x128x1536xf32>
}

// CHECK-LABEL: @sharded
func.func @sharded() {
  // CHECK: quantized values of tensor<8x6xi8> sharded <@mesh, [{}, {tp}]> : tensor<8x3xi8>
  %w = nn.parameter "w.int8" slices ["w"[8, 6]] quantized values of tensor<8x6xi8> sharded <@mesh, [{}, {tp}]> : tensor<8x3xi8>
  // CHECK: quantized scales of tensor<8xf32> sharded <@mesh, [{}]> : tensor<8xf32>
  %t = nn.parameter "w.scales" slices ["w"[8, 6]] quantized scales of tensor<8xf32> sharded <@mesh, [{}]> : tensor<8xf32>
  return
}
