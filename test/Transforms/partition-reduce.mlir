// RUN: braid-opt %s --braid-propagate-shardings --braid-partition | FileCheck %s

comm.mesh @mesh <tp = 2>

// A reduced dimension that is sharded gives partial values, which the same kind of reduction combines.
// CHECK-LABEL: func.func @sum
// CHECK: %[[P:.*]] = nn.reduce sum %{{.*}} dims [0] : tensor<4x6xf32> -> tensor<6xf32>
// CHECK: comm.all_reduce sum(%[[P]]) over <@mesh, {tp}>
func.func @sum(%x: tensor<8x6xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>})
    -> (tensor<6xf32> {nn.name = "y", comm.sharding = #comm.sharding<@mesh, [{}]>}) attributes {nn.entry} {
  %0 = nn.reduce sum %x dims [0] : tensor<8x6xf32> -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// CHECK-LABEL: func.func @max
// CHECK: %[[P:.*]] = nn.reduce max %{{.*}} dims [0] : tensor<4x6xf32> -> tensor<6xf32>
// CHECK: comm.all_reduce max(%[[P]]) over <@mesh, {tp}>
func.func @max(%x: tensor<8x6xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>})
    -> (tensor<6xf32> {nn.name = "y", comm.sharding = #comm.sharding<@mesh, [{}]>}) attributes {nn.entry} {
  %0 = nn.reduce max %x dims [0] : tensor<8x6xf32> -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// The kept dimension stays sharded.
// CHECK-LABEL: func.func @kept
// CHECK: nn.reduce sum %{{.*}} dims [0] : tensor<8x3xf32> -> tensor<3xf32>
// CHECK-NEXT: return
func.func @kept(%x: tensor<8x6xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>})
    -> (tensor<6xf32> {nn.name = "y", comm.sharding = #comm.sharding<@mesh, [{tp}]>}) attributes {nn.entry} {
  %0 = nn.reduce sum %x dims [0] : tensor<8x6xf32> -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// An elementwise function is computed on shards.
// CHECK-LABEL: func.func @map
// CHECK: nn.map %{{.*}}, %{{.*}} : tensor<8x3xf32>, tensor<3xf32> -> tensor<8x3xf32> {
// CHECK: nn.yield
// CHECK: return
func.func @map(%x: tensor<8x6xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>},
    %w: tensor<6xf32> {nn.name = "w", comm.sharding = #comm.sharding<@mesh, [{tp}]>})
    -> (tensor<8x6xf32> {nn.name = "y", comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>}) attributes {nn.entry} {
  %0 = nn.map %x, %w : tensor<8x6xf32>, tensor<6xf32> -> tensor<8x6xf32> {
  ^bb0(%a: f32, %b: f32):
    %m = arith.mulf %a, %b : f32
    nn.yield %m : f32
  }
  return %0 : tensor<8x6xf32>
}

// Of a maximum and a sum, the maximum is reduced first. The sums become relative to it, and are partial sums then.
// CHECK-LABEL: func.func @pair
// CHECK: %[[M:.*]], %[[S:.*]] = nn.reduce max %{{.*}} dims [1] : tensor<8x3xf32> -> tensor<8xf32>, tensor<8xf32>
// CHECK-NEXT: %[[ALL:.*]] = comm.all_reduce max(%[[M]]) over <@mesh, {tp}>
// CHECK-NEXT: %[[P:.*]] = nn.map %[[S]], %[[M]], %[[ALL]] : tensor<8xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<8xf32> {
// CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[X:.*]]: f32, %[[Y:.*]]: f32):
// CHECK-NEXT: %[[D:.*]] = arith.subf %[[X]], %[[Y]]
// CHECK-NEXT: %[[E:.*]] = math.exp %[[D]]
// CHECK-NEXT: %[[R:.*]] = arith.mulf %[[A]], %[[E]]
// CHECK-NEXT: %[[C:.*]] = arith.cmpf oeq, %[[X]], %[[Y]]
// CHECK-NEXT: %[[T:.*]] = arith.select %[[C]], %[[A]], %[[R]]
// CHECK-NEXT: nn.yield %[[T]]
// CHECK: %[[TOTAL:.*]] = comm.all_reduce sum(%[[P]]) over <@mesh, {tp}>
// CHECK-NEXT: return %[[ALL]], %[[TOTAL]]
func.func @pair(%x: tensor<8x6xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>})
    -> (tensor<8xf32> {nn.name = "m", comm.sharding = #comm.sharding<@mesh, [{}]>},
        tensor<8xf32> {nn.name = "s", comm.sharding = #comm.sharding<@mesh, [{}]>}) attributes {nn.entry} {
  %0, %1 = nn.reduce max %x dims [1] : tensor<8x6xf32> -> tensor<8xf32>, tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: func.func @map_rows
// CHECK: nn.map %{{.*}} rows(%{{.*}}) : tensor<4x6xf32> rows(tensor<4xf32>) -> tensor<4x6xf32> {
func.func @map_rows(%x: tensor<8x6xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>},
    %m: tensor<8xf32> {nn.name = "m", comm.sharding = #comm.sharding<@mesh, [{tp}]>})
    -> (tensor<8x6xf32> {nn.name = "y", comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>}) attributes {nn.entry} {
  %0 = nn.map %x rows(%m) : tensor<8x6xf32> rows(tensor<8xf32>) -> tensor<8x6xf32> {
  ^bb0(%a: f32, %b: f32):
    %d = arith.subf %a, %b : f32
    nn.yield %d : f32
  }
  return %0 : tensor<8x6xf32>
}
