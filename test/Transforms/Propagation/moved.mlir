// RUN: braid-opt %s --test-equivalence="pipeline=builtin.module(braid-propagate-shardings,braid-partition)" --split-input-file --remark-format=emitRemark --remarks-filter=sharding 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: braid-opt %s --test-equivalence="pipeline=builtin.module(braid-propagate-shardings,braid-partition)" --split-input-file --remark-format=emitRemark --remarks-filter=sharding | FileCheck %s --check-prefix=EQUIV

// Where shardings conflict: what is exchanged, in bytes that a rank sends, and that the values stay the same.

// A few rows are moved to match a large weight and their sum is scattered: 61,440 bytes instead of 50,331,648.
// REMARK: nn.linear: dimension 'batch' is not split over axis 'x' as in operand 0, because 'in' is split as in operand 1: a rank sends 61440 bytes instead of 50331648
// REMARK: comm.all_to_all over 4 ranks: {{.*}}bytesSentPerRank=12288
// REMARK: comm.reduce_scatter over 4 ranks: {{.*}}bytesSentPerRank=49152
// EQUIV: equivalent on 1 and 4 ranks: comm.all_to_all x1 comm.reduce_scatter x1 nn.linear x1
comm.mesh @mesh <x = 4>
func.func @main(%x: tensor<4x4096xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{x}, {}]>},
                %w: tensor<4096x4096xf32> {nn.name = "w", comm.sharding = #comm.sharding<@mesh, [{}, {x}]>})
    -> (tensor<4x4096xf32> {nn.name = "r", comm.sharding = #comm.sharding<@mesh, [{x}, {}]>}) attributes {nn.entry} {
  %0 = nn.linear %x, %w : tensor<4x4096xf32>, tensor<4096x4096xf32> -> tensor<4x4096xf32>
  return %0 : tensor<4x4096xf32>
}

// -----

// Two users want a value with the same sharding: its input is moved, once.
// REMARK: comm.all_to_all over 2 ranks: {{.*}}bytesSentPerRank=64
// EQUIV: equivalent on 1 and 2 ranks: comm.all_to_all x1 nn.activation x1 nn.add x1 nn.mul x1
comm.mesh @mesh <a = 2>
func.func @main(%x: tensor<8x8xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{a}, {}]>})
    -> (tensor<8x8xf32> {nn.name = "p", comm.sharding = #comm.sharding<@mesh, [{}, {a}]>},
        tensor<8x8xf32> {nn.name = "q", comm.sharding = #comm.sharding<@mesh, [{}, {a}]>}) attributes {nn.entry} {
  %0 = nn.activation gelu %x : tensor<8x8xf32>
  %1 = nn.add %0, %0 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %2 = nn.mul %0, %0 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  return %1, %2 : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// Two values are moved after the operation that combines them.
// REMARK: comm.all_to_all over 2 ranks: {{.*}}bytesSentPerRank=64
// EQUIV: equivalent on 1 and 2 ranks: comm.all_to_all x1 nn.activation x2 nn.add x1
comm.mesh @mesh <a = 2>
func.func @main(%x: tensor<8x8xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{a}, {}]>},
                %y: tensor<8x8xf32> {nn.name = "y", comm.sharding = #comm.sharding<@mesh, [{a}, {}]>})
    -> (tensor<8x8xf32> {nn.name = "p", comm.sharding = #comm.sharding<@mesh, [{}, {a}]>}) attributes {nn.entry} {
  %0 = nn.activation gelu %x : tensor<8x8xf32>
  %1 = nn.activation gelu %y : tensor<8x8xf32>
  %2 = nn.add %0, %1 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// -----

// A value is moved before an operation makes it larger.
// REMARK: comm.all_gather over 2 ranks: {{.*}}bytesSentPerRank=64
// EQUIV: equivalent on 1 and 4 ranks: comm.all_gather x1 linalg.broadcast x2 tensor.empty x2
comm.mesh @mesh <a = 2, b = 2>
func.func @main(%x: tensor<32xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{a}]>})
    -> (tensor<32x16x8xf32> {nn.name = "r", comm.sharding = #comm.sharding<@mesh, [{}, {a}, {}]>}) attributes {nn.entry} {
  %e = tensor.empty() : tensor<32x16xf32>
  %0 = linalg.broadcast ins(%x : tensor<32xf32>) outs(%e : tensor<32x16xf32>) dimensions = [1]
  %f = tensor.empty() : tensor<32x16x8xf32>
  %1 = linalg.broadcast ins(%0 : tensor<32x16xf32>) outs(%f : tensor<32x16x8xf32>) dimensions = [2]
  return %1 : tensor<32x16x8xf32>
}

// -----

// Two users want different shardings of a constant: each slices it, and nothing is sent.
// EQUIV: equivalent on 1 and 2 ranks: arith.constant x1 comm.part x2 nn.add x2
comm.mesh @mesh <a = 2>
func.func @main(%x: tensor<8x8xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{a}, {}]>},
                %y: tensor<8x8xf32> {nn.name = "y", comm.sharding = #comm.sharding<@mesh, [{}, {a}]>})
    -> (tensor<8x8xf32> {nn.name = "p"}, tensor<8x8xf32> {nn.name = "q"}) attributes {nn.entry} {
  %c = arith.constant dense<1.0> : tensor<8x8xf32>
  %0 = nn.add %x, %c : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %1 = nn.add %y, %c : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// Calls of one function, which has the shardings that the first call wants; the second call moves its values.
// EQUIV: equivalent on 1 and 4 ranks: comm.permute x2 func.call x2 nn.activation x2
comm.mesh @mesh <a = 2, b = 2>
func.func private @g(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = nn.activation gelu %x : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
func.func @main(%x: tensor<8x8xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{a}, {}]>},
                %y: tensor<8x8xf32> {nn.name = "y", comm.sharding = #comm.sharding<@mesh, [{b}, {}]>})
    -> (tensor<8x8xf32> {nn.name = "p", comm.sharding = #comm.sharding<@mesh, [{a}, {}]>},
        tensor<8x8xf32> {nn.name = "q", comm.sharding = #comm.sharding<@mesh, [{b}, {}]>}) attributes {nn.entry} {
  %0 = func.call @g(%x) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = func.call @g(%y) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// Sub-axes that exclude each other: the value gives up one before it takes the other.
// EQUIV: equivalent on 1 and 6 ranks: comm.all_gather x1 comm.all_to_all x1 comm.part x1 nn.activation x1
comm.mesh @mesh <x = 6>
func.func @main(%x: tensor<12x12xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{x:(1)2}, {}]>})
    -> (tensor<12x12xf32> {nn.name = "r", comm.sharding = #comm.sharding<@mesh, [{}, {x:(3)2}]>}) attributes {nn.entry} {
  %0 = nn.activation gelu %x : tensor<12x12xf32>
  return %0 : tensor<12x12xf32>
}
