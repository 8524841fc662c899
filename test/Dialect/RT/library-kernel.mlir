// RUN: braid-opt %s | braid-opt | FileCheck %s
// RUN: braid-opt %s --mlir-print-op-generic | braid-opt | FileCheck %s

// CHECK: rt.kernel @norm(tensor<?x64xf32>, tensor<64xf32>) -> tensor<?x64xf32> attributes {library_symbol = "my_norm", row_flops = 256 : i64, scalars = [32, 1.000000e-05]}
rt.kernel @norm(tensor<?x64xf32>, tensor<64xf32>) -> tensor<?x64xf32>
    attributes {library_symbol = "my_norm", row_flops = 256 : i64, scalars = [32 : i64, 1.0e-5 : f64]}

// A kernel of a library needs no row operand, and may have any number of dimensions.
// CHECK: rt.kernel @whole(tensor<4x8x16xi32>) -> tensor<3xf32> attributes {library_symbol = "my_count"}
rt.kernel @whole(tensor<4x8x16xi32>) -> tensor<3xf32> attributes {library_symbol = "my_count"}

// CHECK: func.func @main
func.func @main(%x: tensor<2x5x64xf32>, %w: tensor<64xf32>, %y: tensor<4x8x16xi32>) -> (tensor<2x5x64xf32>, tensor<3xf32>) {
  // CHECK: rt.launch @norm rows 10
  %0 = rt.launch @norm rows 10 ins(%x, %w : tensor<2x5x64xf32>, tensor<64xf32>) -> tensor<2x5x64xf32>
  // CHECK: rt.launch @whole rows 1
  %1 = rt.launch @whole rows 1 ins(%y : tensor<4x8x16xi32>) -> tensor<3xf32>
  return %0, %1 : tensor<2x5x64xf32>, tensor<3xf32>
}

// A kernel of no inputs is launched without them.
// CHECK: rt.kernel @table() -> (tensor<4x1xf32>, tensor<4x1xf32>) attributes {library = "rotary_table"
rt.kernel @table() -> (tensor<4x1xf32>, tensor<4x1xf32>) attributes {library = "rotary_table", scalars = [1.0, 1.0 : f64]}
// CHECK-LABEL: rt.procedure @tables
rt.procedure @tables(%cos: memref<4x1xf32> {rt.result}, %sin: memref<4x1xf32> {rt.result}) {
  // CHECK: rt.launch @table rows 4 outs(%{{.*}}, %{{.*}} : memref<4x1xf32>, memref<4x1xf32>)
  rt.launch @table rows 4 outs(%cos, %sin : memref<4x1xf32>, memref<4x1xf32>)
  rt.return
}
