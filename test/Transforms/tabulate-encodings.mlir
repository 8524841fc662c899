// RUN: split-file %s %t
// RUN: braid-opt %t/layers.mlir --braid-tabulate-encodings | FileCheck %t/layers.mlir
// Without encodings, which is what arguments that are left out say, values are what they were.
// RUN: braid-opt %t/kinds.mlir --braid-tabulate-encodings | FileCheck %t/kinds.mlir
// RUN: braid-opt %t/kinds.mlir --braid-tabulate-encodings --remark-format=emitRemark --remarks-filter=communication -o /dev/null 2>&1 | FileCheck %t/kinds.mlir --check-prefix=REMARK
// RUN: not braid-opt %t/none.mlir --braid-tabulate-encodings 2>&1 | FileCheck %t/none.mlir

//--- layers.mlir
comm.mesh @mesh <tp = 2>

// Equal layers share a function, which gets an argument for its collective.
// CHECK-LABEL: func.func private @layer
// CHECK-SAME: %[[X:[^:]*]]: tensor<7x384xf32>, %[[C:[^:]*]]: tensor<2xi32>
func.func private @layer(%x: tensor<7x384xf32>) -> tensor<7x384xf32> {
  // CHECK: %[[A:.*]] = nn.fake_quantize %[[X]] by %[[C]] half reduce ranks 2 over <@mesh, {tp}> : tensor<7x384xf32>, tensor<2xi32> -> tensor<7x384xf32>
  // CHECK: %[[R:.*]] = comm.all_reduce sum(%[[A]]) over <@mesh, {tp}> role "mlp.down" : tensor<7x384xf32>
  // CHECK: %[[G:.*]] = nn.fake_quantize %[[R]] by %[[C]] half gather ranks 2
  // CHECK: return %[[G]]
  %r = comm.all_reduce sum(%x) over <@mesh, {tp}> role "mlp.down" : tensor<7x384xf32>
  return %r : tensor<7x384xf32>
}

// CHECK-LABEL: func.func private @block
// CHECK-SAME: %[[C0:[^:]*]]: tensor<2xi32>, %[[C1:[^:]*]]: tensor<2xi32>, %[[C2:[^:]*]]: tensor<2xi32>)
func.func private @block(%x: tensor<7x384xf32>) -> tensor<7x384xf32> {
  // CHECK: call @layer(%{{.*}}, %[[C0]])
  %0 = call @layer(%x) : (tensor<7x384xf32>) -> tensor<7x384xf32>
  // CHECK: nn.fake_quantize %{{.*}} by %[[C1]] half reduce
  %1 = comm.all_reduce sum(%0) over <@mesh, {tp}> role "own" : tensor<7x384xf32>
  // CHECK: call @layer(%{{.*}}, %[[C2]])
  %2 = call @layer(%1) : (tensor<7x384xf32>) -> tensor<7x384xf32>
  return %2 : tensor<7x384xf32>
}

// CHECK-LABEL: func.func @main
// CHECK-SAME: tensor<2xi32> {nn.default = 0 : i32, nn.name = "encoding-of-@main|@block|@layer#0|mlp.down"}
// CHECK-SAME: tensor<2xi32> {nn.default = 0 : i32, nn.name = "encoding-of-@main|@block|own"}
// CHECK-SAME: tensor<2xi32> {nn.default = 0 : i32, nn.name = "encoding-of-@main|@block|@layer#1|mlp.down"}
// CHECK-SAME: tensor<2xi32> {nn.default = 0 : i32, nn.name = "encoding-of-@main|@layer|mlp.down"}
func.func @main(%x: tensor<7x384xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{}, {}], partial = [tp = sum]>, comm.global_type = tensor<7x384xf32>})
    -> (tensor<7x384xf32> {nn.name = "y"}) attributes {nn.entry} {
  %0 = call @block(%x) : (tensor<7x384xf32>) -> tensor<7x384xf32>
  %1 = call @layer(%0) : (tensor<7x384xf32>) -> tensor<7x384xf32>
  return %1 : tensor<7x384xf32>
}

//--- kinds.mlir
comm.mesh @mesh <tp = 4, one = 1>

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[H:[^:]*]]: tensor<8x256xbf16>
// CHECK-SAME: encoding-of-@main|half
// CHECK-SAME: encoding-of-@main|columns
// CHECK-SAME: encoding-of-@main|two
// CHECK-SAME: encoding-of-@main|gathered
// CHECK-SAME: encoding-of-@main|exchanged
func.func @main(%x: tensor<8x256xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{}, {}], partial = [tp = sum]>, comm.global_type = tensor<8x256xf32>},
                %h: tensor<8x256xbf16> {nn.name = "h", comm.sharding = #comm.sharding<@mesh, [{}, {}], partial = [tp = sum]>, comm.global_type = tensor<8x256xbf16>},
                %p: tensor<2x256xf32> {nn.name = "p", comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>, comm.global_type = tensor<8x256xf32>},
                %row: tensor<256xf32> {nn.name = "row", comm.sharding = #comm.sharding<@mesh, [{}], partial = [tp = sum]>, comm.global_type = tensor<256xf32>})
    -> (tensor<8x256xbf16> {nn.name = "a"},
        tensor<8x64xf32> {nn.name = "b", comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>, comm.global_type = tensor<8x256xf32>},
        tensor<8x256xf32> {nn.name = "c"},
        tensor<8x64xf32> {nn.name = "d", comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>, comm.global_type = tensor<8x256xf32>},
        tensor<8x256xf32> {nn.name = "e"}) attributes {nn.entry} {
  // Halves are added in f32, as an encoded all_reduce adds them.
  // CHECK: %[[F:.*]] = nn.fake_quantize %[[H]] by %{{.*}} half reduce ranks 4 over <@mesh, {tp}> : tensor<8x256xbf16>, tensor<2xi32> -> tensor<8x256xf32>
  // CHECK: %[[R:.*]] = comm.all_reduce sum(%[[F]]) {{.*}} : tensor<8x256xf32>
  // CHECK: nn.fake_quantize %[[R]] by %{{.*}} half gather ranks 4 : tensor<8x256xf32>, tensor<2xi32> -> tensor<8x256xbf16>
  %a = comm.all_reduce sum(%h) over <@mesh, {tp}> role "half" : tensor<8x256xbf16>
  // Rows are cut as the payloads are.
  // CHECK: tensor.expand_shape %{{.*}} : tensor<8x256xf32> into tensor<8x4x64xf32>
  // CHECK: nn.fake_quantize %{{.*}} half reduce ranks 1 parts 8 over <@mesh, {tp}> : tensor<8x4x64xf32>
  // CHECK: tensor.collapse_shape %{{.*}} : tensor<8x4x64xf32> into tensor<8x256xf32>
  // CHECK: comm.reduce_scatter sum
  %b = comm.reduce_scatter sum(%x) dim 1 over <@mesh, {tp}> role "columns" : tensor<8x256xf32> -> tensor<8x64xf32>
  // Of several values, each as its own dimensions say.
  // CHECK: nn.fake_quantize %{{.*}} half reduce ranks 1 over <@mesh, {tp}> : tensor<8x256xf32>
  // CHECK: tensor.expand_shape %{{.*}} : tensor<256xf32> into tensor<4x64xf32>
  // CHECK: nn.fake_quantize %{{.*}} half reduce ranks 1 over <@mesh, {tp}> : tensor<4x64xf32>
  // CHECK: tensor.collapse_shape %{{.*}} : tensor<4x64xf32> into tensor<256xf32>
  // CHECK: comm.reduce_scatter sum
  %b0, %b1 = comm.reduce_scatter sum(%x, %row) dim 0 over <@mesh, {tp}> role "two" : tensor<8x256xf32>, tensor<256xf32> -> tensor<2x256xf32>, tensor<64xf32>
  // CHECK: nn.fake_quantize %{{.*}} half gather ranks 1 : tensor<2x256xf32>
  // CHECK: comm.all_gather
  %c = comm.all_gather(%p) dim 0 over <@mesh, {tp}> role "gathered" : tensor<2x256xf32> -> tensor<8x256xf32>
  // CHECK: nn.fake_quantize %{{.*}} half gather ranks 1 : tensor<2x4x64xf32>
  // CHECK: comm.all_to_all
  %d = comm.all_to_all(%p) split 1 concat 0 over <@mesh, {tp}> role "exchanged" : tensor<2x256xf32> -> tensor<8x64xf32>
  // REMARK: comm.all_reduce 'largest': it is no sum
  %e = comm.all_reduce max(%c) over <@mesh, {tp}> role "largest" : tensor<8x256xf32>
  // REMARK: comm.all_reduce 'alone': its group has one rank, so that nothing is sent
  %f = comm.all_reduce sum(%e) over <@mesh, {one}> role "alone" : tensor<8x256xf32>
  return %a, %b, %c, %d, %f : tensor<8x256xbf16>, tensor<8x64xf32>, tensor<8x256xf32>, tensor<8x64xf32>, tensor<8x256xf32>
}

//--- none.mlir
comm.mesh @mesh <tp = 2>
// CHECK: error: expects a collective that can be encoded, found none
func.func @main(%x: tensor<7x384xf32> {nn.name = "x"}) -> (tensor<7x384xf32> {nn.name = "y"}) attributes {nn.entry} {
  return %x : tensor<7x384xf32>
}
