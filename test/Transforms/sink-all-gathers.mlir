// RUN: braid-opt %s --split-input-file --braid-sink-all-gathers | FileCheck %s
// RUN: braid-opt %s --split-input-file --braid-sink-all-gathers="across-calls=false" | FileCheck %s --check-prefix=WITHIN
// RUN: braid-opt %s --split-input-file --braid-sink-all-gathers --remark-format=emitRemark --remarks-filter=communication -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: braid-opt %s --split-input-file --test-equivalence="pipeline=builtin.module(braid-sink-all-gathers) seed=8" | FileCheck %s --check-prefix=SAME
// SAME-COUNT-5: equivalent on 2 and 2 ranks

comm.mesh @mesh <tp = 2>

// CHECK-LABEL: func.func @both
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>
func.func @both(%x: tensor<4x8xf32> {nn.name = "x"}) -> (tensor<4x8xf32> {nn.name = "a"}) attributes {nn.entry} {
  // Two gathered operands: both gathers move. Replicated operands are sliced.
  // CHECK: %[[S:.*]] = comm.reduce_scatter sum(%[[X]])
  // CHECK: %[[T:.*]] = comm.reduce_scatter max(%[[X]])
  // CHECK: %[[A:.*]] = nn.add %[[S]], %[[T]] : tensor<2x8xf32>
  // CHECK: %[[P:.*]] = comm.part %[[X]] dim 0
  // CHECK: %[[B:.*]] = nn.add %[[A]], %[[P]]
  // CHECK: %[[G:.*]] = comm.all_gather(%[[B]]) dim 0 over <@mesh, {tp}> role "s"
  // CHECK: return %[[G]]
  // REMARK: comm.all_gather 's': moved past 'nn.add'
  // REMARK: comm.all_gather 's': stays: '@both' is the entry
  %s = comm.reduce_scatter sum(%x) dim 0 over <@mesh, {tp}> : tensor<4x8xf32> -> tensor<2x8xf32>
  %t = comm.reduce_scatter max(%x) dim 0 over <@mesh, {tp}> : tensor<4x8xf32> -> tensor<2x8xf32>
  %sg = comm.all_gather(%s) dim 0 over <@mesh, {tp}> role "s" : tensor<2x8xf32> -> tensor<4x8xf32>
  %tg = comm.all_gather(%t) dim 0 over <@mesh, {tp}> role "s" : tensor<2x8xf32> -> tensor<4x8xf32>
  %a = nn.add %sg, %tg : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  %b = nn.add %a, %x : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  return %b : tensor<4x8xf32>
}

// -----

comm.mesh @mesh <tp = 2>

// CHECK-LABEL: func.func @stays
func.func @stays(%x: tensor<4x8xf32> {nn.name = "x"}, %y: tensor<4x4xf32> {nn.name = "y"})
    -> (tensor<4x8xf32> {nn.name = "a"}, tensor<4x4xf32> {nn.name = "b"}, tensor<4x4xf32> {nn.name = "c"}, tensor<4x4xf32> {nn.name = "d"}) attributes {nn.entry} {
  // The normalized dimension must be replicated.
  // CHECK: %[[G:.*]] = comm.all_gather({{.*}}) dim 1
  // CHECK: nn.layer_norm %[[G]]
  // REMARK: comm.all_gather 'hidden': stays: 'nn.layer_norm' needs all of 'hidden'
  %nw = nn.parameter "nw" init ones : tensor<8xf32>
  %nb = nn.parameter "nb" init zeros : tensor<8xf32>
  %s = comm.reduce_scatter sum(%x) dim 1 over <@mesh, {tp}> : tensor<4x8xf32> -> tensor<4x4xf32>
  %g = comm.all_gather(%s) dim 1 over <@mesh, {tp}> role "hidden" : tensor<4x4xf32> -> tensor<4x8xf32>
  %a = nn.layer_norm %g, %nw, %nb epsilon 1.0e-6 : tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<4x8xf32>
  // Every rank has other rows of this weight.
  // CHECK: %[[H:.*]] = comm.all_gather({{.*}}) dim 0
  // CHECK: nn.linear %[[H]]
  // REMARK: comm.all_gather 'rows': stays: 'nn.linear' has an operand that differs between the ranks
  %w = nn.parameter "w" of tensor<8x8xf32> sharded <@mesh, [{tp}, {}]> : tensor<4x8xf32>
  %t = comm.reduce_scatter sum(%x) dim 0 over <@mesh, {tp}> : tensor<4x8xf32> -> tensor<2x8xf32>
  %h = comm.all_gather(%t) dim 0 over <@mesh, {tp}> role "rows" : tensor<2x8xf32> -> tensor<4x8xf32>
  %l = nn.linear %h, %w : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x4xf32>
  %b = comm.all_reduce sum(%l) over <@mesh, {tp}> : tensor<4x4xf32>
  // Each of the two users would need a gather.
  // REMARK: comm.all_gather 'twice': stays: 'nn.activation' would need 32 bytes sent in place of 0
  %u = comm.reduce_scatter sum(%y) dim 0 over <@mesh, {tp}> : tensor<4x4xf32> -> tensor<2x4xf32>
  %k = comm.all_gather(%u) dim 0 over <@mesh, {tp}> role "twice" : tensor<2x4xf32> -> tensor<4x4xf32>
  %c = nn.activation gelu %k : tensor<4x4xf32>
  %d = nn.activation gelu_tanh %k : tensor<4x4xf32>
  return %a, %b, %c, %d : tensor<4x8xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

comm.mesh @mesh <tp = 2>

// A result becomes a shard, then the argument of the next call does.
// CHECK-LABEL: func.func @calls
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>
// CHECK: %[[P:.*]] = comm.part %[[X]] dim 0
// CHECK: %[[Y:.*]] = call @f(%[[P]]) : (tensor<2x8xf32>) -> tensor<2x8xf32>
// CHECK: %[[Z:.*]] = call @f(%[[Y]]) : (tensor<2x8xf32>) -> tensor<2x8xf32>
// CHECK: %[[G:.*]] = comm.all_gather(%[[Z]]) dim 0 over <@mesh, {tp}> role "@f/f"
// CHECK: return %[[G]]
// WITHIN-LABEL: func.func @calls
// WITHIN: call @f(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32>
// REMARK: comm.all_gather 'f': moved to the callers of '@f'
// REMARK: comm.all_gather '@f/f': moved into '@f'
func.func @calls(%x: tensor<4x8xf32> {nn.name = "x"}) -> (tensor<4x8xf32> {nn.name = "a"}) attributes {nn.entry} {
  %y = call @f(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %z = call @f(%y) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %z : tensor<4x8xf32>
}
// CHECK-LABEL: func.func private @f
// CHECK-SAME: %[[A:.*]]: tensor<2x8xf32>
// CHECK: %[[W:.*]] = comm.all_gather(%[[A]]) dim 0
// CHECK: %[[S:.*]] = comm.reduce_scatter sum(%[[W]])
// CHECK: %[[B:.*]] = nn.add %[[S]], %[[A]]
// CHECK: return %[[B]]
func.func private @f(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %s = comm.reduce_scatter sum(%x) dim 0 over <@mesh, {tp}> : tensor<4x8xf32> -> tensor<2x8xf32>
  %g = comm.all_gather(%s) dim 0 over <@mesh, {tp}> role "f" : tensor<2x8xf32> -> tensor<4x8xf32>
  %a = nn.add %g, %x : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  return %a : tensor<4x8xf32>
}

// -----

comm.mesh @mesh <tp = 2>

#map = affine_map<(r, c) -> (r, c)>

// A captured value counts like an operand: the gather moves past a body that captures a replicated scalar, and not past one
// that captures a scalar that differs between ranks.
// CHECK-LABEL: func.func @captures
// CHECK: %[[P:.*]] = comm.part
// CHECK: %[[G:.*]] = comm.all_gather(%[[P]])
// CHECK: linalg.generic {{.*}} ins(%[[P]] : tensor<2x4xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[G]] : tensor<4x4xf32>)
// REMARK: comm.all_gather 'own': stays: 'linalg.generic' captures a value that differs between the ranks
func.func @captures(%x: tensor<4x4xf32> {nn.name = "x"})
    -> (tensor<4x4xf32> {nn.name = "a"}, tensor<4x4xf32> {nn.name = "b"}) attributes {nn.entry} {
  %c0 = arith.constant 0 : index
  %p = comm.part %x dim 0 over <@mesh, {tp}> : tensor<4x4xf32> -> tensor<2x4xf32>
  %same = tensor.extract %x[%c0, %c0] : tensor<4x4xf32>
  %own = tensor.extract %p[%c0, %c0] : tensor<2x4xf32>
  %g = comm.all_gather(%p) dim 0 over <@mesh, {tp}> role "same" : tensor<2x4xf32> -> tensor<4x4xf32>
  %h = comm.all_gather(%p) dim 0 over <@mesh, {tp}> role "own" : tensor<2x4xf32> -> tensor<4x4xf32>
  %e = tensor.empty() : tensor<4x4xf32>
  %a = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%g : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %m = arith.mulf %in, %same : f32
    linalg.yield %m : f32
  } -> tensor<4x4xf32>
  %b = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%h : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %m = arith.mulf %in, %own : f32
    linalg.yield %m : f32
  } -> tensor<4x4xf32>
  // The sum is the same on all ranks.
  %sum = comm.all_reduce sum(%b) over <@mesh, {tp}> : tensor<4x4xf32>
  return %a, %sum : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

comm.mesh @mesh <tp = 2>

// An argument differs along an axis if any call passes such a value: one call passes a scale that differs, so the gather stays.
// CHECK-LABEL: func.func private @scaled
// CHECK: %[[G:.*]] = comm.all_gather
// CHECK: nn.mul %[[G]]
// REMARK: comm.all_gather 'scaled': stays: 'nn.mul' has an operand that differs between the ranks
// CHECK-LABEL: func.func private @shifted
// CHECK: nn.add
// CHECK: comm.all_gather
// REMARK: comm.all_gather 'shifted': stays: the value that '@shifted' returns is used in it too
func.func private @scaled(%x: tensor<4x8xf32>, %scale: tensor<8xf32>) -> tensor<4x8xf32> {
  %s = comm.reduce_scatter sum(%x) dim 0 over <@mesh, {tp}> : tensor<4x8xf32> -> tensor<2x8xf32>
  %g = comm.all_gather(%s) dim 0 over <@mesh, {tp}> role "scaled" : tensor<2x8xf32> -> tensor<4x8xf32>
  %a = nn.mul %g, %scale : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x8xf32>
  return %a : tensor<4x8xf32>
}
func.func private @shifted(%x: tensor<4x8xf32>, %shift: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %s = comm.reduce_scatter sum(%x) dim 0 over <@mesh, {tp}> : tensor<4x8xf32> -> tensor<2x8xf32>
  %g = comm.all_gather(%s) dim 0 over <@mesh, {tp}> role "shifted" : tensor<2x8xf32> -> tensor<4x8xf32>
  %a = nn.add %g, %shift : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x8xf32>
  return %a, %a : tensor<4x8xf32>, tensor<4x8xf32>
}
func.func @main(%x: tensor<4x8xf32> {nn.name = "x"}, %w: tensor<16xf32> {nn.name = "w"}, %v: tensor<8xf32> {nn.name = "v"})
    -> (tensor<4x8xf32> {nn.name = "a"}) attributes {nn.entry} {
  %own = comm.part %w dim 0 over <@mesh, {tp}> : tensor<16xf32> -> tensor<8xf32>
  %a = call @scaled(%x, %v) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %b = call @scaled(%a, %own) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %sum = comm.all_reduce sum(%b) over <@mesh, {tp}> : tensor<4x8xf32>
  %c:2 = call @shifted(%sum, %v) : (tensor<4x8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  %d = nn.add %c#0, %c#1 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  return %d : tensor<4x8xf32>
}
